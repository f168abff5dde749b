// HIP's host API as wavecast's libamdhip64 implements it (docs/hip.md), for C and C++.
#pragma once

#include <wavecast/host_types.h>

#ifdef __cplusplus
#define WC_OR(value) = value
extern "C" {
#else
#define WC_OR(value)
#endif

// --- initialisation, errors, devices
hipError_t hipInit(unsigned flags);
hipError_t hipDriverGetVersion(int *version);
hipError_t hipRuntimeGetVersion(int *version);
const char *hipGetErrorString(hipError_t error);
const char *hipGetErrorName(hipError_t error);
hipError_t hipDrvGetErrorString(hipError_t error, const char **text);
hipError_t hipDrvGetErrorName(hipError_t error, const char **name);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipGetDeviceCount(int *count);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevice(int *device);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int device);
#define hipGetDeviceProperties hipGetDevicePropertiesR0600
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device);
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal);
hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device);
hipError_t hipDeviceGetPCIBusId(char *id, int length, int device);
hipError_t hipChooseDeviceR0600(int *device, const hipDeviceProp_t *properties);
#define hipChooseDevice hipChooseDeviceR0600
hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceReset(void);
hipError_t hipSetDeviceFlags(unsigned flags);
hipError_t hipGetDeviceFlags(unsigned *flags);
hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value);
hipError_t hipDeviceGetLimit(size_t *value, hipLimit_t limit);
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t config);
hipError_t hipDeviceGetCacheConfig(hipFuncCache_t *config);
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config);
hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig *config);
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest);
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
hipError_t hipProfilerStart(void);
hipError_t hipProfilerStop(void);

// --- memory
hipError_t hipMalloc(void **pointer, size_t bytes);
hipError_t hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned flags);
hipError_t hipMallocManaged(void **pointer, size_t bytes, unsigned flags WC_OR(hipMemAttachGlobal));
hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned flags WC_OR(0));
hipError_t hipHostAlloc(void **pointer, size_t bytes, unsigned flags);
hipError_t hipMallocHost(void **pointer, size_t bytes);
hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
hipError_t hipMalloc3D(hipPitchedPtr *pointer, hipExtent extent);
hipError_t hipFree(void *pointer);
hipError_t hipHostFree(void *pointer);
hipError_t hipFreeHost(void *pointer);
hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned flags);
hipError_t hipHostUnregister(void *pointer);
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags);
hipError_t hipHostGetFlags(unsigned *flags, void *host);
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer);
hipError_t hipPointerGetAttribute(void *value, hipPointer_attribute attribute,
                                  hipDeviceptr_t pointer);
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer);
hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned flags);
hipError_t hipIpcCloseMemHandle(void *pointer);
hipError_t hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *address,
                                unsigned long long flags);
hipError_t hipMemAddressFree(void *pointer, size_t bytes);
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes,
                        const hipMemAllocationProp *properties, unsigned long long flags);
hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle);
hipError_t hipMemMap(void *pointer, size_t bytes, size_t offset,
                     hipMemGenericAllocationHandle_t handle, unsigned long long flags);
hipError_t hipMemUnmap(void *pointer, size_t bytes);
hipError_t hipMemSetAccess(void *pointer, size_t bytes, const hipMemAccessDesc *access,
                           size_t count);
hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location,
                           void *pointer);
hipError_t hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *properties,
                                          hipMemAllocationGranularity_flags option);
hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *properties,
                                                   hipMemGenericAllocationHandle_t handle);
hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *pointer);
hipError_t hipGetProcAddress(const char *symbol, void **function, int version,
                             unsigned long long flags, hipDriverProcAddressQueryResult *status);
hipError_t hipMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                               hipStream_t stream WC_OR(0));
hipError_t hipMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device);
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream WC_OR(0));
hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t bytes);
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                              hipStream_t stream);
hipError_t hipMemcpyPeer(void *to, int device, const void *from, int from_device, size_t bytes);
hipError_t hipMemcpyPeerAsync(void *to, int device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream WC_OR(0));
hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, hipMemcpyKind kind);
hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                            size_t width, size_t height, hipMemcpyKind kind,
                            hipStream_t stream WC_OR(0));
hipError_t hipMemcpy3D(const hipMemcpy3DParms *copy);
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *copy, hipStream_t stream WC_OR(0));
hipError_t hipMemset(void *pointer, int value, size_t bytes);
hipError_t hipMemsetAsync(void *pointer, int value, size_t bytes, hipStream_t stream WC_OR(0));
hipError_t hipMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height);
hipError_t hipMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                            hipStream_t stream WC_OR(0));
hipError_t hipMemsetD8(hipDeviceptr_t pointer, unsigned char value, size_t count);
hipError_t hipMemsetD16(hipDeviceptr_t pointer, unsigned short value, size_t count);
hipError_t hipMemsetD32(hipDeviceptr_t pointer, int value, size_t count);
hipError_t hipMemsetD8Async(hipDeviceptr_t pointer, unsigned char value, size_t count,
                            hipStream_t stream WC_OR(0));
hipError_t hipMemsetD16Async(hipDeviceptr_t pointer, unsigned short value, size_t count,
                             hipStream_t stream WC_OR(0));
hipError_t hipMemsetD32Async(hipDeviceptr_t pointer, int value, size_t count,
                             hipStream_t stream WC_OR(0));
hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes,
                             size_t offset WC_OR(0),
                             hipMemcpyKind kind WC_OR(hipMemcpyHostToDevice));
hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset WC_OR(0),
                               hipMemcpyKind kind WC_OR(hipMemcpyDeviceToHost));
hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                  hipMemcpyKind kind, hipStream_t stream WC_OR(0));
hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                    hipMemcpyKind kind, hipStream_t stream WC_OR(0));
hipError_t hipGetSymbolAddress(void **pointer, const void *symbol);
hipError_t hipGetSymbolSize(size_t *bytes, const void *symbol);
hipError_t hipMallocAsync(void **pointer, size_t bytes, hipStream_t stream);
hipError_t hipMallocFromPoolAsync(void **pointer, size_t bytes, hipMemPool_t pool,
                                  hipStream_t stream);
hipError_t hipFreeAsync(void *pointer, hipStream_t stream);
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device);
hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int device);
hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool);
hipError_t hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *properties);
hipError_t hipMemPoolDestroy(hipMemPool_t pool);
hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t bytes);
hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value);
hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value);

// --- streams and events
hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags);
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags WC_OR(0));
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags);
hipError_t hipStreamGetPriority(hipStream_t stream, int *priority);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t call, void *data,
                                unsigned flags);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t call, void *data);
hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *pointer, size_t bytes WC_OR(0),
                                   unsigned flags WC_OR(hipMemAttachSingle));
hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream WC_OR(0));
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop);

// --- kernels and modules
hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                           size_t dynamic_lds, hipStream_t stream);
hipError_t hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                              size_t dynamic_lds, hipStream_t stream, hipEvent_t start,
                              hipEvent_t stop, int flags);
hipError_t hipLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                      unsigned dynamic_lds, hipStream_t stream);
hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute attribute, int value);
hipError_t hipFuncSetCacheConfig(const void *function, hipFuncCache_t config);
hipError_t hipFuncSetSharedMemConfig(const void *function, hipSharedMemConfig config);
hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes, const void *function);
hipError_t hipGetFuncBySymbol(hipFunction_t *function, const void *symbol);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                        int block_size, size_t dynamic_lds);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                 int block_size, size_t dynamic_lds,
                                                                 unsigned flags);
hipError_t hipOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, const void *function,
                                             size_t dynamic_lds, int limit);
hipError_t hipModuleLoad(hipModule_t *module, const char *path);
hipError_t hipModuleLoadData(hipModule_t *module, const void *image);
hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count, int *options,
                               void **values);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function,
                                                              int block_size, size_t dynamic_lds);
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size,
                                                   hipFunction_t function, size_t dynamic_lds,
                                                   int limit);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleGetGlobal(hipDeviceptr_t *pointer, size_t *bytes, hipModule_t module,
                              const char *name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned dynamic_lds, hipStream_t stream,
                                 void **arguments, void **extra);
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x,
                                            unsigned grid_y, unsigned grid_z, unsigned block_x,
                                            unsigned block_y, unsigned block_z,
                                            unsigned dynamic_lds, hipStream_t stream,
                                            void **arguments);
hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *launch, hipFunction_t function,
                                void **arguments, void **extra);
hipError_t hipLaunchKernelExC(const hipLaunchConfig_t *launch, const void *function,
                              void **arguments);
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, unsigned items_x, unsigned items_y,
                                    unsigned items_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, size_t dynamic_lds, hipStream_t stream,
                                    void **arguments, void **extra, hipEvent_t start WC_OR(NULL),
                                    hipEvent_t stop WC_OR(NULL), unsigned flags WC_OR(0));
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_lds WC_OR(0),
                                      hipStream_t stream WC_OR(0));
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *dynamic_lds,
                                     hipStream_t *stream);
// What clang checks `kernel<<<grid, block, shared, stream>>>(...)` against.
hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t dynamic_lds WC_OR(0),
                            hipStream_t stream WC_OR(0));

// --- contexts of the driver API
hipError_t hipCtxCreate(hipCtx_t *context, unsigned flags, hipDevice_t device);
hipError_t hipCtxDestroy(hipCtx_t context);
hipError_t hipCtxPushCurrent(hipCtx_t context);
hipError_t hipCtxPopCurrent(hipCtx_t *context);
hipError_t hipCtxSetCurrent(hipCtx_t context);
hipError_t hipCtxGetCurrent(hipCtx_t *context);
hipError_t hipCtxGetDevice(hipDevice_t *device);
hipError_t hipCtxSynchronize(void);
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context, hipDevice_t device);
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device);
hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t device, unsigned flags);
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned *flags, int *active);

// --- graphs
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph);
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status);
hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count);
hipError_t hipGraphInstantiate(hipGraphExec_t *executable, hipGraph_t graph,
                               hipGraphNode_t *error_node, char *log, size_t log_bytes);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *executable, hipGraph_t graph,
                                        unsigned long long flags);
hipError_t hipGraphExecDestroy(hipGraphExec_t executable);
hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream);
hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *after, size_t count,
                                 const hipKernelNodeParams *parameters);
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *after, size_t count,
                                 const hipMemcpy3DParms *copy);
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph,
                                   const hipGraphNode_t *after, size_t count, void *to,
                                   const void *from, size_t bytes, hipMemcpyKind kind);
hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *after, size_t count,
                                 const hipMemsetParams *parameters);
hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                               size_t count, const hipHostNodeParams *parameters);
hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                                size_t count);

#ifdef __cplusplus
}

template <typename T> hipError_t hipMalloc(T **pointer, size_t bytes) {
    return hipMalloc((void **)pointer, bytes);
}
template <typename T>
hipError_t hipMallocManaged(T **pointer, size_t bytes, unsigned flags = hipMemAttachGlobal) {
    return hipMallocManaged((void **)pointer, bytes, flags);
}
template <typename T> hipError_t hipHostMalloc(T **pointer, size_t bytes, unsigned flags = 0) {
    return hipHostMalloc((void **)pointer, bytes, flags);
}
template <typename T> hipError_t hipHostAlloc(T **pointer, size_t bytes, unsigned flags) {
    return hipHostAlloc((void **)pointer, bytes, flags);
}
template <typename T> hipError_t hipMallocHost(T **pointer, size_t bytes) {
    return hipMallocHost((void **)pointer, bytes);
}
template <typename T>
hipError_t hipMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height) {
    return hipMallocPitch((void **)pointer, pitch, width, height);
}
template <typename T> hipError_t hipMallocAsync(T **pointer, size_t bytes, hipStream_t stream) {
    return hipMallocAsync((void **)pointer, bytes, stream);
}
template <typename T>
hipError_t hipMallocFromPoolAsync(T **pointer, size_t bytes, hipMemPool_t pool,
                                  hipStream_t stream) {
    return hipMallocFromPoolAsync((void **)pointer, bytes, pool, stream);
}
template <typename T> hipError_t hipHostGetDevicePointer(T **device, void *host, unsigned flags) {
    return hipHostGetDevicePointer((void **)device, host, flags);
}
template <typename T>
hipError_t hipMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                             hipMemcpyKind kind = hipMemcpyHostToDevice) {
    return hipMemcpyToSymbol((const void *)&symbol, from, bytes, offset, kind);
}
template <typename T>
hipError_t hipMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                               hipMemcpyKind kind = hipMemcpyDeviceToHost) {
    return hipMemcpyFromSymbol(to, (const void *)&symbol, bytes, offset, kind);
}
template <typename T>
hipError_t hipMemcpyToSymbolAsync(const T &symbol, const void *from, size_t bytes, size_t offset,
                                  hipMemcpyKind kind, hipStream_t stream = 0) {
    return hipMemcpyToSymbolAsync((const void *)&symbol, from, bytes, offset, kind, stream);
}
template <typename T>
hipError_t hipMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t offset,
                                    hipMemcpyKind kind, hipStream_t stream = 0) {
    return hipMemcpyFromSymbolAsync(to, (const void *)&symbol, bytes, offset, kind, stream);
}
template <typename T> hipError_t hipGetSymbolAddress(void **pointer, const T &symbol) {
    return hipGetSymbolAddress(pointer, (const void *)&symbol);
}
template <typename T> hipError_t hipGetSymbolSize(size_t *bytes, const T &symbol) {
    return hipGetSymbolSize(bytes, (const void *)&symbol);
}
template <typename R, typename... P>
hipError_t hipLaunchCooperativeKernel(R (*function)(P...), dim3 grid, dim3 block, void **arguments,
                                      unsigned dynamic_lds, hipStream_t stream) {
    return hipLaunchCooperativeKernel((const void *)function, grid, block, arguments, dynamic_lds,
                                      stream);
}
template <typename R, typename... P>
hipError_t hipFuncSetAttribute(R (*function)(P...), hipFuncAttribute attribute, int value) {
    return hipFuncSetAttribute((const void *)function, attribute, value);
}
template <typename R, typename... P>
hipError_t hipFuncSetCacheConfig(R (*function)(P...), hipFuncCache_t config) {
    return hipFuncSetCacheConfig((const void *)function, config);
}
template <typename R, typename... P>
hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes, R (*function)(P...)) {
    return hipFuncGetAttributes(attributes, (const void *)function);
}
template <typename R, typename... P>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, R (*function)(P...),
                                                        int block_size, size_t dynamic_lds) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)function, block_size,
                                                        dynamic_lds);
}
template <typename R, typename... P>
hipError_t hipOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, R (*function)(P...),
                                             size_t dynamic_lds = 0, int limit = 0) {
    return hipOccupancyMaxPotentialBlockSize(grid_size, block_size, (const void *)function,
                                             dynamic_lds, limit);
}
template <typename R, typename... P>
hipError_t hipLaunchKernel(R (*function)(P...), dim3 grid, dim3 block, void **arguments,
                           size_t dynamic_lds, hipStream_t stream) {
    return hipLaunchKernel((const void *)function, grid, block, arguments, dynamic_lds, stream);
}

inline hipExtent make_hipExtent(size_t width, size_t height, size_t depth) {
    return hipExtent{width, height, depth};
}
inline hipPos make_hipPos(size_t x, size_t y, size_t z) { return hipPos{x, y, z}; }
inline hipPitchedPtr make_hipPitchedPtr(void *pointer, size_t pitch, size_t width, size_t height) {
    return hipPitchedPtr{pointer, pitch, width, height};
}
#endif
#undef WC_OR

// Source that uses textures or surfaces has one error, which says so.
#define WC_REFUSED __attribute__((unavailable("textures and surfaces are not supported")))
typedef unsigned long long hipTextureObject_t WC_REFUSED, hipSurfaceObject_t WC_REFUSED;
typedef struct hipTextureDesc hipTextureDesc WC_REFUSED;
typedef struct hipResourceDesc hipResourceDesc WC_REFUSED;
typedef struct hipChannelFormatDesc hipChannelFormatDesc WC_REFUSED;
#undef WC_REFUSED
