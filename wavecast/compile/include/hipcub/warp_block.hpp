// Reductions and scans of a warp and of a block, as hipcub names them.
#pragma once

#include <hipcub/operators.hpp>
#include <wavecast/parallel/groups.h>

#define __WC_FN __device__ __wc_inline

namespace hipcub {

namespace __wcp = __wc_parallel;

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_WARP_REDUCTIONS,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int Threads = warpSize, int Arch = 0> class WarpReduce {
    static constexpr int WIDTH = Threads;

   public:
    struct TempStorage {};
    __WC_FN WarpReduce(TempStorage &) {}
    template <typename Op> __WC_FN T Reduce(T value, Op op, int valid = WIDTH) {
        return __wcp::warp_reduce<WIDTH>(value, op, valid);
    }
    __WC_FN T Sum(T value, int valid = WIDTH) { return Reduce(value, hipcub::Sum(), valid); }
    __WC_FN T Max(T value, int valid = WIDTH) { return Reduce(value, hipcub::Max(), valid); }
    __WC_FN T Min(T value, int valid = WIDTH) { return Reduce(value, hipcub::Min(), valid); }
};

template <typename T, int Threads = warpSize, int Arch = 0> class WarpScan {
    __WC_FN static int lane() { return __lane_id() % Threads; }
    __WC_FN static int from(int index) { return __lane_id() / Threads * Threads + index; }
    template <typename Op> __WC_FN static T shifted(T inclusive, T first, Op) {
        T before = __wcp::from_lane(inclusive, lane() ? __lane_id() - 1 : __lane_id());
        return lane() ? before : first;
    }

   public:
    struct TempStorage {};
    __WC_FN WarpScan(TempStorage &) {}
    template <typename Op> __WC_FN void InclusiveScan(T in, T &out, Op op) {
        out = __wcp::warp_scan<Threads>(in, op);
    }
    template <typename Op> __WC_FN void InclusiveScan(T in, T &out, Op op, T &total) {
        InclusiveScan(in, out, op);
        total = __wcp::from_lane(out, from(Threads - 1));
    }
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, T init, Op op) {
        T inclusive = __wcp::warp_scan<Threads>(in, op);
        out = shifted(op(init, inclusive), init, op);
    }
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, T init, Op op, T &total) {
        T inclusive = __wcp::warp_scan<Threads>(in, op);
        total = __wcp::from_lane(inclusive, from(Threads - 1));
        out = shifted(op(init, inclusive), init, op);
    }
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, Op op) {
        out = shifted(__wcp::warp_scan<Threads>(in, op), out, op);
    }
    __WC_FN void InclusiveSum(T in, T &out) { InclusiveScan(in, out, hipcub::Sum()); }
    __WC_FN void InclusiveSum(T in, T &out, T &total) {
        InclusiveScan(in, out, hipcub::Sum(), total);
    }
    __WC_FN void ExclusiveSum(T in, T &out) { ExclusiveScan(in, out, T(0), hipcub::Sum()); }
    __WC_FN void ExclusiveSum(T in, T &out, T &total) {
        ExclusiveScan(in, out, T(0), hipcub::Sum(), total);
    }
    template <typename Op> __WC_FN void Scan(T in, T &inclusive, T &exclusive, Op op) {
        inclusive = __wcp::warp_scan<Threads>(in, op);
        exclusive = shifted(inclusive, exclusive, op);
    }
    __WC_FN T Broadcast(T value, unsigned lane) { return __wcp::from_lane(value, from(lane)); }
};

template <typename T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
          int Y = 1, int Z = 1, int Arch = 0>
class BlockReduce {
    static constexpr int THREADS = X * Y * Z;

   public:
    struct TempStorage : Uninitialized<__wcp::block_storage<T, THREADS>> {};
    __WC_FN BlockReduce() : storage(own()) {}
    __WC_FN BlockReduce(TempStorage &memory) : storage(memory) {}
    // The result is that of thread 0.
    template <typename Op> __WC_FN T Reduce(T value, Op op, int valid = THREADS) {
        return __wcp::block_reduce<THREADS>(storage.Alias(), value, op, valid);
    }
    template <int N, typename Op> __WC_FN T Reduce(T (&values)[N], Op op) {
        T value = values[0];
        for (int i = 1; i < N; ++i) value = op(value, values[i]);
        return Reduce(value, op);
    }
    __WC_FN T Sum(T value, int valid = THREADS) { return Reduce(value, hipcub::Sum(), valid); }
    template <int N> __WC_FN T Sum(T (&values)[N]) { return Reduce(values, hipcub::Sum()); }

   private:
    TempStorage &storage;
    __WC_FN static TempStorage &own() {
        __shared__ TempStorage memory;
        return memory;
    }
};

template <typename T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_WARP_SCANS, int Y = 1,
          int Z = 1, int Arch = 0>
class BlockScan {
    static constexpr int THREADS = X * Y * Z;
    typedef __wcp::block_storage<T, THREADS> Storage;

   public:
    struct TempStorage : Uninitialized<Storage> {};
    __WC_FN BlockScan() : storage(own()) {}
    __WC_FN BlockScan(TempStorage &memory) : storage(memory) {}

    // --- inclusive
    template <typename Op> __WC_FN void InclusiveScan(T in, T &out, Op op) {
        T total;
        InclusiveScan(in, out, op, total);
    }
    template <typename Op> __WC_FN void InclusiveScan(T in, T &out, Op op, T &total) {
        T before = in;
        out = __wcp::block_scan<THREADS>(storage.Alias(), in, op, before, total);
    }
    template <typename Op, typename Prefix>
    __WC_FN void InclusiveScan(T in, T &out, Op op, Prefix &prefix) {
        T total;
        InclusiveScan(in, out, op, total);
        out = op(prefixed(prefix, total), out);
    }
    template <int N, typename Op> __WC_FN void InclusiveScan(T (&in)[N], T (&out)[N], Op op) {
        T total;
        InclusiveScan(in, out, op, total);
    }
    template <int N, typename Op>
    __WC_FN void InclusiveScan(T (&in)[N], T (&out)[N], Op op, T &total) {
        T before = in[0];
        bool first = items(in, op, before, total);
        fill<true>(in, out, op, before, first);
    }
    template <int N, typename Op, typename Prefix>
    __WC_FN void InclusiveScan(T (&in)[N], T (&out)[N], Op op, Prefix &prefix) {
        T before = in[0], total;
        bool first = items(in, op, before, total);
        T given = prefixed(prefix, total);
        fill<true>(in, out, op, first ? given : (T)op(given, before), false);
    }
    // --- exclusive
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, T init, Op op) {
        T total;
        ExclusiveScan(in, out, init, op, total);
    }
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, T init, Op op, T &total) {
        T before = init;
        __wcp::block_scan<THREADS>(storage.Alias(), in, op, before, total);
        out = __wcp::thread_of_block() ? (T)op(init, before) : init;
    }
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, Op op) {
        T total;
        ExclusiveScan(in, out, op, total);
    }
    template <typename Op> __WC_FN void ExclusiveScan(T in, T &out, Op op, T &total) {
        T before = in;
        __wcp::block_scan<THREADS>(storage.Alias(), in, op, before, total);
        out = before;
    }
    template <typename Op, typename Prefix>
    __WC_FN void ExclusiveScan(T in, T &out, Op op, Prefix &prefix) {
        T before = in, total;
        __wcp::block_scan<THREADS>(storage.Alias(), in, op, before, total);
        T given = prefixed(prefix, total);
        out = __wcp::thread_of_block() ? (T)op(given, before) : given;
    }
    template <int N, typename Op>
    __WC_FN void ExclusiveScan(T (&in)[N], T (&out)[N], T init, Op op) {
        T total;
        ExclusiveScan(in, out, init, op, total);
    }
    template <int N, typename Op>
    __WC_FN void ExclusiveScan(T (&in)[N], T (&out)[N], T init, Op op, T &total) {
        T before = init;
        bool first = items(in, op, before, total);
        fill<false>(in, out, op, first ? init : (T)op(init, before), false);
    }
    template <int N, typename Op, typename Prefix>
    __WC_FN void ExclusiveScan(T (&in)[N], T (&out)[N], Op op, Prefix &prefix) {
        T before = in[0], total;
        bool first = items(in, op, before, total);
        T given = prefixed(prefix, total);
        fill<false>(in, out, op, first ? given : (T)op(given, before), false);
    }
    // --- sums: `rest` is nothing, a T for the total, or a function that gives what is before
    template <typename... Rest> __WC_FN void InclusiveSum(T in, T &out, Rest &...rest) {
        InclusiveScan(in, out, hipcub::Sum(), rest...);
    }
    template <int N, typename... Rest>
    __WC_FN void InclusiveSum(T (&in)[N], T (&out)[N], Rest &...rest) {
        InclusiveScan(in, out, hipcub::Sum(), rest...);
    }
    __WC_FN void ExclusiveSum(T in, T &out) { ExclusiveScan(in, out, T(0), hipcub::Sum()); }
    __WC_FN void ExclusiveSum(T in, T &out, T &total) {
        ExclusiveScan(in, out, T(0), hipcub::Sum(), total);
    }
    template <typename Prefix> __WC_FN void ExclusiveSum(T in, T &out, Prefix &prefix) {
        ExclusiveScan(in, out, hipcub::Sum(), prefix);
    }
    template <int N> __WC_FN void ExclusiveSum(T (&in)[N], T (&out)[N]) {
        ExclusiveScan(in, out, T(0), hipcub::Sum());
    }
    template <int N> __WC_FN void ExclusiveSum(T (&in)[N], T (&out)[N], T &total) {
        ExclusiveScan(in, out, T(0), hipcub::Sum(), total);
    }
    template <int N, typename Prefix>
    __WC_FN void ExclusiveSum(T (&in)[N], T (&out)[N], Prefix &prefix) {
        ExclusiveScan(in, out, hipcub::Sum(), prefix);
    }

   private:
    TempStorage &storage;
    __WC_FN static TempStorage &own() {
        __shared__ TempStorage memory;
        return memory;
    }
    // The first warp asks for what is before the block; the answer of its first lane counts.
    template <typename Prefix> __WC_FN T prefixed(Prefix &prefix, const T &total) {
        int thread = __wcp::thread_of_block();
        if (thread < warpSize) {
            T given = prefix(total);
            if (thread == 0) storage.Alias().prefix[0] = given;
        }
        __syncthreads();
        return storage.Alias().prefix[0];
    }
    // What is before the items of a thread; whether nothing is.
    template <int N, typename Op> __WC_FN bool items(T (&in)[N], Op op, T &before, T &total) {
        T own = in[0];
        for (int i = 1; i < N; ++i) own = op(own, in[i]);
        __wcp::block_scan<THREADS>(storage.Alias(), own, op, before, total);
        return __wcp::thread_of_block() == 0;
    }
    template <bool Inclusive, int N, typename Op>
    __WC_FN void fill(T (&in)[N], T (&out)[N], Op op, T before, bool first) {
        for (int i = 0; i < N; ++i) {
            T next = first ? in[i] : (T)op(before, in[i]);
            out[i] = Inclusive ? next : before;
            before = next;
            first = false;
        }
    }
};

}  // namespace hipcub

#undef __WC_FN
