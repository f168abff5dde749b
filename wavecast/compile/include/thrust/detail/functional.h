// Function objects.
#pragma once

#include <hip/hip_runtime.h>
#include <utility>

#define __WC_FN __host__ __device__ __wc_inline

namespace thrust {

template <typename A, typename R> struct unary_function {
    typedef A argument_type;
    typedef R result_type;
};
template <typename A, typename B, typename R> struct binary_function {
    typedef A first_argument_type;
    typedef B second_argument_type;
    typedef R result_type;
};

#define __WC_BINARY(name, expression)                                                              \
    template <typename T = void> struct name {                                                     \
        typedef T result_type;                                                                     \
        __WC_FN auto operator()(const T &a, const T &b) const { return expression; }               \
    };                                                                                             \
    template <> struct name<void> {                                                                \
        template <typename A, typename B> __WC_FN auto operator()(const A &a, const B &b) const {  \
            return expression;                                                                     \
        }                                                                                          \
    };
__WC_BINARY(plus, a + b)
__WC_BINARY(minus, a - b)
__WC_BINARY(multiplies, a *b)
__WC_BINARY(divides, a / b)
__WC_BINARY(modulus, a % b)
__WC_BINARY(equal_to, a == b)
__WC_BINARY(not_equal_to, a != b)
__WC_BINARY(greater, a > b)
__WC_BINARY(less, a < b)
__WC_BINARY(greater_equal, a >= b)
__WC_BINARY(less_equal, a <= b)
__WC_BINARY(logical_and, a &&b)
__WC_BINARY(logical_or, a || b)
__WC_BINARY(bit_and, a &b)
__WC_BINARY(bit_or, a | b)
__WC_BINARY(bit_xor, a ^ b)
__WC_BINARY(maximum, a < b ? b : a)
__WC_BINARY(minimum, b < a ? b : a)
__WC_BINARY(project1st, a)
__WC_BINARY(project2nd, b)
#undef __WC_BINARY

#define __WC_UNARY(name, expression)                                                               \
    template <typename T = void> struct name {                                                     \
        typedef T argument_type;                                                                   \
        __WC_FN auto operator()(const T &a) const { return expression; }                           \
    };                                                                                             \
    template <> struct name<void> {                                                                \
        template <typename A> __WC_FN auto operator()(const A &a) const { return expression; }     \
    };
__WC_UNARY(negate, -a)
__WC_UNARY(square, a *a)
__WC_UNARY(logical_not, !a)
__WC_UNARY(bit_not, ~a)
__WC_UNARY(identity, a)
#undef __WC_UNARY

template <typename F> struct __wc_not {
    F f;
    template <typename... A> __WC_FN bool operator()(const A &...a) const {
        return !const_cast<F &>(f)(a...);
    }
};
template <typename F> __WC_FN __wc_not<F> not_fn(F f) { return {f}; }

}  // namespace thrust

#undef __WC_FN
