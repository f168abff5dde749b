// thrust's algorithms, on the GPU, on the host and in a kernel, against those of the C++ library.
#include <thrust/complex.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>

#include <cstdio>
#include <numeric>
#include <random>

typedef std::vector<int> Ints;
typedef thrust::device_vector<int> DeviceInts;

static int failures;
#define NEED(condition)                                                        \
    do {                                                                       \
        if (!(condition)) printf("line %d: %s\n", __LINE__, #condition), ++failures; \
    } while (0)

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};
struct Squared {
    __host__ __device__ long long operator()(int x) const { return (long long)x * x; }
};
struct Weighted {
    template <typename Pair> __host__ __device__ int operator()(const Pair &p) const {
        return thrust::get<0>(p) + 2 * thrust::get<1>(p);
    }
};

static void reductions(const Ints &h, DeviceInts d) {
    NEED(thrust::reduce(d.begin(), d.end()) == std::accumulate(h.begin(), h.end(), 0));
    long long squares = std::inner_product(h.begin(), h.end(), h.begin(), 0ll);
    NEED(thrust::transform_reduce(d.begin(), d.end(), Squared(), 0ll, thrust::plus<long long>()) ==
         squares);
    NEED(thrust::inner_product(d.begin(), d.end(), d.begin(), 0ll) == squares);
    NEED(thrust::count(d.begin(), d.end(), 5) == std::count(h.begin(), h.end(), 5));
    NEED(thrust::max_element(d.begin(), d.end()) - d.begin() ==
         std::max_element(h.begin(), h.end()) - h.begin());
    NEED(thrust::min_element(d.begin(), d.end()) - d.begin() ==
         std::min_element(h.begin(), h.end()) - h.begin());
}

static void scans(const Ints &h, DeviceInts d) {
    Ints wanted(h.size());
    DeviceInts out(h.size());
    thrust::inclusive_scan(d.begin(), d.end(), out.begin());
    std::partial_sum(h.begin(), h.end(), wanted.begin());
    NEED(out == wanted);
    int *raw = thrust::raw_pointer_cast(d.data());
    thrust::exclusive_scan(thrust::device, raw, raw + h.size(), raw, 7);
    std::exclusive_scan(h.begin(), h.end(), wanted.begin(), 7);
    NEED(d == wanted);
}

static void selections(const Ints &h, DeviceInts d) {
    Ints wanted;
    DeviceInts out(h.size()), runs(h.size()), counts(h.size()), ones(h.size(), 1);
    out.erase(thrust::copy_if(d.begin(), d.end(), out.begin(), Odd()), out.end());
    std::copy_if(h.begin(), h.end(), std::back_inserter(wanted), Odd());
    NEED(out == wanted);
    DeviceInts kept = d;
    kept.erase(thrust::remove_if(kept.begin(), kept.end(), Odd()), kept.end());
    wanted.clear();
    std::remove_copy_if(h.begin(), h.end(), std::back_inserter(wanted), Odd());
    NEED(kept == wanted);
    thrust::sort(d.begin(), d.end());
    auto ends =
        thrust::reduce_by_key(d.begin(), d.end(), ones.begin(), runs.begin(), counts.begin());
    d.erase(thrust::unique(d.begin(), d.end()), d.end());
    runs.resize(ends.first - runs.begin());
    NEED(runs == d);
    NEED(thrust::reduce(counts.begin(), ends.second) == (int)h.size());
}

static void sorts(const Ints &h, const DeviceInts &d) {
    Ints order(h.size());
    std::iota(order.begin(), order.end(), 0);
    Ints unsorted = order;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return h[a] < h[b]; });
    DeviceInts keys = d, indices(h.size());
    thrust::sequence(indices.begin(), indices.end());
    thrust::sort_by_key(keys.begin(), keys.end(), indices.begin());
    NEED(indices == order);
    Ints sorted = h;
    std::sort(sorted.rbegin(), sorted.rend());
    thrust::sort(keys.begin(), keys.end(), thrust::greater<int>());
    NEED(keys == sorted);
    DeviceInts others = d, places = unsorted;
    auto pairs = thrust::make_zip_iterator(thrust::make_tuple(others.begin(), places.begin()));
    thrust::sort(pairs, pairs + h.size());
    NEED(places == order);
    thrust::host_vector<int> host = d;
    thrust::sort_by_key(host.begin(), host.end(), unsorted.begin());
    NEED(unsorted == order);
    NEED(thrust::is_sorted(host.begin(), host.end()));
    DeviceInts weighted(h.size());
    thrust::transform(pairs, pairs + h.size(), weighted.begin(), Weighted());
    NEED(weighted[3] == h[order[3]] + 2 * order[3]);
}

__global__ void in_a_kernel(int *x, int n) {
    thrust::sort(thrust::seq, x, x + n);
    x[n] = *thrust::max_element(thrust::seq, x, x + n);
    thrust::complex<float> z(1, 2);
    z *= z;
    thrust::tuple<int, float> parts = thrust::make_tuple((int)z.real(), z.imag());
    x[n + 1] = thrust::get<0>(parts) + (int)thrust::get<1>(parts);
}

int main() {
    std::mt19937 generator(1);
    Ints h(3000);
    for (int &x : h) x = generator() % 1000;
    DeviceInts d = h;
    reductions(h, d);
    scans(h, d);
    selections(h, d);
    sorts(h, d);
    DeviceInts few(12);
    for (int i = 0; i < 10; ++i) few[i] = i * 7 % 10;
    in_a_kernel<<<1, 1>>>(thrust::raw_pointer_cast(few.data()), 10);
    for (int i = 0; i < 10; ++i) NEED(few[i] == i);
    NEED(few[10] == 9 && few[11] == -3 + 4);
    return failures != 0;
}
