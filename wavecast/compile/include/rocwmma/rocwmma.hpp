// rocWMMA: fragments of matrices in registers, and their products by matrix instructions.
//
// A fragment is M x N x K of one wave. Products are those of 16 x 16 or 32 x 32 blocks, of as many
// steps along K as the instruction needs. The order of elements in a fragment is that of the
// instruction's operands, as LLVM's tests and AMD's ISA documents have it; it is not rocWMMA's.
#pragma once

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <rocwmma/layout.h>
#if __has_include(<utility>)  // sources count on these
#include <algorithm>
#include <rocwmma/internal/type_traits.hpp>
#include <type_traits>
#include <utility>
#endif

namespace rocwmma {

using float16_t = _Float16;
using hfloat16_t = __half;
using bfloat16_t = hip_bfloat16;
using float32_t = float;
using float64_t = double;
using int8_t = ::int8_t;
using int32_t = ::int32_t;

namespace Constants {
static constexpr uint32_t AMDGCN_WAVE_SIZE = detail::WAVE;
}
template <typename A, typename B> __host__ __device__ constexpr auto ceilDiv(A a, B b) {
    return (a + b - 1) / b;
}

template <typename To, typename From> __host__ __device__ To convert(From value) {
    return (To)value;
}

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t : uint32_t { mem_row_major, mem_col_major };

namespace detail {
template <typename Use, uint32_t M, uint32_t N, uint32_t K> struct shape;
template <uint32_t M, uint32_t N, uint32_t K> struct shape<matrix_a, M, N, K> {
    static constexpr uint32_t height = M, width = K;
};
template <uint32_t M, uint32_t N, uint32_t K> struct shape<matrix_b, M, N, K> {
    static constexpr uint32_t height = K, width = N;
};
template <uint32_t M, uint32_t N, uint32_t K> struct shape<accumulator, M, N, K> {
    static constexpr uint32_t height = M, width = N;
};
template <typename Use, typename T, uint32_t M, uint32_t K>
__host__ __device__ constexpr uint32_t elements() {
    using I = instruction<typename native<T>::type, M>;
    if constexpr (__is_same(Use, accumulator)) return M * M / WAVE;
    return K / I::depth * I::per_lane;
}
}  // namespace detail

template <typename Use, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout = void>
class fragment {
    static_assert(M == N && (M == 16 || M == 32), "fragments are of 16 x 16 or 32 x 32 elements");

  public:
    static constexpr uint32_t num_elements = detail::elements<Use, T, M, K>(), size = num_elements;
    using value_type = T;
    using storage_type = typename detail::vector_of<T, num_elements>::type;
    T x[num_elements];

    __device__ T &operator[](uint32_t index) { return x[index]; }
    __device__ const T &operator[](uint32_t index) const { return x[index]; }
    __device__ static constexpr uint32_t height() { return detail::shape<Use, M, N, K>::height; }
    __device__ static constexpr uint32_t width() { return detail::shape<Use, M, N, K>::width; }
    __device__ static constexpr uint32_t count() { return num_elements; }
};

namespace detail {
template <typename F> struct traits;
template <typename Use, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout>
struct traits<fragment<Use, M, N, K, T, Layout>> {
    using use = Use;
    using layout = Layout;
    using type = T;
    using I = instruction<typename native<T>::type, M>;

    // Row and column of an element in the lane that asks.
    static __device__ __wc_inline uint32_t row(uint32_t index) {
        if constexpr (__is_same(Use, accumulator)) return result_row<T, M>(index);
        else if constexpr (__is_same(Use, matrix_a)) return __lane_id() % M;
        else return index / I::per_lane * I::depth + I::k(index % I::per_lane);
    }
    static __device__ __wc_inline uint32_t column(uint32_t index) {
        if constexpr (__is_same(Use, matrix_a))
            return index / I::per_lane * I::depth + I::k(index % I::per_lane);
        else
            return __lane_id() % M;
    }
};
template <typename F, typename P>
__device__ __wc_inline void load(F &fragment, const P *from, uint32_t leading, bool by_row) {
#pragma unroll
    for (uint32_t at = 0; at < F::num_elements; ++at) {
        uint32_t row = traits<F>::row(at), column = traits<F>::column(at);
        fragment.x[at] = from[by_row ? row * leading + column : row + column * leading];
    }
}
}  // namespace detail

template <typename F, typename T> __device__ __wc_inline void fill_fragment(F &fragment, T value) {
#pragma unroll
    for (uint32_t at = 0; at < F::num_elements; ++at) fragment.x[at] = value;
}
template <typename F, typename T>
__device__ __wc_inline void load_matrix_sync(F &fragment, const T *from, uint32_t leading) {
    static_assert(!__is_same(typename detail::traits<F>::layout, void), "the layout is not known");
    detail::load(fragment, from, leading, __is_same(typename detail::traits<F>::layout, row_major));
}
template <typename F, typename T>
__device__ __wc_inline void load_matrix_sync(F &fragment, const T *from, uint32_t leading,
                                             layout_t layout) {
    detail::load(fragment, from, leading, layout == mem_row_major);
}
template <typename F, typename T>
__device__ __wc_inline void store_matrix_sync(T *to, const F &fragment, uint32_t leading,
                                              layout_t layout) {
#pragma unroll
    for (uint32_t at = 0; at < F::num_elements; ++at) {
        uint32_t row = detail::traits<F>::row(at), column = detail::traits<F>::column(at);
        to[layout == mem_row_major ? row * leading + column : row + column * leading] =
            fragment.x[at];
    }
}
template <typename F, typename T>
__device__ __wc_inline void store_matrix_sync(T *to, const F &fragment, uint32_t leading) {
    bool by_row = __is_same(typename detail::traits<F>::layout, row_major);
    store_matrix_sync(to, fragment, leading, by_row ? mem_row_major : mem_col_major);
}

template <uint32_t M, uint32_t N, uint32_t K, typename T, typename A, typename LA, typename LB,
          typename LC, typename LD>
__device__ __wc_inline void mma_sync(fragment<accumulator, M, N, K, A, LD> &d,
                                     const fragment<matrix_a, M, N, K, T, LA> &a,
                                     const fragment<matrix_b, M, N, K, T, LB> &b,
                                     const fragment<accumulator, M, N, K, A, LC> &c) {
    using I = detail::instruction<typename detail::native<T>::type, M>;
    typename I::result total;
#pragma unroll
    for (uint32_t at = 0; at < c.num_elements; ++at) total[at] = c.x[at];
#pragma unroll
    for (uint32_t step = 0; step < K / I::depth; ++step)
        total = I::product(a.x + step * I::per_lane, b.x + step * I::per_lane, total);
#pragma unroll
    for (uint32_t at = 0; at < c.num_elements; ++at) d.x[at] = (A)total[at];
}

__device__ __wc_inline void synchronize_workgroup() { __syncthreads(); }
}  // namespace rocwmma
