// Limits of the 16-bit floats, which the C++ library does not have.
#pragma once

#include <limits>

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>

#define __WC_LIMITS(T, bits_of_mantissa, largest, smallest)                                       \
    template <> class std::numeric_limits<T> {                                                    \
      public:                                                                                     \
        static constexpr bool is_specialized = true, is_signed = true, is_integer = false;        \
        static constexpr bool has_infinity = true, has_quiet_NaN = true;                          \
        static constexpr int digits = bits_of_mantissa + 1;                                       \
        static constexpr T max() { return (T)largest; }                                           \
        static constexpr T lowest() { return (T)-largest; }                                       \
        static constexpr T min() { return (T)smallest; }                                          \
        static constexpr T epsilon() { return (T)(1.0f / (1 << bits_of_mantissa)); }              \
        static constexpr T infinity() { return (T)__builtin_inff(); }                             \
        static constexpr T quiet_NaN() { return (T)__builtin_nanf(""); }                          \
        static constexpr T signaling_NaN() { return (T)__builtin_nanf(""); }                      \
    };
__WC_LIMITS(_Float16, 10, 65504.0f, 0x1p-14f)
__WC_LIMITS(__bf16, 7, 0x1.fep127f, 0x1p-126f)
#undef __WC_LIMITS
