// CUDA's runtime API under HIP's names, as hipify translates it: what CUDA C++ for AMD GPUs includes.
// Warps have 32 lanes on every GPU (wavecast/cross_lane.h), so the device reports 32.
#pragma once

#include <hip/hip_runtime.h>

// --- the same name after the prefix
#define cudaError_t hipError_t
#define cudaDriverGetVersion hipDriverGetVersion
#define cudaRuntimeGetVersion hipRuntimeGetVersion
#define cudaGetErrorString hipGetErrorString
#define cudaGetErrorName hipGetErrorName
#define cudaGetLastError hipGetLastError
#define cudaPeekAtLastError hipPeekAtLastError
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaSetDevice hipSetDevice
#define cudaGetDevice hipGetDevice
#define cudaDeviceGetPCIBusId hipDeviceGetPCIBusId
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaDeviceReset hipDeviceReset
#define cudaSetDeviceFlags hipSetDeviceFlags
#define cudaGetDeviceFlags hipGetDeviceFlags
#define cudaDeviceSetLimit hipDeviceSetLimit
#define cudaDeviceGetLimit hipDeviceGetLimit
#define cudaDeviceSetCacheConfig hipDeviceSetCacheConfig
#define cudaDeviceGetCacheConfig hipDeviceGetCacheConfig
#define cudaDeviceSetSharedMemConfig hipDeviceSetSharedMemConfig
#define cudaSharedMemConfig hipSharedMemConfig
#define cudaDeviceGetSharedMemConfig hipDeviceGetSharedMemConfig
#define cudaDeviceGetStreamPriorityRange hipDeviceGetStreamPriorityRange
#define cudaDeviceCanAccessPeer hipDeviceCanAccessPeer
#define cudaDeviceEnablePeerAccess hipDeviceEnablePeerAccess
#define cudaDeviceDisablePeerAccess hipDeviceDisablePeerAccess
#define cudaProfilerStart hipProfilerStart
#define cudaProfilerStop hipProfilerStop
#define cudaMalloc hipMalloc
#define cudaMallocManaged hipMallocManaged
#define cudaMemAttachGlobal hipMemAttachGlobal
#define cudaHostAlloc hipHostAlloc
#define cudaMallocHost hipMallocHost
#define cudaMallocPitch hipMallocPitch
#define cudaMalloc3D hipMalloc3D
#define cudaPitchedPtr hipPitchedPtr
#define cudaExtent hipExtent
#define cudaFree hipFree
#define cudaFreeHost hipFreeHost
#define cudaHostRegister hipHostRegister
#define cudaHostUnregister hipHostUnregister
#define cudaHostGetDevicePointer hipHostGetDevicePointer
#define cudaHostGetFlags hipHostGetFlags
#define cudaMemGetInfo hipMemGetInfo
#define cudaPointerGetAttributes hipPointerGetAttributes
#define cudaStream_t hipStream_t
#define cudaMemoryAdvise hipMemoryAdvise
#define cudaMemcpy hipMemcpy
#define cudaMemcpyKind hipMemcpyKind
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyPeer hipMemcpyPeer
#define cudaMemcpyPeerAsync hipMemcpyPeerAsync
#define cudaMemcpy2D hipMemcpy2D
#define cudaMemcpy2DAsync hipMemcpy2DAsync
#define cudaMemcpy3D hipMemcpy3D
#define cudaMemcpy3DParms hipMemcpy3DParms
#define cudaMemcpy3DAsync hipMemcpy3DAsync
#define cudaMemset hipMemset
#define cudaMemsetAsync hipMemsetAsync
#define cudaMemset2D hipMemset2D
#define cudaMemset2DAsync hipMemset2DAsync
#define cudaMemcpyToSymbol hipMemcpyToSymbol
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemcpyFromSymbol hipMemcpyFromSymbol
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyToSymbolAsync hipMemcpyToSymbolAsync
#define cudaMemcpyFromSymbolAsync hipMemcpyFromSymbolAsync
#define cudaGetSymbolAddress hipGetSymbolAddress
#define cudaGetSymbolSize hipGetSymbolSize
#define cudaMallocAsync hipMallocAsync
#define cudaMallocFromPoolAsync hipMallocFromPoolAsync
#define cudaMemPool_t hipMemPool_t
#define cudaFreeAsync hipFreeAsync
#define cudaDeviceGetDefaultMemPool hipDeviceGetDefaultMemPool
#define cudaDeviceGetMemPool hipDeviceGetMemPool
#define cudaDeviceSetMemPool hipDeviceSetMemPool
#define cudaMemPoolCreate hipMemPoolCreate
#define cudaMemPoolProps hipMemPoolProps
#define cudaMemPoolDestroy hipMemPoolDestroy
#define cudaMemPoolTrimTo hipMemPoolTrimTo
#define cudaMemPoolSetAttribute hipMemPoolSetAttribute
#define cudaMemPoolAttr hipMemPoolAttr
#define cudaMemPoolGetAttribute hipMemPoolGetAttribute
#define cudaStreamCreate hipStreamCreate
#define cudaStreamCreateWithFlags hipStreamCreateWithFlags
#define cudaStreamCreateWithPriority hipStreamCreateWithPriority
#define cudaStreamDestroy hipStreamDestroy
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStreamQuery hipStreamQuery
#define cudaStreamWaitEvent hipStreamWaitEvent
#define cudaEvent_t hipEvent_t
#define cudaStreamGetFlags hipStreamGetFlags
#define cudaStreamGetPriority hipStreamGetPriority
#define cudaStreamGetDevice hipStreamGetDevice
#define cudaStreamAddCallback hipStreamAddCallback
#define cudaStreamCallback_t hipStreamCallback_t
#define cudaHostFn_t hipHostFn_t
#define cudaStreamAttachMemAsync hipStreamAttachMemAsync
#define cudaMemAttachSingle hipMemAttachSingle
#define cudaEventCreate hipEventCreate
#define cudaEventCreateWithFlags hipEventCreateWithFlags
#define cudaEventDestroy hipEventDestroy
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEventQuery hipEventQuery
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaLaunchKernel hipLaunchKernel
#define cudaLaunchCooperativeKernel hipLaunchCooperativeKernel
#define cudaFuncSetAttribute hipFuncSetAttribute
#define cudaFuncAttribute hipFuncAttribute
#define cudaFuncSetCacheConfig hipFuncSetCacheConfig
#define cudaFuncSetSharedMemConfig hipFuncSetSharedMemConfig
#define cudaFuncGetAttributes hipFuncGetAttributes
#define cudaFuncAttributes hipFuncAttributes
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor hipOccupancyMaxActiveBlocksPerMultiprocessor
#define cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
#define cudaOccupancyMaxPotentialBlockSize hipOccupancyMaxPotentialBlockSize
#define cudaFunction_t hipFunction_t
#define cudaConfigureCall hipConfigureCall
#define cudaStreamBeginCapture hipStreamBeginCapture
#define cudaStreamCaptureMode hipStreamCaptureMode
#define cudaStreamEndCapture hipStreamEndCapture
#define cudaGraph_t hipGraph_t
#define cudaStreamIsCapturing hipStreamIsCapturing
#define cudaStreamCaptureStatus hipStreamCaptureStatus
#define cudaGraphCreate hipGraphCreate
#define cudaGraphDestroy hipGraphDestroy
#define cudaGraphGetNodes hipGraphGetNodes
#define cudaGraphNode_t hipGraphNode_t
#define cudaGraphExec_t hipGraphExec_t
#define cudaGraphInstantiateWithFlags hipGraphInstantiateWithFlags
#define cudaGraphExecDestroy hipGraphExecDestroy
#define cudaGraphLaunch hipGraphLaunch
#define cudaGraphAddKernelNode hipGraphAddKernelNode
#define cudaKernelNodeParams hipKernelNodeParams
#define cudaGraphAddMemcpyNode hipGraphAddMemcpyNode
#define cudaGraphAddMemcpyNode1D hipGraphAddMemcpyNode1D
#define cudaGraphAddMemsetNode hipGraphAddMemsetNode
#define cudaMemsetParams hipMemsetParams
#define cudaGraphAddHostNode hipGraphAddHostNode
#define cudaHostNodeParams hipHostNodeParams
#define cudaGraphAddEmptyNode hipGraphAddEmptyNode
#define cudaPos hipPos
#define cudaSuccess hipSuccess
#define cudaErrorInvalidValue hipErrorInvalidValue
#define cudaErrorOutOfMemory hipErrorOutOfMemory
#define cudaErrorMemoryAllocation hipErrorMemoryAllocation
#define cudaErrorNotInitialized hipErrorNotInitialized
#define cudaErrorInitializationError hipErrorInitializationError
#define cudaErrorDeinitialized hipErrorDeinitialized
#define cudaErrorProfilerDisabled hipErrorProfilerDisabled
#define cudaErrorInvalidConfiguration hipErrorInvalidConfiguration
#define cudaErrorInvalidPitchValue hipErrorInvalidPitchValue
#define cudaErrorInvalidSymbol hipErrorInvalidSymbol
#define cudaErrorInvalidDevicePointer hipErrorInvalidDevicePointer
#define cudaErrorInvalidMemcpyDirection hipErrorInvalidMemcpyDirection
#define cudaErrorInsufficientDriver hipErrorInsufficientDriver
#define cudaErrorMissingConfiguration hipErrorMissingConfiguration
#define cudaErrorPriorLaunchFailure hipErrorPriorLaunchFailure
#define cudaErrorInvalidDeviceFunction hipErrorInvalidDeviceFunction
#define cudaErrorNoDevice hipErrorNoDevice
#define cudaErrorInvalidDevice hipErrorInvalidDevice
#define cudaErrorInvalidContext hipErrorInvalidContext
#define cudaErrorInvalidSource hipErrorInvalidSource
#define cudaErrorFileNotFound hipErrorFileNotFound
#define cudaErrorInvalidHandle hipErrorInvalidHandle
#define cudaErrorInvalidResourceHandle hipErrorInvalidResourceHandle
#define cudaErrorIllegalState hipErrorIllegalState
#define cudaErrorNotReady hipErrorNotReady
#define cudaErrorIllegalAddress hipErrorIllegalAddress
#define cudaErrorLaunchOutOfResources hipErrorLaunchOutOfResources
#define cudaErrorPeerAccessAlreadyEnabled hipErrorPeerAccessAlreadyEnabled
#define cudaErrorPeerAccessNotEnabled hipErrorPeerAccessNotEnabled
#define cudaErrorSetOnActiveProcess hipErrorSetOnActiveProcess
#define cudaErrorContextIsDestroyed hipErrorContextIsDestroyed
#define cudaErrorAssert hipErrorAssert
#define cudaErrorHostMemoryAlreadyRegistered hipErrorHostMemoryAlreadyRegistered
#define cudaErrorHostMemoryNotRegistered hipErrorHostMemoryNotRegistered
#define cudaErrorLaunchFailure hipErrorLaunchFailure
#define cudaErrorCooperativeLaunchTooLarge hipErrorCooperativeLaunchTooLarge
#define cudaErrorNotSupported hipErrorNotSupported
#define cudaErrorStreamCaptureUnsupported hipErrorStreamCaptureUnsupported
#define cudaErrorStreamCaptureInvalidated hipErrorStreamCaptureInvalidated
#define cudaErrorStreamCaptureUnmatched hipErrorStreamCaptureUnmatched
#define cudaErrorStreamCaptureImplicit hipErrorStreamCaptureImplicit
#define cudaErrorUnknown hipErrorUnknown
#define cudaMemcpyHostToHost hipMemcpyHostToHost
#define cudaMemcpyDeviceToDevice hipMemcpyDeviceToDevice
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
#define cudaFuncAttributePreferredSharedMemoryCarveout hipFuncAttributePreferredSharedMemoryCarveout
#define cudaFuncCachePreferNone hipFuncCachePreferNone
#define cudaFuncCachePreferShared hipFuncCachePreferShared
#define cudaFuncCachePreferL1 hipFuncCachePreferL1
#define cudaFuncCachePreferEqual hipFuncCachePreferEqual
#define cudaSharedMemBankSizeDefault hipSharedMemBankSizeDefault
#define cudaSharedMemBankSizeFourByte hipSharedMemBankSizeFourByte
#define cudaSharedMemBankSizeEightByte hipSharedMemBankSizeEightByte
#define cudaComputeMode hipComputeMode
#define cudaComputeModeDefault hipComputeModeDefault
#define cudaComputeModeExclusive hipComputeModeExclusive
#define cudaComputeModeProhibited hipComputeModeProhibited
#define cudaComputeModeExclusiveProcess hipComputeModeExclusiveProcess
#define cudaLimitStackSize hipLimitStackSize
#define cudaLimitPrintfFifoSize hipLimitPrintfFifoSize
#define cudaLimitMallocHeapSize hipLimitMallocHeapSize
#define cudaMemoryType hipMemoryType
#define cudaMemoryTypeUnregistered hipMemoryTypeUnregistered
#define cudaMemoryTypeHost hipMemoryTypeHost
#define cudaMemoryTypeDevice hipMemoryTypeDevice
#define cudaMemoryTypeManaged hipMemoryTypeManaged
#define cudaMemAdviseSetReadMostly hipMemAdviseSetReadMostly
#define cudaMemAdviseUnsetReadMostly hipMemAdviseUnsetReadMostly
#define cudaMemAdviseSetPreferredLocation hipMemAdviseSetPreferredLocation
#define cudaMemAdviseUnsetPreferredLocation hipMemAdviseUnsetPreferredLocation
#define cudaMemAdviseSetAccessedBy hipMemAdviseSetAccessedBy
#define cudaMemAdviseUnsetAccessedBy hipMemAdviseUnsetAccessedBy
#define cudaTextureObject_t hipTextureObject_t
#define cudaSurfaceObject_t hipSurfaceObject_t
#define cudaTextureDesc hipTextureDesc
#define cudaResourceDesc hipResourceDesc
#define cudaChannelFormatDesc hipChannelFormatDesc
#define cudaArray hipArray
#define cudaArray_t hipArray_t
#define cudaStreamCaptureModeGlobal hipStreamCaptureModeGlobal
#define cudaStreamCaptureModeThreadLocal hipStreamCaptureModeThreadLocal
#define cudaStreamCaptureModeRelaxed hipStreamCaptureModeRelaxed
#define cudaStreamCaptureStatusNone hipStreamCaptureStatusNone
#define cudaStreamCaptureStatusActive hipStreamCaptureStatusActive
#define cudaStreamCaptureStatusInvalidated hipStreamCaptureStatusInvalidated
#define cudaMemPoolReuseFollowEventDependencies hipMemPoolReuseFollowEventDependencies
#define cudaMemPoolReuseAllowOpportunistic hipMemPoolReuseAllowOpportunistic
#define cudaMemPoolReuseAllowInternalDependencies hipMemPoolReuseAllowInternalDependencies
#define cudaMemPoolAttrReleaseThreshold hipMemPoolAttrReleaseThreshold
#define cudaMemPoolAttrReservedMemCurrent hipMemPoolAttrReservedMemCurrent
#define cudaMemPoolAttrReservedMemHigh hipMemPoolAttrReservedMemHigh
#define cudaMemPoolAttrUsedMemCurrent hipMemPoolAttrUsedMemCurrent
#define cudaMemPoolAttrUsedMemHigh hipMemPoolAttrUsedMemHigh
#define cudaMemAllocationType hipMemAllocationType
#define cudaMemAllocationTypeInvalid hipMemAllocationTypeInvalid
#define cudaMemAllocationTypePinned hipMemAllocationTypePinned
#define cudaMemAllocationHandleType hipMemAllocationHandleType
#define cudaMemHandleTypeNone hipMemHandleTypeNone
#define cudaCpuDeviceId hipCpuDeviceId
#define cudaInvalidDeviceId hipInvalidDeviceId
#define cudaStreamDefault hipStreamDefault
#define cudaStreamNonBlocking hipStreamNonBlocking
#define cudaEventDefault hipEventDefault
#define cudaEventBlockingSync hipEventBlockingSync
#define cudaEventDisableTiming hipEventDisableTiming
#define cudaEventInterprocess hipEventInterprocess
#define cudaHostAllocDefault hipHostAllocDefault
#define cudaHostAllocPortable hipHostAllocPortable
#define cudaHostAllocMapped hipHostAllocMapped
#define cudaHostAllocWriteCombined hipHostAllocWriteCombined
#define cudaHostRegisterDefault hipHostRegisterDefault
#define cudaHostRegisterPortable hipHostRegisterPortable
#define cudaHostRegisterMapped hipHostRegisterMapped
#define cudaHostRegisterIoMemory hipHostRegisterIoMemory
#define cudaMemAttachHost hipMemAttachHost
#define cudaDeviceScheduleAuto hipDeviceScheduleAuto
#define cudaDeviceScheduleSpin hipDeviceScheduleSpin
#define cudaDeviceScheduleYield hipDeviceScheduleYield
#define cudaDeviceScheduleBlockingSync hipDeviceScheduleBlockingSync
#define cudaDeviceMapHost hipDeviceMapHost
#define cudaStreamLegacy hipStreamLegacy
#define cudaStreamPerThread hipStreamPerThread

// --- another name
#define cudaDeviceAttr hipDeviceAttribute_t
#define cudaDeviceProp hipDeviceProp_t
#define cudaErrorDeviceUninitialized hipErrorInvalidContext
#define cudaErrorLaunchTimeout hipErrorLaunchTimeOut
#define cudaErrorNoKernelImageForDevice hipErrorNoBinaryForGpu
#define cudaErrorSymbolNotFound hipErrorNotFound
#define cudaFuncCache hipFuncCache_t
#define cudaLaunchHostFunc hipLaunchHostFunc
#define cudaLaunchParams hipLaunchParams_t
#define cudaLimit hipLimit_t
#define cudaPointerAttributes hipPointerAttribute_t
#define cudaThreadExit hipDeviceReset
#define cudaThreadSetCacheConfig hipDeviceSetCacheConfig
#define cudaThreadSynchronize hipDeviceSynchronize
#define cudaUUID_t hipUUID

// --- attributes of devices
#define cudaDevAttrAsyncEngineCount hipDeviceAttributeAsyncEngineCount
#define cudaDevAttrCanMapHostMemory hipDeviceAttributeCanMapHostMemory
#define cudaDevAttrClockRate hipDeviceAttributeClockRate
#define cudaDevAttrComputeCapabilityMajor hipDeviceAttributeComputeCapabilityMajor
#define cudaDevAttrComputeCapabilityMinor hipDeviceAttributeComputeCapabilityMinor
#define cudaDevAttrComputeMode hipDeviceAttributeComputeMode
#define cudaDevAttrConcurrentKernels hipDeviceAttributeConcurrentKernels
#define cudaDevAttrConcurrentManagedAccess hipDeviceAttributeConcurrentManagedAccess
#define cudaDevAttrCooperativeLaunch hipDeviceAttributeCooperativeLaunch
#define cudaDevAttrEccEnabled hipDeviceAttributeEccEnabled
#define cudaDevAttrGlobalMemoryBusWidth hipDeviceAttributeMemoryBusWidth
#define cudaDevAttrHostNativeAtomicSupported hipDeviceAttributeHostNativeAtomicSupported
#define cudaDevAttrIntegrated hipDeviceAttributeIntegrated
#define cudaDevAttrKernelExecTimeout hipDeviceAttributeKernelExecTimeout
#define cudaDevAttrL2CacheSize hipDeviceAttributeL2CacheSize
#define cudaDevAttrManagedMemory hipDeviceAttributeManagedMemory
#define cudaDevAttrMaxBlockDimX hipDeviceAttributeMaxBlockDimX
#define cudaDevAttrMaxBlockDimY hipDeviceAttributeMaxBlockDimY
#define cudaDevAttrMaxBlockDimZ hipDeviceAttributeMaxBlockDimZ
#define cudaDevAttrMaxBlocksPerMultiprocessor hipDeviceAttributeMaxBlocksPerMultiProcessor
#define cudaDevAttrMaxGridDimX hipDeviceAttributeMaxGridDimX
#define cudaDevAttrMaxGridDimY hipDeviceAttributeMaxGridDimY
#define cudaDevAttrMaxGridDimZ hipDeviceAttributeMaxGridDimZ
#define cudaDevAttrMaxPitch hipDeviceAttributeMaxPitch
#define cudaDevAttrMaxRegistersPerBlock hipDeviceAttributeMaxRegistersPerBlock
#define cudaDevAttrMaxRegistersPerMultiprocessor hipDeviceAttributeMaxRegistersPerMultiprocessor
#define cudaDevAttrMaxSharedMemoryPerBlock hipDeviceAttributeMaxSharedMemoryPerBlock
#define cudaDevAttrMaxSharedMemoryPerBlockOptin hipDeviceAttributeSharedMemPerBlockOptin
#define cudaDevAttrMaxSharedMemoryPerMultiprocessor hipDeviceAttributeMaxSharedMemoryPerMultiprocessor
#define cudaDevAttrMaxThreadsPerBlock hipDeviceAttributeMaxThreadsPerBlock
#define cudaDevAttrMaxThreadsPerMultiProcessor hipDeviceAttributeMaxThreadsPerMultiProcessor
#define cudaDevAttrMemoryClockRate hipDeviceAttributeMemoryClockRate
#define cudaDevAttrMemoryPoolsSupported hipDeviceAttributeMemoryPoolsSupported
#define cudaDevAttrMultiProcessorCount hipDeviceAttributeMultiprocessorCount
#define cudaDevAttrPageableMemoryAccess hipDeviceAttributePageableMemoryAccess
#define cudaDevAttrPciBusId hipDeviceAttributePciBusId
#define cudaDevAttrPciDeviceId hipDeviceAttributePciDeviceId
#define cudaDevAttrStreamPrioritiesSupported hipDeviceAttributeStreamPrioritiesSupported
#define cudaDevAttrTotalConstantMemory hipDeviceAttributeTotalConstantMemory
#define cudaDevAttrUnifiedAddressing hipDeviceAttributeUnifiedAddressing
#define cudaDevAttrWarpSize hipDeviceAttributeWarpSize

#ifdef __cplusplus
static inline hipError_t cudaGetDeviceProperties(hipDeviceProp_t *properties, int device) {
    hipError_t error = hipGetDeviceProperties(properties, device);
    properties->warpSize = 32;
    return error;
}
static inline hipError_t cudaDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute,
                                                int device) {
    hipError_t error = hipDeviceGetAttribute(value, attribute, device);
    if (attribute == hipDeviceAttributeWarpSize) *value = 32;
    return error;
}
// CUDA 12 takes flags, CUDA 11 a node and a log.
static inline hipError_t cudaGraphInstantiate(hipGraphExec_t *executable, hipGraph_t graph,
                                              unsigned long long flags = 0) {
    return hipGraphInstantiateWithFlags(executable, graph, flags);
}
static inline hipError_t cudaGraphInstantiate(hipGraphExec_t *executable, hipGraph_t graph,
                                              hipGraphNode_t *error_node, char *log,
                                              size_t log_bytes) {
    return hipGraphInstantiate(executable, graph, error_node, log, log_bytes);
}
// CUDA 13 names a location, CUDA 12 a device.
struct cudaMemLocation {
    int type, id;
};
enum { cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2 };
static inline int __wc_device(cudaMemLocation location) {
    return location.type == cudaMemLocationTypeHost ? hipCpuDeviceId : location.id;
}
static inline hipError_t cudaMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice,
                                       int device) {
    return hipMemAdvise(pointer, bytes, advice, device);
}
static inline hipError_t cudaMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice,
                                       cudaMemLocation location) {
    return hipMemAdvise(pointer, bytes, advice, __wc_device(location));
}
static inline hipError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                                              hipStream_t stream = 0) {
    return hipMemPrefetchAsync(pointer, bytes, device, stream);
}
static inline hipError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes,
                                              cudaMemLocation location, unsigned flags,
                                              hipStream_t stream = 0) {
    (void)flags;
    return hipMemPrefetchAsync(pointer, bytes, __wc_device(location), stream);
}
#endif
