// Reductions, scans, selections and histograms of arrays, as hipcub names them. They are kernels of
// wavecast/parallel: results are those of rocPRIM, times are not.
#pragma once

#include <hipcub/operators.hpp>
#include <wavecast/parallel/algorithms.h>

namespace hipcub {

namespace __wcp = __wc_parallel;

template <typename Iterator>
using __wc_value = std::remove_cv_t<typename std::iterator_traits<Iterator>::value_type>;
// The type of sums: that of the output, where it has one.
template <typename In, typename Out>
using __wc_sum = std::conditional_t<std::is_void_v<__wc_value<Out>>, __wc_value<In>, __wc_value<Out>>;

// Runs `call` on a workspace; without memory only its size is found.
template <typename Call> hipError_t __wc_run(void *memory, size_t &bytes, Call call) {
    __wcp::Workspace space(memory);
    if (memory) {
        __wcp::Workspace measure(nullptr);
        call(measure);
        if (measure.used > bytes) return hipErrorInvalidValue;
    }
    call(space);
    if (!memory) bytes = space.used + 256;
    return memory ? hipGetLastError() : hipSuccess;
}

struct DeviceReduce {
    template <typename In, typename Out, typename Op, typename T>
    static hipError_t Reduce(void *memory, size_t &bytes, In in, Out out, size_t count, Op op,
                             T init, hipStream_t stream = 0, bool = false) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wcp::reduce<T>(space, in, out, count, op, init, stream);
        });
    }
    template <typename In, typename Out>
    static hipError_t Sum(void *memory, size_t &bytes, In in, Out out, size_t count,
                          hipStream_t stream = 0, bool = false) {
        return Reduce(memory, bytes, in, out, count, hipcub::Sum(), __wc_sum<In, Out>(0), stream);
    }
    template <typename In, typename Out>
    static hipError_t Max(void *memory, size_t &bytes, In in, Out out, size_t count,
                          hipStream_t stream = 0, bool = false) {
        typedef __wc_value<In> T;
        return Reduce(memory, bytes, in, out, count, hipcub::Max(),
                      std::numeric_limits<T>::lowest(), stream);
    }
    template <typename In, typename Out>
    static hipError_t Min(void *memory, size_t &bytes, In in, Out out, size_t count,
                          hipStream_t stream = 0, bool = false) {
        typedef __wc_value<In> T;
        return Reduce(memory, bytes, in, out, count, hipcub::Min(), std::numeric_limits<T>::max(),
                      stream);
    }
    template <typename In, typename Out>
    static hipError_t ArgMax(void *memory, size_t &bytes, In in, Out out, int count,
                             hipStream_t stream = 0, bool = false) {
        typedef __wc_value<In> T;
        KeyValuePair<int, T> init(1, std::numeric_limits<T>::lowest());
        return Reduce(memory, bytes, ArgIndexInputIterator<In, int>(in), out, count,
                      hipcub::ArgMax(), init, stream);
    }
    template <typename In, typename Out>
    static hipError_t ArgMin(void *memory, size_t &bytes, In in, Out out, int count,
                             hipStream_t stream = 0, bool = false) {
        typedef __wc_value<In> T;
        KeyValuePair<int, T> init(1, std::numeric_limits<T>::max());
        return Reduce(memory, bytes, ArgIndexInputIterator<In, int>(in), out, count,
                      hipcub::ArgMin(), init, stream);
    }
};

struct DeviceScan {
    template <typename In, typename Out, typename Op, typename T>
    static hipError_t ExclusiveScan(void *memory, size_t &bytes, In in, Out out, Op op, T init,
                                    size_t count, hipStream_t stream = 0, bool = false) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wcp::scan<false, T>(space, in, out, count, op, init, true, stream);
        });
    }
    template <typename In, typename Out, typename Op>
    static hipError_t InclusiveScan(void *memory, size_t &bytes, In in, Out out, Op op,
                                    size_t count, hipStream_t stream = 0, bool = false) {
        typedef __wc_sum<In, Out> T;
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wcp::scan<true, T>(space, in, out, count, op, T(), false, stream);
        });
    }
    template <typename In, typename Out>
    static hipError_t ExclusiveSum(void *memory, size_t &bytes, In in, Out out, size_t count,
                                   hipStream_t stream = 0, bool = false) {
        return ExclusiveScan(memory, bytes, in, out, hipcub::Sum(), __wc_sum<In, Out>(0), count,
                             stream);
    }
    template <typename In, typename Out>
    static hipError_t InclusiveSum(void *memory, size_t &bytes, In in, Out out, size_t count,
                                   hipStream_t stream = 0, bool = false) {
        return InclusiveScan(memory, bytes, in, out, hipcub::Sum(), count, stream);
    }
};

template <typename Flags> struct __wc_flagged {
    Flags flags;
    __device__ bool operator()(size_t i) const { return (bool)flags[i]; }
};
template <typename In, typename Op> struct __wc_tested {
    In in;
    Op op;
    __device__ bool operator()(size_t i) const { return const_cast<Op &>(op)(in[i]); }
};
// Whether an element differs from the one before it.
template <typename In> struct __wc_head {
    In in;
    __device__ bool operator()(size_t i) const { return i == 0 || !(in[i] == in[i - 1]); }
};
template <typename In, typename Out> struct __wc_moved {
    In in;
    Out out;
    __device__ void operator()(size_t from, size_t to) const { out[to] = in[from]; }
};

struct DeviceSelect {
    template <typename In, typename Flags, typename Out, typename Selected>
    static hipError_t Flagged(void *memory, size_t &bytes, In in, Flags flags, Out out,
                              Selected selected, size_t count, hipStream_t stream = 0,
                              bool = false) {
        return of(memory, bytes, __wc_flagged<Flags>{flags}, in, out, selected, count, stream);
    }
    template <typename In, typename Out, typename Selected, typename Op>
    static hipError_t If(void *memory, size_t &bytes, In in, Out out, Selected selected,
                         size_t count, Op op, hipStream_t stream = 0, bool = false) {
        return of(memory, bytes, __wc_tested<In, Op>{in, op}, in, out, selected, count, stream);
    }
    template <typename In, typename Out, typename Selected>
    static hipError_t Unique(void *memory, size_t &bytes, In in, Out out, Selected selected,
                             size_t count, hipStream_t stream = 0, bool = false) {
        return of(memory, bytes, __wc_head<In>{in}, in, out, selected, count, stream);
    }

   private:
    template <typename Flag, typename In, typename Out, typename Selected>
    static hipError_t of(void *memory, size_t &bytes, Flag flag, In in, Out out,
                         Selected selected, size_t count, hipStream_t stream) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wcp::select(space, flag, __wc_moved<In, Out>{in, out}, 0, selected, count, stream);
        });
    }
};

struct DevicePartition {
    template <typename In, typename Flags, typename Out, typename Selected>
    static hipError_t Flagged(void *memory, size_t &bytes, In in, Flags flags, Out out,
                              Selected selected, size_t count, hipStream_t stream = 0,
                              bool = false) {
        return of(memory, bytes, __wc_flagged<Flags>{flags}, in, out, selected, count, stream);
    }
    template <typename In, typename Out, typename Selected, typename Op>
    static hipError_t If(void *memory, size_t &bytes, In in, Out out, Selected selected,
                         size_t count, Op op, hipStream_t stream = 0, bool = false) {
        return of(memory, bytes, __wc_tested<In, Op>{in, op}, in, out, selected, count, stream);
    }

   private:
    template <typename Flag, typename In, typename Out, typename Selected>
    static hipError_t of(void *memory, size_t &bytes, Flag flag, In in, Out out,
                         Selected selected, size_t count, hipStream_t stream) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            __wc_moved<In, Out> moved{in, out};
            __wcp::select(space, flag, moved, moved, selected, count, stream);
        });
    }
};

template <typename In, typename Out> struct __wc_run_start {
    In in;
    Out out;
    unsigned long long *starts;
    __device__ void operator()(size_t from, size_t to) const {
        out[to] = in[from];
        starts[to] = from;
    }
};
template <typename Lengths, typename Runs> struct __wc_run_length {
    const unsigned long long *starts;
    Lengths lengths;
    Runs runs;
    size_t count;
    __device__ void operator()(size_t i) const {
        size_t number = *runs;
        if (i < number) lengths[i] = (i + 1 < number ? starts[i + 1] : count) - starts[i];
    }
};
struct DeviceRunLengthEncode {
    template <typename In, typename Out, typename Lengths, typename Runs>
    static hipError_t Encode(void *memory, size_t &bytes, In in, Out out, Lengths lengths,
                             Runs runs, size_t count, hipStream_t stream = 0, bool = false) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            auto *starts = space.take<unsigned long long>(count);
            __wcp::select(space, __wc_head<In>{in}, __wc_run_start<In, Out>{in, out, starts}, 0,
                          runs, count, stream);
            if (!space.measures())
                __wcp::for_each(__wc_run_length<Lengths, Runs>{starts, lengths, runs, count}, count,
                                stream);
        });
    }
};

template <typename In, typename Counter, typename Level> struct __wc_even_bins {
    In in;
    Counter *bins;
    int levels;
    Level lower, upper;
    __device__ void operator()(size_t i) const {
        Level value = (Level)in[i];
        if (value >= lower && value < upper)
            atomicAdd(&bins[(int)((value - lower) * (levels - 1) / (upper - lower))], Counter(1));
    }
};
template <typename In, typename Counter, typename Level> struct __wc_range_bins {
    In in;
    Counter *bins;
    int levels;
    const Level *limits;
    __device__ void operator()(size_t i) const {
        Level value = (Level)in[i];
        for (int bin = 0; bin + 1 < levels; ++bin)
            if (value >= limits[bin] && value < limits[bin + 1])
                atomicAdd(&bins[bin], Counter(1));
    }
};
template <typename T> struct __wc_zeros {
    T *out;
    __device__ void operator()(size_t i) const { out[i] = T(0); }
};
struct DeviceHistogram {
    template <typename In, typename Counter, typename Level>
    static hipError_t HistogramEven(void *memory, size_t &bytes, In in, Counter *bins, int levels,
                                    Level lower, Level upper, size_t count, hipStream_t stream = 0,
                                    bool = false) {
        __wc_even_bins<In, Counter, Level> counted{in, bins, levels, lower, upper};
        return of(memory, bytes, counted, bins, levels, count, stream);
    }
    template <typename In, typename Counter, typename Level>
    static hipError_t HistogramRange(void *memory, size_t &bytes, In in, Counter *bins, int levels,
                                     Level *limits, size_t count, hipStream_t stream = 0,
                                     bool = false) {
        __wc_range_bins<In, Counter, Level> counted{in, bins, levels, limits};
        return of(memory, bytes, counted, bins, levels, count, stream);
    }

   private:
    template <typename F, typename Counter>
    static hipError_t of(void *memory, size_t &bytes, F counted, Counter *bins, int levels,
                         size_t count, hipStream_t stream) {
        return __wc_run(memory, bytes, [&](__wcp::Workspace &space) {
            if (space.measures()) return;
            __wcp::for_each(__wc_zeros<Counter>{bins}, levels - 1, stream);
            __wcp::for_each(counted, count, stream);
        });
    }
};

}  // namespace hipcub
