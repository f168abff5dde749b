// Cooperative groups within a workgroup: thread blocks and tiles of a wave.
#pragma once

#include <hip/hip_runtime.h>

#define __WC_FN __device__ __wc_inline

namespace cooperative_groups {

class thread_block {
   public:
    __WC_FN void sync() const { __syncthreads(); }
    __WC_FN unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
    __WC_FN unsigned num_threads() const { return size(); }
    __WC_FN unsigned thread_rank() const {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __WC_FN dim3 group_index() const { return blockIdx; }
    __WC_FN dim3 thread_index() const { return threadIdx; }
};

template <unsigned Size> class thread_block_tile {
    static_assert(Size && !(Size & (Size - 1)) && Size <= warpSize, "a power of two within a wave");
    unsigned rank_;

   public:
    __WC_FN explicit thread_block_tile(unsigned rank) : rank_(rank) {}
    __WC_FN void sync() const { __syncwarp(); }
    __WC_FN static constexpr unsigned size() { return Size; }
    __WC_FN static constexpr unsigned num_threads() { return Size; }
    __WC_FN unsigned thread_rank() const { return rank_ % Size; }
    __WC_FN unsigned meta_group_rank() const { return rank_ / Size; }
    template <typename T> __WC_FN T shfl(T v, int lane) const { return __shfl(v, lane, Size); }
    template <typename T> __WC_FN T shfl_up(T v, unsigned d) const { return __shfl_up(v, d, Size); }
    template <typename T> __WC_FN T shfl_down(T v, unsigned d) const {
        return __shfl_down(v, d, Size);
    }
    template <typename T> __WC_FN T shfl_xor(T v, int mask) const {
        return __shfl_xor(v, mask, Size);
    }
};

__WC_FN inline thread_block this_thread_block() { return {}; }
template <unsigned Size>
__WC_FN thread_block_tile<Size> tiled_partition(const thread_block &block) {
    return thread_block_tile<Size>(block.thread_rank());
}

}  // namespace cooperative_groups

#undef __WC_FN
