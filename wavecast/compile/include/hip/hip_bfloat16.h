// hip_bfloat16, the older of HIP's two structures with a bfloat16.
#pragma once

#include <hip/hip_runtime.h>
#include <wavecast/small_float.h>

struct alignas(2) hip_bfloat16 {
    enum truncate_t { truncate };
    unsigned short data;
    hip_bfloat16() = default;
    template <typename T, typename = typename __wc_type_if_number<void, T>::type>
    __host__ __device__ __wc_inline constexpr hip_bfloat16(T x)
        : data(__builtin_bit_cast(unsigned short, __wc_number_as<__bf16>(x))) {}
    __host__ __device__ __wc_inline constexpr hip_bfloat16(float x, truncate_t)
        : data((unsigned short)(__builtin_bit_cast(unsigned, x) >> 16)) {}
    static __host__ __device__ __wc_inline hip_bfloat16 round_to_bfloat16(float x) { return x; }
    static __host__ __device__ __wc_inline hip_bfloat16 round_to_bfloat16(float x, truncate_t) {
        return hip_bfloat16(x, truncate);
    }
    __host__ __device__ __wc_inline constexpr operator float() const {
        return (float)__builtin_bit_cast(__bf16, data);
    }
    __WC_SMALL_FLOAT_OPERATORS(hip_bfloat16, float)
};

namespace std {
__WC_HD constexpr bool isinf(hip_bfloat16 x) { return __builtin_isinf((float)x); }
__WC_HD constexpr bool isnan(hip_bfloat16 x) { return __builtin_isnan((float)x); }
__WC_HD constexpr bool iszero(hip_bfloat16 x) { return (float)x == 0.0f; }
}  // namespace std
