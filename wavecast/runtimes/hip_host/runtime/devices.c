// Devices and errors. The facts of the GPU come from the emulator, by the names of their fields.
#include "runtime.h"

#include <stddef.h>

__thread int current_device;
static bool peers[MAXIMUM_DEVICES][MAXIMUM_DEVICES];
static unsigned device_flags;
static size_t limits[3] = {1024, 1 << 20, HEAP_BYTES};

#define FIELD(name) {#name, offsetof(hipDeviceProp_t, name), sizeof(((hipDeviceProp_t *)0)->name)}
static const struct {
    const char *name;
    size_t offset, bytes;
} fields[] = {
    FIELD(totalGlobalMem), FIELD(sharedMemPerBlock), FIELD(regsPerBlock), FIELD(warpSize),
    FIELD(maxThreadsPerBlock), FIELD(clockRate), FIELD(major), FIELD(minor),
    FIELD(multiProcessorCount), FIELD(memoryClockRate), FIELD(memoryBusWidth), FIELD(l2CacheSize),
    FIELD(maxThreadsPerMultiProcessor), FIELD(maxBlocksPerMultiProcessor),
    FIELD(regsPerMultiprocessor), FIELD(memPitch), FIELD(totalConstMem), FIELD(textureAlignment),
    FIELD(texturePitchAlignment), FIELD(clockInstructionRate),
};

static void set_constant_properties(hipDeviceProp_t *p) {
    static const unsigned most = 2147483647u;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = p->maxThreadsDim[2] = p->maxThreadsPerBlock;
    p->maxGridSize[0] = most, p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->sharedMemPerMultiprocessor = p->maxSharedMemoryPerMultiProcessor = p->sharedMemPerBlock;
    p->sharedMemPerBlockOptin = p->sharedMemPerBlock;
    p->concurrentKernels = p->canMapHostMemory = p->unifiedAddressing = p->managedMemory = 1;
    p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->concurrentManagedAccess = p->cooperativeLaunch = p->memoryPoolsSupported = 1;
    p->directManagedMemAccessFromHost = p->hostRegisterSupported = p->isLargeBar = 1;
    p->hostNativeAtomicSupported = p->streamPrioritiesSupported = p->asyncEngineCount = 1;
    memset(&p->arch, 0xff, sizeof p->arch);
    p->arch.hasSurfaceFuncs = p->arch.hasDynamicParallelism = p->arch.hasFunnelShift = 0;
    p->arch.hasSyncThreadsExt = 0;
}

static void read_property(const char *name, const char *value) {
    hipDeviceProp_t *p = &session.properties;
    unsigned long long number = strtoull(value, NULL, 0);
    if (!strcmp(name, "name")) strncpy(p->name, value, sizeof p->name - 1);
    if (!strcmp(name, "gcnArchName")) strncpy(p->gcnArchName, value, sizeof p->gcnArchName - 1);
    if (!strcmp(name, "devices")) session.devices = number;
    if (!strcmp(name, "canary")) session.canary = number;
    if (!strcmp(name, "orders")) session.orders = number;
    if (!strcmp(name, "predicts")) session.predicts = number;
    if (!strcmp(name, "arena")) session.arena = (char *)number;
    if (!strcmp(name, "arena_bytes")) session.arena_bytes = number;
    if (!strcmp(name, "mapping")) session.mapping = (char *)number;
    if (!strcmp(name, "mapping_bytes")) session.mapping_bytes = number;
    if (!strcmp(name, "first_allocation")) session.first_allocation = number;
    for (size_t index = 0; index < sizeof fields / sizeof *fields; ++index)
        if (!strcmp(name, fields[index].name))
            memcpy((char *)p + fields[index].offset, &number, fields[index].bytes);
}

void read_properties(const char *text) {
    char *copy = strdup(text), *state, *line = strtok_r(copy, "\n", &state);
    for (; line; line = strtok_r(NULL, "\n", &state)) {
        char *value = strchr(line, ' ');
        if (!value) fail("the emulator has another version");
        *value++ = 0;
        read_property(line, value);
    }
    set_constant_properties(&session.properties);
    free(copy);
}

bool is_device(int device) { return device >= 0 && device < session.devices; }

API hipError_t hipInit(unsigned flags) {
    enter();
    return leave(flags ? hipErrorInvalidValue : hipSuccess);
}
API hipError_t hipDriverGetVersion(int *version) {
    if (!version) return hipErrorInvalidValue;
    *version = HIP_VERSION;
    return hipSuccess;
}
API hipError_t hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }
API hipError_t hipGetDeviceCount(int *count) {
    enter();
    if (!count) return leave(hipErrorInvalidValue);
    *count = session.devices;
    return leave(hipSuccess);
}
API hipError_t hipSetDevice(int device) {
    enter();
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    current_device = device;
    unsigned long long number = device;
    if (is_in_process()) free(request(DEVICE, &number, sizeof number, "", 0).data);
    return leave(hipSuccess);
}
API hipError_t hipGetDevice(int *device) {
    enter();
    if (!device) return leave(hipErrorInvalidValue);
    *device = current_device;
    return leave(hipSuccess);
}
API hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int device) {
    enter();
    if (!properties) return leave(hipErrorInvalidValue);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    *properties = session.properties;
    properties->pciBusID = device + 1;
    properties->uuid.bytes[0] = device + 1;
    return leave(hipSuccess);
}
API hipError_t hipChooseDeviceR0600(int *device, const hipDeviceProp_t *properties) {
    enter();
    if (!device || !properties) return leave(hipErrorInvalidValue);
    *device = 0;
    return leave(hipSuccess);
}

#define ATTRIBUTE(attribute, field) \
    case hipDeviceAttribute##attribute: *value = p->field; break;
API hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
    enter();
    const hipDeviceProp_t *p = &session.properties;
    if (!value) return leave(hipErrorInvalidValue);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    switch (attribute) {
        ATTRIBUTE(EccEnabled, ECCEnabled)
        ATTRIBUTE(AsyncEngineCount, asyncEngineCount)
        ATTRIBUTE(CanMapHostMemory, canMapHostMemory)
        ATTRIBUTE(ClockRate, clockRate)
        ATTRIBUTE(ComputeMode, computeMode)
        ATTRIBUTE(ConcurrentKernels, concurrentKernels)
        ATTRIBUTE(ConcurrentManagedAccess, concurrentManagedAccess)
        ATTRIBUTE(CooperativeLaunch, cooperativeLaunch)
        ATTRIBUTE(CooperativeMultiDeviceLaunch, cooperativeMultiDeviceLaunch)
        ATTRIBUTE(DirectManagedMemAccessFromHost, directManagedMemAccessFromHost)
        ATTRIBUTE(HostNativeAtomicSupported, hostNativeAtomicSupported)
        ATTRIBUTE(Integrated, integrated)
        ATTRIBUTE(KernelExecTimeout, kernelExecTimeoutEnabled)
        ATTRIBUTE(L2CacheSize, l2CacheSize)
        ATTRIBUTE(ComputeCapabilityMajor, major)
        ATTRIBUTE(ComputeCapabilityMinor, minor)
        ATTRIBUTE(ManagedMemory, managedMemory)
        ATTRIBUTE(MaxBlocksPerMultiProcessor, maxBlocksPerMultiProcessor)
        ATTRIBUTE(MaxBlockDimX, maxThreadsDim[0])
        ATTRIBUTE(MaxBlockDimY, maxThreadsDim[1])
        ATTRIBUTE(MaxBlockDimZ, maxThreadsDim[2])
        ATTRIBUTE(MaxGridDimX, maxGridSize[0])
        ATTRIBUTE(MaxGridDimY, maxGridSize[1])
        ATTRIBUTE(MaxGridDimZ, maxGridSize[2])
        ATTRIBUTE(MaxThreadsPerBlock, maxThreadsPerBlock)
        ATTRIBUTE(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor)
        ATTRIBUTE(MaxPitch, memPitch)
        ATTRIBUTE(MemoryBusWidth, memoryBusWidth)
        ATTRIBUTE(MemoryClockRate, memoryClockRate)
        ATTRIBUTE(MultiprocessorCount, multiProcessorCount)
        ATTRIBUTE(PageableMemoryAccess, pageableMemoryAccess)
        ATTRIBUTE(PciDeviceId, pciDeviceID)
        ATTRIBUTE(PciDomainID, pciDomainID)
        ATTRIBUTE(MaxRegistersPerBlock, regsPerBlock)
        ATTRIBUTE(MaxRegistersPerMultiprocessor, regsPerMultiprocessor)
        ATTRIBUTE(MaxSharedMemoryPerBlock, sharedMemPerBlock)
        ATTRIBUTE(SharedMemPerBlockOptin, sharedMemPerBlockOptin)
        ATTRIBUTE(SharedMemPerMultiprocessor, sharedMemPerMultiprocessor)
        ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, maxSharedMemoryPerMultiProcessor)
        ATTRIBUTE(StreamPrioritiesSupported, streamPrioritiesSupported)
        ATTRIBUTE(TextureAlignment, textureAlignment)
        ATTRIBUTE(TexturePitchAlignment, texturePitchAlignment)
        ATTRIBUTE(TotalConstantMemory, totalConstMem)
        ATTRIBUTE(TotalGlobalMem, totalGlobalMem)
        ATTRIBUTE(UnifiedAddressing, unifiedAddressing)
        ATTRIBUTE(WarpSize, warpSize)
        ATTRIBUTE(MemoryPoolsSupported, memoryPoolsSupported)
        ATTRIBUTE(ClockInstructionRate, clockInstructionRate)
        ATTRIBUTE(WallClockRate, clockInstructionRate)
        ATTRIBUTE(IsLargeBar, isLargeBar)
        ATTRIBUTE(AccessPolicyMaxWindowSize, accessPolicyMaxWindowSize)
        ATTRIBUTE(AsicRevision, asicRevision)
        ATTRIBUTE(CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem)
        ATTRIBUTE(ComputePreemptionSupported, computePreemptionSupported)
        ATTRIBUTE(CooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedBlockDim)
        ATTRIBUTE(CooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedFunc)
        ATTRIBUTE(CooperativeMultiDeviceUnmatchedGridDim, cooperativeMultiDeviceUnmatchedGridDim)
        ATTRIBUTE(CooperativeMultiDeviceUnmatchedSharedMem, cooperativeMultiDeviceUnmatchedSharedMem)
        ATTRIBUTE(GlobalL1CacheSupported, globalL1CacheSupported)
        ATTRIBUTE(IsMultiGpuBoard, isMultiGpuBoard)
        ATTRIBUTE(LocalL1CacheSupported, localL1CacheSupported)
        ATTRIBUTE(LuidDeviceNodeMask, luidDeviceNodeMask)
        ATTRIBUTE(MaxSurface1D, maxSurface1D)
        ATTRIBUTE(MaxTexture1DLinear, maxTexture1DLinear)
        ATTRIBUTE(MaxTexture1DMipmap, maxTexture1DMipmap)
        ATTRIBUTE(MaxTexture1DWidth, maxTexture1D)
        ATTRIBUTE(MaxTexture2DHeight, maxTexture2D[1])
        ATTRIBUTE(MaxTexture2DWidth, maxTexture2D[0])
        ATTRIBUTE(MaxTexture3DDepth, maxTexture3D[2])
        ATTRIBUTE(MaxTexture3DHeight, maxTexture3D[1])
        ATTRIBUTE(MaxTexture3DWidth, maxTexture3D[0])
        ATTRIBUTE(MaxTextureCubemap, maxTextureCubemap)
        ATTRIBUTE(MemoryPoolSupportedHandleTypes, memoryPoolSupportedHandleTypes)
        ATTRIBUTE(MultiGpuBoardGroupID, multiGpuBoardGroupID)
        ATTRIBUTE(PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables)
        ATTRIBUTE(PersistingL2CacheMaxSize, persistingL2CacheMaxSize)
        ATTRIBUTE(PhysicalMultiProcessorCount, multiProcessorCount)
        ATTRIBUTE(ReservedSharedMemPerBlock, reservedSharedMemPerBlock)
        ATTRIBUTE(SurfaceAlignment, surfaceAlignment)
        case hipDeviceAttributeDeviceOverlap: *value = p->asyncEngineCount > 0; break;
        case hipDeviceAttributeHostRegisterSupported:
        case hipDeviceAttributeFineGrainSupport:
        case hipDeviceAttributeVirtualMemoryManagementSupported: *value = 1; break;
        case hipDeviceAttributeImageSupport: *value = 0; break;
        case hipDeviceAttributePciBusId: *value = device + 1; break;
        default: return leave(hipErrorInvalidValue);
    }
    return leave(hipSuccess);
}

API hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
    enter();
    if (!device || !is_device(ordinal)) return leave(hipErrorInvalidDevice);
    *device = ordinal;
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device) {
    enter();
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    if (!name || length < 1) return leave(hipErrorInvalidValue);
    snprintf(name, length, "%s", session.properties.name);
    return leave(hipSuccess);
}
API hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
    enter();
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    if (!bytes) return leave(hipErrorInvalidValue);
    *bytes = session.properties.totalGlobalMem;
    return leave(hipSuccess);
}
API hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
    enter();
    if (!is_device(device) || !major || !minor) return leave(hipErrorInvalidDevice);
    *major = session.properties.major, *minor = session.properties.minor;
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetPCIBusId(char *id, int length, int device) {
    enter();
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    if (!id || length < 13) return leave(hipErrorInvalidValue);
    snprintf(id, length, "0000:%02x:00.0", device + 1);
    return leave(hipSuccess);
}
API hipError_t hipDeviceReset(void) {
    enter();
    release_all();
    return leave(hipSuccess);
}
API hipError_t hipSetDeviceFlags(unsigned flags) {
    enter();
    device_flags = flags;
    return leave(hipSuccess);
}
API hipError_t hipGetDeviceFlags(unsigned *flags) {
    enter();
    if (!flags) return leave(hipErrorInvalidValue);
    *flags = device_flags;
    return leave(hipSuccess);
}
API hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
    enter();
    if (limit > hipLimitMallocHeapSize) return leave(hipErrorUnknown);
    if (limit == hipLimitMallocHeapSize && value > HEAP_BYTES)
        fail("hipDeviceSetLimit: the heap of kernels has %u MiB", HEAP_BYTES >> 20);
    limits[limit] = value;
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetLimit(size_t *value, hipLimit_t limit) {
    enter();
    if (!value || limit > hipLimitMallocHeapSize) return leave(hipErrorInvalidValue);
    *value = limits[limit];
    return leave(hipSuccess);
}
API hipError_t hipDeviceSetCacheConfig(hipFuncCache_t config) {
    (void)config;
    enter();
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetCacheConfig(hipFuncCache_t *config) {
    enter();
    if (!config) return leave(hipErrorInvalidValue);
    *config = hipFuncCachePreferNone;
    return leave(hipSuccess);
}
API hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config) {
    (void)config;
    enter();
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig *config) {
    enter();
    if (!config) return leave(hipErrorInvalidValue);
    *config = hipSharedMemBankSizeFourByte;
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
    enter();
    if (least) *least = 1;
    if (greatest) *greatest = -1;
    return leave(hipSuccess);
}
API hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
    enter();
    if (!can) return leave(hipErrorInvalidValue);
    if (!is_device(device) || !is_device(peer)) return leave(hipErrorInvalidDevice);
    *can = device != peer;
    return leave(hipSuccess);
}
API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    enter();
    if (flags) return leave(hipErrorInvalidValue);
    if (!is_device(peer) || peer == current_device) return leave(hipErrorInvalidDevice);
    if (peers[current_device][peer]) return leave(hipErrorPeerAccessAlreadyEnabled);
    peers[current_device][peer] = true;
    return leave(hipSuccess);
}
API hipError_t hipDeviceDisablePeerAccess(int peer) {
    enter();
    if (!is_device(peer)) return leave(hipErrorInvalidDevice);
    if (!peers[current_device][peer]) return leave(hipErrorPeerAccessNotEnabled);
    peers[current_device][peer] = false;
    return leave(hipSuccess);
}
API hipError_t hipProfilerStart(void) { return hipSuccess; }
API hipError_t hipProfilerStop(void) { return hipSuccess; }
