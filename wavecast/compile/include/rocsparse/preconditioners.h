// Part of rocsparse.h: incomplete factorisations in place, and systems of few diagonals.

#define WC_FACTORS(t, E, T)                                                                        \
    WC_CSR_FACTORS(t, E, T, csric0, "ic")                                                          \
    WC_CSR_FACTORS(t, E, T, csrilu0, "ilu")                                                        \
    WC_BSR_FACTORS(t, E, T, bsric0, "ic")                                                          \
    WC_BSR_FACTORS(t, E, T, bsrilu0, "ilu")                                                        \
    WC_FN rocsparse_##t##csritilu0_compute(                                                        \
        WC_H, rocsparse_itilu0_alg, rocsparse_int option, rocsparse_int *nmaxiter, WC_REAL_##t tol, \
        rocsparse_int m, rocsparse_int nnz, __wc_indices csr_row_ptr, __wc_indices csr_col_ind,    \
        const E *csr_val, E *ilu0, rocsparse_index_base base, size_t buffer_size, void *buffer) {  \
        WC_NEEDS(handle, invalid_handle)                                                           \
        WC_NEEDS(nmaxiter && csr_row_ptr && csr_col_ind && csr_val && ilu0 && buffer,              \
                 invalid_pointer)                                                                  \
        WC_NEEDS(m >= 0 && nnz >= 0 && *nmaxiter >= 0 &&                                           \
                     buffer_size >= 8 + 16 * (size_t)*nmaxiter, invalid_size)                      \
        WC_NEEDS((unsigned)base <= 1, invalid_value)                                               \
        struct __wc_sparse of = {m, m, nnz, (void *)csr_row_ptr, (void *)csr_col_ind,              \
                                 (void *)csr_val, WC_SPARSE_CSR, 2, 2, base, T}, *a = &of;         \
        WC_SPARSE("iterated_ilu", 0, "iidp" WC_M "pr", option, *nmaxiter, (double)tol, ilu0,       \
                  WC_MATRIX_VALUES(a), buffer, nmaxiter)                                                  \
    }                                                                                              \
    WC_FN rocsparse_##t##csritilu0_history(WC_H, rocsparse_itilu0_alg, rocsparse_int *niter,       \
                                           WC_REAL_##t *data, size_t, void *buffer) {              \
        WC_NEEDS(niter && data && buffer, invalid_pointer)                                         \
        WC_SPARSE("iterations", 0, "ippr", T, buffer, data, niter)                                 \
    }                                                                                              \
    WC_FN rocsparse_##t##gtsv_buffer_size(WC_H, rocsparse_int, rocsparse_int, const E *,           \
                                          const E *, const E *, const E *, rocsparse_int,          \
                                          size_t *buffer_size)                                     \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##gtsv(WC_H, rocsparse_int m, rocsparse_int n, const E *dl, const E *d,     \
                              const E *du, E *B, rocsparse_int ldb, void *) {                      \
        WC_NEEDS(m > 1 && n >= 0 && ldb >= m, invalid_size)                                        \
        WC_NEEDS(dl && d && du && B, invalid_pointer)                                              \
        WC_SPARSE("tridiagonal", 0, "iiippppi", T, m, n, dl, d, du, B, ldb)                        \
    }                                                                                              \
    WC_FN rocsparse_##t##gtsv_no_pivot_buffer_size(WC_H, rocsparse_int, rocsparse_int, const E *,  \
                                                   const E *, const E *, const E *, rocsparse_int, \
                                                   size_t *buffer_size)                            \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##gtsv_no_pivot(WC_H, rocsparse_int m, rocsparse_int n, const E *dl,        \
                                       const E *d, const E *du, E *B, rocsparse_int ldb,           \
                                       void *temp_buffer) {                                        \
        return rocsparse_##t##gtsv(handle, m, n, dl, d, du, B, ldb, temp_buffer);                  \
    }                                                                                              \
    WC_FN rocsparse_##t##gpsv_interleaved_batch_buffer_size(                                       \
        WC_H, rocsparse_gpsv_interleaved_alg, rocsparse_int, const E *, const E *, const E *,      \
        const E *, const E *, const E *, rocsparse_int, rocsparse_int, size_t *buffer_size)        \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##gpsv_interleaved_batch(                                                   \
        WC_H, rocsparse_gpsv_interleaved_alg alg, rocsparse_int m, E *ds, E *dl, E *d, E *du,      \
        E *dw, E *x, rocsparse_int batch_count, rocsparse_int batch_stride, void *) {              \
        WC_NEEDS((unsigned)alg <= 1, invalid_value)                                                \
        WC_NEEDS(m > 2 && batch_count >= 0 && batch_stride >= batch_count, invalid_size)           \
        WC_NEEDS(ds && dl && d && du && dw && x, invalid_pointer)                                  \
        WC_SPARSE("pentadiagonal", 0, "iiiipppppp", T, m, batch_count, batch_stride, ds, dl,  \
                  d, du, dw, x)                                                                    \
    }
#define WC_CSR_FACTORS(t, E, T, name, function)                                                    \
    WC_FN rocsparse_##t##name##_buffer_size(WC_H, rocsparse_int, rocsparse_int,                    \
                                            const rocsparse_mat_descr, const E *, __wc_indices,    \
                                            __wc_indices, rocsparse_mat_info, size_t *buffer_size) \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##name##_analysis(WC_H, rocsparse_int, rocsparse_int,                       \
                                         const rocsparse_mat_descr, const E *, __wc_indices,       \
                                         __wc_indices, WC_SOLVING)                                 \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##name(WC_H, rocsparse_int m, rocsparse_int nnz,                            \
                              const rocsparse_mat_descr descr, E *csr_val,                         \
                              __wc_indices csr_row_ptr, __wc_indices csr_col_ind,                  \
                              rocsparse_mat_info info, rocsparse_solve_policy, void *) {           \
        WC_NEEDS(info, invalid_pointer)                                                            \
        WC_CSR_OF(a, T, m, m)                                                                      \
        WC_SPARSE(function, 0, WC_M "r", WC_MATRIX_VALUES(a), &info->pivot)                               \
    }
#define WC_BSR_FACTORS(t, E, T, name, function)                                                    \
    WC_FN rocsparse_##t##name##_buffer_size(                                                       \
        WC_H, rocsparse_direction, rocsparse_int, rocsparse_int, const rocsparse_mat_descr,        \
        const E *, __wc_indices, __wc_indices, rocsparse_int, rocsparse_mat_info,                  \
        size_t *buffer_size)                                                                       \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##name##_analysis(                                                          \
        WC_H, rocsparse_direction, rocsparse_int, rocsparse_int, const rocsparse_mat_descr,        \
        const E *, __wc_indices, __wc_indices, rocsparse_int, WC_SOLVING)                          \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##name(WC_H, rocsparse_direction dir, rocsparse_int mb, rocsparse_int nnzb, \
                              const rocsparse_mat_descr descr, E *bsr_val,                         \
                              __wc_indices bsr_row_ptr, __wc_indices bsr_col_ind,                  \
                              rocsparse_int block_dim, rocsparse_mat_info info,                    \
                              rocsparse_solve_policy, void *) {                                    \
        WC_NEEDS(info, invalid_pointer)                                                            \
        WC_BSR_OF(a, T, mb, mb, block_dim, block_dim)                                              \
        WC_SPARSE(function, 0, WC_M "r", WC_MATRIX_VALUES(a), &info->pivot)                               \
    }
#define WC_REAL_s float
#define WC_REAL_d double
#define WC_REAL_c float
#define WC_REAL_z double
WC_FACTORS(s, float, HIP_R_32F)
WC_FACTORS(d, double, HIP_R_64F)
WC_FACTORS(c, rocsparse_float_complex, HIP_C_32F)
WC_FACTORS(z, rocsparse_double_complex, HIP_C_64F)
WC_PIVOTS(csric0)
WC_PIVOTS(csrilu0)
WC_PIVOTS(bsric0)
WC_PIVOTS(bsrilu0)
WC_CLEARS(csric0)
WC_CLEARS(csrilu0)
WC_CLEARS(bsric0)
WC_CLEARS(bsrilu0)
// The buffer keeps the number of iterations and their norms (double).
WC_FN rocsparse_csritilu0_buffer_size(WC_H, rocsparse_itilu0_alg alg, rocsparse_int,
                                      rocsparse_int nmaxiter, rocsparse_int, rocsparse_int,
                                      __wc_indices, __wc_indices, rocsparse_index_base,
                                      rocsparse_datatype, size_t *buffer_size) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS((unsigned)alg <= 4, invalid_value)
    WC_NEEDS(nmaxiter >= 0, invalid_size)
    WC_NEEDS(buffer_size, invalid_pointer)
    *buffer_size = 8 + 16 * (size_t)nmaxiter;
    WC_DONE
}
WC_FN rocsparse_csritilu0_preprocess(WC_H, rocsparse_itilu0_alg, rocsparse_int, rocsparse_int,
                                     rocsparse_int, rocsparse_int, __wc_indices, __wc_indices,
                                     rocsparse_index_base, rocsparse_datatype, size_t, void *) {
    WC_NEEDS(handle, invalid_handle)
    WC_DONE
}

#undef WC_FACTORS
#undef WC_CSR_FACTORS
#undef WC_BSR_FACTORS
#undef WC_REAL_s
#undef WC_REAL_d
#undef WC_REAL_c
#undef WC_REAL_z
#undef WC_PIVOTS
#undef WC_CLEARS
#undef WC_SOLVING
#undef WC_SOLVED
#undef WC_LOCAL
#undef WC_CSR_OF
#undef WC_BSR_OF
#undef WC_DENSE_OF
#undef WC_VECTOR_OF
#undef WC_OPS
#undef WC_OP
