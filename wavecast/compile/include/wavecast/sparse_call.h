// How the headers of hipSPARSE and rocSPARSE describe matrices to the functions that compute.
#pragma once

#include <wavecast/library_call.h>
#include <wavecast/library_types.h>

// Offsets are of rows in CSR and BSR, of columns in CSC, and row indices in COO; there are none in
// ELL. Sizes count elements, `entries` values or, in BSR, blocks.
enum { WC_SPARSE_CSR = 1, WC_SPARSE_CSC = 2, WC_SPARSE_COO = 3, WC_SPARSE_BSR = 4, WC_SPARSE_ELL = 5 };
struct __wc_sparse {
    int64_t rows, columns, entries;
    void *offsets, *indices, *values;
    int format, offset_type, index_type, base, type, fill, diagonal;
    int block_rows, block_columns, by_column;  // of BSR
};
struct __wc_dense {
    int64_t rows, columns, leading;
    void *values;
    int type, order;
};
struct __wc_sparse_vector {
    int64_t size, entries;
    void *indices, *values;
    int index_type, base, type;
};
struct __wc_sparse_context {
    hipStream_t stream;
    int pointer_mode;
};
struct __wc_matrix_kind {
    int type, base, fill, diagonal;
};
struct __wc_sparse_state {
    int pivot;  // the first zero pivot, -1: none
};

// How they are passed, and the letters of that.
#define WC_M "lllpppiiiiiiiiii"
#define WC_MATRIX_VALUES(a)                                                                             \
    (long long)a->rows, (long long)a->columns, (long long)a->entries, a->offsets, a->indices,    \
        a->values, a->format, a->offset_type, a->index_type, a->base, a->type, a->fill,          \
        a->diagonal, a->block_rows, a->block_columns, a->by_column
#define WC_D "lllpii"
#define WC_DENSE_VALUES(a) \
    (long long)a->rows, (long long)a->columns, (long long)a->leading, a->values, a->type, a->order
#define WC_V "lppiii"
#define WC_VECTOR_VALUES(a) (long long)a->entries, a->indices, a->values, a->index_type, a->base, a->type
WC_LIBRARY_FN unsigned __wc_element_bytes(int type) {
    return type == HIP_C_64F ? 16 : type == HIP_R_64F || type == HIP_C_32F ? 8 : 4;
}
