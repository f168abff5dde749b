// hipSPARSE. The functions are computed on the host (docs/hip.md, "Libraries").
#pragma once

#include <hip/hip_complex.h>
#include <wavecast/sparse_call.h>

#define hipsparseVersionMajor 4
#define hipsparseVersionMinor 0

typedef enum hipsparseStatus_t {
    HIPSPARSE_STATUS_SUCCESS = 0, HIPSPARSE_STATUS_NOT_INITIALIZED = 1,
    HIPSPARSE_STATUS_ALLOC_FAILED = 2, HIPSPARSE_STATUS_INVALID_VALUE = 3,
    HIPSPARSE_STATUS_ARCH_MISMATCH = 4, HIPSPARSE_STATUS_MAPPING_ERROR = 5,
    HIPSPARSE_STATUS_EXECUTION_FAILED = 6, HIPSPARSE_STATUS_INTERNAL_ERROR = 7,
    HIPSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8, HIPSPARSE_STATUS_ZERO_PIVOT = 9,
    HIPSPARSE_STATUS_NOT_SUPPORTED = 10, HIPSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11
} hipsparseStatus_t;
typedef enum {
    HIPSPARSE_OPERATION_NON_TRANSPOSE, HIPSPARSE_OPERATION_TRANSPOSE,
    HIPSPARSE_OPERATION_CONJUGATE_TRANSPOSE
} hipsparseOperation_t;
typedef enum { HIPSPARSE_POINTER_MODE_HOST, HIPSPARSE_POINTER_MODE_DEVICE } hipsparsePointerMode_t;
typedef enum { HIPSPARSE_ACTION_SYMBOLIC, HIPSPARSE_ACTION_NUMERIC } hipsparseAction_t;
typedef enum {
    HIPSPARSE_MATRIX_TYPE_GENERAL, HIPSPARSE_MATRIX_TYPE_SYMMETRIC,
    HIPSPARSE_MATRIX_TYPE_HERMITIAN, HIPSPARSE_MATRIX_TYPE_TRIANGULAR
} hipsparseMatrixType_t;
typedef enum { HIPSPARSE_FILL_MODE_LOWER, HIPSPARSE_FILL_MODE_UPPER } hipsparseFillMode_t;
typedef enum { HIPSPARSE_DIAG_TYPE_NON_UNIT, HIPSPARSE_DIAG_TYPE_UNIT } hipsparseDiagType_t;
typedef enum { HIPSPARSE_INDEX_BASE_ZERO, HIPSPARSE_INDEX_BASE_ONE } hipsparseIndexBase_t;
typedef enum {
    HIPSPARSE_INDEX_16U = 1, HIPSPARSE_INDEX_32I = 2, HIPSPARSE_INDEX_64I = 3
} hipsparseIndexType_t;
typedef enum {
    HIPSPARSE_ORDER_ROW = 0, HIPSPARSE_ORDER_COL = 1, HIPSPARSE_ORDER_COLUMN = 1
} hipsparseOrder_t;
typedef enum { HIPSPARSE_DIRECTION_ROW, HIPSPARSE_DIRECTION_COLUMN } hipsparseDirection_t;
typedef enum {
    HIPSPARSE_SOLVE_POLICY_NO_LEVEL, HIPSPARSE_SOLVE_POLICY_USE_LEVEL
} hipsparseSolvePolicy_t;
typedef enum {
    HIPSPARSE_FORMAT_CSR = 1, HIPSPARSE_FORMAT_CSC = 2, HIPSPARSE_FORMAT_COO = 3
} hipsparseFormat_t;
typedef enum { HIPSPARSE_SPMAT_FILL_MODE, HIPSPARSE_SPMAT_DIAG_TYPE } hipsparseSpMatAttribute_t;
typedef enum {
    HIPSPARSE_SPMV_ALG_DEFAULT, HIPSPARSE_MV_ALG_DEFAULT = 0, HIPSPARSE_COOMV_ALG,
    HIPSPARSE_SPMV_COO_ALG1 = 1, HIPSPARSE_CSRMV_ALG1, HIPSPARSE_SPMV_CSR_ALG1 = 2,
    HIPSPARSE_CSRMV_ALG2, HIPSPARSE_SPMV_CSR_ALG2 = 3, HIPSPARSE_SPMV_COO_ALG2
} hipsparseSpMVAlg_t;
typedef enum {
    HIPSPARSE_SPMM_ALG_DEFAULT, HIPSPARSE_SPMM_COO_ALG1, HIPSPARSE_SPMM_COO_ALG2,
    HIPSPARSE_SPMM_COO_ALG3, HIPSPARSE_SPMM_CSR_ALG1, HIPSPARSE_SPMM_COO_ALG4,
    HIPSPARSE_SPMM_CSR_ALG2, HIPSPARSE_SPMM_CSR_ALG3
} hipsparseSpMMAlg_t;
typedef enum { HIPSPARSE_SPARSETODENSE_ALG_DEFAULT } hipsparseSparseToDenseAlg_t;
typedef enum { HIPSPARSE_DENSETOSPARSE_ALG_DEFAULT } hipsparseDenseToSparseAlg_t;
typedef enum { HIPSPARSE_SDDMM_ALG_DEFAULT } hipsparseSDDMMAlg_t;
typedef enum { HIPSPARSE_SPSV_ALG_DEFAULT } hipsparseSpSVAlg_t;
typedef enum { HIPSPARSE_SPSM_ALG_DEFAULT } hipsparseSpSMAlg_t;
typedef enum {
    HIPSPARSE_SPGEMM_DEFAULT, HIPSPARSE_SPGEMM_CSR_ALG_DETERMINISTIC,
    HIPSPARSE_SPGEMM_CSR_ALG_NONDETERMINISTIC, HIPSPARSE_SPGEMM_ALG1, HIPSPARSE_SPGEMM_ALG2,
    HIPSPARSE_SPGEMM_ALG3
} hipsparseSpGEMMAlg_t;
typedef enum {
    HIPSPARSE_CSR2CSC_ALG_DEFAULT, HIPSPARSE_CSR2CSC_ALG1, HIPSPARSE_CSR2CSC_ALG2
} hipsparseCsr2CscAlg_t;

typedef void *hipsparseHandle_t;
typedef struct __wc_matrix_kind *hipsparseMatDescr_t;
typedef struct __wc_sparse *hipsparseSpMatDescr_t;
typedef const struct __wc_sparse *hipsparseConstSpMatDescr_t;
typedef struct __wc_dense *hipsparseDnMatDescr_t, *hipsparseDnVecDescr_t;
typedef const struct __wc_dense *hipsparseConstDnMatDescr_t, *hipsparseConstDnVecDescr_t;
typedef struct __wc_sparse_vector *hipsparseSpVecDescr_t;
typedef const struct __wc_sparse_vector *hipsparseConstSpVecDescr_t;
typedef struct __wc_sparse_state *hipsparseSpSVDescr_t, *hipsparseSpSMDescr_t,
    *hipsparseSpGEMMDescr_t, *csrilu02Info_t;

#define WC_FN WC_LIBRARY_FN hipsparseStatus_t
#define WC_NEEDS(pointer) if (!(pointer)) return HIPSPARSE_STATUS_INVALID_VALUE;
#define WC_DONE return HIPSPARSE_STATUS_SUCCESS;
#define WC_NEW(to)                                      \
    WC_NEEDS(to)                                        \
    *(void **)(to) = calloc(1, sizeof **(to));          \
    if (!*(to)) return HIPSPARSE_STATUS_ALLOC_FAILED;
#define WC_DESTROYS(name, type)              \
    WC_FN hipsparse##name(type descriptor) { \
        free((void *)descriptor);            \
        WC_DONE                              \
    }
#define WC_CREATES(name, type)                           \
    WC_FN hipsparseCreate##name(type *descriptor) {      \
        WC_NEW(descriptor)                               \
        WC_DONE                                          \
    }                                                    \
    WC_DESTROYS(Destroy##name, type)
#define WC_STATES(name, type)                                        \
    WC_FN hipsparse##name##_createDescr(type *descriptor) {          \
        WC_NEW(descriptor)                                           \
        WC_DONE                                                      \
    }                                                                \
    WC_DESTROYS(name##_destroyDescr, type)

// --- handles and descriptors
WC_FN hipsparseCreate(hipsparseHandle_t *handle) {
    WC_NEEDS(handle)
    *handle = calloc(1, sizeof(struct __wc_sparse_context));
    return *handle ? HIPSPARSE_STATUS_SUCCESS : HIPSPARSE_STATUS_ALLOC_FAILED;
}
WC_DESTROYS(Destroy, hipsparseHandle_t)
WC_FN hipsparseSetStream(hipsparseHandle_t handle, hipStream_t stream) {
    WC_NEEDS(handle)
    ((struct __wc_sparse_context *)handle)->stream = stream;
    WC_DONE
}
WC_FN hipsparseSetPointerMode(hipsparseHandle_t handle, hipsparsePointerMode_t mode) {
    WC_NEEDS(handle)
    ((struct __wc_sparse_context *)handle)->pointer_mode = mode;
    WC_DONE
}
WC_CREATES(MatDescr, hipsparseMatDescr_t)
WC_CREATES(Csrilu02Info, csrilu02Info_t)
WC_STATES(SpSV, hipsparseSpSVDescr_t)
WC_STATES(SpSM, hipsparseSpSMDescr_t)
WC_STATES(SpGEMM, hipsparseSpGEMMDescr_t)
WC_DESTROYS(DestroySpMat, hipsparseConstSpMatDescr_t)
WC_DESTROYS(DestroyDnMat, hipsparseConstDnMatDescr_t)
WC_DESTROYS(DestroyDnVec, hipsparseConstDnVecDescr_t)
WC_DESTROYS(DestroySpVec, hipsparseConstSpVecDescr_t)
#define WC_KIND(name, T, field)                                               \
    WC_FN hipsparseSetMat##name(hipsparseMatDescr_t descriptor, T value) {    \
        WC_NEEDS(descriptor)                                                  \
        descriptor->field = value;                                            \
        WC_DONE                                                               \
    }
WC_KIND(Type, hipsparseMatrixType_t, type)
WC_KIND(IndexBase, hipsparseIndexBase_t, base)
WC_KIND(FillMode, hipsparseFillMode_t, fill)
WC_KIND(DiagType, hipsparseDiagType_t, diagonal)
#undef WC_KIND

WC_FN __wc_sparse_matrix(hipsparseSpMatDescr_t *to, int format, int64_t rows, int64_t columns,
                         int64_t entries, void *offsets, void *indices, void *values,
                         int offset_type, int index_type, int base, int type) {
    WC_NEEDS(rows >= 0 && columns >= 0 && entries >= 0)
    WC_NEW(to)
    struct __wc_sparse made = {rows, columns, entries, offsets, indices, values, format,
                               offset_type, index_type, base, type};
    **to = made;
    WC_DONE
}
#define WC_COMPRESSED(name, first, second)                                                         \
    WC_FN hipsparseCreate##name(hipsparseSpMatDescr_t *matrix, int64_t rows, int64_t columns,      \
                                int64_t entries, void *offsets, void *indices, void *values,       \
                                hipsparseIndexType_t offset_type, hipsparseIndexType_t index_type, \
                                hipsparseIndexBase_t base, hipDataType type) {                     \
        return __wc_sparse_matrix(matrix, HIPSPARSE_FORMAT_##second, rows, columns, entries,       \
                                  offsets, indices, values, offset_type, index_type, base, type);  \
    }                                                                                              \
    WC_FN hipsparse##first##SetPointers(hipsparseSpMatDescr_t matrix, void *offsets,               \
                                        void *indices, void *values) {                             \
        WC_NEEDS(matrix)                                                                           \
        matrix->offsets = offsets, matrix->indices = indices, matrix->values = values;             \
        WC_DONE                                                                                    \
    }
WC_COMPRESSED(Csr, Csr, CSR)
WC_COMPRESSED(Csc, Csc, CSC)
#undef WC_COMPRESSED
WC_FN hipsparseCreateCoo(hipsparseSpMatDescr_t *matrix, int64_t rows, int64_t columns,
                         int64_t entries, void *row_indices, void *indices, void *values,
                         hipsparseIndexType_t index_type, hipsparseIndexBase_t base,
                         hipDataType type) {
    return __wc_sparse_matrix(matrix, HIPSPARSE_FORMAT_COO, rows, columns, entries, row_indices,
                              indices, values, index_type, index_type, base, type);
}
WC_FN hipsparseSpMatSetAttribute(hipsparseSpMatDescr_t matrix, hipsparseSpMatAttribute_t attribute,
                                 const void *value, size_t bytes) {
    WC_NEEDS(matrix && value && bytes == sizeof(int))
    *(attribute == HIPSPARSE_SPMAT_FILL_MODE ? &matrix->fill : &matrix->diagonal) = *(int *)value;
    WC_DONE
}
WC_FN hipsparseSpMatGetSize(hipsparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns,
                            int64_t *entries) {
    WC_NEEDS(matrix)
    *rows = matrix->rows, *columns = matrix->columns, *entries = matrix->entries;
    WC_DONE
}
WC_FN hipsparseSpMatSetValues(hipsparseSpMatDescr_t matrix, void *values) {
    WC_NEEDS(matrix)
    matrix->values = values;
    WC_DONE
}
WC_FN hipsparseCreateDnMat(hipsparseDnMatDescr_t *matrix, int64_t rows, int64_t columns,
                           int64_t leading, void *values, hipDataType type,
                           hipsparseOrder_t order) {
    WC_NEW(matrix)
    struct __wc_dense made = {rows, columns, leading, values, type, order};
    **matrix = made;
    WC_DONE
}
WC_FN hipsparseCreateDnVec(hipsparseDnVecDescr_t *vector, int64_t size, void *values,
                           hipDataType type) {
    return hipsparseCreateDnMat(vector, size, 1, size, values, type, HIPSPARSE_ORDER_COL);
}
WC_FN hipsparseDnVecSetValues(hipsparseDnVecDescr_t vector, void *values) {
    WC_NEEDS(vector)
    vector->values = values;
    WC_DONE
}
WC_FN hipsparseDnMatSetValues(hipsparseDnMatDescr_t matrix, void *values) {
    return hipsparseDnVecSetValues(matrix, values);
}
WC_FN hipsparseCreateSpVec(hipsparseSpVecDescr_t *vector, int64_t size, int64_t entries,
                           void *indices, void *values, hipsparseIndexType_t index_type,
                           hipsparseIndexBase_t base, hipDataType type) {
    WC_NEW(vector)
    struct __wc_sparse_vector made = {size, entries, indices, values, index_type, base, type};
    **vector = made;
    WC_DONE
}
WC_LIBRARY_FN const char *hipsparseGetErrorName(hipsparseStatus_t status) {
    static const char *const names[] = {
        "HIPSPARSE_STATUS_SUCCESS", "HIPSPARSE_STATUS_NOT_INITIALIZED",
        "HIPSPARSE_STATUS_ALLOC_FAILED", "HIPSPARSE_STATUS_INVALID_VALUE",
        "HIPSPARSE_STATUS_ARCH_MISMATCH", "HIPSPARSE_STATUS_MAPPING_ERROR",
        "HIPSPARSE_STATUS_EXECUTION_FAILED", "HIPSPARSE_STATUS_INTERNAL_ERROR",
        "HIPSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "HIPSPARSE_STATUS_ZERO_PIVOT",
        "HIPSPARSE_STATUS_NOT_SUPPORTED", "HIPSPARSE_STATUS_INSUFFICIENT_RESOURCES",
    };
    return (unsigned)status < 12 ? names[status] : "unknown status";
}
WC_LIBRARY_FN const char *hipsparseGetErrorString(hipsparseStatus_t status) {
    return hipsparseGetErrorName(status);
}

#include <hipsparse/operations.h>

#undef WC_FN
#undef WC_NEEDS
#undef WC_DONE
#undef WC_NEW
#undef WC_DESTROYS
#undef WC_CREATES
#undef WC_STATES
