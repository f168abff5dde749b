// Attributes, dim3, and the host API as declarations without bodies.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
// Functions of these headers: their code counts for the line that calls them.
#define __wc_inline __forceinline__ __attribute__((nodebug))
// As HIP defines it: most threads of a block and, optionally, fewest waves per SIMD.
#define __WC_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __WC_BOUNDS_2(threads, waves) \
    __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define __WC_BOUNDS_OF(one, two, name, ...) name
#define __launch_bounds__(...) \
    __WC_BOUNDS_OF(__VA_ARGS__, __WC_BOUNDS_2, __WC_BOUNDS_1, )(__VA_ARGS__)

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#ifndef __HIPCC__
#define __HIPCC__ 1
#endif
#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 0
#define HIP_VERSION 70000000
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(x) x
#define HIP_DYNAMIC_SHARED(type, variable) extern __shared__ type variable[];
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...)                               \
    kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
        : x(x), y(y), z(z) {}
};

enum hipError_t {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotReady = 600,
    hipErrorUnknown = 999
};
enum hipMemcpyKind {
    hipMemcpyHostToHost,
    hipMemcpyHostToDevice,
    hipMemcpyDeviceToHost,
    hipMemcpyDeviceToDevice,
    hipMemcpyDefault
};
enum hipFuncAttribute {
    hipFuncAttributeMaxDynamicSharedMemorySize = 8,
    hipFuncAttributePreferredSharedMemoryCarveout = 9
};
enum hipDeviceAttribute_t {
    hipDeviceAttributeMaxThreadsPerBlock,
    hipDeviceAttributeMultiprocessorCount,
    hipDeviceAttributeWarpSize,
    hipDeviceAttributeMaxSharedMemoryPerBlock
};

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef void *hipDeviceptr_t;
typedef int hipDevice_t;

struct hipDeviceProp_t {
    char name[256];
    char gcnArchName[256];
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize, maxThreadsPerBlock, multiProcessorCount, clockRate;
    int memoryClockRate, memoryBusWidth, l2CacheSize, major, minor;
    int maxThreadsPerMultiProcessor;
    int maxThreadsDim[3], maxGridSize[3];
};

enum { hipStreamDefault = 0, hipStreamNonBlocking = 1 };
enum { hipEventDefault = 0, hipEventDisableTiming = 2 };
enum { hipHostMallocDefault = 0, hipHostRegisterDefault = 0 };

extern "C" {
const char *hipGetErrorString(hipError_t);
const char *hipGetErrorName(hipError_t);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipFree(void *);
hipError_t hipHostFree(void *);
hipError_t hipHostRegister(void *, size_t, unsigned);
hipError_t hipHostUnregister(void *);
hipError_t hipMemcpy(void *, const void *, size_t, hipMemcpyKind);
hipError_t hipMemcpyHtoD(hipDeviceptr_t, void *, size_t);
hipError_t hipMemcpyDtoH(void *, hipDeviceptr_t, size_t);
hipError_t hipMemset(void *, int, size_t);
hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceReset(void);
hipError_t hipSetDevice(int);
hipError_t hipGetDevice(int *);
hipError_t hipGetDeviceCount(int *);
hipError_t hipGetDeviceProperties(hipDeviceProp_t *, int);
hipError_t hipDeviceGetAttribute(int *, hipDeviceAttribute_t, int);
hipError_t hipStreamCreate(hipStream_t *);
hipError_t hipStreamCreateWithFlags(hipStream_t *, unsigned);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned);
hipError_t hipEventCreate(hipEvent_t *);
hipError_t hipEventCreateWithFlags(hipEvent_t *, unsigned);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipEventElapsedTime(float *, hipEvent_t, hipEvent_t);
hipError_t hipMemGetInfo(size_t *, size_t *);
hipError_t hipInit(unsigned);
}

hipError_t hipMalloc(void **, size_t);
hipError_t hipMallocManaged(void **, size_t, unsigned = 0);
hipError_t hipMallocAsync(void **, size_t, hipStream_t);
hipError_t hipFreeAsync(void *, hipStream_t);
hipError_t hipHostMalloc(void **, size_t, unsigned = 0);
hipError_t hipMemcpyAsync(void *, const void *, size_t, hipMemcpyKind, hipStream_t = nullptr);
hipError_t hipMemsetAsync(void *, int, size_t, hipStream_t = nullptr);
hipError_t hipEventRecord(hipEvent_t, hipStream_t = nullptr);
hipError_t hipFuncSetAttribute(const void *, hipFuncAttribute, int);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);
template <typename T> hipError_t hipMalloc(T **, size_t);
template <typename T> hipError_t hipMallocManaged(T **, size_t, unsigned = 0);
template <typename T> hipError_t hipMallocAsync(T **, size_t, hipStream_t);
template <typename T> hipError_t hipHostMalloc(T **, size_t, unsigned = 0);
template <typename T>
hipError_t hipMemcpyToSymbol(const T &, const void *, size_t, size_t = 0,
                             hipMemcpyKind = hipMemcpyHostToDevice);
template <typename T>
hipError_t hipMemcpyFromSymbol(void *, const T &, size_t, size_t = 0,
                               hipMemcpyKind = hipMemcpyDeviceToHost);
template <typename F> hipError_t hipFuncSetAttribute(F *, hipFuncAttribute, int);
template <typename F>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *, F *, int, size_t);

// What `kernel<<<grid, block, shared, stream>>>(...)` is checked against.
extern "C" hipError_t hipConfigureCall(dim3, dim3, size_t = 0, hipStream_t = nullptr);
extern "C" hipError_t __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = nullptr);
extern "C" hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, hipStream_t *);
