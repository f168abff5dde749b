// Calls of rocPRIM and rocRAND compared with loops of the host: prints what differs.
#include <hip/hip_runtime.h>
#include <rocprim/rocprim.hpp>
#include <rocrand/rocrand.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

static void expect(bool right, const char *what) {
    if (!right) printf("wrong: %s\n", what);
}
template <typename T> static T *device(const std::vector<T> &values) {
    T *to;
    hipMalloc(&to, values.size() * sizeof(T));
    hipMemcpy(to, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice);
    return to;
}
template <typename T> static std::vector<T> host(const T *from, size_t count) {
    std::vector<T> values(count);
    hipMemcpy(values.data(), from, count * sizeof(T), hipMemcpyDeviceToHost);
    return values;
}
template <typename Call> static void run(Call call) {
    size_t bytes = 0;
    void *memory = nullptr;
    expect(call(memory, bytes) == hipSuccess && bytes, "the size of the memory");
    hipMalloc(&memory, bytes);
    expect(call(memory, bytes) == hipSuccess, "a status");
}

const int SIZE = 3000, THREADS = 128, ITEMS = 3, BLOCK = THREADS * ITEMS;

__global__ void blocks(const int *in, int *sums, int *scans, int size) {
    int items[ITEMS], sum, first = blockIdx.x * BLOCK, valid = min(BLOCK, size - first);
    rocprim::block_load<int, THREADS, ITEMS>{}.load(in + first, items, valid, 0);
    rocprim::block_reduce<int, THREADS>{}.reduce(items, sum, rocprim::plus<int>());
    if (threadIdx.x == THREADS - 1) sums[blockIdx.x] = sum;  // all threads have it
    int total = items[0] + items[1] + items[2], before;
    rocprim::block_scan<int, THREADS>{}.exclusive_scan(total, before, 7);
    for (int i = 0; i < ITEMS; i++) before = items[i] = before + items[i];
    rocprim::block_store<int, THREADS, ITEMS>{}.store(scans + first, items, valid);
}

int main() {
    std::vector<int> x(SIZE);
    unsigned seed = 1;
    for (int &value : x) value = (int)((seed = seed * 1664525 + 1013904223) >> 20) - 2000;
    int *in = device(x), *out = device(x), *number = device(std::vector<int>(1));
    run([&](void *m, size_t &b) { return rocprim::reduce(m, b, in, number, SIZE, rocprim::plus<int>()); });
    expect(host(number, 1)[0] == std::accumulate(x.begin(), x.end(), 0), "a sum");
    run([&](void *m, size_t &b) { return rocprim::reduce(m, b, in, number, SIZE, rocprim::minimum<int>()); });
    expect(host(number, 1)[0] == *std::min_element(x.begin(), x.end()), "the least");
    run([&](void *m, size_t &b) { return rocprim::reduce(m, b, in, number, 5000, SIZE, rocprim::maximum<int>()); });
    expect(host(number, 1)[0] == 5000, "the largest with a beginning");
    std::vector<int> y(SIZE);
    std::partial_sum(x.begin(), x.end(), y.begin());
    run([&](void *m, size_t &b) { return rocprim::inclusive_scan(m, b, in, out, SIZE, rocprim::plus<int>()); });
    expect(host(out, SIZE) == y, "an inclusive scan");
    for (int i = SIZE - 1; i > 0; i--) y[i] = y[i - 1] + 9;
    y[0] = 9;
    run([&](void *m, size_t &b) { return rocprim::exclusive_scan(m, b, in, out, 9, SIZE); });
    expect(host(out, SIZE) == y, "an exclusive scan");
    y = x;
    std::stable_sort(y.begin(), y.end());
    run([&](void *m, size_t &b) { return rocprim::radix_sort_keys(m, b, in, out, SIZE); });
    expect(host(out, SIZE) == y, "a sort");
    std::vector<int> order(SIZE), by(SIZE);
    std::iota(order.begin(), order.end(), 0);
    int *positions = device(order), *sorted = device(by);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x[a] > x[b]; });
    run([&](void *m, size_t &b) {
        return rocprim::radix_sort_pairs_desc(m, b, in, out, positions, sorted, SIZE);
    });
    expect(host(sorted, SIZE) == order, "a sort of pairs");
    auto even = [] __host__ __device__(int value) { return value % 2 == 0; };
    y.clear();
    std::copy_if(x.begin(), x.end(), std::back_inserter(y), even);
    run([&](void *m, size_t &b) { return rocprim::select(m, b, in, out, number, SIZE, even); });
    expect(host(number, 1)[0] == (int)y.size() && host(out, y.size()) == y, "a selection");

    const int GRID = (SIZE + BLOCK - 1) / BLOCK;
    int *sums = device(std::vector<int>(GRID)), *scans = device(std::vector<int>(SIZE));
    blocks<<<GRID, THREADS>>>(in, sums, scans, SIZE);
    std::vector<int> totals(GRID), within(SIZE);
    for (int i = 0; i < SIZE; i++) {
        within[i] = x[i] + (i % BLOCK ? within[i - 1] : 7);
        totals[i / BLOCK] += x[i];
    }
    expect(host(sums, GRID) == totals, "sums of blocks");
    expect(host(scans, SIZE) == within, "scans of blocks");

    rocrand_cpp::default_random_engine engine(42);
    double *numbers = device(std::vector<double>(20000));
    rocrand_cpp::normal_distribution<double> normal(3, 2);
    normal(engine, numbers, 20000);
    double mean = 0, square = 0;
    for (double value : host(numbers, 20000)) mean += value / 20000, square += value * value / 20000;
    expect(std::fabs(mean - 3) < 0.1 && std::fabs(std::sqrt(square - mean * mean) - 2) < 0.1, "normals");
    rocrand_cpp::uniform_real_distribution<double> uniform;
    uniform(engine, numbers, 20000);
    auto drawn = host(numbers, 20000);
    engine.seed(42);
    normal(engine, numbers, 20000);
    uniform(engine, numbers, 20000);
    expect(host(numbers, 20000) == drawn, "a seed");
    for (double value : drawn) expect(value > 0 && value <= 1, "uniform numbers");
    return 0;
}
