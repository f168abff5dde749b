// atomicAdd and its kin, relaxed, at agent scope (_system: all devices; _block: workgroup).
//
// As with hipcc, a floating-point atomicAdd is a compare-and-swap loop on targets whose instruction
// is not safe for all memory (gfx90a), unless -munsafe-fp-atomics is given; unsafeAtomicAdd always
// uses the instruction.
#pragma once

#include <hip/hip_runtime_api.h>

#define __WC_FN static __device__ __wc_inline

#define __WC_FETCH(name, builtin)                                                                  \
    template <typename T> __WC_FN T name(T *p, __wc_value<T> v) {                                  \
        return builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                          \
    }                                                                                              \
    template <typename T> __WC_FN T name##_system(T *p, __wc_value<T> v) {                         \
        return builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);                         \
    }                                                                                              \
    template <typename T> __WC_FN T name##_block(T *p, __wc_value<T> v) {                          \
        return builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);                      \
    }

// The value converts to the type of the memory, as with the overloads of ROCm.
template <typename T> struct __wc_identity { typedef T type; };
template <typename T> using __wc_value = typename __wc_identity<T>::type;

__WC_FETCH(atomicAdd, __hip_atomic_fetch_add)
__WC_FETCH(atomicSub, __hip_atomic_fetch_sub)
__WC_FETCH(atomicMin, __hip_atomic_fetch_min)
__WC_FETCH(atomicMax, __hip_atomic_fetch_max)
__WC_FETCH(atomicAnd, __hip_atomic_fetch_and)
__WC_FETCH(atomicOr, __hip_atomic_fetch_or)
__WC_FETCH(atomicXor, __hip_atomic_fetch_xor)
__WC_FETCH(atomicExch, __hip_atomic_exchange)
#undef __WC_FETCH

#define __WC_SCOPED(suffix, hip_scope, scope)                                                      \
    template <typename T>                                                                          \
    __WC_FN T atomicCAS##suffix(T *p, __wc_value<T> expected, __wc_value<T> desired) {             \
        __hip_atomic_compare_exchange_strong(p, &expected, desired, __ATOMIC_RELAXED,              \
                                             __ATOMIC_RELAXED, hip_scope);                         \
        return expected;                                                                           \
    }                                                                                              \
    __WC_FN unsigned atomicInc##suffix(unsigned *p, unsigned limit) {                              \
        return __builtin_amdgcn_atomic_inc32(p, limit, __ATOMIC_RELAXED, scope);                   \
    }                                                                                              \
    __WC_FN unsigned atomicDec##suffix(unsigned *p, unsigned limit) {                              \
        return __builtin_amdgcn_atomic_dec32(p, limit, __ATOMIC_RELAXED, scope);                   \
    }
__WC_SCOPED(, __HIP_MEMORY_SCOPE_AGENT, "agent")
__WC_SCOPED(_system, __HIP_MEMORY_SCOPE_SYSTEM, "")
__WC_SCOPED(_block, __HIP_MEMORY_SCOPE_WORKGROUP, "workgroup")
#undef __WC_SCOPED

// Ordinary device memory, no remote memory, denormals as the instruction treats them.
#if __has_extension(clang_atomic_attributes)
#define __WC_UNSAFE                                                                                \
    [[clang::atomic(no_remote_memory, no_fine_grained_memory, ignore_denormal_mode)]]
#else
#define __WC_UNSAFE
#endif
template <typename T> __WC_FN T unsafeAtomicAdd(T *p, __wc_value<T> v) {
    T old;
    __WC_UNSAFE { old = __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
    return old;
}
template <typename T> __WC_FN T safeAtomicAdd(T *p, __wc_value<T> v) { return atomicAdd(p, v); }
template <typename T> __WC_FN T safeAtomicMax(T *p, __wc_value<T> v) { return atomicMax(p, v); }
template <typename T> __WC_FN T safeAtomicMin(T *p, __wc_value<T> v) { return atomicMin(p, v); }
template <typename T> __WC_FN T unsafeAtomicMax(T *p, __wc_value<T> v) { return atomicMax(p, v); }
template <typename T> __WC_FN T unsafeAtomicMin(T *p, __wc_value<T> v) { return atomicMin(p, v); }
__WC_FN void atomicAddNoRet(float *p, float v) { unsafeAtomicAdd(p, v); }

// Swaps a 32-bit word until `change` was applied to it undisturbed.
template <typename T, typename F> __WC_FN T __wc_atomic_update(T *p, F change) {
    static_assert(sizeof(T) == 4, "a 32-bit word");
    unsigned *word = reinterpret_cast<unsigned *>(p), seen = *word;
    for (;;) {
        T old = __builtin_bit_cast(T, seen);
        unsigned next = __builtin_bit_cast(unsigned, change(old));
        unsigned found = atomicCAS(word, seen, next);
        if (found == seen) return old;
        seen = found;
    }
}

#undef __WC_FN
