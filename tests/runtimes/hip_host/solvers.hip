// Calls of hipSPARSE, hipSOLVER and rocBLAS compared with loops of the host: prints what differs.
#include <hip/hip_runtime.h>
#include <hipsolver/hipsolver.h>
#include <hipsparse/hipsparse.h>
#include <rocblas/rocblas.h>
#include <rocsolver/rocsolver.h>

#include <cmath>
#include <cstdio>
#include <cstring>
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
static bool near(double x, double y) { return std::fabs(x - y) <= 1e-9 * (1 + std::fabs(y)); }

const int N = 5;
// A matrix with an empty row, and the same in CSR with base 1.
static const double DENSE[N][N] = {
    {4, 0, 0, -1, 0}, {0, 3, 0, 0, 2}, {0, 0, 0, 0, 0}, {1, 0, 5, 6, 0}, {0, 2, 0, 0, 7}};
struct Csr {
    std::vector<int> offsets{1}, indices;
    std::vector<double> values;
};
static Csr csr(const double (*matrix)[N]) {
    Csr made;
    for (int row = 0; row < N; ++row) {
        for (int column = 0; column < N; ++column)
            if (matrix[row][column] != 0) {
                made.indices.push_back(column + 1);
                made.values.push_back(matrix[row][column]);
            }
        made.offsets.push_back(made.indices.size() + 1);
    }
    return made;
}

static void sparse(hipsparseHandle_t handle) {
    Csr matrix = csr(DENSE);
    int entries = matrix.values.size();
    hipsparseSpMatDescr_t a, c;
    hipsparseCreateCsr(&a, N, N, entries, device(matrix.offsets), device(matrix.indices),
                       device(matrix.values), HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_32I,
                       HIPSPARSE_INDEX_BASE_ONE, HIP_R_64F);
    std::vector<double> x{1, 2, 3, 4, 5}, y{1, 1, 1, 1, 1};
    hipsparseDnVecDescr_t dx, dy;
    double *py = device(y), alpha = 2, beta = -1, one = 1, zero = 0;
    hipsparseCreateDnVec(&dx, N, device(x), HIP_R_64F);
    hipsparseCreateDnVec(&dy, N, py, HIP_R_64F);
    for (auto op : {HIPSPARSE_OPERATION_NON_TRANSPOSE, HIPSPARSE_OPERATION_TRANSPOSE}) {
        hipMemcpy(py, y.data(), N * 8, hipMemcpyHostToDevice);
        hipsparseSpMV(handle, op, &alpha, a, dx, &beta, dy, HIP_R_64F, HIPSPARSE_SPMV_ALG_DEFAULT,
                      nullptr);
        auto found = host(py, N);
        for (int row = 0; row < N; ++row) {
            double sum = 0;
            for (int at = 0; at < N; ++at) sum += (op ? DENSE[at][row] : DENSE[row][at]) * x[at];
            expect(near(found[row], alpha * sum + beta), "SpMV");
        }
    }
    // a times a, as a sparse and as a dense matrix
    int *offsets = device(std::vector<int>(N + 1));
    hipsparseCreateCsr(&c, N, N, 0, offsets, nullptr, nullptr, HIPSPARSE_INDEX_32I,
                       HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_BASE_ZERO, HIP_R_64F);
    size_t bytes;
    void *buffer = device(std::vector<int>(1));
    hipsparseSpGEMMDescr_t state;
    hipsparseSpGEMM_createDescr(&state);
    hipsparseSpGEMM_compute(handle, HIPSPARSE_OPERATION_NON_TRANSPOSE,
                            HIPSPARSE_OPERATION_NON_TRANSPOSE, &one, a, a, &zero, c, HIP_R_64F,
                            HIPSPARSE_SPGEMM_DEFAULT, state, &bytes, buffer);
    int64_t rows, columns, made;
    hipsparseSpMatGetSize(c, &rows, &columns, &made);
    hipsparseCsrSetPointers(c, offsets, device(std::vector<int>(made)),
                            device(std::vector<double>(made)));
    hipsparseSpGEMM_copy(handle, HIPSPARSE_OPERATION_NON_TRANSPOSE,
                         HIPSPARSE_OPERATION_NON_TRANSPOSE, &one, a, a, &zero, c, HIP_R_64F,
                         HIPSPARSE_SPGEMM_DEFAULT, state);
    double *square = device(std::vector<double>(N * N)), *product = device(std::vector<double>(N * N));
    hipsparseDnMatDescr_t dense, factor, result;
    hipsparseCreateDnMat(&dense, N, N, N, square, HIP_R_64F, HIPSPARSE_ORDER_ROW);
    hipsparseSparseToDense(handle, c, dense, HIPSPARSE_SPARSETODENSE_ALG_DEFAULT, nullptr);
    std::vector<double> columns_of(N * N);
    for (int at = 0; at < N * N; ++at) columns_of[at] = DENSE[at % N][at / N];
    hipsparseCreateDnMat(&factor, N, N, N, device(columns_of), HIP_R_64F, HIPSPARSE_ORDER_COL);
    hipsparseCreateDnMat(&result, N, N, N, product, HIP_R_64F, HIPSPARSE_ORDER_ROW);
    hipsparseSpMM(handle, HIPSPARSE_OPERATION_NON_TRANSPOSE, HIPSPARSE_OPERATION_NON_TRANSPOSE,
                  &one, a, factor, &zero, result, HIP_R_64F, HIPSPARSE_SPMM_ALG_DEFAULT, nullptr);
    auto by_sparse = host(square, N * N), by_dense = host(product, N * N);
    for (int row = 0; row < N; ++row)
        for (int column = 0; column < N; ++column) {
            double sum = 0;
            for (int at = 0; at < N; ++at) sum += DENSE[row][at] * DENSE[at][column];
            expect(near(by_sparse[row * N + column], sum), "SpGEMM");
            expect(near(by_dense[row * N + column], sum), "SpMM");
        }
    int total = 0, *counts = device(std::vector<int>(N));
    hipsparseDnnz(handle, HIPSPARSE_DIRECTION_COLUMN, N, N, nullptr, device(columns_of), N, counts,
                  &total);
    expect(total == entries && host(counts, N)[1] == 2, "counts");
}

static void triangles(hipsparseHandle_t handle) {
    double lower[N][N] = {{2}, {1, 4}, {0, -1, 3}, {5, 0, 0, 2}, {0, 0, 1, 1, 8}};
    Csr matrix = csr(lower);
    hipsparseSpMatDescr_t a;
    hipsparseCreateCsr(&a, N, N, matrix.values.size(), device(matrix.offsets),
                       device(matrix.indices), device(matrix.values), HIPSPARSE_INDEX_32I,
                       HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_BASE_ONE, HIP_R_64F);
    std::vector<double> b{2, 9, 1, 7, 3};
    double *px = device(b), one = 1;
    hipsparseDnVecDescr_t db, dx;
    hipsparseCreateDnVec(&db, N, device(b), HIP_R_64F);
    hipsparseCreateDnVec(&dx, N, px, HIP_R_64F);
    hipsparseSpSVDescr_t state;
    hipsparseSpSV_createDescr(&state);
    for (auto op : {HIPSPARSE_OPERATION_NON_TRANSPOSE, HIPSPARSE_OPERATION_TRANSPOSE}) {
        hipsparseSpSV_solve(handle, op, &one, a, db, dx, HIP_R_64F, HIPSPARSE_SPSV_ALG_DEFAULT,
                            state);
        auto x = host(px, N);
        for (int row = 0; row < N; ++row) {
            double sum = 0;
            for (int at = 0; at < N; ++at) sum += (op ? lower[at][row] : lower[row][at]) * x[at];
            expect(near(sum, b[row]), "SpSV");
        }
    }
    double full[N][N] = {{4, 1, 0, 0, 1}, {1, 4, 1, 0, 0}, {0, 1, 4, 1, 0}, {0, 0, 1, 4, 1},
                         {1, 0, 0, 1, 4}};
    Csr other = csr(full);
    double *values = device(other.values);
    hipsparseMatDescr_t kind;
    csrilu02Info_t info;
    hipsparseCreateMatDescr(&kind), hipsparseCreateCsrilu02Info(&info);
    hipsparseSetMatIndexBase(kind, HIPSPARSE_INDEX_BASE_ONE);
    hipsparseDcsrilu02(handle, N, other.values.size(), kind, values, device(other.offsets),
                       device(other.indices), info, HIPSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr);
    int pivot = 0;
    expect(!hipsparseXcsrilu02_zeroPivot(handle, info, &pivot) && pivot == -1, "zero pivot");
    // L U is the matrix at its entries.
    auto factors = host(values, other.values.size());
    double l[N][N] = {}, u[N][N] = {};
    for (int row = 0, at = 0; row < N; ++row) {
        l[row][row] = 1;
        for (; at < other.offsets[row + 1] - 1; ++at) {
            int column = other.indices[at] - 1;
            (column < row ? l : u)[row][column] = factors[at];
        }
    }
    for (int row = 0; row < N; ++row)
        for (int column = 0; column < N; ++column) {
            double sum = 0;
            for (int at = 0; at < N; ++at) sum += l[row][at] * u[at][column];
            expect(full[row][column] == 0 || near(sum, full[row][column]), "incomplete LU");
        }
}

static void eigenvalues(hipsolverHandle_t handle);
static void orthogonal(hipsolverHandle_t handle);

static void dense() {
    hipsolverHandle_t handle;
    hipsolverCreate(&handle);
    const int n = 4;
    std::vector<double> a{5, 1, 0, 2, 1, 6, 1, 0, 0, 1, 7, 1, 2, 0, 1, 8};
    double *da = device(a), *w = device(std::vector<double>(n)), *work = nullptr;
    int *info = device(std::vector<int>(1));
    hipsolverDnDpotrf(handle, HIPSOLVER_FILL_MODE_LOWER, n, da, n, work, 0, info);
    auto l = host(da, n * n);
    double sum = 0;
    for (int at = 0; at <= 1; ++at) sum += l[3 + at * n] * l[1 + at * n];
    expect(near(sum, a[3 + 1 * n]) && l[2 * n] == a[2 * n] && !host(info, 1)[0], "Cholesky");
    std::vector<double> bad = a;
    bad[2 + 2 * n] = -1;
    hipsolverDnDpotrf(handle, HIPSOLVER_FILL_MODE_LOWER, n, device(bad), n, work, 0, info);
    expect(host(info, 1)[0] == 3, "the minor that is not positive");
    double *vectors = device(a);
    hipsolverDnDsyevd(handle, HIPSOLVER_EIG_MODE_VECTOR, HIPSOLVER_FILL_MODE_UPPER, n, vectors, n,
                      w, work, 0, info);
    auto values = host(w, n), v = host(vectors, n * n);
    for (int row = 0; row < n; ++row) {
        double product = 0;
        for (int at = 0; at < n; ++at) product += a[row + at * n] * v[at + n];
        expect(near(product, values[1] * v[row + n]), "eigenvalues");
    }
    double *s = device(std::vector<double>(n)), *u = device(std::vector<double>(n * n)),
           *vt = device(std::vector<double>(n * n));
    hipsolverDnDgesvd(handle, 'S', 'S', n, n, device(a), n, s, u, n, vt, n, work, 0, nullptr, info);
    auto hs = host(s, n), hu = host(u, n * n), hv = host(vt, n * n);
    for (int at = 0; at < n * n; ++at) {
        double product = 0;
        for (int one = 0; one < n; ++one)
            product += hu[at % n + one * n] * hs[one] * hv[one + at / n * n];
        expect(near(product, a[at]), "singular values");
    }
    std::vector<double> matrix{0, 2, 1, 1, 1, 0, 3, 0, 2};
    int *pivots = device(std::vector<int>(3));
    double *lu = device(matrix), *x = device(std::vector<double>{1, 2, 3});
    hipsolverDnDgetrf(handle, 3, 3, lu, 3, work, pivots, info);
    hipsolverDnDgetrs(handle, HIPSOLVER_OP_T, 3, 1, lu, 3, pivots, x, 3, info);
    auto solution = host(x, 3);
    for (int row = 0; row < 3; ++row) {
        double product = 0;
        for (int at = 0; at < 3; ++at) product += matrix[at + row * 3] * solution[at];
        expect(near(product, row + 1), "transposed LU");
    }
    eigenvalues(handle);
    orthogonal(handle);
    hipsolverDestroy(handle);
}

// a b, of column-major n x n matrices.
static std::vector<double> product(const std::vector<double> &a, const std::vector<double> &b,
                                   int n) {
    std::vector<double> c(n * n);
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column)
            for (int at = 0; at < n; ++at)
                c[row + column * n] += a[row + at * n] * b[at + column * n];
    return c;
}
static bool all_near(const std::vector<double> &x, const std::vector<double> &y) {
    bool right = x.size() == y.size();
    for (size_t i = 0; right && i < x.size(); ++i) right = near(x[i], y[i]);
    return right;
}

static void eigenvalues(hipsolverHandle_t handle) {
    const int n = 3;
    const std::vector<double> a{4, 1, -1, 1, 3, 2, -1, 2, 5}, b{3, 1, 0, 1, 4, 1, 0, 1, 2};
    double *w = device(std::vector<double>(2 * n)), *work = nullptr;
    int *info = device(std::vector<int>(2)), count = 0;
    hipsolverSyevjInfo_t jacobi;
    hipsolverCreateSyevjInfo(&jacobi);
    std::vector<double> pair = a;
    pair.insert(pair.end(), b.begin(), b.end());
    double *two = device(pair);
    hipsolverDsyevjBatched(handle, HIPSOLVER_EIG_MODE_VECTOR, HIPSOLVER_FILL_MODE_LOWER, n, two, n,
                           w, work, 0, info, jacobi, 2);
    auto values = host(w, 2 * n), vectors = host(two, 2 * n * n);
    for (int which = 0; which < 2; ++which) {
        std::vector<double> v(&vectors[which * n * n], &vectors[which * n * n] + n * n), scaled = v;
        for (int i = 0; i < n * n; ++i) scaled[i] *= values[which * n + i / n];
        expect(all_near(product(which ? b : a, v, n), scaled), "eigenvalues of a batch");
    }
    double *some = device(a);
    hipsolverDnDsyevdx(handle, HIPSOLVER_EIG_MODE_VECTOR, HIPSOLVER_EIG_RANGE_I,
                       HIPSOLVER_FILL_MODE_UPPER, n, some, n, 0, 0, 2, 3, &count, w, work, 0, info);
    auto last = host(w, 2);
    expect(count == 2 && near(last[0], values[1]) && near(last[1], values[2]), "by index");
    hipsolverDnDsyevdx(handle, HIPSOLVER_EIG_MODE_NOVECTOR, HIPSOLVER_EIG_RANGE_V,
                       HIPSOLVER_FILL_MODE_UPPER, n, device(a), n, values[0], values[1] + 1e-9, 0,
                       0, &count, w, work, 0, info);
    expect(count == 1 && near(host(w, 1)[0], values[1]), "by value");
    const hipsolverEigType_t types[] = {HIPSOLVER_EIG_TYPE_1, HIPSOLVER_EIG_TYPE_2,
                                        HIPSOLVER_EIG_TYPE_3};
    for (hipsolverEigType_t type : types) {
        double *x = device(a);
        hipsolverDsygvd(handle, type, HIPSOLVER_EIG_MODE_VECTOR, HIPSOLVER_FILL_MODE_LOWER, n, x, n,
                        device(b), n, w, work, 0, info);
        auto left = host(x, n * n), right = left;
        values = host(w, n);
        if (type == HIPSOLVER_EIG_TYPE_1) right = product(b, right, n);
        for (int i = 0; i < n * n; ++i) right[i] *= values[i / n];
        if (type == HIPSOLVER_EIG_TYPE_2) left = product(b, left, n);
        left = product(a, left, n);
        if (type == HIPSOLVER_EIG_TYPE_3) left = product(b, left, n);
        expect(all_near(left, right), "eigenvalues of two matrices");
    }
    std::vector<double> bad = b;
    bad[4] = -4;
    hipsolverDsygvj(handle, HIPSOLVER_EIG_TYPE_1, HIPSOLVER_EIG_MODE_VECTOR,
                    HIPSOLVER_FILL_MODE_LOWER, n, device(a), n, device(bad), n, w, work, 0, info,
                    jacobi);
    expect(host(info, 1)[0] == n + 2, "the minor of the second that is not positive");
    hipsolverDestroySyevjInfo(jacobi);
}

static void orthogonal(hipsolverHandle_t handle) {
    const int m = 4, n = 3;
    std::vector<double> a{5, 1, 0, 2, 1, 6, 1, 0, 0, 1, 7, 1}, b{1, 2, 3, 4};
    double *qr = device(a), *tau = device(std::vector<double>(n)), *work = nullptr,
           *c = device(std::vector<double>{a[0], a[1], a[2], a[3]}),
           *x = device(std::vector<double>(n));
    int *info = device(std::vector<int>(1)), iterations = 9;
    hipsolverDgeqrf(handle, m, n, qr, m, tau, work, 0, info);
    auto factors = host(qr, m * n);
    hipsolverDormqr(handle, HIPSOLVER_SIDE_LEFT, HIPSOLVER_OP_T, m, 1, n, qr, m, tau, c, m, work, 0,
                    info);
    expect(all_near(host(c, m), {factors[0], 0, 0, 0}), "the transposed Q");
    hipsolverDorgqr(handle, m, n, n, qr, m, tau, work, 0, info);
    auto q = host(qr, m * n);
    for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int at = 0; at < n; ++at) sum += q[row + at * m] * factors[at + 2 * m];
        expect(near(sum, a[row + 2 * m]), "Q R");
    }
    hipsolverDDgels(handle, m, n, 1, device(a), m, device(b), m, x, n, nullptr, 0, &iterations, info);
    auto solution = host(x, n);
    expect(iterations == 0 && host(info, 1)[0] == 0, "least squares");
    for (int column = 0; column < n; ++column) {
        double sum = 0;  // the residual is orthogonal to the columns
        for (int row = 0; row < m; ++row) {
            double residual = -b[row];
            for (int at = 0; at < n; ++at) residual += a[row + at * m] * solution[at];
            sum += a[row + column * m] * residual;
        }
        expect(std::fabs(sum) < 1e-9, "the residual");
    }
}

static void rocblas() {
    rocblas_handle handle;
    rocblas_create_handle(&handle);
    float one = 1, half = 0.5f;
    std::vector<float> a{1, 2, 3, 4}, c{10, 20, 30, 40};
    float *d = device(std::vector<float>(4));
    expect(!rocblas_gemm_ex(handle, rocblas_operation_none, rocblas_operation_transpose, 2, 2, 2,
                            &one, device(a), rocblas_datatype_f32_r, 2, device(a),
                            rocblas_datatype_f32_r, 2, &half, device(c), rocblas_datatype_f32_r, 2,
                            d, rocblas_datatype_f32_r, 2, rocblas_datatype_f32_r,
                            rocblas_gemm_algo_standard, 0, rocblas_gemm_flags_none),
           "gemm_ex");
    expect(host(d, 4) == std::vector<float>{15, 24, 29, 40}, "the result beside c");
    float zero = 0;
    rocblas_gemm_ex(handle, rocblas_operation_none, rocblas_operation_none, 2, 2, 2, &one,
                    device(a), rocblas_datatype_f32_r, 2, device(a), rocblas_datatype_f32_r, 2,
                    &zero, nullptr, rocblas_datatype_f32_r, 2, d, rocblas_datatype_f32_r, 2,
                    rocblas_datatype_f32_r, rocblas_gemm_algo_standard, 0, 0);
    expect(host(d, 4) == std::vector<float>{7, 10, 15, 22}, "no c where beta is 0");
    expect(rocblas_sscal(nullptr, 1, &one, d, 1) == rocblas_status_invalid_handle, "no handle");
    double two = 2, norm = 0;
    std::vector<double> v{3, -4, 0}, result(3);
    double *x = device(v), *y = device(std::vector<double>{1, 1, 1});
    int largest = 0;
    rocblas_daxpy(handle, 3, &two, x, 1, y, 1), rocblas_dswap(handle, 3, x, 1, y, 1);
    expect(host(x, 3) == std::vector<double>{7, -7, 1} && host(y, 3) == v, "axpy, swap");
    rocblas_dnrm2_64(handle, 3, y, 1, &norm), rocblas_idamax(handle, 3, y, 1, &largest);
    expect(norm == 5 && largest == 2, "nrm2, amax");
    rocblas_set_vector(3, sizeof(double), v.data(), 1, x, 1);
    rocblas_get_vector(3, sizeof(double), x, 1, result.data(), 1);
    expect(result == v, "set and get");
    std::vector<double> m{1, 0, 2, 3};
    double *matrix = device(m), *by = device(std::vector<double>{1, 1}), none = 0,
           *out = device(std::vector<double>(4));
    rocblas_dsymv(handle, rocblas_fill_upper, 2, &two, matrix, 2, by, 1, &none, out, 1);
    expect(host(out, 2) == std::vector<double>{6, 10}, "symv");
    rocblas_dtrmm(handle, rocblas_side_left, rocblas_fill_upper, rocblas_operation_none,
                  rocblas_diagonal_non_unit, 2, 1, &two, matrix, 2, by, 2, out, 2);
    expect(host(out, 2) == std::vector<double>{6, 6}, "trmm");
    std::vector<double> square{0, 2, 1, 1, 1, 0, 3, 0, 2};
    double *inverse = device(square), *w = device(std::vector<double>(4));
    int *pivots = device(std::vector<int>(3)), *info = device(std::vector<int>(2));
    rocsolver_dgetrf(handle, 3, 3, inverse, 3, pivots, info);
    rocsolver_dgetri(handle, 3, inverse, 3, pivots, info);
    expect(all_near(product(square, host(inverse, 9), 3), {1, 0, 0, 0, 1, 0, 0, 0, 1}), "inverse");
    std::vector<double> two_by_two{2, 1, 1, 2, 3, 0, 0, 5};
    double *each = device(two_by_two);
    double **both = device(std::vector<double *>{each + 4, each});
    rocsolver_dsyevd_batched(handle, rocblas_evect_none, rocblas_fill_lower, 2, both, 2, w, 2,
                             nullptr, 0, info, 2);
    expect(all_near(host(w, 4), {3, 5, 1, 3}), "eigenvalues where pointers say");
    rocsolver_dsyev_strided_batched(handle, rocblas_evect_original, rocblas_fill_upper, 2, each, 2,
                                    4, w, 2, nullptr, 0, info, 2);
    expect(all_near(host(w, 4), {1, 3, 3, 5}), "eigenvalues at distances");
    expect(rocsolver_dgetrf(handle, -3, 3, inverse, 3, pivots, info) == rocblas_status_invalid_value,
           "a negative size");
    expect(rocsolver_dgesvd(handle, rocblas_svect_none, rocblas_svect_none, 2, 2,
                            device(std::vector<double>{NAN, 1, 1, NAN}), 2, w, nullptr, 1, nullptr,
                            1, nullptr, rocblas_outofplace, info) != rocblas_status_success,
           "singular values of NaN");
    expect(!strcmp(rocblas_status_to_string(rocblas_status_invalid_size),
                   "rocblas_status_invalid_size"), "the name of a status");
    rocblas_destroy_handle(handle);
}

// Wrong arguments, one per call, and calls with nothing to do.
static void refused() {
    rocblas_handle handle;
    hipsolverHandle_t solver;
    rocblas_create_handle(&handle);
    hipsolverCreate(&solver);
    double one = 1, *a = device(std::vector<double>(9, 2.)), *x = device(std::vector<double>(9, 1.));
    int *pivots = device(std::vector<int>{-1, 0, 9}), *info = device(std::vector<int>(1)), count;
    auto N = rocblas_operation_none;
    auto U = rocblas_fill_upper;
    auto L = rocblas_side_left;
    auto D = rocblas_diagonal_unit;
    auto gemm = [&](rocblas_operation op, int m, const double *alpha) {
        return rocblas_dgemm(handle, op, N, m, 3, 3, alpha, a, 3, x, 3, &one, x, 3);
    };
    auto trsm = [&](rocblas_side side, rocblas_fill fill, rocblas_operation op, rocblas_diagonal diag) {
        return rocblas_dtrsm(handle, side, fill, op, diag, 3, 3, &one, a, 3, x, 3);
    };
    rocblas_status wrong[] = {
        gemm((rocblas_operation)7, 3, &one), gemm(N, -3, &one), gemm(N, 3, nullptr),
        trsm((rocblas_side)7, U, N, D), trsm(L, (rocblas_fill)7, N, D),
        trsm(L, U, (rocblas_operation)7, D), trsm(L, U, N, (rocblas_diagonal)7),
        rocblas_ddgmm(handle, (rocblas_side)0, 3, 3, a, 3, x, 1, x, 3),
        rocblas_dsyr(handle, rocblas_fill_full, 3, &one, a, 1, x, 3),
        rocblas_dtrmm(handle, L, U, N, D, 3, -3, &one, a, 3, x, 3, x, 3),
        rocblas_dgemv(handle, N, 3, 3, &one, a, 3, x, 0, &one, x, 1),
        rocblas_ddot(handle, 3, a, 1, x, 1, nullptr),
        rocblas_set_pointer_mode(handle, (rocblas_pointer_mode)9),
        rocsolver_dgetrf(handle, 3, 3, a, 3, pivots, nullptr),
        rocsolver_dgetrs(handle, N, 3, 1, a, 3, pivots, x, 3),
        rocsolver_dpotrf(handle, rocblas_fill_full, 3, a, 3, info),
        rocsolver_dpotrs(handle, U, -3, 1, a, 3, x, 3),
        rocsolver_dsyevd(handle, (rocblas_evect)3, U, 3, a, 3, x, x, info),
        rocsolver_dgesvd(handle, (rocblas_svect)1, rocblas_svect_all, 3, 3, a, 3, x, x, 3, x, 3, x,
                         rocblas_outofplace, info),
        rocsolver_dorgqr(handle, 3, 4, 3, a, 3, x),
    };
    for (rocblas_status &status : wrong)
        if (!status) printf("wrong: call %d of rocBLAS is accepted\n", int(&status - wrong));
    auto V = HIPSOLVER_EIG_MODE_VECTOR;
    auto F = HIPSOLVER_FILL_MODE_LOWER;
    hipsolverStatus_t bad[] = {
        hipsolverCreate(nullptr), hipsolverDsyevd_bufferSize(solver, V, F, 3, a, 3, x, nullptr),
        hipsolverDsyevd(solver, (hipsolverEigMode_t)5, F, 3, a, 3, x, x, 9, info),
        hipsolverDsyevd(solver, V, (hipsolverFillMode_t)5, 3, a, 3, x, x, 9, info),
        hipsolverDpotrf(solver, F, 3, a, 3, x, 9, nullptr),
        hipsolverDnDsyevdx(solver, V, HIPSOLVER_EIG_RANGE_I, F, 3, a, 3, 0, 0, 3, 2, &count, x, x, 9, info),
        hipsolverDnDsyevdx(solver, V, HIPSOLVER_EIG_RANGE_V, F, 3, a, 3, 5, 1, 1, 3, &count, x, x, 9, info),
        hipsolverDsygvd(solver, (hipsolverEigType_t)9, V, F, 3, a, 3, x, 3, x, x, 9, info),
        hipsolverDorgqr(solver, 3, 3, 5, a, 3, x, x, 9, info),
        hipsolverDgesvd(solver, 'Q', 'A', 3, 3, a, 3, x, x, 3, x, 3, x, 9, nullptr, info),
        hipsolverDgetrf(solver, 3, -3, a, 3, x, 9, pivots, info),
    };
    for (hipsolverStatus_t &status : bad)
        if (!status) printf("wrong: call %d of hipSOLVER is accepted\n", int(&status - bad));
    expect(!rocblas_dgemm(handle, N, N, 0, 0, 0, nullptr, nullptr, 1, nullptr, 1, nullptr, nullptr, 1),
           "nothing to do");
    expect(!rocblas_daxpy(handle, 0, nullptr, nullptr, 1, nullptr, 1), "no elements");
    hipsolverDestroy(solver);
    rocblas_destroy_handle(handle);
}

int main() {
    hipsparseHandle_t handle;
    hipsparseCreate(&handle);
    sparse(handle);
    triangles(handle);
    hipsparseDestroy(handle);
    dense();
    rocblas();
    refused();
}
