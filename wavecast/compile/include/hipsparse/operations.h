// Part of hipsparse.h: what is computed.

#define WC_SPARSE(name, bytes, ...)                                                                \
    {                                                                                              \
        WC_NEEDS(handle)                                                                           \
        return (hipsparseStatus_t)__wavecast_library(                                              \
            ((struct __wc_sparse_context *)handle)->stream, "hipsparse." name, bytes, __VA_ARGS__); \
    }
#define WC_H hipsparseHandle_t handle
#define WC_OP hipsparseOperation_t
// Buffers are not needed; programs allocate what these functions say.
#define WC_BUFFER                       \
    WC_NEEDS(handle && bytes)           \
    *bytes = 4;                         \
    WC_DONE

// --- products
WC_FN hipsparseSpMV_bufferSize(WC_H, WC_OP, const void *, hipsparseConstSpMatDescr_t,
                               hipsparseConstDnVecDescr_t, const void *, hipsparseConstDnVecDescr_t,
                               hipDataType, hipsparseSpMVAlg_t, size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseSpMV_preprocess(WC_H, WC_OP, const void *, hipsparseConstSpMatDescr_t,
                               hipsparseConstDnVecDescr_t, const void *, hipsparseConstDnVecDescr_t,
                               hipDataType, hipsparseSpMVAlg_t, void *) {
    WC_NEEDS(handle)
    WC_DONE
}
WC_FN hipsparseSpMV(WC_H, WC_OP op, const void *alpha, hipsparseConstSpMatDescr_t a,
                    hipsparseConstDnVecDescr_t x, const void *beta, hipsparseDnVecDescr_t y,
                    hipDataType compute, hipsparseSpMVAlg_t, void *)
    WC_SPARSE("product", __wc_element_bytes(compute), "iiis" WC_M WC_D "s" WC_D, compute, op, 0,
              alpha, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(x), beta, WC_DENSE_VALUES(y))
WC_FN hipsparseSpMM_bufferSize(WC_H, WC_OP, WC_OP, const void *, hipsparseConstSpMatDescr_t,
                               hipsparseConstDnMatDescr_t, const void *, hipsparseConstDnMatDescr_t,
                               hipDataType, hipsparseSpMMAlg_t, size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseSpMM_preprocess(WC_H, WC_OP, WC_OP, const void *, hipsparseConstSpMatDescr_t,
                               hipsparseConstDnMatDescr_t, const void *, hipsparseConstDnMatDescr_t,
                               hipDataType, hipsparseSpMMAlg_t, void *) {
    WC_NEEDS(handle)
    WC_DONE
}
WC_FN hipsparseSpMM(WC_H, WC_OP op_a, WC_OP op_b, const void *alpha, hipsparseConstSpMatDescr_t a,
                    hipsparseConstDnMatDescr_t b, const void *beta, hipsparseDnMatDescr_t c,
                    hipDataType compute, hipsparseSpMMAlg_t, void *)
    WC_SPARSE("product", __wc_element_bytes(compute), "iiis" WC_M WC_D "s" WC_D, compute, op_a,
              op_b, alpha, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b), beta, WC_DENSE_VALUES(c))
WC_FN hipsparseSDDMM_bufferSize(WC_H, WC_OP, WC_OP, const void *, hipsparseConstDnMatDescr_t,
                                hipsparseConstDnMatDescr_t, const void *,
                                hipsparseConstSpMatDescr_t, hipDataType, hipsparseSDDMMAlg_t,
                                size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseSDDMM_preprocess(WC_H, WC_OP, WC_OP, const void *, hipsparseConstDnMatDescr_t,
                                hipsparseConstDnMatDescr_t, const void *,
                                hipsparseConstSpMatDescr_t, hipDataType, hipsparseSDDMMAlg_t,
                                void *) {
    WC_NEEDS(handle)
    WC_DONE
}
WC_FN hipsparseSDDMM(WC_H, WC_OP op_a, WC_OP op_b, const void *alpha, hipsparseConstDnMatDescr_t a,
                     hipsparseConstDnMatDescr_t b, const void *beta, hipsparseSpMatDescr_t c,
                     hipDataType compute, hipsparseSDDMMAlg_t, void *)
    WC_SPARSE("sampled_product", __wc_element_bytes(compute), "iiis" WC_D WC_D "s" WC_M, compute,
              op_a, op_b, alpha, WC_DENSE_VALUES(a), WC_DENSE_VALUES(b), beta, WC_MATRIX_VALUES(c))
WC_FN hipsparseSpVV_bufferSize(WC_H, WC_OP, hipsparseConstSpVecDescr_t, hipsparseConstDnVecDescr_t,
                               void *, hipDataType, size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseSpVV(WC_H, WC_OP op, hipsparseConstSpVecDescr_t x, hipsparseConstDnVecDescr_t y,
                    void *result, hipDataType compute, void *)
    WC_SPARSE("dot", 0, "ii" WC_V WC_D "r", compute, op, WC_VECTOR_VALUES(x), WC_DENSE_VALUES(y), result)

// --- solutions with a triangle
#define WC_SOLVES(name, OPS, D)                                                                        \
    WC_FN hipsparse##name##_bufferSize(WC_H, OPS, const void *, hipsparseConstSpMatDescr_t, D, D,  \
                                       hipDataType, hipsparse##name##Alg_t,                        \
                                       hipsparse##name##Descr_t, size_t *bytes) {                  \
        WC_BUFFER                                                                                  \
    }                                                                                              \
    WC_FN hipsparse##name##_analysis(WC_H, OPS, const void *, hipsparseConstSpMatDescr_t, D, D,    \
                                     hipDataType, hipsparse##name##Alg_t,                          \
                                     hipsparse##name##Descr_t, void *) {                           \
        WC_NEEDS(handle)                                                                           \
        WC_DONE                                                                                    \
    }
#define WC_TWO_OPS WC_OP, WC_OP
WC_SOLVES(SpSV, WC_OP, hipsparseConstDnVecDescr_t)
WC_SOLVES(SpSM, WC_TWO_OPS, hipsparseConstDnMatDescr_t)
WC_FN hipsparseSpSV_solve(WC_H, WC_OP op, const void *alpha, hipsparseConstSpMatDescr_t a,
                          hipsparseConstDnVecDescr_t x, hipsparseDnVecDescr_t y,
                          hipDataType compute, hipsparseSpSVAlg_t, hipsparseSpSVDescr_t)
    WC_SPARSE("solve", __wc_element_bytes(compute), "iiis" WC_M WC_D WC_D, compute, op, 0, alpha,
              WC_MATRIX_VALUES(a), WC_DENSE_VALUES(x), WC_DENSE_VALUES(y))
WC_FN hipsparseSpSM_solve(WC_H, WC_OP op_a, WC_OP op_b, const void *alpha,
                          hipsparseConstSpMatDescr_t a, hipsparseConstDnMatDescr_t b,
                          hipsparseDnMatDescr_t c, hipDataType compute, hipsparseSpSMAlg_t,
                          hipsparseSpSMDescr_t, void *)
    WC_SPARSE("solve", __wc_element_bytes(compute), "iiis" WC_M WC_D WC_D, compute, op_a, op_b,
              alpha, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b), WC_DENSE_VALUES(c))

// --- products of two sparse matrices: `compute` finds the size, `copy` the result
WC_FN hipsparseSpGEMM_workEstimation(WC_H, WC_OP, WC_OP, const void *, hipsparseConstSpMatDescr_t,
                                     hipsparseConstSpMatDescr_t, const void *,
                                     hipsparseSpMatDescr_t, hipDataType, hipsparseSpGEMMAlg_t,
                                     hipsparseSpGEMMDescr_t, size_t *bytes, void *) {
    WC_BUFFER
}
WC_FN hipsparseSpGEMM_compute(WC_H, WC_OP op_a, WC_OP op_b, const void *alpha,
                              hipsparseConstSpMatDescr_t a, hipsparseConstSpMatDescr_t b,
                              const void *beta, hipsparseSpMatDescr_t c, hipDataType compute,
                              hipsparseSpGEMMAlg_t, hipsparseSpGEMMDescr_t, size_t *bytes,
                              void *buffer) {
    WC_NEEDS(handle && bytes)
    if (!buffer) {
        *bytes = 4;
        WC_DONE
    }
    WC_SPARSE("gemm_size", __wc_element_bytes(compute), "iiiss" WC_M WC_M WC_M "r", compute, op_a,
              op_b, alpha, beta, WC_MATRIX_VALUES(a), WC_MATRIX_VALUES(b), WC_MATRIX_VALUES(c), &c->entries)
}
WC_FN hipsparseSpGEMM_copy(WC_H, WC_OP op_a, WC_OP op_b, const void *alpha,
                           hipsparseConstSpMatDescr_t a, hipsparseConstSpMatDescr_t b,
                           const void *beta, hipsparseSpMatDescr_t c, hipDataType compute,
                           hipsparseSpGEMMAlg_t, hipsparseSpGEMMDescr_t)
    WC_SPARSE("gemm", __wc_element_bytes(compute), "iiiss" WC_M WC_M WC_M, compute, op_a, op_b,
              alpha, beta, WC_MATRIX_VALUES(a), WC_MATRIX_VALUES(b), WC_MATRIX_VALUES(c))

// --- conversions
WC_FN hipsparseSparseToDense_bufferSize(WC_H, hipsparseConstSpMatDescr_t, hipsparseDnMatDescr_t,
                                        hipsparseSparseToDenseAlg_t, size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseSparseToDense(WC_H, hipsparseConstSpMatDescr_t a, hipsparseDnMatDescr_t b,
                             hipsparseSparseToDenseAlg_t, void *)
    WC_SPARSE("to_dense", 0, WC_M WC_D, WC_MATRIX_VALUES(a), WC_DENSE_VALUES(b))
WC_FN hipsparseDenseToSparse_bufferSize(WC_H, hipsparseConstDnMatDescr_t, hipsparseSpMatDescr_t,
                                        hipsparseDenseToSparseAlg_t, size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseDenseToSparse_analysis(WC_H, hipsparseConstDnMatDescr_t a, hipsparseSpMatDescr_t b,
                                      hipsparseDenseToSparseAlg_t, void *)
    WC_SPARSE("to_sparse_size", 0, WC_D WC_M "r", WC_DENSE_VALUES(a), WC_MATRIX_VALUES(b), &b->entries)
WC_FN hipsparseDenseToSparse_convert(WC_H, hipsparseConstDnMatDescr_t a, hipsparseSpMatDescr_t b,
                                     hipsparseDenseToSparseAlg_t, void *)
    WC_SPARSE("to_sparse", 0, WC_D WC_M, WC_DENSE_VALUES(a), WC_MATRIX_VALUES(b))
WC_FN hipsparseCsr2cscEx2_bufferSize(WC_H, int, int, int, const void *, const int *, const int *,
                                     void *, int *, int *, hipDataType, hipsparseAction_t,
                                     hipsparseIndexBase_t, hipsparseCsr2CscAlg_t, size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseCsr2cscEx2(WC_H, int rows, int columns, int entries, const void *values,
                          const int *offsets, const int *indices, void *to_values, int *to_offsets,
                          int *to_indices, hipDataType type, hipsparseAction_t,
                          hipsparseIndexBase_t base, hipsparseCsr2CscAlg_t, void *) {
    struct __wc_sparse from = {rows, columns, entries, (void *)offsets, (void *)indices,
                               (void *)values, HIPSPARSE_FORMAT_CSR, HIPSPARSE_INDEX_32I,
                               HIPSPARSE_INDEX_32I, base, type};
    struct __wc_sparse made = {rows, columns, entries, to_offsets, to_indices, to_values,
                               HIPSPARSE_FORMAT_CSC, HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_32I,
                               base, type}, *to = &made, *a = &from;
    WC_SPARSE("convert", 0, WC_M WC_M, WC_MATRIX_VALUES(a), WC_MATRIX_VALUES(to))
}
#define WC_COUNTS(P, type, T)                                                                      \
    WC_FN hipsparse##P##nnz(WC_H, hipsparseDirection_t direction, int rows, int columns,           \
                            const hipsparseMatDescr_t, const T *a, int leading, int *counts,       \
                            int *total)                                                            \
        WC_SPARSE("count", 0, "illlpiipr", direction, (long long)rows, (long long)columns,         \
                  (long long)leading, a, type, HIPSPARSE_ORDER_COL, counts, total)
WC_COUNTS(S, HIP_R_32F, float)
WC_COUNTS(D, HIP_R_64F, double)
#undef WC_COUNTS

// --- vectors
WC_FN hipsparseAxpby(WC_H, const void *alpha, hipsparseConstSpVecDescr_t x, const void *beta,
                     hipsparseDnVecDescr_t y)
    WC_SPARSE("axpby", __wc_element_bytes((hipDataType)y->type), "iss" WC_V WC_D, y->type, alpha,
              beta, WC_VECTOR_VALUES(x), WC_DENSE_VALUES(y))
WC_FN hipsparseGather(WC_H, hipsparseConstDnVecDescr_t y, hipsparseSpVecDescr_t x)
    WC_SPARSE("gather", 0, WC_D WC_V, WC_DENSE_VALUES(y), WC_VECTOR_VALUES(x))
WC_FN hipsparseScatter(WC_H, hipsparseConstSpVecDescr_t x, hipsparseDnVecDescr_t y)
    WC_SPARSE("scatter", 0, WC_V WC_D, WC_VECTOR_VALUES(x), WC_DENSE_VALUES(y))
WC_FN hipsparseCreateIdentityPermutation(WC_H, int count, int *to)
    WC_SPARSE("identity", 0, "ip", count, to)
WC_FN hipsparseXcsrsort_bufferSizeExt(WC_H, int, int, int, const int *, const int *,
                                      size_t *bytes) {
    WC_BUFFER
}
WC_FN hipsparseXcsrsort(WC_H, int rows, int, int entries, const hipsparseMatDescr_t kind,
                        const int *offsets, int *indices, int *permutation, void *)
    WC_SPARSE("sort", 0, "iiippp", rows, entries, kind->base, offsets, indices, permutation)

// --- incomplete LU of a CSR matrix, in place
#define WC_ILU(P, T, type)                                                                         \
    WC_FN hipsparse##P##csrilu02_bufferSize(WC_H, int, int, const hipsparseMatDescr_t, T *,        \
                                            const int *, const int *, csrilu02Info_t,              \
                                            int *bytes) {                                          \
        WC_BUFFER                                                                                  \
    }                                                                                              \
    WC_FN hipsparse##P##csrilu02_analysis(WC_H, int, int, const hipsparseMatDescr_t, const T *,    \
                                          const int *, const int *, csrilu02Info_t info,           \
                                          hipsparseSolvePolicy_t, void *) {                        \
        WC_NEEDS(handle && info)                                                                   \
        info->pivot = -1;                                                                          \
        WC_DONE                                                                                    \
    }                                                                                              \
    WC_FN hipsparse##P##csrilu02(WC_H, int rows, int entries, const hipsparseMatDescr_t kind,      \
                                 T *values, const int *offsets, const int *indices,                \
                                 csrilu02Info_t info, hipsparseSolvePolicy_t, void *) {            \
        struct __wc_sparse of = {rows, rows, entries, (void *)offsets, (void *)indices, values,    \
                                 HIPSPARSE_FORMAT_CSR, HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_32I,   \
                                 kind->base, type}, *a = &of;                                      \
        WC_SPARSE("ilu", 0, WC_M "r", WC_MATRIX_VALUES(a), &info->pivot)                                  \
    }
WC_ILU(S, float, HIP_R_32F)
WC_ILU(D, double, HIP_R_64F)
#undef WC_ILU
WC_FN hipsparseXcsrilu02_zeroPivot(WC_H, csrilu02Info_t info, int *position) {
    WC_NEEDS(handle && info)
    *position = info->pivot;
    return info->pivot < 0 ? HIPSPARSE_STATUS_SUCCESS : HIPSPARSE_STATUS_ZERO_PIVOT;
}

#undef WC_SPARSE
#undef WC_H
#undef WC_OP
#undef WC_BUFFER
#undef WC_SOLVES
#undef WC_TWO_OPS
