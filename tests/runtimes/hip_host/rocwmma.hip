// Products of fragments compared with loops of the host, for every type and block of the target.
#include <hip/hip_runtime.h>
#include <rocwmma/rocwmma.hpp>

#include <cstdio>
#include <vector>

using namespace rocwmma;

template <int M, int K, typename T, typename A, typename LA, typename LB>
__global__ void product(const T *a, const T *b, A *d) {
    fragment<matrix_a, M, M, K, T, LA> left;
    fragment<matrix_b, M, M, K, T, LB> right;
    fragment<accumulator, M, M, K, A> total, before;
    fill_fragment(total, A(0));
    load_matrix_sync(before, d, M, mem_col_major);
    load_matrix_sync(left, a, __is_same(LA, row_major) ? K : M);
    load_matrix_sync(right, b, __is_same(LB, row_major) ? M : K);
    mma_sync(total, left, right, total);
    for (uint32_t at = 0; at < total.num_elements; ++at) total.x[at] += before.x[at];
    store_matrix_sync(d, total, M, mem_col_major);
}

template <int M, int K, typename T, typename A, typename LA, typename LB>
static void test(const char *name) {
    std::vector<T> a(M * K), b(K * M);
    std::vector<A> d(M * M);
    for (int at = 0; at < M * K; ++at) a[at] = T(at % 7 - 3), b[at] = T(at % 5 - 2);
    for (int at = 0; at < M * M; ++at) d[at] = A(at % 11);
    T *da, *db;
    A *dd;
    hipMalloc(&da, a.size() * sizeof(T)), hipMalloc(&db, b.size() * sizeof(T));
    hipMalloc(&dd, d.size() * sizeof(A));
    hipMemcpy(da, a.data(), a.size() * sizeof(T), hipMemcpyHostToDevice);
    hipMemcpy(db, b.data(), b.size() * sizeof(T), hipMemcpyHostToDevice);
    hipMemcpy(dd, d.data(), d.size() * sizeof(A), hipMemcpyHostToDevice);
    hipDeviceProp_t properties;
    hipGetDeviceProperties(&properties, 0);
    product<M, K, T, A, LA, LB><<<1, properties.warpSize>>>(da, db, dd);
    std::vector<A> found(d.size());
    hipMemcpy(found.data(), dd, d.size() * sizeof(A), hipMemcpyDeviceToHost);
    for (int row = 0; row < M; ++row)
        for (int column = 0; column < M; ++column) {
            double sum = double(d[row + column * M]);
            for (int k = 0; k < K; ++k)
                sum += float(a[__is_same(LA, row_major) ? row * K + k : row + k * M]) *
                       float(b[__is_same(LB, row_major) ? k * M + column : k + column * K]);
            if (double(found[row + column * M]) != sum) {
                printf("wrong: %s at %d, %d: %g, not %g\n", name, row, column,
                       double(found[row + column * M]), sum);
                return;
            }
        }
}

int main() {
    test<16, 16, _Float16, float, row_major, col_major>("half");
    test<16, 32, _Float16, float, col_major, row_major>("half, two steps");
    test<16, 16, __hip_bfloat16, float, row_major, row_major>("bfloat16");
#ifdef MFMA
    test<32, 8, _Float16, float, col_major, col_major>("half, 32 x 32");
    test<32, 16, __hip_bfloat16, float, row_major, col_major>("bfloat16, 32 x 32");
    test<16, 4, float, float, row_major, row_major>("float");
    test<32, 8, float, float, row_major, col_major>("float, 32 x 32");
    test<16, 8, double, double, row_major, row_major>("double");
    test<16, 32, int8_t, int, row_major, col_major>("int8");
    test<32, 32, int8_t, int, col_major, row_major>("int8, 32 x 32");
#endif
}
