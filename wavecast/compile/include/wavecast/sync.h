// Barriers, fences, clocks, and what a kernel prints.
#pragma once

#include <wavecast/cross_lane.h>

#define __WC_FN static __device__ __wc_inline

__WC_FN void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__WC_FN void __named_sync() { __builtin_amdgcn_s_barrier(); }
__WC_FN void __barrier(int fence) { fence ? __syncthreads() : __builtin_amdgcn_s_barrier(); }
__WC_FN void __syncwarp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
// Barriers that also count, in LDS, the work-items of the workgroup whose predicate is not 0.
template <int> __WC_FN int __wc_block_count(int predicate) {
    __shared__ int total;
    bool first = threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0;
    __syncthreads();
    if (first) total = 0;
    __syncthreads();
    unsigned long long lanes = __ballot(1), set = __ballot(predicate);
    if (__lane_id() == (unsigned)__builtin_ctzll(lanes))
        __hip_atomic_fetch_add(&total, __builtin_popcountll(set), __ATOMIC_RELAXED,
                               __HIP_MEMORY_SCOPE_WORKGROUP);
    __syncthreads();
    return total;
}
__WC_FN int __syncthreads_count(int predicate) { return __wc_block_count<0>(predicate); }
__WC_FN int __syncthreads_or(int predicate) { return __wc_block_count<0>(predicate) != 0; }
__WC_FN int __syncthreads_and(int predicate) { return __wc_block_count<0>(!predicate) == 0; }
template <typename M> __WC_FN void __syncwarp(M) { __syncwarp(); }
__WC_FN void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__WC_FN void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__WC_FN void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

__WC_FN long long clock64() { return (long long)__builtin_readcyclecounter(); }
__WC_FN long long clock() { return clock64(); }
__WC_FN long long __clock64() { return clock64(); }
__WC_FN long long __clock() { return clock64(); }
__WC_FN long long wall_clock64() { return (long long)__builtin_readsteadycounter(); }

// Loads and stores with hints about caches, which change no result.
template <typename T> __WC_FN T __ldg(const T *address) { return *address; }
template <typename T> __WC_FN T __ldcs(const T *address) { return *address; }
template <typename T> __WC_FN T __ldcg(const T *address) { return *address; }
template <typename T> __WC_FN T __ldca(const T *address) { return *address; }
template <typename T> __WC_FN void __stcs(T *address, T value) { *address = value; }
template <typename T> __WC_FN void __stcg(T *address, T value) { *address = value; }

// Copies and fills, which LLVM expands to loops where the size is not constant.
__WC_FN void *memcpy(void *to, const void *from, size_t bytes) {
    return __builtin_memcpy(to, from, bytes);
}
__WC_FN void *memset(void *to, int value, size_t bytes) {
    return __builtin_memset(to, value, bytes);
}

__WC_FN void abort() { __builtin_trap(); }
__WC_FN void __trap() { __builtin_trap(); }
#ifndef WAVECAST_PROGRAM
// printf and assert need a host that listens: the first does nothing, the second traps.
template <typename... Arguments> __WC_FN int printf(const char *, Arguments...) { return 0; }
__WC_FN void __assert_fail(const char *, const char *, unsigned, const char *) { __builtin_trap(); }
__WC_FN void __assert_fail(const char *, const char *, int, const char *) { __builtin_trap(); }
#endif

#undef __WC_FN
#ifdef WAVECAST_PROGRAM
#include <wavecast/program.h>
#endif
