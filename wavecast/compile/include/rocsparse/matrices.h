// Part of rocsparse.h: functions of one type of elements, with matrices in arrays.

typedef const rocsparse_int *__wc_indices;
#define WC_SOLVING rocsparse_mat_info info, rocsparse_analysis_policy analysis, \
                   rocsparse_solve_policy solve, void *temp_buffer
#define WC_SOLVED(info)                                                       \
    {                                                                         \
        (void)analysis, (void)solve, (void)temp_buffer;                       \
        WC_NEEDS(handle, invalid_handle)                                      \
        WC_NEEDS(info, invalid_pointer)                                       \
        info->pivot = -1;                                                     \
        WC_DONE                                                               \
    }
// A sparse matrix of arrays, a BSR matrix with blocks, and dense operands.
#define WC_LOCAL(a, T, FORMAT, m, n, count, first, second, elements, br, bc, by_column)          \
    WC_NEEDS(descr, invalid_pointer)                                                             \
    WC_NEEDS((m) >= 0 && (n) >= 0 && (count) >= 0, invalid_size)                                 \
    WC_NEEDS(!(count) || ((second) && (elements)), invalid_pointer)                              \
    struct __wc_sparse of_##a = {m, n, count, (void *)(first), (void *)(second),                 \
                                 (void *)(elements), FORMAT, 2, 2, descr->base, T, descr->fill,  \
                                 descr->diagonal, br, bc, by_column}, *a = &of_##a;
#define WC_CSR_OF(a, T, m, n) \
    WC_LOCAL(a, T, WC_SPARSE_CSR, m, n, nnz, csr_row_ptr, csr_col_ind, csr_val, 0, 0, 0)
#define WC_BSR_OF(a, T, mb, nb, br, bc)                                                     \
    WC_NEEDS((unsigned)dir <= 1, invalid_value)                                             \
    WC_NEEDS((br) > 0 && (bc) > 0, invalid_size)                                            \
    WC_LOCAL(a, T, WC_SPARSE_BSR, (int64_t)(mb) * (br), (int64_t)(nb) * (bc), nnzb,         \
             bsr_row_ptr, bsr_col_ind, bsr_val, br, bc, dir)
#define WC_DENSE_OF(b, T, rows, columns, leading, elements, by_column)                         \
    WC_NEEDS((elements) || !((int64_t)(rows) * (columns)), invalid_pointer)                    \
    WC_NEEDS((leading) >= ((by_column) ? (rows) : (columns)), invalid_size)                    \
    struct __wc_dense of_##b = {rows, columns, leading, (void *)(elements), T, by_column},     \
                      *b = &of_##b;
#define WC_VECTOR_OF(b, T, size, elements) WC_DENSE_OF(b, T, size, 1, size, elements, 1)
#define WC_OPS(condition)                                  \
    WC_NEEDS(handle, invalid_handle)                       \
    WC_NEEDS(condition, invalid_value)                     \
    WC_NEEDS(alpha, invalid_pointer)
#define WC_MULTIPLY(T, op_a, op_b, a, b, c)                                                      \
    WC_NEEDS(beta, invalid_pointer)                                                              \
    WC_SPARSE("product", __wc_element_bytes(T), "iiis" WC_M WC_D "s" WC_D, T, op_a, op_b, alpha,  \
              WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b), beta, WC_DENSE_VALUES(c))
#define WC_SOLVE(T, op_a, a, b, c)                                                               \
    WC_NEEDS(info, invalid_pointer)                                                              \
    WC_SPARSE("solve_pivot", __wc_element_bytes(T), "iiis" WC_M WC_D WC_D "r", T, op_a, 0, alpha, \
              WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b), WC_DENSE_VALUES(c), &info->pivot)
#define WC_IS_NONE(op) ((op) == rocsparse_operation_none)

#define WC_TYPED(t, E, T)                                                                          \
    WC_FN rocsparse_##t##csrmv_analysis(WC_H, WC_OP, rocsparse_int, rocsparse_int, rocsparse_int,  \
                                        const rocsparse_mat_descr, const E *, __wc_indices,        \
                                        __wc_indices, rocsparse_mat_info) {                        \
        WC_NEEDS(handle, invalid_handle)                                                           \
        WC_DONE                                                                                    \
    }                                                                                              \
    WC_FN rocsparse_##t##csrmv(                                                                    \
        WC_H, WC_OP trans, rocsparse_int m, rocsparse_int n, rocsparse_int nnz, const E *alpha,    \
        const rocsparse_mat_descr descr, const E *csr_val, __wc_indices csr_row_ptr,               \
        __wc_indices csr_col_ind, rocsparse_mat_info, const E *x, const E *beta, E *y) {           \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_CSR_OF(a, T, m, n)                                                                      \
        WC_VECTOR_OF(b, T, WC_IS_NONE(trans) ? n : m, x)                                           \
        WC_VECTOR_OF(c, T, WC_IS_NONE(trans) ? m : n, y)                                           \
        WC_MULTIPLY(T, __wc_rocsparse_op(trans), 0, a, b, c)                                       \
    }                                                                                              \
    WC_FN rocsparse_##t##coomv(                                                                    \
        WC_H, WC_OP trans, rocsparse_int m, rocsparse_int n, rocsparse_int nnz, const E *alpha,    \
        const rocsparse_mat_descr descr, const E *coo_val, __wc_indices coo_row_ind,               \
        __wc_indices coo_col_ind, const E *x, const E *beta, E *y) {                               \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_LOCAL(a, T, WC_SPARSE_COO, m, n, nnz, coo_row_ind, coo_col_ind, coo_val, 0, 0, 0)       \
        WC_VECTOR_OF(b, T, WC_IS_NONE(trans) ? n : m, x)                                           \
        WC_VECTOR_OF(c, T, WC_IS_NONE(trans) ? m : n, y)                                           \
        WC_MULTIPLY(T, __wc_rocsparse_op(trans), 0, a, b, c)                                       \
    }                                                                                              \
    WC_FN rocsparse_##t##ellmv(WC_H, WC_OP trans, rocsparse_int m, rocsparse_int n,                \
                               const E *alpha, const rocsparse_mat_descr descr,                    \
                               const E *ell_val, __wc_indices ell_col_ind,                         \
                               rocsparse_int ell_width, const E *x, const E *beta, E *y) {         \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_NEEDS(ell_width >= 0, invalid_size)                                                     \
        WC_LOCAL(a, T, WC_SPARSE_ELL, m, n, (int64_t)m * ell_width, NULL, ell_col_ind, ell_val, 0, \
                 0, 0)                                                                             \
        WC_VECTOR_OF(b, T, WC_IS_NONE(trans) ? n : m, x)                                           \
        WC_VECTOR_OF(c, T, WC_IS_NONE(trans) ? m : n, y)                                           \
        WC_MULTIPLY(T, __wc_rocsparse_op(trans), 0, a, b, c)                                       \
    }                                                                                              \
    WC_FN rocsparse_##t##gebsrmv(                                                                  \
        WC_H, rocsparse_direction dir, WC_OP trans, rocsparse_int mb, rocsparse_int nb,            \
        rocsparse_int nnzb, const E *alpha, const rocsparse_mat_descr descr, const E *bsr_val,     \
        __wc_indices bsr_row_ptr, __wc_indices bsr_col_ind, rocsparse_int row_block_dim,           \
        rocsparse_int col_block_dim, const E *x, const E *beta, E *y) {                            \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_BSR_OF(a, T, mb, nb, row_block_dim, col_block_dim)                                      \
        WC_VECTOR_OF(b, T, WC_IS_NONE(trans) ? a->columns : a->rows, x)                            \
        WC_VECTOR_OF(c, T, WC_IS_NONE(trans) ? a->rows : a->columns, y)                            \
        WC_MULTIPLY(T, __wc_rocsparse_op(trans), 0, a, b, c)                                       \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrmv_analysis(                                                           \
        WC_H, rocsparse_direction, WC_OP, rocsparse_int, rocsparse_int, rocsparse_int,             \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, rocsparse_int,           \
        rocsparse_mat_info) {                                                                      \
        WC_NEEDS(handle, invalid_handle)                                                           \
        WC_DONE                                                                                    \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrmv(                                                                    \
        WC_H, rocsparse_direction dir, WC_OP trans, rocsparse_int mb, rocsparse_int nb,            \
        rocsparse_int nnzb, const E *alpha, const rocsparse_mat_descr descr, const E *bsr_val,     \
        __wc_indices bsr_row_ptr, __wc_indices bsr_col_ind, rocsparse_int block_dim,               \
        rocsparse_mat_info, const E *x, const E *beta, E *y) {                                     \
        return rocsparse_##t##gebsrmv(handle, dir, trans, mb, nb, nnzb, alpha, descr, bsr_val,     \
                                      bsr_row_ptr, bsr_col_ind, block_dim, block_dim, x, beta, y); \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrmv_ex(                                                                 \
        WC_H, rocsparse_direction dir, WC_OP trans, rocsparse_int mb, rocsparse_int nb,            \
        rocsparse_int nnzb, const E *alpha, const rocsparse_mat_descr descr, const E *bsr_val,     \
        __wc_indices bsr_row_ptr, __wc_indices bsr_col_ind, rocsparse_int block_dim,               \
        rocsparse_mat_info, const E *x, const E *beta, E *y) {                                     \
        return rocsparse_##t##gebsrmv(handle, dir, trans, mb, nb, nnzb, alpha, descr, bsr_val,     \
                                      bsr_row_ptr, bsr_col_ind, block_dim, block_dim, x, beta, y); \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrxmv(                                                                   \
        WC_H, rocsparse_direction dir, WC_OP trans, rocsparse_int size_of_mask, rocsparse_int mb,  \
        rocsparse_int nb, rocsparse_int nnzb, const E *alpha, const rocsparse_mat_descr descr,     \
        const E *bsr_val, __wc_indices bsr_mask_ptr, __wc_indices bsr_row_ptr,                     \
        __wc_indices bsr_end_ptr, __wc_indices bsr_col_ind, rocsparse_int block_dim, const E *x,   \
        const E *beta, E *y) {                                                                     \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_NEEDS(WC_IS_NONE(trans), not_implemented)                                               \
        WC_NEEDS(beta && (!size_of_mask || bsr_mask_ptr) && bsr_end_ptr, invalid_pointer)          \
        WC_NEEDS(size_of_mask >= 0 && size_of_mask <= mb, invalid_size)                            \
        WC_BSR_OF(a, T, mb, nb, block_dim, block_dim)                                              \
        WC_VECTOR_OF(b, T, a->columns, x)                                                          \
        WC_VECTOR_OF(c, T, a->rows, y)                                                             \
        WC_SPARSE("masked_product", __wc_element_bytes(T), "isipp" WC_M WC_D "s" WC_D, T, alpha,   \
                  size_of_mask, bsr_mask_ptr, bsr_end_ptr, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b), beta,        \
                  WC_DENSE_VALUES(c))                                                                     \
    }                                                                                              \
    WC_FN rocsparse_##t##csrmm(                                                                    \
        WC_H, WC_OP trans_A, WC_OP trans_B, rocsparse_int m, rocsparse_int n, rocsparse_int k,     \
        rocsparse_int nnz, const E *alpha, const rocsparse_mat_descr descr, const E *csr_val,      \
        __wc_indices csr_row_ptr, __wc_indices csr_col_ind, const E *B, rocsparse_int ldb,         \
        const E *beta, E *C, rocsparse_int ldc) {                                                  \
        WC_OPS(__wc_is_op(trans_A) && __wc_is_op(trans_B))                                         \
        WC_CSR_OF(a, T, m, k)                                                                      \
        int inner = WC_IS_NONE(trans_A) ? k : m, is_b = WC_IS_NONE(trans_B);                       \
        WC_DENSE_OF(b, T, is_b ? inner : n, is_b ? n : inner, ldb, B, 1)                           \
        WC_DENSE_OF(c, T, WC_IS_NONE(trans_A) ? m : k, n, ldc, C, 1)                               \
        WC_MULTIPLY(T, __wc_rocsparse_op(trans_A), __wc_rocsparse_op(trans_B), a, b, c)            \
    }                                                                                              \
    WC_FN rocsparse_##t##gebsrmm(                                                                  \
        WC_H, rocsparse_direction dir, WC_OP trans_A, WC_OP trans_B, rocsparse_int mb,             \
        rocsparse_int n, rocsparse_int kb, rocsparse_int nnzb, const E *alpha,                     \
        const rocsparse_mat_descr descr, const E *bsr_val, __wc_indices bsr_row_ptr,               \
        __wc_indices bsr_col_ind, rocsparse_int row_block_dim, rocsparse_int col_block_dim,        \
        const E *B, rocsparse_int ldb, const E *beta, E *C, rocsparse_int ldc) {                   \
        WC_OPS(__wc_is_op(trans_A) && __wc_is_op(trans_B))                                         \
        WC_BSR_OF(a, T, mb, kb, row_block_dim, col_block_dim)                                      \
        int is_a = WC_IS_NONE(trans_A), is_b = WC_IS_NONE(trans_B);                                \
        int64_t inner = is_a ? a->columns : a->rows;                                               \
        WC_DENSE_OF(b, T, is_b ? inner : n, is_b ? n : inner, ldb, B, 1)                           \
        WC_DENSE_OF(c, T, is_a ? a->rows : a->columns, n, ldc, C, 1)                               \
        WC_MULTIPLY(T, __wc_rocsparse_op(trans_A), __wc_rocsparse_op(trans_B), a, b, c)            \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrmm(                                                                    \
        WC_H, rocsparse_direction dir, WC_OP trans_A, WC_OP trans_B, rocsparse_int mb,             \
        rocsparse_int n, rocsparse_int kb, rocsparse_int nnzb, const E *alpha,                     \
        const rocsparse_mat_descr descr, const E *bsr_val, __wc_indices bsr_row_ptr,               \
        __wc_indices bsr_col_ind, rocsparse_int block_dim, const E *B, rocsparse_int ldb,          \
        const E *beta, E *C, rocsparse_int ldc) {                                                  \
        return rocsparse_##t##gebsrmm(handle, dir, trans_A, trans_B, mb, n, kb, nnzb, alpha,       \
                                      descr, bsr_val, bsr_row_ptr, bsr_col_ind, block_dim,         \
                                      block_dim, B, ldb, beta, C, ldc);                            \
    }                                                                                              \
    /* C^T = op(B)^T op(A)^T: the sparse matrix is on the left, dense ones are row-major. */       \
    WC_FN rocsparse_##t##gemmi(                                                                    \
        WC_H, WC_OP trans_A, WC_OP trans_B, rocsparse_int m, rocsparse_int n, rocsparse_int k,     \
        rocsparse_int nnz, const E *alpha, const E *A, rocsparse_int lda,                          \
        const rocsparse_mat_descr descr, const E *csr_val, __wc_indices csr_row_ptr,               \
        __wc_indices csr_col_ind, const E *beta, E *C, rocsparse_int ldc) {                        \
        WC_OPS(__wc_is_op(trans_A) && __wc_is_op(trans_B))                                         \
        WC_NEEDS(trans_A != rocsparse_operation_conjugate_transpose &&                             \
                     trans_B != rocsparse_operation_conjugate_transpose, not_implemented)          \
        WC_CSR_OF(b, T, WC_IS_NONE(trans_B) ? k : n, WC_IS_NONE(trans_B) ? n : k)                  \
        WC_DENSE_OF(a, T, k, m, lda, A, !WC_IS_NONE(trans_A))                                      \
        WC_DENSE_OF(c, T, n, m, ldc, C, 0)                                                         \
        WC_MULTIPLY(T, WC_IS_NONE(trans_B), 0, b, a, c)                                            \
    }                                                                                              \
    WC_FN rocsparse_##t##gemvi_buffer_size(WC_H, WC_OP, rocsparse_int, rocsparse_int,              \
                                           rocsparse_int, size_t *buffer_size)                     \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##gemvi(WC_H, WC_OP trans, rocsparse_int m, rocsparse_int n,                \
                               const E *alpha, const E *A, rocsparse_int lda, rocsparse_int nnz,   \
                               const E *x_val, __wc_indices x_ind, const E *beta, E *y,            \
                               rocsparse_index_base base, void *) {                                \
        WC_OPS(__wc_is_op(trans) && (unsigned)base <= 1)                                           \
        WC_NEEDS(beta && (!nnz || (x_val && x_ind)), invalid_pointer)                              \
        WC_NEEDS(m >= 0 && n >= 0 && nnz >= 0, invalid_size)                                       \
        WC_DENSE_OF(a, T, m, n, lda, A, 1)                                                         \
        WC_VECTOR_OF(c, T, WC_IS_NONE(trans) ? m : n, y)                                           \
        WC_SPARSE("dense_product", __wc_element_bytes(T), "iis" WC_D WC_V "s" WC_D, T,             \
                  __wc_rocsparse_op(trans), alpha, WC_DENSE_VALUES(a), (long long)nnz, x_ind, x_val, 2,   \
                  base, T, beta, WC_DENSE_VALUES(c))                                                      \
    }                                                                                              \
    /* solutions with a triangle */                                                                \
    WC_FN rocsparse_##t##csrsv_buffer_size(WC_H, WC_OP, rocsparse_int, rocsparse_int,              \
                                           const rocsparse_mat_descr, const E *, __wc_indices,     \
                                           __wc_indices, rocsparse_mat_info, size_t *buffer_size)  \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##csrsv_analysis(WC_H, WC_OP, rocsparse_int, rocsparse_int,                 \
                                        const rocsparse_mat_descr, const E *, __wc_indices,        \
                                        __wc_indices, WC_SOLVING)                                  \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##csrsv_solve(                                                              \
        WC_H, WC_OP trans, rocsparse_int m, rocsparse_int nnz, const E *alpha,                     \
        const rocsparse_mat_descr descr, const E *csr_val, __wc_indices csr_row_ptr,               \
        __wc_indices csr_col_ind, rocsparse_mat_info info, const E *x, E *y,                       \
        rocsparse_solve_policy, void *) {                                                          \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_CSR_OF(a, T, m, m)                                                                      \
        WC_VECTOR_OF(b, T, m, x)                                                                   \
        WC_VECTOR_OF(c, T, m, y)                                                                   \
        WC_SOLVE(T, __wc_rocsparse_op(trans), a, b, c)                                             \
    }                                                                                              \
    WC_FN rocsparse_##t##csritsv_buffer_size(WC_H, WC_OP, rocsparse_int, rocsparse_int,            \
                                             const rocsparse_mat_descr, const E *, __wc_indices,   \
                                             __wc_indices, rocsparse_mat_info,                     \
                                             size_t *buffer_size)                                  \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##csritsv_analysis(WC_H, WC_OP, rocsparse_int, rocsparse_int,               \
                                          const rocsparse_mat_descr, const E *, __wc_indices,      \
                                          __wc_indices, WC_SOLVING)                                \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##csrsm_buffer_size(                                                        \
        WC_H, WC_OP, WC_OP, rocsparse_int, rocsparse_int, rocsparse_int, const E *,                \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, const E *,               \
        rocsparse_int, rocsparse_mat_info, rocsparse_solve_policy, size_t *buffer_size)            \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##csrsm_analysis(                                                           \
        WC_H, WC_OP, WC_OP, rocsparse_int, rocsparse_int, rocsparse_int, const E *,                \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, const E *,               \
        rocsparse_int, WC_SOLVING)                                                                 \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##csrsm_solve(                                                              \
        WC_H, WC_OP trans_A, WC_OP trans_B, rocsparse_int m, rocsparse_int nrhs,                   \
        rocsparse_int nnz, const E *alpha, const rocsparse_mat_descr descr, const E *csr_val,      \
        __wc_indices csr_row_ptr, __wc_indices csr_col_ind, E *B, rocsparse_int ldb,               \
        rocsparse_mat_info info, rocsparse_solve_policy, void *) {                                 \
        WC_OPS(__wc_is_op(trans_A) && __wc_is_op(trans_B))                                         \
        WC_NEEDS(trans_B != rocsparse_operation_conjugate_transpose, not_implemented)              \
        WC_CSR_OF(a, T, m, m)                                                                      \
        WC_DENSE_OF(b, T, m, nrhs, ldb, B, WC_IS_NONE(trans_B))                                    \
        WC_SOLVE(T, __wc_rocsparse_op(trans_A), a, b, b)                                           \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrsv_buffer_size(                                                        \
        WC_H, rocsparse_direction, WC_OP, rocsparse_int, rocsparse_int,                            \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, rocsparse_int,           \
        rocsparse_mat_info, size_t *buffer_size)                                                   \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##bsrsv_analysis(                                                           \
        WC_H, rocsparse_direction, WC_OP, rocsparse_int, rocsparse_int,                            \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, rocsparse_int,           \
        WC_SOLVING)                                                                                \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##bsrsv_solve(                                                              \
        WC_H, rocsparse_direction dir, WC_OP trans, rocsparse_int mb, rocsparse_int nnzb,          \
        const E *alpha, const rocsparse_mat_descr descr, const E *bsr_val,                         \
        __wc_indices bsr_row_ptr, __wc_indices bsr_col_ind, rocsparse_int block_dim,               \
        rocsparse_mat_info info, const E *x, E *y, rocsparse_solve_policy, void *) {               \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_BSR_OF(a, T, mb, mb, block_dim, block_dim)                                              \
        WC_VECTOR_OF(b, T, a->rows, x)                                                             \
        WC_VECTOR_OF(c, T, a->rows, y)                                                             \
        WC_SOLVE(T, __wc_rocsparse_op(trans), a, b, c)                                             \
    }                                                                                              \
    WC_FN rocsparse_##t##bsrsm_buffer_size(                                                        \
        WC_H, rocsparse_direction, WC_OP, WC_OP, rocsparse_int, rocsparse_int, rocsparse_int,      \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, rocsparse_int,           \
        rocsparse_mat_info, size_t *buffer_size)                                                   \
        WC_BUFFER                                                                                  \
    WC_FN rocsparse_##t##bsrsm_analysis(                                                           \
        WC_H, rocsparse_direction, WC_OP, WC_OP, rocsparse_int, rocsparse_int, rocsparse_int,      \
        const rocsparse_mat_descr, const E *, __wc_indices, __wc_indices, rocsparse_int,           \
        WC_SOLVING)                                                                                \
        WC_SOLVED(info)                                                                            \
    WC_FN rocsparse_##t##bsrsm_solve(                                                              \
        WC_H, rocsparse_direction dir, WC_OP trans_A, WC_OP trans_X, rocsparse_int mb,             \
        rocsparse_int nrhs, rocsparse_int nnzb, const E *alpha, const rocsparse_mat_descr descr,   \
        const E *bsr_val, __wc_indices bsr_row_ptr, __wc_indices bsr_col_ind,                      \
        rocsparse_int block_dim, rocsparse_mat_info info, const E *B, rocsparse_int ldb, E *X,     \
        rocsparse_int ldx, rocsparse_solve_policy, void *) {                                       \
        WC_OPS(__wc_is_op(trans_A) && __wc_is_op(trans_X))                                         \
        WC_NEEDS(trans_X != rocsparse_operation_conjugate_transpose, not_implemented)              \
        WC_BSR_OF(a, T, mb, mb, block_dim, block_dim)                                              \
        WC_DENSE_OF(b, T, a->rows, nrhs, ldb, B, WC_IS_NONE(trans_X))                              \
        WC_DENSE_OF(c, T, a->rows, nrhs, ldx, X, WC_IS_NONE(trans_X))                              \
        WC_SOLVE(T, __wc_rocsparse_op(trans_A), a, b, c)                                           \
    }                                                                                              \
    /* conversions */                                                                              \
    WC_FN rocsparse_##t##csr2dense(WC_H, rocsparse_int m, rocsparse_int n,                         \
                                   const rocsparse_mat_descr descr, const E *csr_val,              \
                                   __wc_indices csr_row_ptr, __wc_indices csr_col_ind, E *A,       \
                                   rocsparse_int ld) {                                             \
        WC_NEEDS(descr && csr_row_ptr && A, invalid_pointer)                                       \
        struct __wc_sparse from = {m, n, 0, (void *)csr_row_ptr, (void *)csr_col_ind,              \
                                   (void *)csr_val, WC_SPARSE_CSR, 2, 2, descr->base, T}, *a = &from; \
        WC_DENSE_OF(b, T, m, n, ld, A, 1)                                                          \
        WC_SPARSE("to_dense", 0, WC_M WC_D, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b))                             \
    }                                                                                              \
    WC_FN rocsparse_##t##bsr2csr(                                                                  \
        WC_H, rocsparse_direction dir, rocsparse_int mb, rocsparse_int nb,                         \
        const rocsparse_mat_descr bsr_descr, const E *bsr_val, __wc_indices bsr_row_ptr,           \
        __wc_indices bsr_col_ind, rocsparse_int block_dim, const rocsparse_mat_descr csr_descr,    \
        E *csr_val, rocsparse_int *csr_row_ptr, rocsparse_int *csr_col_ind) {                      \
        WC_NEEDS(bsr_descr && csr_descr && bsr_row_ptr && csr_row_ptr, invalid_pointer)            \
        WC_NEEDS(mb >= 0 && nb >= 0 && block_dim > 0, invalid_size)                                \
        int64_t m = (int64_t)mb * block_dim, n = (int64_t)nb * block_dim;                          \
        struct __wc_sparse from = {m, n, 0, (void *)bsr_row_ptr, (void *)bsr_col_ind,              \
                                   (void *)bsr_val, WC_SPARSE_BSR, 2, 2, bsr_descr->base, T, 0, 0, \
                                   block_dim, block_dim, dir}, *a = &from;                         \
        struct __wc_sparse made = {m, n, 0, csr_row_ptr, csr_col_ind, csr_val, WC_SPARSE_CSR, 2,   \
                                   2, csr_descr->base, T}, *to = &made;                            \
        WC_SPARSE("convert", 0, WC_M WC_M, WC_MATRIX_VALUES(a), WC_MATRIX_VALUES(to))                            \
    }                                                                                              \
    WC_FN rocsparse_##t##gthr(WC_H, rocsparse_int nnz, const E *y, E *x_val, __wc_indices x_ind,   \
                              rocsparse_index_base base) {                                         \
        WC_NEEDS(!nnz || (y && x_val && x_ind), invalid_pointer)                                   \
        WC_NEEDS((unsigned)base <= 1, invalid_value)                                               \
        WC_NEEDS(nnz >= 0, invalid_size)                                                           \
        WC_SPARSE("gather_array", 0, "ip" WC_V, T, y, (long long)nnz, x_ind, x_val, 2, base, T)    \
    }                                                                                              \
    WC_FN rocsparse_##t##csr2csc(                                                                  \
        WC_H, rocsparse_int m, rocsparse_int n, rocsparse_int nnz, const E *csr_val,               \
        __wc_indices csr_row_ptr, __wc_indices csr_col_ind, E *csc_val,                            \
        rocsparse_int *csc_row_ind, rocsparse_int *csc_col_ptr, rocsparse_action,                  \
        rocsparse_index_base base, void *) {                                                       \
        struct __wc_sparse from = {m, n, nnz, (void *)csr_row_ptr, (void *)csr_col_ind,            \
                                   (void *)csr_val, WC_SPARSE_CSR, 2, 2, base, T}, *a = &from;     \
        struct __wc_sparse made = {m, n, nnz, csc_col_ptr, csc_row_ind, csc_val, WC_SPARSE_CSC, 2, \
                                   2, base, T}, *to = &made;                                       \
        WC_SPARSE("convert", 0, WC_M WC_M, WC_MATRIX_VALUES(a), WC_MATRIX_VALUES(to))                            \
    }
#define WC_ITERATES(t, E, R, T)                                                                    \
    WC_FN rocsparse_##t##csritsv_solve(                                                            \
        WC_H, rocsparse_int *host_nmaxiter, const R *host_tol, R *host_history, WC_OP trans,       \
        rocsparse_int m, rocsparse_int nnz, const E *alpha, const rocsparse_mat_descr descr,       \
        const E *csr_val, __wc_indices csr_row_ptr, __wc_indices csr_col_ind, rocsparse_mat_info,  \
        const E *x, E *y, rocsparse_solve_policy, void *) {                                        \
        WC_OPS(__wc_is_op(trans))                                                                  \
        WC_CSR_OF(a, T, m, m)                                                                      \
        WC_VECTOR_OF(b, T, m, x)                                                                   \
        WC_VECTOR_OF(c, T, m, y)                                                                   \
        return __wc_iterate(handle, host_nmaxiter, host_tol, host_history, trans, alpha, a, b, c); \
    }
WC_TYPED(s, float, HIP_R_32F)
WC_TYPED(d, double, HIP_R_64F)
WC_TYPED(c, rocsparse_float_complex, HIP_C_32F)
WC_TYPED(z, rocsparse_double_complex, HIP_C_64F)
WC_ITERATES(s, float, float, HIP_R_32F)
WC_ITERATES(d, double, double, HIP_R_64F)
WC_ITERATES(c, rocsparse_float_complex, float, HIP_C_32F)
WC_ITERATES(z, rocsparse_double_complex, double, HIP_C_64F)

WC_FN rocsparse_csr2csc_buffer_size(WC_H, rocsparse_int, rocsparse_int, rocsparse_int,
                                    __wc_indices, __wc_indices, rocsparse_action,
                                    size_t *buffer_size)
    WC_BUFFER
WC_FN rocsparse_create_identity_permutation(WC_H, rocsparse_int n, rocsparse_int *p) {
    WC_NEEDS(n >= 0, invalid_size)
    WC_NEEDS(!n || p, invalid_pointer)
    WC_SPARSE("identity", 0, "ip", n, p)
}
WC_FN rocsparse_csrsort_buffer_size(WC_H, rocsparse_int, rocsparse_int, rocsparse_int,
                                    __wc_indices, __wc_indices, size_t *buffer_size)
    WC_BUFFER
WC_FN rocsparse_csrsort(WC_H, rocsparse_int m, rocsparse_int, rocsparse_int nnz,
                        const rocsparse_mat_descr descr, __wc_indices csr_row_ptr,
                        rocsparse_int *csr_col_ind, rocsparse_int *perm, void *) {
    WC_NEEDS(descr && csr_row_ptr && csr_col_ind, invalid_pointer)
    WC_NEEDS(m >= 0 && nnz >= 0, invalid_size)
    WC_SPARSE("sort", 0, "iiippp", m, nnz, descr->base, csr_row_ptr, csr_col_ind, perm)
}

// --- the first zero pivot of a solution or factorisation
WC_FN __wc_zero_pivot(WC_H, rocsparse_mat_info info, rocsparse_int *position) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(info && position, invalid_pointer)
    *position = info->pivot;
    return info->pivot < 0 ? rocsparse_status_success : rocsparse_status_zero_pivot;
}
#define WC_PIVOTS(name)                                                                       \
    WC_FN rocsparse_##name##_zero_pivot(WC_H, rocsparse_mat_info info, rocsparse_int *position) { \
        return __wc_zero_pivot(handle, info, position);                                       \
    }
#define WC_PIVOTS_OF(name)                                                                    \
    WC_FN rocsparse_##name##_zero_pivot(WC_H, const rocsparse_mat_descr, rocsparse_mat_info info, \
                                        rocsparse_int *position) {                            \
        return __wc_zero_pivot(handle, info, position);                                       \
    }
#define WC_CLEARS(name)                                               \
    WC_FN rocsparse_##name##_clear(WC_H, rocsparse_mat_info info) {   \
        WC_NEEDS(handle, invalid_handle)                              \
        WC_NEEDS(info, invalid_pointer)                               \
        info->pivot = -1;                                             \
        WC_DONE                                                       \
    }
WC_PIVOTS_OF(csrsv)
WC_PIVOTS_OF(csritsv)
WC_PIVOTS(csrsm)
WC_PIVOTS(bsrsv)
WC_PIVOTS(bsrsm)
WC_CLEARS(csrsm)
WC_CLEARS(bsrsv)
WC_CLEARS(bsrsm)

#undef WC_TYPED
#undef WC_ITERATES
#undef WC_MULTIPLY
#undef WC_SOLVE
#undef WC_IS_NONE
#undef WC_PIVOTS_OF
