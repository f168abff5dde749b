// Loads, stores, exchanges, differences and sorts of a block, as hipcub names them.
#pragma once

#include <hipcub/operators.hpp>
#include <wavecast/parallel/groups.h>

#define __WC_FN __device__ __wc_inline

namespace hipcub {

enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

template <typename T, int X, int N, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1,
          int Z = 1, int Arch = 0>
class BlockLoad {
    __WC_FN static int place(int item) {
        int thread = __wc_parallel::thread_of_block();
        return Algorithm == BLOCK_LOAD_STRIPED ? item * X * Y * Z + thread : thread * N + item;
    }

   public:
    struct TempStorage {};
    __WC_FN BlockLoad() {}
    __WC_FN BlockLoad(TempStorage &) {}
    template <typename In> __WC_FN void Load(In in, T (&items)[N]) {
        for (int i = 0; i < N; ++i) items[i] = in[place(i)];
    }
    template <typename In> __WC_FN void Load(In in, T (&items)[N], int valid) {
        for (int i = 0; i < N; ++i)
            if (place(i) < valid) items[i] = in[place(i)];
    }
    template <typename In, typename Default>
    __WC_FN void Load(In in, T (&items)[N], int valid, Default otherwise) {
        for (int i = 0; i < N; ++i) items[i] = place(i) < valid ? (T)in[place(i)] : (T)otherwise;
    }
};

template <typename T, int X, int N, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1,
          int Z = 1, int Arch = 0>
class BlockStore {
    __WC_FN static int place(int item) {
        int thread = __wc_parallel::thread_of_block();
        return Algorithm == BLOCK_STORE_STRIPED ? item * X * Y * Z + thread : thread * N + item;
    }

   public:
    struct TempStorage {};
    __WC_FN BlockStore() {}
    __WC_FN BlockStore(TempStorage &) {}
    template <typename Out> __WC_FN void Store(Out out, T (&items)[N], int valid = X * Y * Z * N) {
        for (int i = 0; i < N; ++i)
            if (place(i) < valid) out[place(i)] = items[i];
    }
};

template <typename T, int X, int N, bool Sliced = false, int Y = 1, int Z = 1, int Arch = 0>
class BlockExchange {
    static constexpr int THREADS = X * Y * Z;

   public:
    struct TempStorage : Uninitialized<__wc_parallel::raw_storage<T, THREADS * N>> {};
    __WC_FN BlockExchange(TempStorage &memory) : storage(memory) {}
    __WC_FN void StripedToBlocked(T (&in)[N], T (&out)[N]) {
        for (int i = 0; i < N; ++i) at(i * THREADS + thread()) = in[i];
        read(out, false);
    }
    __WC_FN void BlockedToStriped(T (&in)[N], T (&out)[N]) {
        for (int i = 0; i < N; ++i) at(thread() * N + i) = in[i];
        read(out, true);
    }
    template <typename I> __WC_FN void ScatterToBlocked(T (&in)[N], T (&out)[N], I (&ranks)[N]) {
        for (int i = 0; i < N; ++i) at(ranks[i]) = in[i];
        read(out, false);
    }
    template <typename I> __WC_FN void ScatterToStriped(T (&in)[N], T (&out)[N], I (&ranks)[N]) {
        for (int i = 0; i < N; ++i) at(ranks[i]) = in[i];
        read(out, true);
    }
    __WC_FN void StripedToBlocked(T (&items)[N]) { StripedToBlocked(items, items); }
    __WC_FN void BlockedToStriped(T (&items)[N]) { BlockedToStriped(items, items); }

   private:
    TempStorage &storage;
    __WC_FN static int thread() { return __wc_parallel::thread_of_block(); }
    __WC_FN T &at(int place) { return storage.Alias()[place]; }
    __WC_FN void read(T (&out)[N], bool striped) {
        __syncthreads();
        for (int i = 0; i < N; ++i) out[i] = at(striped ? i * THREADS + thread() : thread() * N + i);
    }
};

// Differences to and flags of neighbours.
template <typename T, int X, int Y = 1, int Z = 1, int Arch = 0> class BlockAdjacentDifference {
    static constexpr int THREADS = X * Y * Z;

   public:
    struct TempStorage : Uninitialized<__wc_parallel::raw_storage<T, THREADS>> {};
    __WC_FN BlockAdjacentDifference() : storage(own()) {}
    __WC_FN BlockAdjacentDifference(TempStorage &memory) : storage(memory) {}
    template <int N, typename Out, typename Op>
    __WC_FN void SubtractLeft(T (&in)[N], Out (&out)[N], Op op) {
        T before = in[0];
        left(in, out, op, shared(in[N - 1], -1, before), false);
    }
    template <int N, typename Out, typename Op>
    __WC_FN void SubtractLeft(T (&in)[N], Out (&out)[N], Op op, T predecessor) {
        left(in, out, op, shared(in[N - 1], -1, predecessor), true);
    }
    template <int N, typename Out, typename Op>
    __WC_FN void SubtractRight(T (&in)[N], Out (&out)[N], Op op) {
        T after = shared(in[0], 1, in[N - 1]);
        for (int i = 0; i + 1 < N; ++i) out[i] = op(in[i], in[i + 1]);
        bool last = __wc_parallel::thread_of_block() == THREADS - 1;
        out[N - 1] = last ? (Out)in[N - 1] : (Out)op(in[N - 1], after);
    }

   private:
    TempStorage &storage;
    __WC_FN static TempStorage &own() {
        __shared__ TempStorage memory;
        return memory;
    }
    __WC_FN T shared(T value, int step, T otherwise) {
        int thread = __wc_parallel::thread_of_block(), other = thread + step;
        storage.Alias()[thread] = value;
        __syncthreads();
        return other < 0 || other >= THREADS ? otherwise : storage.Alias()[other];
    }
    template <int N, typename Out, typename Op>
    __WC_FN static void left(T (&in)[N], Out (&out)[N], Op op, T before, bool given) {
        bool first = __wc_parallel::thread_of_block() == 0 && !given;
        for (int i = N - 1; i > 0; --i) out[i] = op(in[i], in[i - 1]);
        out[0] = first ? (Out)in[0] : (Out)op(in[0], before);
    }
};

template <typename T, int X, int Y = 1, int Z = 1, int Arch = 0> class BlockDiscontinuity {
    typedef BlockAdjacentDifference<T, X, Y, Z, Arch> Neighbours;
    template <typename Op> struct swapped {
        Op op;
        __WC_FN bool operator()(const T &own, const T &before) { return op(before, own); }
    };

   public:
    typedef typename Neighbours::TempStorage TempStorage;
    __WC_FN BlockDiscontinuity(TempStorage &memory) : neighbours(memory) {}
    template <int N, typename Flag, typename Op>
    __WC_FN void FlagHeads(Flag (&flags)[N], T (&in)[N], Op op) {
        neighbours.SubtractLeft(in, flags, swapped<Op>{op});
        if (__wc_parallel::thread_of_block() == 0) flags[0] = 1;
    }
    template <int N, typename Flag, typename Op>
    __WC_FN void FlagTails(Flag (&flags)[N], T (&in)[N], Op op) {
        neighbours.SubtractRight(in, flags, op);
        if (__wc_parallel::thread_of_block() == X * Y * Z - 1) flags[N - 1] = 1;
    }

   private:
    Neighbours neighbours;
};

// A sort by counting, for each key, those that come before it.
template <typename Key, int X, int N, typename Value = NullType, int BITS = 4, bool Memoize = true,
          int Scan = 0, int Config = 0, int Y = 1, int Z = 1, int Arch = 0>
class BlockRadixSort {
    static constexpr int THREADS = X * Y * Z, COUNT = THREADS * N;
    typedef typename Traits<Key>::UnsignedBits Bits;
    struct Storage {
        __wc_parallel::raw_storage<Key, COUNT> keys, sorted;
        __wc_parallel::raw_storage<Value, COUNT> values;
    };

   public:
    struct TempStorage : Uninitialized<Storage> {};
    __WC_FN BlockRadixSort() : storage(own()) {}
    __WC_FN BlockRadixSort(TempStorage &memory) : storage(memory) {}
    __WC_FN void Sort(Key (&k)[N], int begin = 0, int end = sizeof(Key) * 8) {
        keys_only(k, begin, end, false, false);
    }
    __WC_FN void SortDescending(Key (&k)[N], int begin = 0, int end = sizeof(Key) * 8) {
        keys_only(k, begin, end, true, false);
    }
    __WC_FN void SortBlockedToStriped(Key (&k)[N], int begin = 0, int end = sizeof(Key) * 8) {
        keys_only(k, begin, end, false, true);
    }
    __WC_FN void Sort(Key (&k)[N], Value (&v)[N], int begin = 0, int end = sizeof(Key) * 8) {
        sort(k, v, begin, end, false, false);
    }
    __WC_FN void SortDescending(Key (&k)[N], Value (&v)[N], int begin = 0,
                                int end = sizeof(Key) * 8) {
        sort(k, v, begin, end, true, false);
    }
    __WC_FN void SortBlockedToStriped(Key (&k)[N], Value (&v)[N], int begin = 0,
                                      int end = sizeof(Key) * 8) {
        sort(k, v, begin, end, false, true);
    }

   private:
    TempStorage &storage;
    __WC_FN static TempStorage &own() {
        __shared__ TempStorage memory;
        return memory;
    }
    __WC_FN void keys_only(Key (&keys)[N], int begin, int end, bool down, bool striped) {
        Value unused[N];
        sort(keys, unused, begin, end, down, striped);
    }
    __WC_FN void sort(Key (&keys)[N], Value (&values)[N], int begin, int end, bool down,
                      bool striped) {
        Storage &memory = storage.Alias();
        int thread = __wc_parallel::thread_of_block(), ranks[N];
        Bits mask = (end - begin >= (int)sizeof(Key) * 8 ? (Bits)-1
                                                         : (Bits)(((Bits)1 << (end - begin)) - 1));
        auto bits = [&](Key key) {
            Bits found = (Bits)(Traits<Key>::ordered(key) >> begin) & mask;
            return down ? (Bits)(mask - found) : found;
        };
        for (int i = 0; i < N; ++i) memory.keys[thread * N + i] = keys[i];
        __syncthreads();
        for (int i = 0; i < N; ++i) ranks[i] = 0;
        for (int other = 0; other < COUNT; ++other) {
            Bits theirs = bits(memory.keys[other]);
            for (int i = 0; i < N; ++i) {
                Bits own = bits(keys[i]);
                ranks[i] += theirs < own || (theirs == own && other < thread * N + i);
            }
        }
        for (int i = 0; i < N; ++i) {
            memory.sorted[ranks[i]] = keys[i];
            memory.values[ranks[i]] = values[i];
        }
        __syncthreads();
        for (int i = 0; i < N; ++i) {
            int place = striped ? i * THREADS + thread : thread * N + i;
            keys[i] = memory.sorted[place];
            values[i] = memory.values[place];
        }
    }
};

}  // namespace hipcub

#undef __WC_FN
