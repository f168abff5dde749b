// hipcub's algorithms against those of the C++ library.
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
#include <hipcub/iterator/discard_output_iterator.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

typedef std::vector<int> Ints;

static int failures;
static void expect(bool right, const char *what, size_t count) {
    if (right) return;
    printf("%s of %zu is wrong\n", what, count);
    ++failures;
}
static void must(hipError_t status, const char *what) {
    if (status == hipSuccess) return;
    printf("%s: %s\n", what, hipGetErrorString(status));
    exit(1);
}
#define MUST(call) must(call, #call)

template <typename T> struct Array {
    T *data;
    size_t count;
    explicit Array(size_t n) : count(n) { MUST(hipMalloc((void **)&data, (n ? n : 1) * sizeof(T))); }
    explicit Array(const std::vector<T> &from) : Array(from.size()) {
        MUST(hipMemcpy(data, from.data(), count * sizeof(T), hipMemcpyHostToDevice));
    }
    ~Array() { MUST(hipFree(data)); }
    std::vector<T> host() const {
        std::vector<T> result(count);
        MUST(hipMemcpy(result.data(), data, count * sizeof(T), hipMemcpyDeviceToHost));
        return result;
    }
};

// As programs call hipcub: once for the size of the workspace, and once with it.
template <typename Call> void twice(Call call) {
    void *memory = nullptr;
    size_t bytes = 0;
    MUST(call(memory, bytes));
    MUST(hipMalloc(&memory, bytes));
    MUST(call(memory, bytes));
    MUST(hipFree(memory));
}

static Ints numbers(size_t count, int limit) {
    std::mt19937 generator(count);
    Ints result(count);
    for (int &one : result) one = (int)(generator() % (2 * limit)) - limit;
    return result;
}

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

static void arrays(size_t n) {
    Ints h = numbers(n, 500), wanted(n), order(n);
    std::iota(order.begin(), order.end(), 0);
    Array<int> in(h), out(n), indices(order), moved(n), selected(1);
    Array<long long> total(1);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceReduce::Sum(m, b, in.data, total.data, n);
    });
    expect(total.host()[0] == std::accumulate(h.begin(), h.end(), 0ll), "Sum", n);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceReduce::Min(m, b, in.data, selected.data, n);
    });
    expect(selected.host()[0] == *std::min_element(h.begin(), h.end()), "Min", n);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceScan::ExclusiveSum(m, b, in.data, out.data, n);
    });
    std::exclusive_scan(h.begin(), h.end(), wanted.begin(), 0);
    expect(out.host() == wanted, "ExclusiveSum", n);
    Array<int> same(h);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceScan::InclusiveScan(m, b, same.data, same.data, hipcub::Max(), n);
    });
    std::inclusive_scan(h.begin(), h.end(), wanted.begin(),
                        [](int a, int b) { return std::max(a, b); });
    expect(same.host() == wanted, "InclusiveScan in place", n);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceRadixSort::SortKeysDescending(m, b, in.data, out.data, n);
    });
    wanted = h;
    std::sort(wanted.rbegin(), wanted.rend());
    expect(out.host() == wanted, "SortKeysDescending", n);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceRadixSort::SortPairs(m, b, in.data, out.data, indices.data, moved.data,
                                                  n);
    });
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return h[a] < h[b]; });
    expect(moved.host() == order, "SortPairs", n);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceSelect::If(m, b, in.data, out.data, selected.data, n, Odd());
    });
    Ints odd, found = out.host();
    std::copy_if(h.begin(), h.end(), std::back_inserter(odd), Odd());
    found.resize(selected.host()[0]);
    expect(found == odd, "If", n);
}

static void segments() {
    Ints h = numbers(700, 500), ends{0, 0, 5, 300, 699, 700};
    int count = (int)ends.size() - 1;
    Array<int> in(h), out(h.size()), limits(ends), sums(count);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceSegmentedReduce::Sum(m, b, in.data, sums.data, count, limits.data,
                                                  limits.data + 1);
    });
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceSegmentedRadixSort::SortKeys(m, b, in.data, out.data, h.size(), count,
                                                          limits.data, limits.data + 1);
    });
    for (int i = 0; i < count; ++i) {
        auto first = h.begin() + ends[i], end = h.begin() + ends[i + 1];
        expect(sums.host()[i] == std::accumulate(first, end, 0), "segment's Sum", i);
        std::stable_sort(first, end);
    }
    expect(out.host() == h, "segments' SortKeys", h.size());
}

static void counts() {
    Ints h = numbers(2000, 3), runs, lengths;
    for (size_t i = 0; i < h.size(); ++i) {
        if (i && h[i] == h[i - 1])
            ++lengths.back();
        else
            runs.push_back(h[i]), lengths.push_back(1);
    }
    Array<int> in(h), unique(h.size()), length(h.size()), number(1), bins(6);
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceRunLengthEncode::Encode(m, b, in.data, unique.data, length.data,
                                                     number.data, h.size());
    });
    Ints found = unique.host(), their = length.host();
    found.resize(number.host()[0]), their.resize(number.host()[0]);
    expect(found == runs && their == lengths, "Encode", h.size());
    MUST(hipMemset(length.data, 0, h.size() * sizeof(int)));
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceRunLengthEncode::Encode(m, b, in.data,
                                                     hipcub::DiscardOutputIterator<>(), length.data,
                                                     number.data, h.size());
    });
    their = length.host();
    their.resize(number.host()[0]);
    expect(their == lengths, "Encode without its keys", h.size());
    twice([&](void *m, size_t &b) {
        return hipcub::DeviceHistogram::HistogramEven(m, b, in.data, bins.data, 7, -3, 3, h.size());
    });
    for (int i = 0; i < 6; ++i)
        expect(bins.host()[i] == std::count(h.begin(), h.end(), i - 3), "HistogramEven", i);
}

constexpr int THREADS = 160, ITEMS = 3;
struct Results {
    int sum, largest;
};
__global__ void block(const int *in, int *sorted, int *prefixes, int *waves, Results *results) {
    typedef hipcub::BlockScan<int, THREADS> Scan;
    typedef hipcub::BlockReduce<int, THREADS> Reduce;
    typedef hipcub::BlockLoad<int, THREADS, ITEMS, hipcub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef hipcub::BlockRadixSort<int, THREADS, ITEMS> Sort;
    typedef hipcub::WarpScan<int> Warp;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
        typename Warp::TempStorage warp;
    } memory;
    int items[ITEMS], before[ITEMS];
    Load(memory.load).Load(in, items);
    __syncthreads();
    int sum = Reduce(memory.reduce).Sum(items);
    __syncthreads();
    int largest = Reduce(memory.reduce).Reduce(items[0], hipcub::Max(), THREADS - 30);
    if (threadIdx.x == 0) *results = {sum, largest};
    __syncthreads();
    Scan(memory.scan).ExclusiveSum(items, before);
    __syncthreads();
    int prefix;
    Warp(memory.warp).ExclusiveSum(items[0], prefix);
    waves[threadIdx.x] = prefix;
    Sort(memory.sort).Sort(items);
    for (int i = 0; i < ITEMS; ++i) {
        prefixes[threadIdx.x * ITEMS + i] = before[i];
        sorted[threadIdx.x * ITEMS + i] = items[i];
    }
}

static void blocks() {
    Ints h = numbers(THREADS * ITEMS, 500), wanted(h.size());
    Array<int> in(h), sorted(h.size()), prefixes(h.size()), waves(THREADS);
    Array<Results> results(1);
    block<<<1, THREADS>>>(in.data, sorted.data, prefixes.data, waves.data, results.data);
    std::exclusive_scan(h.begin(), h.end(), wanted.begin(), 0);
    expect(prefixes.host() == wanted, "block's ExclusiveSum", h.size());
    Results found = results.host()[0];
    expect(found.sum == std::accumulate(h.begin(), h.end(), 0), "block's Sum", h.size());
    int largest = h[0], before = 0;
    for (int i = 0; i < THREADS; ++i) {
        if (i < THREADS - 30) largest = std::max(largest, h[i * ITEMS]);
        if (i % warpSize == 0) before = 0;
        expect(waves.host()[i] == before, "warp's ExclusiveSum", i);
        before += h[i * ITEMS];
    }
    expect(found.largest == largest, "block's Reduce", THREADS - 30);
    std::stable_sort(h.begin(), h.end());
    expect(sorted.host() == h, "block's Sort", h.size());
}

int main() {
    for (size_t count : {1, 255, 1025, 17000}) arrays(count);
    segments();
    counts();
    blocks();
    return failures != 0;
}
