// Cooperative groups: thread blocks, tiles of a wave, the active lanes of a wave, and grids.
#pragma once

#include <hip/hip_runtime.h>

#define __WC_FN __device__ __wc_inline

namespace cooperative_groups {

class grid_group;
class thread_block;

// Any group, for functions that take one.
class thread_group {
   public:
    enum class kind { block, tile, coalesced, grid };

   protected:
    kind kind_;
    unsigned size_;
    unsigned long long lanes_;  // of the wave, where the group is part of one
    unsigned rank_;
    __WC_FN thread_group(kind which, unsigned size, unsigned rank, unsigned long long lanes = 0)
        : kind_(which), size_(size), lanes_(lanes), rank_(rank) {}

   public:
    __WC_FN unsigned size() const { return size_; }
    __WC_FN unsigned num_threads() const { return size_; }
    __WC_FN unsigned thread_rank() const { return rank_; }
    __WC_FN bool is_valid() const { return true; }
    __WC_FN void sync() const {
        if (kind_ == kind::block)
            __syncthreads();
        else
            __syncwarp();
    }
};

class thread_block : public thread_group {
   public:
    __WC_FN thread_block()
        : thread_group(kind::block, blockDim.x * blockDim.y * blockDim.z,
                       threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) {}
    __WC_FN static void sync() { __syncthreads(); }
    __WC_FN static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    __WC_FN static unsigned num_threads() { return size(); }
    __WC_FN static unsigned thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __WC_FN static dim3 group_index() { return blockIdx; }
    __WC_FN static dim3 thread_index() { return threadIdx; }
    __WC_FN static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    __WC_FN static dim3 dim_threads() { return group_dim(); }
};

// Size lanes of a wave, a power of two.
template <unsigned Size, typename Parent = void> class thread_block_tile : public thread_group {
    static_assert(Size && !(Size & (Size - 1)) && Size <= warpSize, "a power of two within a wave");
    unsigned index_;
    __WC_FN static unsigned first() { return __lane_id() / Size * Size; }
    __WC_FN static unsigned long long mask() {
        return (Size == 64 ? ~0ull : (1ull << (Size & 63)) - 1) << first();
    }

   public:
    __WC_FN explicit thread_block_tile(unsigned rank)
        : thread_group(kind::tile, Size, rank % Size), index_(rank / Size) {}
    template <typename Other>
    __WC_FN thread_block_tile(const thread_block_tile<Size, Other> &tile)
        : thread_block_tile(tile.meta_group_rank() * Size + tile.thread_rank()) {}
    __WC_FN static void sync() { __syncwarp(); }
    __WC_FN static constexpr unsigned size() { return Size; }
    __WC_FN static constexpr unsigned num_threads() { return Size; }
    __WC_FN unsigned thread_rank() const { return rank_; }
    __WC_FN unsigned meta_group_rank() const { return index_; }
    __WC_FN unsigned meta_group_size() const { return (thread_block::size() + Size - 1) / Size; }
    template <typename T> __WC_FN T shfl(T v, int lane) const { return __shfl(v, lane, Size); }
    template <typename T> __WC_FN T shfl_up(T v, unsigned d) const { return __shfl_up(v, d, Size); }
    template <typename T> __WC_FN T shfl_down(T v, unsigned d) const {
        return __shfl_down(v, d, Size);
    }
    template <typename T> __WC_FN T shfl_xor(T v, int mask) const {
        return __shfl_xor(v, mask, Size);
    }
    __WC_FN unsigned long long ballot(int predicate) const {
        return (__ballot(predicate) & mask()) >> first();
    }
    __WC_FN int any(int predicate) const { return ballot(predicate) != 0; }
    __WC_FN int all(int predicate) const { return ballot(!predicate) == 0; }
};

// The lanes of a wave that execute the code together.
class coalesced_group : public thread_group {
   public:
    __WC_FN explicit coalesced_group(unsigned long long lanes)
        : thread_group(kind::coalesced, __builtin_popcountll(lanes),
                       __builtin_popcountll(lanes & ((1ull << __lane_id()) - 1)), lanes) {}
    template <typename T> __WC_FN T shfl(T v, unsigned rank) const { return __shfl(v, lane(rank)); }
    template <typename T> __WC_FN T shfl_down(T v, unsigned d) const {
        return rank_ + d < size_ ? __shfl(v, lane(rank_ + d)) : __shfl(v, __lane_id());
    }
    template <typename T> __WC_FN T shfl_up(T v, unsigned d) const {
        return rank_ >= d ? __shfl(v, lane(rank_ - d)) : __shfl(v, __lane_id());
    }
    __WC_FN unsigned long long ballot(int predicate) const {
        unsigned long long set = __ballot(predicate) & lanes_, found = 0;
        for (unsigned rank = 0; rank < size_; ++rank) found |= (set >> lane(rank) & 1) << rank;
        return found;
    }
    __WC_FN int any(int predicate) const { return (__ballot(predicate) & lanes_) != 0; }
    __WC_FN int all(int predicate) const { return (__ballot(predicate) & lanes_) == lanes_; }

   private:
    __WC_FN unsigned lane(unsigned rank) const {
        unsigned long long lanes = lanes_;
        for (; rank; --rank) lanes &= lanes - 1;
        return __builtin_ctzll(lanes);
    }
};

__WC_FN inline thread_block this_thread_block() { return {}; }
__WC_FN inline coalesced_group coalesced_threads() {
    return coalesced_group(__wc_of_warp(__builtin_amdgcn_read_exec()));
}
template <unsigned Size, typename Group>
__WC_FN thread_block_tile<Size, Group> tiled_partition(const Group &group) {
    return thread_block_tile<Size, Group>(group.thread_rank());
}

#ifdef WAVECAST_PROGRAM
// All workgroups of a cooperative launch.
class grid_group {
   public:
    __WC_FN static unsigned workgroups() { return gridDim.x * gridDim.y * gridDim.z; }
    __WC_FN static unsigned block_rank() {
        return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    }
    __WC_FN static unsigned num_blocks() { return workgroups(); }
    __WC_FN static unsigned long long size() {
        return (unsigned long long)workgroups() * thread_block::size();
    }
    __WC_FN static unsigned long long num_threads() { return size(); }
    __WC_FN static unsigned long long thread_rank() {
        return (unsigned long long)block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    __WC_FN static bool is_valid() { return true; }
    __WC_FN static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    __WC_FN static void sync() {
        __wc_grid_barrier(workgroups(), thread_block::thread_rank() == 0);
    }
};
__WC_FN inline grid_group this_grid() { return {}; }
#endif

template <typename Group> __WC_FN void sync(const Group &group) { group.sync(); }

}  // namespace cooperative_groups

#undef __WC_FN
