// Where functions have no value, for the checks of numbers.
#pragma once

#include <hip/hip_runtime_api.h>

// The NaN of a function outside its domain, which libraries select as a constant: an instruction
// computes it here, and the checks of numbers look at instructions.
template <typename T> static __device__ __wc_inline T __wc_in_domain(bool outside, T result) {
#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__)
    float below = -1.0f;
    asm volatile("" : "+v"(result), "+v"(below));  // a selection, not a branch
    return outside ? (T)__builtin_amdgcn_sqrtf(below) : result;
#else
    return result;
#endif
}
template <typename T> static __device__ __wc_inline T __wc_checked_pow(T x, T y, T result) {
    bool is_number = x == x && y == y;
    bool outside = is_number && x < 0 && !__builtin_isinf(x) && __builtin_trunc(y) != y;
    return __wc_in_domain(outside, result);
}
// The rest of a division.
template <typename T> static __device__ __wc_inline T __wc_checked_rest(T x, T y, T result) {
    bool is_number = x == x && y == y;
    return __wc_in_domain(is_number && (y == 0 || __builtin_isinf(x)), result);
}
