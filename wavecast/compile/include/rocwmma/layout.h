// Part of rocwmma.hpp: matrix instructions by element type and block, and where their operands are.
//
// `depth` is how far along K an instruction goes, `per_lane` the elements of A and of B in a lane,
// `k` the place along K of one. Rows of A and columns of B are the lane's, modulo the block.
#pragma once

namespace rocwmma {
namespace detail {
#if defined(__GFX9__) || !defined(__HIP_DEVICE_COMPILE__)
static constexpr uint32_t WAVE = 64;
#else
static constexpr uint32_t WAVE = 32;
#endif
template <typename T, uint32_t M> struct instruction {
    static constexpr uint32_t depth = 1, per_lane = 1;  // accumulators of other types
};
// The compiler's type of an element, as vectors have it.
template <typename T> struct native { using type = T; };
template <> struct native<__half> { using type = _Float16; };
template <> struct native<__hip_bfloat16> { using type = __bf16; };
template <> struct native<hip_bfloat16> { using type = __bf16; };
template <typename T, uint32_t count> struct vector_of {
    using type = typename native<T>::type __attribute__((ext_vector_type(count)));
};
template <typename V> __device__ __wc_inline V packed(const void *from) {
    V made;
    __builtin_memcpy(&made, from, sizeof made);
    return made;
}

#if defined(__GFX9__) || !defined(__HIP_DEVICE_COMPILE__)
// MFMA: lanes of one row have consecutive places along K (AMD Instinct MI300 ISA, chapter 7).
template <typename T, uint32_t M> __device__ __wc_inline uint32_t result_row(uint32_t index) {
    uint32_t group = __lane_id() / M;
    if constexpr (__is_same(T, double)) return 4 * index + group;
    if constexpr (M == 16) return 4 * group + index;
    return 8 * (index / 4) + 4 * group + index % 4;
}
#define WC_MFMA(T, M, K, V, R, builtin)                                                      \
    template <> struct instruction<T, M> {                                                   \
        static constexpr uint32_t depth = K, per_lane = K * M / 64;                          \
        using result = R __attribute__((ext_vector_type(M * M / 64)));                       \
        static __device__ __wc_inline uint32_t k(uint32_t index) {                           \
            return per_lane * (__lane_id() / M) + index;                                     \
        }                                                                                    \
        static __device__ __wc_inline result product(const void *a, const void *b, result c) { \
            return __builtin_amdgcn_mfma_##builtin(packed<V>(a), packed<V>(b), c, 0, 0, 0);  \
        }                                                                                    \
    };
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef short short4 __attribute__((ext_vector_type(4)));
#if defined(__HIP_DEVICE_COMPILE__)
WC_MFMA(_Float16, 16, 16, half4, float, f32_16x16x16f16)
WC_MFMA(_Float16, 32, 8, half4, float, f32_32x32x8f16)
WC_MFMA(float, 16, 4, float, float, f32_16x16x4f32)
WC_MFMA(float, 32, 2, float, float, f32_32x32x2f32)
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
WC_MFMA(__bf16, 16, 16, short4, float, f32_16x16x16bf16_1k)
WC_MFMA(__bf16, 32, 8, short4, float, f32_32x32x8bf16_1k)
WC_MFMA(double, 16, 4, double, double, f64_16x16x4f64)
#endif
#if defined(__gfx942__) || defined(__gfx950__)
WC_MFMA(int8_t, 16, 32, long, int, i32_16x16x32_i8)
WC_MFMA(int8_t, 32, 16, long, int, i32_32x32x16_i8)
#endif
#else  // the host sees declarations only
#define WC_SIZES(T, M, K, R)                                           \
    template <> struct instruction<T, M> {                             \
        static constexpr uint32_t depth = K, per_lane = K * M / 64;    \
        using result = R __attribute__((ext_vector_type(M * M / 64))); \
        static __device__ uint32_t k(uint32_t index);                  \
        static __device__ result product(const void *, const void *, result); \
    };
WC_SIZES(_Float16, 16, 16, float)
WC_SIZES(_Float16, 32, 8, float)
WC_SIZES(float, 16, 4, float)
WC_SIZES(float, 32, 2, float)
WC_SIZES(__bf16, 16, 16, float)
WC_SIZES(__bf16, 32, 8, float)
WC_SIZES(double, 16, 4, double)
WC_SIZES(int8_t, 16, 32, int)
WC_SIZES(int8_t, 32, 16, int)
#undef WC_SIZES
#endif
#undef WC_MFMA
#elif defined(__GFX11__)
// WMMA of RDNA 3: both halves of a wave have all of A and B (AMD RDNA 3 ISA, section 7.9).
template <typename T, uint32_t M> __device__ __wc_inline uint32_t result_row(uint32_t index) {
    return 2 * index + __lane_id() / 16;
}
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef short short16 __attribute__((ext_vector_type(16)));
#define WC_WMMA(T, V, builtin)                                                          \
    template <> struct instruction<T, 16> {                                             \
        static constexpr uint32_t depth = 16, per_lane = 16;                            \
        using result = float __attribute__((ext_vector_type(8)));                       \
        static __device__ __wc_inline uint32_t k(uint32_t index) { return index; }      \
        static __device__ __wc_inline result product(const void *a, const void *b, result c) { \
            return __builtin_amdgcn_wmma_##builtin(packed<V>(a), packed<V>(b), c);      \
        }                                                                               \
    };
WC_WMMA(_Float16, half16, f32_16x16x16_f16_w32)
WC_WMMA(__bf16, short16, f32_16x16x16_bf16_w32)
#undef WC_WMMA
#else
// WMMA of RDNA 4: a half of a wave has half of K (AMD RDNA 4 ISA, section 7.9).
template <typename T, uint32_t M> __device__ __wc_inline uint32_t result_row(uint32_t index) {
    return 8 * (__lane_id() / 16) + index;
}
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef short short8 __attribute__((ext_vector_type(8)));
#define WC_WMMA(T, V, builtin)                                                          \
    template <> struct instruction<T, 16> {                                             \
        static constexpr uint32_t depth = 16, per_lane = 8;                             \
        using result = float __attribute__((ext_vector_type(8)));                       \
        static __device__ __wc_inline uint32_t k(uint32_t index) {                      \
            return 8 * (__lane_id() / 16) + index;                                      \
        }                                                                               \
        static __device__ __wc_inline result product(const void *a, const void *b, result c) { \
            return __builtin_amdgcn_wmma_##builtin(packed<V>(a), packed<V>(b), c);      \
        }                                                                               \
    };
WC_WMMA(_Float16, half8, f32_16x16x16_f16_w32_gfx12)
WC_WMMA(__bf16, short8, f32_16x16x16_bf16_w32_gfx12)
#undef WC_WMMA
#endif
}  // namespace detail
}  // namespace rocwmma
