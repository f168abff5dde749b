// Reductions and scans of the threads of a warp and of a block, for hipcub, cub and thrust.
#pragma once

#include <hip/hip_runtime.h>
#include <type_traits>

#define __WC_FN static __device__ __wc_inline

namespace __wc_parallel {

// Memory for values whose type may have constructors, which shared memory cannot have.
template <typename T, int N> struct raw_storage {
    alignas(T) unsigned char bytes[sizeof(T) * N];
    __device__ __wc_inline T &operator[](int index) { return reinterpret_cast<T *>(bytes)[index]; }
};

__WC_FN int thread_of_block() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// The value of another lane of the warp; of a value of any size.
template <typename T> __WC_FN T from_lane(const T &value, int lane) {
    constexpr int words = (sizeof(T) + 3) / 4;
    int buffer[words] = {};
    __builtin_memcpy(buffer, &value, sizeof(T));
    for (int i = 0; i < words; ++i) buffer[i] = __shfl(buffer[i], lane);
    T result = value;
    __builtin_memcpy(&result, buffer, sizeof(T));
    return result;
}

// In lane 0 of each `Width` lanes: the reduction of the first `valid` of them.
template <int Width, typename T, typename Op> __WC_FN T warp_reduce(T value, Op op, int valid) {
    int lane = __lane_id(), index = lane % Width;
    for (int delta = 1; delta < Width; delta *= 2) {
        T other = from_lane(value, lane + delta < warpSize ? lane + delta : lane);
        if (index + delta < valid) value = op(value, other);
    }
    return value;
}

// The reduction of this lane and those before it, of each `Width` lanes.
template <int Width, typename T, typename Op> __WC_FN T warp_scan(T value, Op op) {
    int lane = __lane_id(), index = lane % Width;
    for (int delta = 1; delta < Width; delta *= 2) {
        T other = from_lane(value, lane >= delta ? lane - delta : lane);
        if (index >= delta) value = op(other, value);
    }
    return value;
}

template <typename T, int Threads> struct block_storage {
    static constexpr int warps = (Threads + warpSize - 1) / warpSize;
    raw_storage<T, warps> totals;
    raw_storage<T, 1> prefix;
};

// In thread 0: the reduction of the first `valid` threads.
template <int Threads, typename T, typename Op>
__WC_FN T block_reduce(block_storage<T, Threads> &storage, T value, Op op, int valid) {
    int thread = thread_of_block(), first = thread / warpSize * warpSize;
    value = warp_reduce<warpSize>(value, op, valid - first);
    if (thread == first) storage.totals[thread / warpSize] = value;
    __syncthreads();
    if (thread == 0)
        for (int warp = 1; warp < storage.warps && warp * warpSize < valid; ++warp)
            value = op(value, storage.totals[warp]);
    return value;
}

// The reduction of this thread and those before it, and `before` of those before it, which thread 0
// leaves as it is; `total` is that of the block.
template <int Threads, typename T, typename Op>
__WC_FN T block_scan(block_storage<T, Threads> &storage, T value, Op op, T &before, T &total) {
    int thread = thread_of_block(), lane = thread % warpSize, warp = thread / warpSize;
    value = warp_scan<warpSize>(value, op);
    T previous = from_lane(value, lane ? __lane_id() - 1 : __lane_id());
    if (lane == warpSize - 1 || thread == Threads - 1) storage.totals[warp] = value;
    __syncthreads();
    total = storage.totals[0];
    T prefix = total;
    for (int other = 1; other < storage.warps; ++other) {
        if (other == warp) prefix = total;
        total = op(total, storage.totals[other]);
    }
    if (thread) before = lane == 0 ? prefix : warp ? op(prefix, previous) : previous;
    return warp ? op(prefix, value) : value;
}

}  // namespace __wc_parallel

#undef __WC_FN
