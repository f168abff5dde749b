// Reductions over the threads of a tile.
#pragma once

#include <cooperative_groups.h>

namespace cooperative_groups {

#define __WC_OPERATION(name, expression)                                                           \
    template <typename T = void> struct name {                                                     \
        __device__ __wc_inline T operator()(T a, T b) const { return expression; }                 \
    };                                                                                             \
    template <> struct name<void> {                                                                \
        template <typename T> __device__ __wc_inline T operator()(T a, T b) const {                \
            return expression;                                                                     \
        }                                                                                          \
    };
__WC_OPERATION(plus, a + b)
__WC_OPERATION(less, a < b ? a : b)
__WC_OPERATION(greater, a > b ? a : b)
__WC_OPERATION(bit_and, a & b)
__WC_OPERATION(bit_or, a | b)
__WC_OPERATION(bit_xor, a ^ b)
#undef __WC_OPERATION

template <unsigned Size, typename Parent, typename T, typename F>
__device__ __wc_inline T reduce(const thread_block_tile<Size, Parent> &tile, T value, F join) {
    for (unsigned step = Size / 2; step; step /= 2) value = join(value, tile.shfl_xor(value, step));
    return value;
}

}  // namespace cooperative_groups
