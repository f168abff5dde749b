// Sorts of arrays and of their segments, and reductions of segments, as hipcub names them.
#pragma once

#include <hipcub/device.hpp>

namespace hipcub {

template <typename Key, bool Down> struct __wc_key_less {
    int begin, end;
    typedef typename Traits<Key>::UnsignedBits Bits;
    __device__ Bits bits(const Key &key) const {
        Bits found = Traits<Key>::ordered(key) >> begin;
        int width = end - begin;
        return width >= (int)sizeof(Key) * 8 ? found : found & (((Bits)1 << width) - 1);
    }
    __device__ bool operator()(const Key &a, const Key &b) const {
        return Down ? bits(b) < bits(a) : bits(a) < bits(b);
    }
};

struct DeviceRadixSort {
#define __WC_SORT(Name, Down)                                                                      \
    template <typename K>                                                                          \
    static hipError_t SortKeys##Name(void *memory, size_t &bytes, const K *in, K *out,             \
                                     size_t count, int begin = 0, int end = sizeof(K) * 8,         \
                                     hipStream_t stream = 0, bool = false) {                       \
        const __wcp::none *no_values = nullptr;                                                    \
        return of<K, __wcp::none, Down>(memory, bytes, in, out, no_values, (__wcp::none *)nullptr, \
                                        count, begin, end, stream);                                \
    }                                                                                              \
    template <typename K, typename V>                                                              \
    static hipError_t SortPairs##Name(void *memory, size_t &bytes, const K *in, K *out,            \
                                      const V *values, V *to_values, size_t count, int begin = 0,  \
                                      int end = sizeof(K) * 8, hipStream_t stream = 0,             \
                                      bool = false) {                                              \
        return of<K, V, Down>(memory, bytes, in, out, values, to_values, count, begin, end,        \
                              stream);                                                             \
    }                                                                                              \
    template <typename K>                                                                          \
    static hipError_t SortKeys##Name(void *memory, size_t &bytes, DoubleBuffer<K> &keys,           \
                                     size_t count, int begin = 0, int end = sizeof(K) * 8,         \
                                     hipStream_t stream = 0, bool = false) {                       \
        auto status = SortKeys##Name(memory, bytes, (const K *)keys.Current(), keys.Alternate(),   \
                                     count, begin, end, stream);                                   \
        if (memory) keys.selector ^= 1;                                                            \
        return status;                                                                             \
    }                                                                                              \
    template <typename K, typename V>                                                              \
    static hipError_t SortPairs##Name(void *memory, size_t &bytes, DoubleBuffer<K> &keys,          \
                                      DoubleBuffer<V> &values, size_t count, int begin = 0,        \
                                      int end = sizeof(K) * 8, hipStream_t stream = 0,             \
                                      bool = false) {                                              \
        auto status = SortPairs##Name(memory, bytes, (const K *)keys.Current(), keys.Alternate(),  \
                                      (const V *)values.Current(), values.Alternate(), count,      \
                                      begin, end, stream);                                         \
        if (memory) keys.selector ^= 1, values.selector ^= 1;                                      \
        return status;                                                                             \
    }
    __WC_SORT(, false)
    __WC_SORT(Descending, true)
#undef __WC_SORT

   private:
    template <typename K, typename V, bool Down>
    static hipError_t of(void *memory, size_t &bytes, const K *in, K *out, const V *values,
                         V *to_values, size_t count, int begin, int end, hipStream_t stream) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wc_key_less<K, Down> less{begin, end};
            __wcp::sort<K, V>(space, in, out, values, to_values, count, less, stream);
        });
    }
};

struct DeviceMergeSort {
    template <typename K, typename Less>
    static hipError_t SortKeys(void *memory, size_t &bytes, K keys, size_t count, Less less,
                               hipStream_t stream = 0, bool = false) {
        const __wcp::none *no_values = nullptr;
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wcp::sort<__wc_value<K>, __wcp::none>(space, keys, keys, no_values,
                                                    (__wcp::none *)nullptr, count, less, stream);
        });
    }
    template <typename K, typename V, typename Less>
    static hipError_t SortPairs(void *memory, size_t &bytes, K keys, V values, size_t count,
                                Less less, hipStream_t stream = 0, bool = false) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wcp::sort<__wc_value<K>, __wc_value<V>>(space, keys, keys, values, values, count,
                                                      less, stream);
        });
    }
    template <typename K, typename Less>
    static hipError_t StableSortKeys(void *memory, size_t &bytes, K keys, size_t count, Less less,
                                     hipStream_t stream = 0, bool = false) {
        return SortKeys(memory, bytes, keys, count, less, stream);
    }
    template <typename K, typename V, typename Less>
    static hipError_t StableSortPairs(void *memory, size_t &bytes, K keys, V values, size_t count,
                                      Less less, hipStream_t stream = 0, bool = false) {
        return SortPairs(memory, bytes, keys, values, count, less, stream);
    }
};

struct DeviceSegmentedReduce {
    template <typename In, typename Out, typename Begin, typename End, typename Op, typename T>
    static hipError_t Reduce(void *memory, size_t &bytes, In in, Out out, int segments, Begin begin,
                             End end, Op op, T init, hipStream_t stream = 0, bool = false) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            if (!space.measures() && segments)
                __wcp::reduce_segments<T, In, Out, Begin, End, Op>
                    <<<segments, __wcp::THREADS, 0, stream>>>(in, out, begin, end, op, init);
        });
    }
    template <typename In, typename Out, typename Begin, typename End>
    static hipError_t Sum(void *memory, size_t &bytes, In in, Out out, int segments, Begin begin,
                          End end, hipStream_t stream = 0, bool = false) {
        return Reduce(memory, bytes, in, out, segments, begin, end, hipcub::Sum(),
                      __wc_sum<In, Out>(0), stream);
    }
    template <typename In, typename Out, typename Begin, typename End>
    static hipError_t Max(void *memory, size_t &bytes, In in, Out out, int segments, Begin begin,
                          End end, hipStream_t stream = 0, bool = false) {
        return Reduce(memory, bytes, in, out, segments, begin, end, hipcub::Max(),
                      std::numeric_limits<__wc_value<In>>::lowest(), stream);
    }
    template <typename In, typename Out, typename Begin, typename End>
    static hipError_t Min(void *memory, size_t &bytes, In in, Out out, int segments, Begin begin,
                          End end, hipStream_t stream = 0, bool = false) {
        return Reduce(memory, bytes, in, out, segments, begin, end, hipcub::Min(),
                      std::numeric_limits<__wc_value<In>>::max(), stream);
    }
};

// A key and the number of its segment, by which keys of all segments are sorted at once.
template <typename Key> struct __wc_segment_key {
    Key key;
    int segment;
};
template <typename Key, typename Begin, typename End> struct __wc_segment_keys {
    typedef __wc_segment_key<Key> value_type;
    const Key *keys;
    Begin begin;
    End end;
    int segments;
    template <typename I> __device__ value_type operator[](I i) const {
        int low = 0, high = segments;  // the last segment that begins at or before i
        while (low < high) {
            int at = (low + high) / 2;
            if ((size_t)begin[at] <= (size_t)i)
                low = at + 1;
            else
                high = at;
        }
        return {keys[i], low - 1};
    }
};
template <typename Key, bool Down> struct __wc_segment_less {
    __wc_key_less<Key, Down> less;
    __device__ bool operator()(const __wc_segment_key<Key> &a,
                               const __wc_segment_key<Key> &b) const {
        return a.segment != b.segment ? a.segment < b.segment : less(a.key, b.key);
    }
};
template <typename Key> struct __wc_keys_of {
    struct place {
        Key *at;
        __device__ void operator=(const __wc_segment_key<Key> &one) const { *at = one.key; }
    };
    Key *keys;
    template <typename I> __device__ place operator[](I i) const { return {keys + i}; }
};
struct DeviceSegmentedRadixSort {
#define __WC_SORT(Name, Down)                                                                      \
    template <typename K, typename Begin, typename End>                                            \
    static hipError_t SortKeys##Name(void *memory, size_t &bytes, const K *in, K *out,             \
                                     size_t count, int segments, Begin begin, End end,             \
                                     int low = 0, int high = sizeof(K) * 8,                        \
                                     hipStream_t stream = 0, bool = false) {                       \
        const __wcp::none *no_values = nullptr;                                                    \
        return of<K, __wcp::none, Down>(memory, bytes, in, out, no_values, (__wcp::none *)nullptr, \
                                        count, segments, begin, end, low, high, stream);           \
    }                                                                                              \
    template <typename K, typename V, typename Begin, typename End>                                \
    static hipError_t SortPairs##Name(void *memory, size_t &bytes, const K *in, K *out,            \
                                      const V *values, V *to_values, size_t count, int segments,   \
                                      Begin begin, End end, int low = 0,                           \
                                      int high = sizeof(K) * 8, hipStream_t stream = 0,            \
                                      bool = false) {                                              \
        return of<K, V, Down>(memory, bytes, in, out, values, to_values, count, segments, begin,   \
                              end, low, high, stream);                                             \
    }
    __WC_SORT(, false)
    __WC_SORT(Descending, true)
#undef __WC_SORT

   private:
    template <typename K, typename V, bool Down, typename Begin, typename End>
    static hipError_t of(void *memory, size_t &bytes, const K *in, K *out, const V *values,
                         V *to_values, size_t count, int segments, Begin begin, End end, int low,
                         int high, hipStream_t stream) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wc_segment_keys<K, Begin, End> keys{in, begin, end, segments};
            __wc_segment_less<K, Down> less{{low, high}};
            __wcp::sort<__wc_segment_key<K>, V>(space, keys, __wc_keys_of<K>{out}, values,
                                                to_values, count, less, stream);
        });
    }
};

}  // namespace hipcub
