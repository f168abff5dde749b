// Arithmetic and conversions rounded down (rd), up (ru) and towards zero (rz): the result rounded to
// nearest, moved by one step where its exact error asks for it. The hardware's mode register, which
// ROCm's library uses, stays as it is. Results are exact where the error is not below the smallest
// number.
#pragma once

#include <wavecast/math.h>

#define __WC_FN static __device__ __wc_inline

__WC_FN float __wc_step(float x, bool up) {
    if (x == 0) return __builtin_copysignf(__FLT_DENORM_MIN__, up ? 1.0f : -1.0f);
    return __builtin_bit_cast(float, __builtin_bit_cast(int, x) + (up == (x > 0) ? 1 : -1));
}
__WC_FN double __wc_step(double x, bool up) {
    if (x == 0) return __builtin_copysign(__DBL_DENORM_MIN__, up ? 1.0 : -1.0);
    long long bits = __builtin_bit_cast(long long, x) + (up == (x > 0) ? 1 : -1);
    return __builtin_bit_cast(double, bits);
}
// The neighbours that directed roundings choose; `error` has the sign of exact minus rounded.
template <typename T, typename E> __WC_FN T __wc_rounded_rd(T rounded, E error) {
    return error < 0 ? __wc_step(rounded, false) : rounded;
}
template <typename T, typename E> __WC_FN T __wc_rounded_ru(T rounded, E error) {
    return error > 0 ? __wc_step(rounded, true) : rounded;
}
template <typename T, typename E> __WC_FN T __wc_rounded_rz(T rounded, E error) {
    return rounded > 0 ? __wc_rounded_rd(rounded, error) : __wc_rounded_ru(rounded, error);
}

// Errors: of a sum by Knuth's TwoSum, of products, quotients and roots by a fused operation.
template <typename T> __WC_FN T __wc_sum_error(T x, T y, T sum) {
#pragma clang fp contract(off) reassociate(off)
    T part = sum - x;
    T error = (x - (sum - part)) + (y - part);
    return __builtin_isfinite(sum) ? error : (T)0;
}
template <typename T> __WC_FN T __wc_product_error(T x, T y, T product) {
    T error = __builtin_elementwise_fma(x, y, -product);
    return __builtin_isfinite(product) ? error : (T)0;
}
template <typename T> __WC_FN T __wc_quotient_error(T x, T y, T quotient) {
    if (!__builtin_isfinite(quotient) || __builtin_isinf(y)) return 0;
    T error = __builtin_elementwise_fma(-quotient, y, x);
    return y < 0 ? -error : error;
}
template <typename T> __WC_FN T __wc_root_error(T x, T root) {
    return __builtin_isfinite(root) ? __builtin_elementwise_fma(-root, root, x) : (T)0;
}
template <typename T, typename F> __WC_FN int __wc_integer_error(T x, F rounded) {
    F limit = (F)((T)1 << (8 * sizeof(T) - 2)) * (T(-1) < T(0) ? 2 : 4);  // 2^31, 2^32, 2^63, 2^64
    if (rounded >= limit) return -1;
    T back = (T)rounded;
    return back < x ? 1 : back > x ? -1 : 0;
}

#define __WC_ROUNDED(T, letter, direction)                                                         \
    __WC_FN T __##letter##add_##direction(T x, T y) {                                              \
        return __wc_rounded_##direction(x + y, __wc_sum_error(x, y, x + y));                       \
    }                                                                                              \
    __WC_FN T __##letter##sub_##direction(T x, T y) {                                              \
        return __wc_rounded_##direction(x - y, __wc_sum_error(x, -y, x - y));                      \
    }                                                                                              \
    __WC_FN T __##letter##mul_##direction(T x, T y) {                                              \
        return __wc_rounded_##direction(x * y, __wc_product_error(x, y, x * y));                   \
    }                                                                                              \
    __WC_FN T __##letter##div_##direction(T x, T y) {                                              \
        return __wc_rounded_##direction(x / y, __wc_quotient_error(x, y, x / y));                  \
    }                                                                                              \
    __WC_FN T __##letter##sqrt_##direction(T x) {                                                  \
        T root = __builtin_elementwise_sqrt(x);                                                    \
        return __wc_rounded_##direction(root, __wc_root_error(x, root));                           \
    }                                                                                              \
    __WC_FN T __##letter##rcp_##direction(T x) { return __##letter##div_##direction((T)1, x); }
#define __WC_CONVERTED(T, source, from, direction)                                                 \
    __WC_FN T __##source##2##T##_##direction(from x) {                                             \
        return __wc_rounded_##direction((T)x, __wc_integer_error(x, (T)x));                        \
    }
#define __WC_DIRECTION(direction)                                                                  \
    __WC_ROUNDED(float, f, direction)                                                              \
    __WC_ROUNDED(double, d, direction)                                                             \
    __WC_CONVERTED(float, int, int, direction)                                                     \
    __WC_CONVERTED(float, uint, unsigned, direction)                                               \
    __WC_CONVERTED(float, ll, long long, direction)                                                \
    __WC_CONVERTED(float, ull, unsigned long long, direction)                                      \
    __WC_CONVERTED(double, ll, long long, direction)                                               \
    __WC_CONVERTED(double, ull, unsigned long long, direction)                                     \
    __WC_FN float __double2float_##direction(double x) {                                           \
        float rounded = (float)x;                                                                  \
        double error = __builtin_isfinite(rounded) ? x - rounded : 0;                              \
        return __wc_rounded_##direction(rounded, error);                                           \
    }
__WC_DIRECTION(rd)
__WC_DIRECTION(ru)
__WC_DIRECTION(rz)
#undef __WC_DIRECTION
#undef __WC_CONVERTED
#undef __WC_ROUNDED
#undef __WC_FN
