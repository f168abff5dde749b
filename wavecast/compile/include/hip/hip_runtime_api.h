// Attributes of functions and variables, the version of HIP, and the host API.
#pragma once

#include <wavecast/host_api.h>

#ifdef __cplusplus
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
// Functions of these headers: their code counts for the line that calls them.
#define __wc_inline __forceinline__ __attribute__((nodebug))
// As HIP defines it: most threads of a block and, optionally, fewest waves per SIMD.
#define __WC_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __WC_BOUNDS_2(threads, waves) \
    __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define __WC_BOUNDS_OF(one, two, name, ...) name
#define __launch_bounds__(...) \
    __WC_BOUNDS_OF(__VA_ARGS__, __WC_BOUNDS_2, __WC_BOUNDS_1, )(__VA_ARGS__)
#endif

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
