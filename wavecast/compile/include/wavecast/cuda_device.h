// What CUDA C++ has for kernels and HIP has not.
#pragma once

#include <hip/hip_runtime.h>

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 12000
#define CUDA_VERSION 12000
#ifdef __HIP_DEVICE_COMPILE__
// The last GPUs without tensor cores and without asynchronous copies: code for later ones is PTX.
#define __CUDA_ARCH__ 600
#endif
#define __grid_constant__
#define __builtin_align__(bytes) __align__(bytes)
#define __cluster_dims__(...) \
    static_assert(false, "wavecast translates no thread block clusters for AMD GPUs")

#define __WC_FN static __device__ __wc_inline

__WC_FN void __nanosleep(unsigned) { __builtin_amdgcn_s_sleep(1); }

// Reductions over the lanes that a mask names.
#define __WC_REDUCE(name, type, expression)                                                        \
    __WC_FN type __reduce_##name##_sync(unsigned mask, type value) {                               \
        type a = __shfl(value, __builtin_ctz(mask));                                               \
        for (unsigned left = mask & (mask - 1); left; left &= left - 1) {                          \
            type b = __shfl(value, __builtin_ctz(left));                                           \
            a = expression;                                                                        \
        }                                                                                          \
        return a;                                                                                  \
    }
__WC_REDUCE(add, unsigned, a + b)
__WC_REDUCE(add, int, a + b)
__WC_REDUCE(min, unsigned, a < b ? a : b)
__WC_REDUCE(min, int, a < b ? a : b)
__WC_REDUCE(max, unsigned, a > b ? a : b)
__WC_REDUCE(max, int, a > b ? a : b)
__WC_REDUCE(and, unsigned, a & b)
__WC_REDUCE(or, unsigned, a | b)
__WC_REDUCE(xor, unsigned, a ^ b)
#undef __WC_REDUCE

#undef __WC_FN
