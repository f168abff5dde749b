// Part of rocsparse.h: functions of described matrices and vectors, in stages.

#define WC_OP rocsparse_operation
// The stage of a call: what its buffer needs, nothing, or on to what is computed.
#define WC_STAGE(name, operands)                                                              \
    WC_NEEDS(handle, invalid_handle)                                                          \
    WC_NEEDS(operands, invalid_pointer)                                                       \
    WC_NEEDS((unsigned)stage <= 3 && __wc_rocsparse_type(type) >= 0, invalid_value)           \
    if (stage == rocsparse_##name##_stage_buffer_size || (!stage && !temp_buffer)) WC_BUFFER  \
    if (stage == rocsparse_##name##_stage_preprocess) WC_DONE

WC_FN rocsparse_spmv(WC_H, WC_OP trans, const void *alpha, rocsparse_const_spmat_descr mat,
                     rocsparse_const_dnvec_descr x, const void *beta, const rocsparse_dnvec_descr y,
                     rocsparse_datatype type, rocsparse_spmv_alg alg, rocsparse_spmv_stage stage,
                     size_t *buffer_size, void *temp_buffer) {
    (void)alg;
    WC_STAGE(spmv, alpha && mat && x && beta && y)
    WC_NEEDS(__wc_is_op(trans), invalid_value)
    int compute = __wc_rocsparse_type(type);
    WC_SPARSE("product", __wc_element_bytes(compute), "iiis" WC_M WC_D "s" WC_D, compute,
              __wc_rocsparse_op(trans), 0, alpha, WC_MATRIX_VALUES(mat), WC_DENSE_VALUES(x), beta, WC_DENSE_VALUES(y))
}
WC_FN rocsparse_spmv_ex(WC_H, WC_OP trans, const void *alpha, const rocsparse_spmat_descr mat,
                        const rocsparse_dnvec_descr x, const void *beta,
                        const rocsparse_dnvec_descr y, rocsparse_datatype type,
                        rocsparse_spmv_alg alg, rocsparse_spmv_stage stage, size_t *buffer_size,
                        void *temp_buffer) {
    return rocsparse_spmv(handle, trans, alpha, mat, x, beta, y, type, alg, stage, buffer_size,
                          temp_buffer);
}
WC_FN rocsparse_spmm(WC_H, WC_OP trans_A, WC_OP trans_B, const void *alpha,
                     rocsparse_const_spmat_descr mat_A, rocsparse_const_dnmat_descr mat_B,
                     const void *beta, const rocsparse_dnmat_descr mat_C, rocsparse_datatype type,
                     rocsparse_spmm_alg alg, rocsparse_spmm_stage stage, size_t *buffer_size,
                     void *temp_buffer) {
    (void)alg;
    WC_STAGE(spmm, alpha && mat_A && mat_B && beta && mat_C)
    WC_NEEDS(__wc_is_op(trans_A) && __wc_is_op(trans_B), invalid_value)
    int compute = __wc_rocsparse_type(type);
    WC_SPARSE("product", __wc_element_bytes(compute), "iiis" WC_M WC_D "s" WC_D, compute,
              __wc_rocsparse_op(trans_A), __wc_rocsparse_op(trans_B), alpha, WC_MATRIX_VALUES(mat_A),
              WC_DENSE_VALUES(mat_B), beta, WC_DENSE_VALUES(mat_C))
}
WC_FN rocsparse_spsv(WC_H, WC_OP trans, const void *alpha, rocsparse_const_spmat_descr mat,
                     rocsparse_const_dnvec_descr x, const rocsparse_dnvec_descr y,
                     rocsparse_datatype type, rocsparse_spsv_alg alg, rocsparse_spsv_stage stage,
                     size_t *buffer_size, void *temp_buffer) {
    (void)alg;
    WC_STAGE(spsv, alpha && mat && x && y)
    WC_NEEDS(__wc_is_op(trans), invalid_value)
    int compute = __wc_rocsparse_type(type);
    WC_SPARSE("solve", __wc_element_bytes(compute), "iiis" WC_M WC_D WC_D, compute,
              __wc_rocsparse_op(trans), 0, alpha, WC_MATRIX_VALUES(mat), WC_DENSE_VALUES(x), WC_DENSE_VALUES(y))
}
WC_FN rocsparse_spsm(WC_H, WC_OP trans_A, WC_OP trans_B, const void *alpha,
                     rocsparse_const_spmat_descr matA, rocsparse_const_dnmat_descr matB,
                     const rocsparse_dnmat_descr matC, rocsparse_datatype type,
                     rocsparse_spsm_alg alg, rocsparse_spsm_stage stage, size_t *buffer_size,
                     void *temp_buffer) {
    (void)alg;
    WC_STAGE(spsm, alpha && matA && matB && matC)
    WC_NEEDS(__wc_is_op(trans_A) && __wc_is_op(trans_B), invalid_value)
    int compute = __wc_rocsparse_type(type);
    WC_SPARSE("solve", __wc_element_bytes(compute), "iiis" WC_M WC_D WC_D, compute,
              __wc_rocsparse_op(trans_A), __wc_rocsparse_op(trans_B), alpha, WC_MATRIX_VALUES(matA),
              WC_DENSE_VALUES(matB), WC_DENSE_VALUES(matC))
}
// Iterations of Jacobi's method; `host_history` has the largest residual of each.
WC_FN __wc_iterate(WC_H, rocsparse_int *host_nmaxiter, const void *host_tol, void *host_history,
                   WC_OP trans, const void *alpha, rocsparse_const_spmat_descr a,
                   rocsparse_const_dnvec_descr x, rocsparse_const_dnvec_descr y) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(host_nmaxiter && alpha && x->values && y->values, invalid_pointer)
    WC_NEEDS(__wc_is_op(trans), invalid_value)
    WC_NEEDS(*host_nmaxiter >= 0, invalid_size)
    int is_double = a->type == HIP_R_64F || a->type == HIP_C_64F, count = *host_nmaxiter;
    double tolerance = !host_tol   ? 0
                       : is_double ? *(const double *)host_tol
                                   : *(const float *)host_tol;
    double *returned = (double *)calloc((size_t)count + 1, sizeof(double));
    WC_NEEDS(returned, memory_error)
    int status = __wavecast_library(handle->stream, "hipsparse.iterate",
                                    __wc_element_bytes(a->type), "iisiid" WC_M WC_D WC_D "r",
                                    a->type, __wc_rocsparse_op(trans), alpha, count,
                                    host_tol != NULL, tolerance, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(x),
                                    WC_DENSE_VALUES(y), returned);
    if (!status) *host_nmaxiter = (int)returned[0];
    for (int i = 0; host_history && !status && i < *host_nmaxiter; i++)
        if (is_double) ((double *)host_history)[i] = returned[1 + i];
        else ((float *)host_history)[i] = (float)returned[1 + i];
    free(returned);
    return __wc_rocsparse(status);
}
WC_FN rocsparse_spitsv(WC_H, rocsparse_int *host_nmaxiter, const void *host_tol,
                       void *host_history, WC_OP trans, const void *alpha,
                       const rocsparse_spmat_descr mat, const rocsparse_dnvec_descr x,
                       const rocsparse_dnvec_descr y, rocsparse_datatype type,
                       rocsparse_spitsv_alg alg, rocsparse_spitsv_stage stage, size_t *buffer_size,
                       void *temp_buffer) {
    (void)alg;
    WC_STAGE(spitsv, alpha && mat && x && y)
    return __wc_iterate(handle, host_nmaxiter, host_tol, host_history, trans, alpha, mat, x, y);
}
WC_FN rocsparse_sddmm_buffer_size(WC_H, WC_OP, WC_OP, const void *, rocsparse_const_dnmat_descr,
                                  rocsparse_const_dnmat_descr, const void *, rocsparse_spmat_descr,
                                  rocsparse_datatype, rocsparse_sddmm_alg, size_t *buffer_size)
    WC_BUFFER
WC_FN rocsparse_sddmm_preprocess(WC_H, WC_OP, WC_OP, const void *, rocsparse_const_dnmat_descr,
                                 rocsparse_const_dnmat_descr, const void *, rocsparse_spmat_descr,
                                 rocsparse_datatype, rocsparse_sddmm_alg, void *) {
    WC_NEEDS(handle, invalid_handle)
    WC_DONE
}
WC_FN rocsparse_sddmm(WC_H, WC_OP opA, WC_OP opB, const void *alpha, rocsparse_const_dnmat_descr A,
                      rocsparse_const_dnmat_descr B, const void *beta, rocsparse_spmat_descr C,
                      rocsparse_datatype type, rocsparse_sddmm_alg, void *) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(alpha && A && B && beta && C, invalid_pointer)
    WC_NEEDS(__wc_is_op(opA) && __wc_is_op(opB) && __wc_rocsparse_type(type) >= 0, invalid_value)
    int compute = __wc_rocsparse_type(type);
    WC_SPARSE("sampled_product", __wc_element_bytes(compute), "iiis" WC_D WC_D "s" WC_M, compute,
              __wc_rocsparse_op(opA), __wc_rocsparse_op(opB), alpha, WC_DENSE_VALUES(A), WC_DENSE_VALUES(B),
              beta, WC_MATRIX_VALUES(C))
}
WC_FN rocsparse_spvv(WC_H, WC_OP trans, rocsparse_const_spvec_descr x,
                     rocsparse_const_dnvec_descr y, void *result, rocsparse_datatype type,
                     size_t *buffer_size, void *temp_buffer) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(x && y && result, invalid_pointer)
    WC_NEEDS(__wc_is_op(trans) && __wc_rocsparse_type(type) >= 0, invalid_value)
    if (!temp_buffer) WC_BUFFER
    WC_SPARSE("dot", 0, "ii" WC_V WC_D "r", __wc_rocsparse_type(type), __wc_rocsparse_op(trans),
              WC_VECTOR_VALUES(x), WC_DENSE_VALUES(y), result)
}
WC_FN rocsparse_axpby(WC_H, const void *alpha, rocsparse_const_spvec_descr x, const void *beta,
                      rocsparse_dnvec_descr y) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(alpha && x && beta && y, invalid_pointer)
    WC_SPARSE("axpby", __wc_element_bytes(y->type), "iss" WC_V WC_D, y->type, alpha, beta,
              WC_VECTOR_VALUES(x), WC_DENSE_VALUES(y))
}
WC_FN rocsparse_gather(WC_H, rocsparse_const_dnvec_descr y, rocsparse_spvec_descr x) {
    WC_NEEDS(x && y, invalid_pointer)
    WC_SPARSE("gather", 0, WC_D WC_V, WC_DENSE_VALUES(y), WC_VECTOR_VALUES(x))
}
WC_FN rocsparse_scatter(WC_H, rocsparse_const_spvec_descr x, rocsparse_dnvec_descr y) {
    WC_NEEDS(x && y, invalid_pointer)
    WC_SPARSE("scatter", 0, WC_V WC_D, WC_VECTOR_VALUES(x), WC_DENSE_VALUES(y))
}
WC_FN rocsparse_sparse_to_dense(WC_H, rocsparse_const_spmat_descr mat_A,
                                rocsparse_dnmat_descr mat_B, rocsparse_sparse_to_dense_alg,
                                size_t *buffer_size, void *temp_buffer) {
    WC_NEEDS(mat_A && mat_B, invalid_pointer)
    if (!temp_buffer) WC_BUFFER
    WC_SPARSE("to_dense", 0, WC_M WC_D, WC_MATRIX_VALUES(mat_A), WC_DENSE_VALUES(mat_B))
}
// Without a buffer: its size; without values: the number of entries and the offsets.
WC_FN rocsparse_dense_to_sparse(WC_H, rocsparse_const_dnmat_descr mat_A,
                                rocsparse_spmat_descr mat_B, rocsparse_dense_to_sparse_alg,
                                size_t *buffer_size, void *temp_buffer) {
    WC_NEEDS(mat_A && mat_B, invalid_pointer)
    if (!temp_buffer && buffer_size) WC_BUFFER
    if (!buffer_size)
        WC_SPARSE("to_sparse_size", 0, WC_D WC_M "r", WC_DENSE_VALUES(mat_A), WC_MATRIX_VALUES(mat_B),
                  &mat_B->entries)
    WC_SPARSE("to_sparse", 0, WC_D WC_M, WC_DENSE_VALUES(mat_A), WC_MATRIX_VALUES(mat_B))
}
// C = alpha A B of described matrices; a matrix D that is added is not implemented.
WC_FN rocsparse_spgemm(WC_H, WC_OP trans_A, WC_OP trans_B, const void *alpha,
                       rocsparse_const_spmat_descr A, rocsparse_const_spmat_descr B,
                       const void *beta, rocsparse_const_spmat_descr D, rocsparse_spmat_descr C,
                       rocsparse_datatype type, rocsparse_spgemm_alg, rocsparse_spgemm_stage stage,
                       size_t *buffer_size, void *temp_buffer) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(A && B && C, invalid_pointer)
    WC_NEEDS(__wc_is_op(trans_A) && __wc_is_op(trans_B) && __wc_rocsparse_type(type) >= 0,
             invalid_value)
    int compute = __wc_rocsparse_type(type);
    WC_NEEDS(!D || !D->entries || !beta, not_implemented)
    WC_NEEDS(alpha, not_implemented)
    if (stage == rocsparse_spgemm_stage_buffer_size || (!stage && !temp_buffer)) WC_BUFFER
    if (stage == rocsparse_spgemm_stage_nnz)
        WC_SPARSE("gemm_size", __wc_element_bytes(compute), "iiiss" WC_M WC_M WC_M "r", compute,
                  __wc_rocsparse_op(trans_A), __wc_rocsparse_op(trans_B), alpha, alpha,
                  WC_MATRIX_VALUES(A), WC_MATRIX_VALUES(B), WC_MATRIX_VALUES(C), &C->entries)
    WC_SPARSE("gemm", __wc_element_bytes(compute), "iiiss" WC_M WC_M WC_M, compute,
              __wc_rocsparse_op(trans_A), __wc_rocsparse_op(trans_B), alpha, alpha, WC_MATRIX_VALUES(A),
              WC_MATRIX_VALUES(B), WC_MATRIX_VALUES(C))
}

#undef WC_STAGE
