// threadIdx, blockIdx, blockDim, gridDim, warpSize.
#pragma once

#include <hip/hip_runtime_api.h>

// WAVECAST_WAVE64 is set by wavecast together with -mwavefrontsize64, WAVECAST_CUDA for CUDA C++,
// whose warps have 32 lanes: half a wave of 64. WAVECAST_HOST_WAVE64 is set for the host code of a
// program for a target with waves of 64.
#if defined(__GFX9__) || defined(__GFX8__) || defined(WAVECAST_WAVE64) || \
    defined(WAVECAST_HOST_WAVE64)
constexpr int __wc_wave_size = 64;
#else
constexpr int __wc_wave_size = 32;
#endif
#ifdef WAVECAST_CUDA
constexpr int warpSize = 32;
#else
constexpr int warpSize = __wc_wave_size;
#endif

#define __WC_COORDINATE(name, component, expression)                                               \
    __declspec(property(get = __get_##component)) unsigned component;                              \
    __device__ __wc_inline unsigned __get_##component() const { return expression; }
#define __WC_INDEX(name, ex, ey, ez)                                                               \
    struct __wc_##name##_t {                                                                       \
        __WC_COORDINATE(name, x, ex)                                                               \
        __WC_COORDINATE(name, y, ey)                                                               \
        __WC_COORDINATE(name, z, ez)                                                               \
        __device__ __wc_inline operator dim3() const { return dim3(ex, ey, ez); }                  \
    };                                                                                             \
    extern const __device__ __attribute__((weak)) __wc_##name##_t name;

// The number of workgroups stands first in the implicit arguments (hidden_block_count_x, y, z).
#define __WC_BLOCK_COUNT(i)                                                                        \
    (((const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr())[i])

__WC_INDEX(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
           __builtin_amdgcn_workitem_id_z())
__WC_INDEX(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
           __builtin_amdgcn_workgroup_id_z())
__WC_INDEX(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
           __builtin_amdgcn_workgroup_size_z())
__WC_INDEX(gridDim, __WC_BLOCK_COUNT(0), __WC_BLOCK_COUNT(1), __WC_BLOCK_COUNT(2))

#undef __WC_INDEX
#undef __WC_COORDINATE

#define hipThreadIdx_x (__builtin_amdgcn_workitem_id_x())
#define hipThreadIdx_y (__builtin_amdgcn_workitem_id_y())
#define hipThreadIdx_z (__builtin_amdgcn_workitem_id_z())
#define hipBlockIdx_x (__builtin_amdgcn_workgroup_id_x())
#define hipBlockIdx_y (__builtin_amdgcn_workgroup_id_y())
#define hipBlockIdx_z (__builtin_amdgcn_workgroup_id_z())
#define hipBlockDim_x (__builtin_amdgcn_workgroup_size_x())
#define hipBlockDim_y (__builtin_amdgcn_workgroup_size_y())
#define hipBlockDim_z (__builtin_amdgcn_workgroup_size_z())
#define hipGridDim_x __WC_BLOCK_COUNT(0)
#define hipGridDim_y __WC_BLOCK_COUNT(1)
#define hipGridDim_z __WC_BLOCK_COUNT(2)
