// rocPRIM: reductions, scans, sorts and selections of arrays, and loads, stores, reductions and scans of
// blocks. They are those of hipcub here: wavecast's kernels, with other times.
#pragma once

#include <hipcub/hipcub.hpp>

#define __WC_FN __host__ __device__ __wc_inline
#define WC_DEVICE __device__ __wc_inline
namespace rocprim {

struct default_config {};
struct empty_type {};
template <typename T = void> struct plus : hipcub::Sum {};
template <typename T = void> struct minimum : hipcub::Min {};
template <typename T = void> struct maximum : hipcub::Max {};
template <typename T = void> struct multiplies {
    template <typename A, typename B> __WC_FN auto operator()(const A &a, const B &b) const {
        return a * b;
    }
};

// --- of arrays: without memory the number of bytes that is needed
template <typename Config = default_config, typename In, typename Out, typename T,
          typename Op = plus<>>
hipError_t reduce(void *memory, size_t &bytes, In in, Out out, const T init, const size_t count,
                  Op op, const hipStream_t stream = 0, bool = false) {
    return hipcub::DeviceReduce::Reduce(memory, bytes, in, out, count, op, init, stream);
}
template <typename Config = default_config, typename In, typename Out, typename Op = plus<>>
hipError_t reduce(void *memory, size_t &bytes, In in, Out out, const size_t count, Op op = Op(),
                  const hipStream_t stream = 0, bool = false) {
    typedef typename std::iterator_traits<In>::value_type T;
    if (!memory || !count)
        return hipcub::DeviceReduce::Reduce(memory, bytes, in, out, count, op, T(), stream);
    // An operation need not have a neutral element: the first one begins the sum.
    return hipcub::DeviceReduce::Reduce(memory, bytes, in + 1, out, count - 1, op, T(*in), stream);
}
template <typename Config = default_config, typename In, typename Out, typename Op = plus<>>
hipError_t inclusive_scan(void *memory, size_t &bytes, In in, Out out, const size_t count,
                          Op op = Op(), const hipStream_t stream = 0, bool = false) {
    return hipcub::DeviceScan::InclusiveScan(memory, bytes, in, out, op, count, stream);
}
template <typename Config = default_config, typename In, typename Out, typename T,
          typename Op = plus<>>
hipError_t exclusive_scan(void *memory, size_t &bytes, In in, Out out, const T init,
                          const size_t count, Op op = Op(), const hipStream_t stream = 0,
                          bool = false) {
    return hipcub::DeviceScan::ExclusiveScan(memory, bytes, in, out, op, init, count, stream);
}
#define WC_SORTS(name, Name)                                                                       \
    template <typename Config = default_config, typename Key>                                      \
    hipError_t radix_sort_keys##name(void *memory, size_t &bytes, const Key *in, Key *out,         \
                                     const size_t count, unsigned begin = 0,                       \
                                     unsigned end = 8 * sizeof(Key), hipStream_t stream = 0,       \
                                     bool = false) {                                               \
        return hipcub::DeviceRadixSort::SortKeys##Name(memory, bytes, in, out, count, (int)begin,  \
                                                       (int)end, stream);                          \
    }                                                                                              \
    template <typename Config = default_config, typename Key, typename Value>                      \
    hipError_t radix_sort_pairs##name(void *memory, size_t &bytes, const Key *keys, Key *keys_out, \
                                      const Value *values, Value *values_out, const size_t count,  \
                                      unsigned begin = 0, unsigned end = 8 * sizeof(Key),          \
                                      hipStream_t stream = 0, bool = false) {                      \
        return hipcub::DeviceRadixSort::SortPairs##Name(memory, bytes, keys, keys_out, values,     \
                                                        values_out, count, (int)begin, (int)end,   \
                                                        stream);                                   \
    }
WC_SORTS(, )
WC_SORTS(_desc, Descending)
#undef WC_SORTS
template <typename Config = default_config, typename In, typename Out, typename Count, typename Op>
hipError_t select(void *memory, size_t &bytes, In in, Out out, Count selected, const size_t count,
                  Op op, const hipStream_t stream = 0, bool = false) {
    return hipcub::DeviceSelect::If(memory, bytes, in, out, selected, count, op, stream);
}

// --- of blocks
enum class block_load_method {
    block_load_direct, block_load_striped, block_load_vectorize, block_load_transpose,
    block_load_warp_transpose, default_method = block_load_direct
};
enum class block_store_method {
    block_store_direct, block_store_striped, block_store_vectorize, block_store_transpose,
    block_store_warp_transpose, default_method = block_store_direct
};
enum class block_reduce_algorithm {
    using_warp_reduce, raking_reduce, raking_reduce_commutative_only,
    default_algorithm = using_warp_reduce
};
enum class block_scan_algorithm {
    using_warp_scan, reduce_then_scan, default_algorithm = using_warp_scan
};
template <typename T, unsigned X, unsigned N,
          block_load_method Method = block_load_method::default_method, unsigned Y = 1,
          unsigned Z = 1>
struct block_load {
    typedef hipcub::BlockLoad<T, X, N,
                              Method == block_load_method::block_load_striped
                                  ? hipcub::BLOCK_LOAD_STRIPED : hipcub::BLOCK_LOAD_DIRECT, Y, Z> base;
    struct storage_type {};
    template <typename In> WC_DEVICE void load(In in, T (&items)[N]) { base().Load(in, items); }
    template <typename In> WC_DEVICE void load(In in, T (&items)[N], unsigned valid) {
        base().Load(in, items, (int)valid);
    }
    template <typename In, typename Default>
    WC_DEVICE void load(In in, T (&items)[N], unsigned valid, Default otherwise) {
        base().Load(in, items, (int)valid, otherwise);
    }
    template <typename In> WC_DEVICE void load(In in, T (&items)[N], storage_type &) {
        base().Load(in, items);
    }
    template <typename In>
    WC_DEVICE void load(In in, T (&items)[N], unsigned valid, storage_type &) {
        base().Load(in, items, (int)valid);
    }
};
template <typename T, unsigned X, unsigned N,
          block_store_method Method = block_store_method::default_method, unsigned Y = 1,
          unsigned Z = 1>
struct block_store {
    typedef hipcub::BlockStore<T, X, N,
                               Method == block_store_method::block_store_striped
                                   ? hipcub::BLOCK_STORE_STRIPED : hipcub::BLOCK_STORE_DIRECT, Y,
                               Z> base;
    struct storage_type {};
    template <typename Out> WC_DEVICE void store(Out out, T (&items)[N]) { base().Store(out, items); }
    template <typename Out> WC_DEVICE void store(Out out, T (&items)[N], unsigned valid) {
        base().Store(out, items, (int)valid);
    }
    template <typename Out> WC_DEVICE void store(Out out, T (&items)[N], storage_type &) {
        base().Store(out, items);
    }
    template <typename Out>
    WC_DEVICE void store(Out out, T (&items)[N], unsigned valid, storage_type &) {
        base().Store(out, items, (int)valid);
    }
};
// Every thread gets the result of a reduction.
template <typename T, unsigned X,
          block_reduce_algorithm Algorithm = block_reduce_algorithm::default_algorithm,
          unsigned Y = 1, unsigned Z = 1>
struct block_reduce {
    typedef hipcub::BlockReduce<T, X, hipcub::BLOCK_REDUCE_WARP_REDUCTIONS, Y, Z> base;
    typedef typename base::TempStorage storage_type;
    template <typename Op = plus<T>> WC_DEVICE void reduce(T in, T &out, Op op = Op()) {
        out = shared(base().Reduce(in, op));
    }
    template <typename Op = plus<T>>
    WC_DEVICE void reduce(T in, T &out, storage_type &storage, Op op = Op()) {
        out = shared(base(storage).Reduce(in, op));
    }
    template <unsigned N, typename Op = plus<T>>
    WC_DEVICE void reduce(T (&in)[N], T &out, Op op = Op()) {
        out = shared(base().Reduce(in, op));
    }
    template <unsigned N, typename Op = plus<T>>
    WC_DEVICE void reduce(T (&in)[N], T &out, storage_type &storage, Op op = Op()) {
        out = shared(base(storage).Reduce(in, op));
    }

   private:
    WC_DEVICE static T shared(T of_first) {
        __shared__ hipcub::Uninitialized<T> memory;
        if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) memory.Alias() = of_first;
        __syncthreads();
        T value = memory.Alias();
        __syncthreads();
        return value;
    }
};
template <typename T, unsigned X,
          block_scan_algorithm Algorithm = block_scan_algorithm::default_algorithm,
          unsigned Y = 1, unsigned Z = 1>
struct block_scan {
    typedef hipcub::BlockScan<T, X, hipcub::BLOCK_SCAN_WARP_SCANS, Y, Z> base;
    typedef typename base::TempStorage storage_type;
    template <typename Op = plus<T>> WC_DEVICE void inclusive_scan(T in, T &out, Op op = Op()) {
        base().InclusiveScan(in, out, op);
    }
    template <typename Op = plus<T>>
    WC_DEVICE void inclusive_scan(T in, T &out, storage_type &storage, Op op = Op()) {
        base(storage).InclusiveScan(in, out, op);
    }
    template <typename Op = plus<T>>
    WC_DEVICE void exclusive_scan(T in, T &out, T init, Op op = Op()) {
        base().ExclusiveScan(in, out, init, op);
    }
    template <typename Op = plus<T>>
    WC_DEVICE void exclusive_scan(T in, T &out, T init, storage_type &storage, Op op = Op()) {
        base(storage).ExclusiveScan(in, out, init, op);
    }
};

}  // namespace rocprim
#undef WC_DEVICE
#undef __WC_FN
