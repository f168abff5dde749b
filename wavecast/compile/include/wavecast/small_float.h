// Operators of structures with a 16-bit float, and conversions from all numbers. As in HIP two of
// them make another; with a float or a double the result is that type, as of the compiler's floats.
#pragma once

#include <hip/hip_runtime_api.h>

template <bool B, typename T> struct __wc_type_if {};
template <typename T> struct __wc_type_if<true, T> { typedef T type; };
template <typename T> constexpr bool __wc_is_number = __is_arithmetic(T);
template <typename Small, typename T>
struct __wc_type_if_number : __wc_type_if<__wc_is_number<T>, Small> {};
template <bool Wide, typename Small, typename T> struct __wc_wider { typedef Small type; };
template <typename Small, typename T> struct __wc_wider<true, Small, T> { typedef T type; };
template <typename Small, typename T>
struct __wc_sum : __wc_wider<(__is_floating_point(T) && sizeof(T) > 2), Small, T> {};
template <bool Number, typename Small, typename T> struct __wc_sum_if_number {};
template <typename Small, typename T>
struct __wc_sum_if_number<true, Small, T> : __wc_sum<Small, T> {};

// A number as a float of the compiler, which has no conversion between its two of 16 bits.
template <typename To, typename T>
static __host__ __device__ __wc_inline constexpr To __wc_number_as(T x) {
    if constexpr (__is_same(T, __bf16) || __is_same(To, __bf16)) return (To)(float)x;
    else return (To)x;
}

#define __WC_HD static __host__ __device__ __wc_inline
#define __WC_FRIEND friend __host__ __device__ __wc_inline constexpr
#define __WC_SUM(S) typename __wc_sum_if_number<__wc_is_number<T>, S, T>::type

// Friends of S, which computes as W does: _Float16 itself, bfloat16 in single precision.
#define __WC_SMALL_FLOAT_OPERATOR(S, W, op)                                                        \
    __WC_FRIEND S operator op(S a, S b) { return S((W)a op(W) b); }                                \
    template <typename T> __WC_FRIEND __WC_SUM(S) operator op(S a, T b) {                          \
        typedef typename __wc_sum<W, T>::type R;                                                   \
        return __WC_SUM(S)((R)(W)a op __wc_number_as<R>(b));                                       \
    }                                                                                              \
    template <typename T> __WC_FRIEND __WC_SUM(S) operator op(T a, S b) {                          \
        typedef typename __wc_sum<W, T>::type R;                                                   \
        return __WC_SUM(S)(__wc_number_as<R>(a) op(R)(W) b);                                       \
    }                                                                                              \
    __WC_FRIEND S &operator op##=(S & a, S b) { return a = a op b; }                               \
    template <typename T> __WC_FRIEND typename __wc_type_if_number<S, T>::type &operator op##=(S & a, T b) {\
        return a = S(a op b);                                                                      \
    }
#define __WC_SMALL_FLOAT_COMPARISON(S, W, op)                                                      \
    __WC_FRIEND bool operator op(S a, S b) { return (W)a op(W) b; }                                \
    template <typename T> __WC_FRIEND typename __wc_type_if_number<bool, T>::type operator op(S a, T b) {\
        typedef typename __wc_sum<W, T>::type R;                                                   \
        return (R)(W)a op __wc_number_as<R>(b);                                                    \
    }                                                                                              \
    template <typename T> __WC_FRIEND typename __wc_type_if_number<bool, T>::type operator op(T a, S b) {\
        typedef typename __wc_sum<W, T>::type R;                                                   \
        return __wc_number_as<R>(a) op(R)(W) b;                                                    \
    }
#define __WC_SMALL_FLOAT_OPERATORS(S, W)                                                           \
    __WC_SMALL_FLOAT_OPERATOR(S, W, +)                                                             \
    __WC_SMALL_FLOAT_OPERATOR(S, W, -)                                                             \
    __WC_SMALL_FLOAT_OPERATOR(S, W, *)                                                             \
    __WC_SMALL_FLOAT_OPERATOR(S, W, /)                                                             \
    __WC_SMALL_FLOAT_COMPARISON(S, W, ==)                                                          \
    __WC_SMALL_FLOAT_COMPARISON(S, W, !=)                                                          \
    __WC_SMALL_FLOAT_COMPARISON(S, W, <)                                                           \
    __WC_SMALL_FLOAT_COMPARISON(S, W, <=)                                                          \
    __WC_SMALL_FLOAT_COMPARISON(S, W, >)                                                           \
    __WC_SMALL_FLOAT_COMPARISON(S, W, >=)                                                          \
    __WC_FRIEND S operator+(S a) { return a; }                                                     \
    __WC_FRIEND S operator-(S a) { return S(-(W)a); }                                              \
    __WC_FRIEND S &operator++(S &a) { return a = S((W)a + (W)1); }                                 \
    __WC_FRIEND S &operator--(S &a) { return a = S((W)a - (W)1); }                                 \
    __WC_FRIEND S operator++(S &a, int) {                                                          \
        S before = a;                                                                              \
        ++a;                                                                                       \
        return before;                                                                             \
    }                                                                                              \
    __WC_FRIEND S operator--(S &a, int) {                                                          \
        S before = a;                                                                              \
        --a;                                                                                       \
        return before;                                                                             \
    }

// Functions of the headers of halves and bfloat16 alike: of S and of pairs P of it, computed in W;
// PAIRS(op, a, b) is the operation on pairs.
#define __WC_SMALL_FLOAT_BINARY(S, P, W, PAIRS, op, name, packed)                                  \
    __WC_HD S name(S a, S b) { return S((W)a op(W) b); }                                           \
    __WC_HD P packed(P a, P b) { return PAIRS(op, a, b); }                                         \
    __WC_HD P operator op(P a, P b) { return packed(a, b); }                                       \
    __WC_HD P &operator op##=(P & a, P b) { return a = a op b; }
// `u` ones are true of numbers that are not ordered, too.
#define __WC_SMALL_FLOAT_ORDER(S, P, name, ordered, unordered)                                     \
    __WC_HD bool name(S x, S y) {                                                                  \
        float a = (float)x, b = (float)y;                                                          \
        return ordered;                                                                            \
    }                                                                                              \
    __WC_HD bool name##u(S x, S y) {                                                               \
        float a = (float)x, b = (float)y;                                                          \
        return unordered;                                                                          \
    }                                                                                              \
    __WC_HD P name##2(P a, P b) { return P(S(name(a.x, b.x)), S(name(a.y, b.y))); }
#define __WC_SMALL_FLOAT_FUNCTIONS(S, P, W, PAIRS)                                                 \
    __WC_SMALL_FLOAT_BINARY(S, P, W, PAIRS, +, __hadd, __hadd2)                                    \
    __WC_SMALL_FLOAT_BINARY(S, P, W, PAIRS, -, __hsub, __hsub2)                                    \
    __WC_SMALL_FLOAT_BINARY(S, P, W, PAIRS, *, __hmul, __hmul2)                                    \
    __WC_SMALL_FLOAT_BINARY(S, P, W, PAIRS, /, __hdiv, __h2div)                                    \
    __WC_HD P operator+(P a) { return a; }                                                         \
    __WC_HD P operator-(P a) { return P(-a.x, -a.y); }                                             \
    __WC_HD P &operator++(P &a) { return a = P(++a.x, ++a.y); }                                    \
    __WC_HD P &operator--(P &a) { return a = P(--a.x, --a.y); }                                    \
    __WC_HD bool operator==(P a, P b) { return a.x == b.x && a.y == b.y; }                         \
    __WC_HD bool operator!=(P a, P b) { return !(a == b); }                                        \
    __WC_SMALL_FLOAT_ORDER(S, P, __heq, a == b, !(a < b) && !(a > b))                              \
    __WC_SMALL_FLOAT_ORDER(S, P, __hne, a != b, !(a == b))                                         \
    __WC_SMALL_FLOAT_ORDER(S, P, __hlt, a < b, !(a >= b))                                          \
    __WC_SMALL_FLOAT_ORDER(S, P, __hle, a <= b, !(a > b))                                          \
    __WC_SMALL_FLOAT_ORDER(S, P, __hgt, a > b, !(a <= b))                                          \
    __WC_SMALL_FLOAT_ORDER(S, P, __hge, a >= b, !(a < b))                                          \
    __WC_HD bool __hbeq2(P a, P b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }                  \
    __WC_HD bool __hbne2(P a, P b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }                  \
    __WC_HD bool __hblt2(P a, P b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }                  \
    __WC_HD bool __hble2(P a, P b) { return __hle(a.x, b.x) && __hle(a.y, b.y); }                  \
    __WC_HD bool __hbgt2(P a, P b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }                  \
    __WC_HD bool __hbge2(P a, P b) { return __hge(a.x, b.x) && __hge(a.y, b.y); }                  \
    __WC_HD bool __hisnan(S x) { return (float)x != (float)x; }                                    \
    __WC_HD int __hisinf(S x) { return __builtin_isinf((float)x); }                                \
    __WC_HD P __hisnan2(P a) { return P(S(__hisnan(a.x)), S(__hisnan(a.y))); }                     \
    __WC_HD S __hneg(S x) { return -x; }                                                           \
    __WC_HD P __hneg2(P a) { return -a; }                                                          \
    __WC_HD S __habs(S x) { return S(__builtin_fabsf((float)x)); }                                 \
    __WC_HD P __habs2(P a) { return P(__habs(a.x), __habs(a.y)); }                                 \
    __WC_HD S __hmax(S a, S b) { return S(__builtin_elementwise_max((W)a, (W)b)); }                \
    __WC_HD S __hmin(S a, S b) { return S(__builtin_elementwise_min((W)a, (W)b)); }                \
    __WC_HD P __hmax2(P a, P b) { return P(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                  \
    __WC_HD P __hmin2(P a, P b) { return P(__hmin(a.x, b.x), __hmin(a.y, b.y)); }                  \
    __WC_HD float __low2float(P a) { return (float)a.x; }                                          \
    __WC_HD float __high2float(P a) { return (float)a.y; }                                         \
    __WC_HD P __lowhigh2highlow(P a) { return P(a.y, a.x); }

// Functions of device code, of one and of pairs; `x` is a float.
#define __WC_SMALL_FLOAT_MATH(S, P, name, expression)                                              \
    static __device__ __wc_inline S h##name(S value) {                                             \
        float x = (float)value;                                                                    \
        return S(expression);                                                                      \
    }                                                                                              \
    static __device__ __wc_inline P h2##name(P v) { return P(h##name(v.x), h##name(v.y)); }
#define __WC_SMALL_FLOAT_MATHS(S, P)                                                               \
    __WC_SMALL_FLOAT_MATH(S, P, sqrt, __builtin_sqrtf(x))                                          \
    __WC_SMALL_FLOAT_MATH(S, P, rsqrt, rsqrtf(x))                                                  \
    __WC_SMALL_FLOAT_MATH(S, P, rcp, 1.0f / x)                                                     \
    __WC_SMALL_FLOAT_MATH(S, P, exp, __expf(x))                                                    \
    __WC_SMALL_FLOAT_MATH(S, P, exp2, __wc_native_exp2(x))                                         \
    __WC_SMALL_FLOAT_MATH(S, P, exp10, exp10f(x))                                                  \
    __WC_SMALL_FLOAT_MATH(S, P, log, __logf(x))                                                    \
    __WC_SMALL_FLOAT_MATH(S, P, log2, __log2f(x))                                                  \
    __WC_SMALL_FLOAT_MATH(S, P, log10, log10f(x))                                                  \
    __WC_SMALL_FLOAT_MATH(S, P, sin, sinf(x))                                                      \
    __WC_SMALL_FLOAT_MATH(S, P, cos, cosf(x))                                                      \
    __WC_SMALL_FLOAT_MATH(S, P, floor, __builtin_floorf(x))                                        \
    __WC_SMALL_FLOAT_MATH(S, P, ceil, __builtin_ceilf(x))                                          \
    __WC_SMALL_FLOAT_MATH(S, P, trunc, __builtin_truncf(x))                                        \
    __WC_SMALL_FLOAT_MATH(S, P, rint, __builtin_rintf(x))
