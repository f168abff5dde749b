// Barriers, fences, clocks, and what a kernel prints.
#pragma once

#include <hip/hip_runtime_api.h>

#define __WC_FN static __device__ __wc_inline

__WC_FN void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__WC_FN void __syncwarp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
template <typename M> __WC_FN void __syncwarp(M) { __syncwarp(); }
__WC_FN void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__WC_FN void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__WC_FN void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

__WC_FN long long clock64() { return (long long)__builtin_readcyclecounter(); }
__WC_FN long long clock() { return clock64(); }
__WC_FN long long wall_clock64() { return (long long)__builtin_readsteadycounter(); }

template <typename T> __WC_FN T __ldg(const T *address) { return *address; }

__WC_FN void abort() { __builtin_trap(); }
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
