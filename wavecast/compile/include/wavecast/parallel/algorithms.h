// Algorithms on arrays in the memory of a GPU, as kernels: for_each, reduce, scan, select, sort.
// hipcub, cub and thrust are made of them. A call whose workspace has no memory only measures it.
#pragma once

#include <hip/hip_runtime.h>
#include <iterator>
#include <type_traits>
#include <utility>
#include <wavecast/parallel/groups.h>

namespace __wc_parallel {

constexpr int THREADS = 256;
constexpr int ITEMS = 4;  // of a thread, in a scan
constexpr size_t TILE = THREADS * ITEMS;

struct Workspace {
    char *base;
    size_t used = 0;
    explicit Workspace(void *memory) : base((char *)memory) {}
    bool measures() const { return base == nullptr; }
    template <typename T> T *take(size_t count) {
        size_t first = (used + 255) / 256 * 256;
        used = first + (count ? count : 1) * sizeof(T);
        return base ? reinterpret_cast<T *>(base + first) : nullptr;
    }
};

inline unsigned blocks_of(size_t count, size_t each) {
    size_t blocks = (count + each - 1) / each;
    return blocks < 1u << 20 ? (unsigned)blocks : 1u << 20;
}

template <typename Iterator>
using value_of = std::remove_cv_t<typename std::iterator_traits<Iterator>::value_type>;

// --- for_each: f(i) for all i below count
template <typename F> __global__ __launch_bounds__(THREADS) void for_each_kernel(F f, size_t count) {
    size_t step = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) f(i);
}
template <typename F> void for_each(F f, size_t count, hipStream_t stream) {
    if (count) for_each_kernel<F><<<blocks_of(count, THREADS), THREADS, 0, stream>>>(f, count);
}

// --- reduce: of a commutative operation; `result[0]` = op(init, all)
template <typename T, typename In, typename Op>
__device__ void reduce_range(In in, size_t first, size_t end, Op op, T init, bool has_init, T *out) {
    __shared__ block_storage<T, THREADS> storage;
    size_t i = first + threadIdx.x;
    T value = init;
    if (i < end) {
        value = (T)in[i];
        for (i += THREADS; i < end; i += THREADS) value = op(value, (T)in[i]);
    }
    size_t count = end - first;
    value = block_reduce(storage, value, op, count < THREADS ? (int)count : THREADS);
    if (threadIdx.x == 0) *out = !has_init ? value : count ? (T)op(init, value) : init;
}
template <typename T, typename In, typename Op>
__global__ __launch_bounds__(THREADS) void reduce_tiles(In in, size_t count, size_t tile, Op op,
                                                        T init, bool has_init, T *out) {
    size_t first = tile * blockIdx.x, end = first + tile;
    reduce_range<T>(in, first, end < count ? end : count, op, init, has_init, out + blockIdx.x);
}
template <typename T, typename Out> struct assign_first {
    const T *value;
    Out out;
    __device__ void operator()(size_t) const { *out = *value; }
};
template <typename T, typename In, typename Out, typename Op>
void reduce(Workspace &space, In in, Out out, size_t count, Op op, T init, hipStream_t stream) {
    size_t tile = 16 * TILE, blocks = (count + tile - 1) / tile;
    T *partial = space.take<T>(blocks), *result = space.take<T>(1);
    if (space.measures()) return;
    reduce_tiles<T, In, Op><<<blocks ? blocks : 1, THREADS, 0, stream>>>(
        in, count, tile, op, init, blocks < 2, blocks < 2 ? result : partial);
    if (blocks > 1)
        reduce_tiles<T, const T *, Op>
            <<<1, THREADS, 0, stream>>>(partial, blocks, blocks, op, init, true, result);
    for_each(assign_first<T, Out>{result, out}, 1, stream);
}

// --- reduce of segments: a block for each
template <typename T, typename In, typename Out, typename Begin, typename End, typename Op>
__global__ __launch_bounds__(THREADS) void reduce_segments(In in, Out out, Begin begin, End end,
                                                           Op op, T init) {
    __shared__ raw_storage<T, 1> result;
    size_t first = begin[blockIdx.x], last = end[blockIdx.x];
    reduce_range<T>(in, first, last < first ? first : last, op, init, true, &result[0]);
    if (threadIdx.x == 0) out[blockIdx.x] = result[0];
}

// --- scan: of an associative operation; input and output may be the same
template <typename T, typename In, typename Op>
__global__ __launch_bounds__(THREADS) void scan_totals(In in, size_t count, Op op, T *totals) {
    __shared__ block_storage<T, THREADS> storage;
    size_t first = TILE * blockIdx.x + ITEMS * threadIdx.x, left = count - TILE * blockIdx.x;
    T value = (T)in[first < count ? first : count - 1];
    for (int k = 1; k < ITEMS; ++k)
        if (first + k < count) value = op(value, (T)in[first + k]);
    int valid = left < TILE ? (int)((left + ITEMS - 1) / ITEMS) : THREADS;
    value = block_reduce(storage, value, op, valid);
    if (threadIdx.x == 0) totals[blockIdx.x] = value;
}
// In place, totals[i] becomes the reduction of `init`, if there is one, and of those before i.
template <typename T, typename Op>
__global__ __launch_bounds__(THREADS) void scan_prefixes(T *totals, size_t count, Op op, T init,
                                                         bool has_init) {
    __shared__ block_storage<T, THREADS> storage;
    T carry = init;
    for (size_t first = 0; first < count; first += THREADS) {
        size_t i = first + threadIdx.x, last = count - 1;
        T before = carry, total = carry;
        T own = totals[i < count ? i : last];
        block_scan(storage, own, op, before, total);
        bool carried = has_init || first;
        if (i < count) totals[i] = threadIdx.x == 0 ? carry : carried ? (T)op(carry, before) : before;
        carry = carried ? (T)op(carry, total) : total;
        __syncthreads();
    }
}
template <bool Inclusive, typename T, typename In, typename Out, typename Op>
__global__ __launch_bounds__(THREADS) void scan_tiles(In in, Out out, size_t count, Op op,
                                                      const T *prefixes, bool has_init) {
    __shared__ block_storage<T, THREADS> storage;
    size_t first = TILE * blockIdx.x + ITEMS * threadIdx.x;
    T prefix = prefixes[blockIdx.x], items[ITEMS], total = prefix, before = prefix;
    bool prefixed = has_init || blockIdx.x;
    for (int k = 0; k < ITEMS; ++k) items[k] = (T)in[first + k < count ? first + k : count - 1];
    T own = items[0];
    for (int k = 1; k < ITEMS; ++k) own = op(own, items[k]);
    block_scan(storage, own, op, before, total);
    if (prefixed && threadIdx.x) before = op(prefix, before);
    prefixed = prefixed || threadIdx.x;
    for (int k = 0; k < ITEMS; ++k) {
        T next = prefixed ? (T)op(before, items[k]) : items[k];
        if (first + k < count) out[first + k] = Inclusive ? next : before;
        before = next;
        prefixed = true;
    }
}
template <bool Inclusive, typename T, typename In, typename Out, typename Op>
void scan(Workspace &space, In in, Out out, size_t count, Op op, T init, bool has_init,
          hipStream_t stream) {
    size_t blocks = (count + TILE - 1) / TILE;
    T *totals = space.take<T>(blocks);
    if (space.measures() || !count) return;
    scan_totals<T, In, Op><<<blocks, THREADS, 0, stream>>>(in, count, op, totals);
    scan_prefixes<T, Op><<<1, THREADS, 0, stream>>>(totals, blocks, op, init, has_init);
    scan_tiles<Inclusive, T, In, Out, Op>
        <<<blocks, THREADS, 0, stream>>>(in, out, count, op, totals, has_init);
}

// --- select: f(i, position) for all i below count with flag(i), f(i, position) of the others too
// where `Rest` is a function: their positions count from the end, as in a partition.
struct add {
    template <typename T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename Flag> struct flag_iterator {
    using value_type = unsigned long long;
    Flag flag;
    __device__ unsigned long long operator[](size_t i) const { return flag(i) ? 1 : 0; }
};
template <typename Flag, typename F, typename Rest> struct select_one {
    Flag flag;
    F f;
    Rest rest;
    const unsigned long long *positions;
    size_t count;
    __device__ void operator()(size_t i) const {
        unsigned long long until = positions[i];
        if (flag(i))
            f(i, (size_t)until - 1);
        else if constexpr (!std::is_same_v<Rest, int>)
            rest(i, count - 1 - (i - (size_t)until));
    }
};
template <typename Out> struct assign_last {
    const unsigned long long *positions;
    size_t count;
    Out out;
    __device__ void operator()(size_t) const {
        *out = (value_of<Out>)(count ? positions[count - 1] : 0);
    }
};
template <typename Flag, typename F, typename Rest, typename Selected>
void select(Workspace &space, Flag flag, F f, Rest rest, Selected selected, size_t count,
            hipStream_t stream) {
    auto *positions = space.take<unsigned long long>(count);
    scan<true>(space, flag_iterator<Flag>{flag}, positions, count, add(), 0ull, false, stream);
    if (space.measures()) return;
    for_each(select_one<Flag, F, Rest>{flag, f, rest, positions, count}, count, stream);
    for_each(assign_last<Selected>{positions, count, selected}, 1, stream);
}

// --- sort: a stable merge sort of keys, and of values if `Value` is a type
struct none {};
template <typename Key, typename Value, typename Less> struct merge_pass {
    const Key *keys;
    const Value *values;
    Key *to_keys;
    Value *to_values;
    size_t count, width;
    Less less;
    // An element goes to its index in its own run plus the number of those of the other before it.
    __device__ void operator()(size_t i) const {
        size_t pair = i / (2 * width) * (2 * width), middle = pair + width;
        size_t end = middle + width < count ? middle + width : count;
        if (middle > count) middle = count;
        bool left = i < middle;
        size_t low = left ? middle : pair, high = left ? end : middle, first = low;
        Key key = keys[i];
        while (low < high) {
            size_t at = (low + high) / 2;
            if (left ? less(keys[at], key) : !less(key, keys[at]))
                low = at + 1;
            else
                high = at;
        }
        size_t to = pair + (low - first) + (left ? i - pair : i - middle);
        to_keys[to] = key;
        if constexpr (!std::is_same_v<Value, none>) to_values[to] = values[i];
    }
};
template <typename T, typename In, typename Out> struct copy_one {
    In in;
    Out out;
    __device__ void operator()(size_t i) const { out[i] = (T)in[i]; }
};
template <typename T, typename In, typename Out>
void copy(In in, Out out, size_t count, hipStream_t stream) {
    for_each(copy_one<T, In, Out>{in, out}, count, stream);
}
template <typename Key, typename Value, typename KeyIn, typename KeyOut, typename ValueIn,
          typename ValueOut, typename Less>
void sort(Workspace &space, KeyIn keys_in, KeyOut keys_out, ValueIn values_in, ValueOut values_out,
          size_t count, Less less, hipStream_t stream) {
    constexpr bool pairs = !std::is_same_v<Value, none>;
    Key *keys = space.take<Key>(count), *to_keys = space.take<Key>(count);
    Value *values = pairs ? space.take<Value>(count) : nullptr;
    Value *to_values = pairs ? space.take<Value>(count) : nullptr;
    if (space.measures() || !count) return;
    copy<Key>(keys_in, keys, count, stream);
    if constexpr (pairs) copy<Value>(values_in, values, count, stream);
    for (size_t width = 1; width < count; width *= 2) {
        for_each(merge_pass<Key, Value, Less>{keys, values, to_keys, to_values, count, width, less},
                 count, stream);
        std::swap(keys, to_keys);
        std::swap(values, to_values);
    }
    copy<Key>(keys, keys_out, count, stream);
    if constexpr (pairs) copy<Value>(values, values_out, count, stream);
}

}  // namespace __wc_parallel
