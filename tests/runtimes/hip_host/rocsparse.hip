// Calls of rocSPARSE compared with loops over dense matrices: prints what differs.
#include <hip/hip_runtime.h>
#include <rocsparse/rocsparse.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

using Complex = std::complex<double>;
static void expect(bool right, const char *what) {
    if (!right) printf("wrong: %s\n", what);
}
template <typename T> static T *device(const std::vector<T> &values) {
    T *to;
    hipMalloc(&to, (values.size() + 1) * sizeof(T));
    hipMemcpy(to, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice);
    return to;
}
template <typename T> static std::vector<T> host(const T *from, size_t count) {
    std::vector<T> values(count);
    hipMemcpy(values.data(), from, count * sizeof(T), hipMemcpyDeviceToHost);
    return values;
}
static double conjugate(double x) { return x; }
static Complex conjugate(Complex x) { return std::conj(x); }
static unsigned seed = 1;
static double draw() { return ((seed = seed * 1664525 + 1013904223) >> 8) / double(1 << 23) - 1; }
template <typename T> static T number() { return T(draw()); }
template <> Complex number() { double re = draw(); return Complex(re, draw()); }

// A row-major matrix, some of whose blocks are zero; those on the diagonal are large.
template <typename T> struct Matrix {
    int rows, columns;
    std::vector<T> values;
    Matrix(int rows, int columns) : rows(rows), columns(columns), values(rows * columns) {}
    T &at(int row, int column) { return values[row * columns + column]; }
    Matrix op(rocsparse_operation op) {
        if (op == rocsparse_operation_none) return *this;
        Matrix result(columns, rows);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                result.at(j, i) = op == rocsparse_operation_transpose ? at(i, j)
                                                                     : conjugate(at(i, j));
        return result;
    }
    Matrix times(Matrix b) {
        Matrix result(rows, b.columns);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < b.columns; j++)
                for (int k = 0; k < columns; k++) result.at(i, j) += at(i, k) * b.at(k, j);
        return result;
    }
    std::vector<T> by_column() { return op(rocsparse_operation_transpose).values; }
};
template <typename T> static Matrix<T> random(int rows, int columns, int br = 1, int bc = 1) {
    Matrix<T> matrix(rows, columns);
    for (int i = 0; i < rows; i += br)
        for (int j = 0; j < columns; j += bc)
            if (i == j || draw() > 0)
                for (int y = 0; y < br; y++)
                    for (int x = 0; x < bc; x++)
                        matrix.at(i + y, j + x) = number<T>() + T(i + y == j + x ? 8 : 0);
    return matrix;
}
// A BSR matrix, which with blocks of one element is CSR, and its arrays on the device.
template <typename T> struct Blocks {
    std::vector<int> offsets, indices;
    std::vector<T> values;
    int *p, *i;
    T *v;
    Blocks(Matrix<T> &from, int br, int bc, bool by_column, int base) {
        for (int row = 0; row < from.rows; row += br) {
            offsets.push_back(indices.size() + base);
            for (int column = 0; column < from.columns; column += bc) {
                if (from.at(row, column) == T(0)) continue;
                indices.push_back(column / bc + base);
                for (int k = 0; k < br * bc; k++)
                    values.push_back(by_column ? from.at(row + k % br, column + k / br)
                                               : from.at(row + k / bc, column + k % bc));
            }
        }
        offsets.push_back(indices.size() + base);
        p = device(offsets), i = device(indices), v = device(values);
    }
    int count() { return indices.size(); }
};
template <typename T> static bool close(const std::vector<T> &x, const std::vector<T> &y) {
    for (size_t i = 0; i < x.size(); i++)
        if (!(std::abs(x[i] - y[i]) <= 1e-9 * (1 + std::abs(y[i])))) return false;
    return x.size() == y.size();
}
template <typename T> static std::vector<T> plus(T alpha, std::vector<T> x, T beta, std::vector<T> y) {
    for (size_t i = 0; i < x.size(); i++) x[i] = alpha * x[i] + beta * y[i];
    return x;
}
static const rocsparse_operation OPS[] = {
    rocsparse_operation_none, rocsparse_operation_transpose,
    rocsparse_operation_conjugate_transpose};
#define Z(x) (rocsparse_double_complex *)(x)

static void products(rocsparse_handle handle, rocsparse_mat_descr kind) {
    double alpha = 2, beta = -1;
    for (int base = 0; base < 2; base++) {
        rocsparse_set_mat_index_base(kind, (rocsparse_index_base)base);
        for (rocsparse_operation op : OPS) {
            auto a = random<double>(6, 4, 3, 2);
            auto of = a.op(op), x = random<double>(of.columns, 1), b = random<double>(of.columns, 5),
                 y = random<double>(of.rows, 1), c = random<double>(of.rows, 5);
            double *dx = device(x.values), *dy;
            Blocks<double> csr(a, 1, 1, false, base);
            auto right = plus(alpha, of.times(x).values, beta, y.values);
            rocsparse_dcsrmv(handle, op, 6, 4, csr.count(), &alpha, kind, csr.v, csr.p, csr.i,
                             nullptr, dx, &beta, dy = device(y.values));
            expect(close(host(dy, of.rows), right), "csrmv");
            for (int by_column = 0; by_column < 2; by_column++) {
                Blocks<double> bsr(a, 3, 2, by_column, base);
                rocsparse_dgebsrmv(handle, (rocsparse_direction)by_column, op, 2, 2, bsr.count(),
                                   &alpha, kind, bsr.v, bsr.p, bsr.i, 3, 2, dx, &beta,
                                   dy = device(y.values));
                expect(close(host(dy, of.rows), right), "gebsrmv");
            }
            for (rocsparse_operation op_b : {OPS[0], OPS[1]}) {
                double *dc = device(c.by_column());
                auto stored = b.op(op_b);
                rocsparse_dcsrmm(handle, op, op_b, 6, 5, 4, csr.count(), &alpha, kind, csr.v, csr.p,
                                 csr.i, device(stored.by_column()), stored.rows, &beta, dc, of.rows);
                auto product = plus(alpha, of.times(b).by_column(), beta, c.by_column());
                expect(close(host(dc, of.rows * 5), product), "csrmm");
            }
            std::vector<int> ell(6 * 4, base - 1);
            std::vector<double> slots(6 * 4);
            for (int row = 0; row < 6; row++)
                for (int k = csr.offsets[row] - base, n = 0; k < csr.offsets[row + 1] - base; k++, n++)
                    ell[n * 6 + row] = csr.indices[k], slots[n * 6 + row] = csr.values[k];
            rocsparse_dellmv(handle, op, 6, 4, &alpha, kind, device(slots), device(ell), 4, dx, &beta,
                             dy = device(y.values));
            expect(close(host(dy, of.rows), right), "ellmv");

            auto m = random<Complex>(4, 4);
            auto z = random<Complex>(4, 1), w = random<Complex>(4, 1);
            Complex za(0.5, 2), zb(1, -1);
            Blocks<Complex> zm(m, 1, 1, false, base);
            Complex *dw = device(w.values);
            rocsparse_zcsrmv(handle, op, 4, 4, zm.count(), Z(&za), kind, Z(zm.v), zm.p, zm.i, nullptr,
                             Z(device(z.values)), Z(&zb), Z(dw));
            expect(close(host(dw, 4), plus(za, m.op(op).times(z).values, zb, w.values)), "complex");
        }
    }
    rocsparse_set_mat_index_base(kind, rocsparse_index_base_zero);
    auto a = random<double>(6, 6, 2, 2), x = random<double>(6, 1), y = random<double>(6, 1);
    Blocks<double> bsr(a, 2, 2, true, 0);
    std::vector<int> mask{2, 0}, ends(bsr.offsets.begin() + 1, bsr.offsets.end());
    ends[0]--;  // without the last block of the first row
    int last = bsr.indices[ends[0]];
    auto cut = a;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) cut.at(i, 2 * last + j) = 0;
    double *dy = device(y.values);
    rocsparse_dbsrxmv(handle, rocsparse_direction_column, rocsparse_operation_none, 2, 3, 3,
                      bsr.count(), &alpha, kind, bsr.v, device(mask), bsr.p, device(ends), bsr.i, 2,
                      device(x.values), &beta, dy);
    auto masked = plus(alpha, cut.times(x).values, beta, y.values);
    masked[2] = y.values[2], masked[3] = y.values[3];
    expect(close(host(dy, 6), masked), "bsrxmv");

    auto dense = random<double>(3, 6), sparse = random<double>(6, 4), sum = random<double>(3, 4);
    for (rocsparse_operation op : {OPS[0], OPS[1]}) {
        auto stored = sparse.op(op);
        Blocks<double> b(stored, 1, 1, false, 0);
        double *dc = device(sum.by_column());
        rocsparse_dgemmi(handle, OPS[0], op, 3, 4, 6, b.count(), &alpha, device(dense.by_column()), 3,
                         kind, b.v, b.p, b.i, &beta, dc, 3);
        auto right = plus(alpha, dense.times(sparse).by_column(), beta, sum.by_column());
        expect(close(host(dc, 12), right), "gemmi");
    }
    std::vector<int> at{5, 1};
    Matrix<double> chosen(6, 1);
    chosen.at(5, 0) = 3, chosen.at(1, 0) = -2;
    double *dv = device(std::vector<double>(3, 1.0));
    rocsparse_dgemvi(handle, OPS[0], 3, 6, &alpha, device(dense.by_column()), 3, 2,
                     device(std::vector<double>{3, -2}), device(at), &beta, dv,
                     rocsparse_index_base_zero, nullptr);
    expect(close(host(dv, 3), plus(alpha, dense.times(chosen).values, beta,
                                   std::vector<double>(3, 1.0))), "gemvi");
}

static void solutions(rocsparse_handle handle, rocsparse_mat_descr kind) {
    double alpha = 2, one = 1, zero = 0;
    auto a = random<double>(6, 6, 2, 2), x = random<double>(6, 1), b = random<double>(6, 3);
    rocsparse_mat_info info;
    rocsparse_create_mat_info(&info);
    for (int upper = 0; upper < 2; upper++)
        for (int unit = 0; unit < 2; unit++)
            for (rocsparse_operation op : OPS) {
                rocsparse_set_mat_fill_mode(kind, (rocsparse_fill_mode)upper);
                rocsparse_set_mat_diag_type(kind, (rocsparse_diag_type)unit);
                auto part = a;
                for (int i = 0; i < 6; i++)
                    for (int j = 0; j < 6; j++)
                        if (i == j) part.at(i, j) = unit ? 1 : a.at(i, j);
                        else if ((j > i) != (upper == 1)) part.at(i, j) = 0;
                auto of = part.op(op);
                Blocks<double> csr(a, 1, 1, false, 0), bsr(a, 2, 2, true, 0);
                auto check = [&](double *y, Matrix<double> right, const char *what) {
                    Matrix<double> solution(right.columns, 6);
                    solution.values = host(y, 6 * right.columns);
                    auto product = of.times(solution.op(OPS[1]));
                    expect(close(product.values, plus(alpha, right.values, 0., right.values)), what);
                };
                double *dx = device(x.values), *y = device(x.values), *db = device(b.by_column());
                rocsparse_dcsrsv_solve(handle, op, 6, csr.count(), &alpha, kind, csr.v, csr.p, csr.i,
                                       info, dx, y, rocsparse_solve_policy_auto, nullptr);
                check(y, x, "csrsv");
                rocsparse_dbsrsv_solve(handle, rocsparse_direction_column, op, 3, bsr.count(), &alpha,
                                       kind, bsr.v, bsr.p, bsr.i, 2, info, dx, y = device(x.values),
                                       rocsparse_solve_policy_auto, nullptr);
                check(y, x, "bsrsv");
                rocsparse_dcsrsm_solve(handle, op, OPS[0], 6, 3, csr.count(), &alpha, kind, csr.v,
                                       csr.p, csr.i, db, 6, info, rocsparse_solve_policy_auto, nullptr);
                check(db, b, "csrsm");
                db = device(b.values);  // transposed: row-major
                rocsparse_dcsrsm_solve(handle, op, OPS[1], 6, 3, csr.count(), &alpha, kind, csr.v,
                                       csr.p, csr.i, db, 3, info, rocsparse_solve_policy_auto, nullptr);
                Matrix<double> solved(6, 3);
                solved.values = host(db, 18);
                check(device(solved.by_column()), b, "csrsm transposed");
                int most = 100;
                double tolerance = 1e-11, history[100];
                rocsparse_dcsritsv_solve(handle, &most, &tolerance, history, op, 6, csr.count(), &alpha,
                                         kind, csr.v, csr.p, csr.i, info, dx, y = device(x.values),
                                         rocsparse_solve_policy_auto, nullptr);
                check(y, x, "csritsv");
                expect(most <= 8 && history[most - 1] <= tolerance, "iterations of csritsv");
            }
    rocsparse_set_mat_diag_type(kind, rocsparse_diag_type_non_unit);
    Blocks<double> csr(a, 1, 1, false, 0);
    std::vector<double> holes = csr.values;
    for (int k = csr.offsets[3]; k < csr.offsets[4]; k++)
        if (csr.indices[k] == 3) holes[k] = 0;
    int pivot = 0;
    rocsparse_dcsrsv_solve(handle, OPS[0], 6, csr.count(), &one, kind, device(holes), csr.p, csr.i, info,
                           device(x.values), device(x.values), rocsparse_solve_policy_auto, nullptr);
    expect(rocsparse_csrsv_zero_pivot(handle, kind, info, &pivot) == rocsparse_status_zero_pivot, "zero");
    expect(pivot == 3, "pivot");
    (void)zero;
}

static void factors(rocsparse_handle handle, rocsparse_mat_descr kind) {
    rocsparse_mat_info info;
    rocsparse_create_mat_info(&info);
    auto a = random<double>(6, 6, 6, 6);  // full: the factorisations are exact
    Blocks<double> csr(a, 1, 1, false, 0), bsr(a, 2, 2, true, 0);
    auto product = [&](std::vector<double> stored) {
        Matrix<double> lower(6, 6), upper(6, 6);
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++)
                if (j < i) lower.at(i, j) = stored[i * 6 + j];
                else upper.at(i, j) = stored[i * 6 + j], lower.at(i, i) = 1;
        return lower.times(upper).values;
    };
    rocsparse_dcsrilu0(handle, 6, 36, kind, csr.v, csr.p, csr.i, info, rocsparse_solve_policy_auto, nullptr);
    auto exact = host(csr.v, 36);
    expect(close(product(exact), a.values), "csrilu0");
    rocsparse_dbsrilu0(handle, rocsparse_direction_column, 3, 9, kind, bsr.v, bsr.p, bsr.i, 2, info,
                       rocsparse_solve_policy_auto, nullptr);
    Matrix<double> blocks(6, 6);
    auto stored = host(bsr.v, 36);
    for (int k = 0; k < 36; k++)
        blocks.at(k / 12 * 2 + k % 2, k % 12 / 4 * 2 + k % 4 / 2) = stored[k];
    expect(close(blocks.values, exact), "bsrilu0");
    Blocks<double> again(a, 1, 1, false, 0);
    int iterations = 50, all = rocsparse_itilu0_option_stopping_criteria |
        rocsparse_itilu0_option_compute_nrm_correction | rocsparse_itilu0_option_compute_nrm_residual;
    size_t bytes;
    rocsparse_csritilu0_buffer_size(handle, rocsparse_itilu0_alg_default, all, 50, 6, 36, again.p, again.i,
                                    rocsparse_index_base_zero, rocsparse_datatype_f64_r, &bytes);
    void *buffer;
    hipMalloc(&buffer, bytes);
    double *lu = device(std::vector<double>(36)), *norms = device(std::vector<double>(100));
    rocsparse_dcsritilu0_compute(handle, rocsparse_itilu0_alg_default, all, &iterations, 1e-13, 6, 36,
                                 again.p, again.i, again.v, lu, rocsparse_index_base_zero, bytes, buffer);
    expect(close(host(lu, 36), exact) && iterations < 50, "csritilu0");
    rocsparse_dcsritilu0_history(handle, rocsparse_itilu0_alg_default, &iterations, norms, bytes, buffer);
    expect(host(norms, 2 * iterations).back() <= 1e-13, "history");

    auto symmetric = a.times(a.op(OPS[1]));
    Blocks<double> spd(symmetric, 1, 1, false, 0);
    rocsparse_dcsric0(handle, 6, 36, kind, spd.v, spd.p, spd.i, info, rocsparse_solve_policy_auto, nullptr);
    Matrix<double> lower(6, 6);
    lower.values = host(spd.v, 36);
    for (int i = 0; i < 6; i++)
        for (int j = i + 1; j < 6; j++) lower.at(i, j) = 0;
    expect(close(lower.times(lower.op(OPS[1])).values, symmetric.values), "csric0");

    Matrix<double> band(7, 7), x = random<double>(7, 2);
    std::vector<double> diagonals[5];
    for (int d = 0; d < 5; d++)
        for (int row = 0; row < 7; row++) {
            int column = row + d - 2;
            bool inside = column >= 0 && column < 7;
            double value = inside ? draw() : 0;  // without a large diagonal: needs pivots
            diagonals[d].push_back(value);
            if (inside && d > 0 && d < 4) band.at(row, column) = value;
        }
    auto right = band.times(x);
    double *b = device(right.by_column());
    rocsparse_dgtsv(handle, 7, 2, device(diagonals[1]), device(diagonals[2]), device(diagonals[3]), b, 7,
                    nullptr);
    expect(close(host(b, 14), x.by_column()), "gtsv");
    for (int row = 0; row < 7; row++)
        for (int d : {0, 4})
            if (row + d - 2 >= 0 && row + d - 2 < 7) band.at(row, row + d - 2) = diagonals[d][row];
    auto wide = band.times(x);
    std::vector<double> twice[5], sides;
    for (int row = 0; row < 7; row++) {
        for (int d = 0; d < 5; d++)  // the second system is the first one, doubled; a stride of 3
            for (double factor : {1., 2., 0.}) twice[d].push_back(factor * diagonals[d][row]);
        for (double value : {wide.at(row, 0), wide.at(row, 1), 0.}) sides.push_back(value);
    }
    double *s = device(sides);
    rocsparse_dgpsv_interleaved_batch(handle, rocsparse_gpsv_interleaved_alg_default, 7, device(twice[0]),
                                      device(twice[1]), device(twice[2]), device(twice[3]),
                                      device(twice[4]), s, 2, 3, nullptr);
    auto both = host(s, 21);
    bool good = true;
    for (int row = 0; row < 7; row++)
        good &= std::fabs(both[3 * row] - x.at(row, 0)) < 1e-8 &&
                std::fabs(both[3 * row + 1] - x.at(row, 1) / 2) < 1e-8;
    expect(good, "gpsv");
}

static void described(rocsparse_handle handle) {
    auto a = random<double>(6, 6, 2, 2), x = random<double>(6, 1), y = random<double>(6, 1);
    double alpha = 2, beta = 3;
    Blocks<double> bsr(a, 2, 2, false, 1), csr(a, 1, 1, false, 0);
    rocsparse_spmat_descr of_blocks, of_rows;
    rocsparse_dnvec_descr in, out;
    auto f64 = rocsparse_datatype_f64_r;
    auto i32 = rocsparse_indextype_i32;
    rocsparse_create_bsr_descr(&of_blocks, 3, 3, bsr.count(), rocsparse_direction_row, 2, bsr.p, bsr.i,
                               bsr.v, i32, i32, rocsparse_index_base_one, f64);
    rocsparse_create_csr_descr(&of_rows, 6, 6, csr.count(), csr.p, csr.i, csr.v, i32, i32,
                               rocsparse_index_base_zero, f64);
    rocsparse_create_dnvec_descr(&in, 6, device(x.values), f64);
    for (rocsparse_spmat_descr matrix : {of_blocks, of_rows}) {
        double *dy = device(y.values);
        size_t bytes = 0;
        rocsparse_create_dnvec_descr(&out, 6, dy, f64);
        for (auto stage : {rocsparse_spmv_stage_buffer_size, rocsparse_spmv_stage_preprocess,
                           rocsparse_spmv_stage_compute})
            expect(!rocsparse_spmv(handle, rocsparse_operation_none, &alpha, matrix, in, &beta, out, f64,
                                   rocsparse_spmv_alg_default, stage, &bytes, dy), "status of spmv");
        expect(close(host(dy, 6), plus(alpha, a.times(x).values, beta, y.values)), "spmv");
    }
    rocsparse_mat_descr one, zero;
    rocsparse_create_mat_descr(&one);
    rocsparse_create_mat_descr(&zero);
    rocsparse_set_mat_index_base(one, rocsparse_index_base_one);
    int *p = device(std::vector<int>(7)), *i = device(std::vector<int>(36));
    double *v = device(std::vector<double>(36)), *dense = device(std::vector<double>(36));
    rocsparse_dbsr2csr(handle, rocsparse_direction_row, 3, 3, one, bsr.v, bsr.p, bsr.i, 2, zero, v, p, i);
    rocsparse_dcsr2dense(handle, 6, 6, zero, v, p, i, dense, 6);
    expect(close(host(dense, 36), a.by_column()), "bsr2csr, csr2dense");

    // wrong arguments
    double *dx = device(x.values);
    auto csrmv = [&](rocsparse_handle handle, rocsparse_operation op, int rows, double *scale, double *to) {
        return rocsparse_dcsrmv(handle, op, rows, 6, csr.count(), scale, zero, csr.v, csr.p, csr.i, nullptr,
                                dx, &beta, to);
    };
    expect(csrmv(nullptr, OPS[0], 6, &alpha, dx) == rocsparse_status_invalid_handle, "no handle");
    expect(csrmv(handle, (rocsparse_operation)7, 6, &alpha, dx) == rocsparse_status_invalid_value, "op");
    expect(csrmv(handle, OPS[0], -1, &alpha, dx) == rocsparse_status_invalid_size, "negative size");
    expect(csrmv(handle, OPS[0], 6, nullptr, dx) == rocsparse_status_invalid_pointer, "no scalar");
    expect(csrmv(handle, OPS[0], 6, &alpha, nullptr) == rocsparse_status_invalid_pointer, "no result");
    expect(rocsparse_set_mat_fill_mode(zero, (rocsparse_fill_mode)9) == rocsparse_status_invalid_value, "fill");
    expect(rocsparse_spmv(handle, OPS[0], &alpha, of_rows, in, &beta, out, (rocsparse_datatype)3,
                          rocsparse_spmv_alg_default, rocsparse_spmv_stage_compute, nullptr, dx) ==
           rocsparse_status_invalid_value, "type");
}

int main() {
    rocsparse_handle handle;
    rocsparse_mat_descr kind;
    rocsparse_create_handle(&handle);
    rocsparse_create_mat_descr(&kind);
    products(handle, kind);
    solutions(handle, kind);
    rocsparse_set_mat_fill_mode(kind, rocsparse_fill_mode_lower);
    factors(handle, kind);
    described(handle);
    rocsparse_destroy_mat_descr(kind);
    rocsparse_destroy_handle(handle);
    return 0;
}
