// hipBLASLt: matrix products with an epilogue, computed on the host (docs/hip.md, "Libraries").
#pragma once

#include <hipblas/hipblas.h>

typedef void *hipblasLtHandle_t;
typedef hipblasBfloat16 hipblasLtBfloat16;
typedef hipblasHalf hipblasLtHalf;
typedef float hipblasLtFloat;

typedef enum hipblasLtEpilogue_t {
    HIPBLASLT_EPILOGUE_DEFAULT = 1, HIPBLASLT_EPILOGUE_RELU = 2, HIPBLASLT_EPILOGUE_BIAS = 4,
    HIPBLASLT_EPILOGUE_RELU_BIAS = 6, HIPBLASLT_EPILOGUE_GELU = 32,
    HIPBLASLT_EPILOGUE_GELU_BIAS = 36, HIPBLASLT_EPILOGUE_RELU_AUX = 130,
    HIPBLASLT_EPILOGUE_RELU_AUX_BIAS = 134, HIPBLASLT_EPILOGUE_GELU_AUX = 160,
    HIPBLASLT_EPILOGUE_GELU_AUX_BIAS = 164
} hipblasLtEpilogue_t;
typedef enum hipblasLtOrder_t { HIPBLASLT_ORDER_COL, HIPBLASLT_ORDER_ROW } hipblasLtOrder_t;
typedef enum hipblasLtPointerMode_t {
    HIPBLASLT_POINTER_MODE_HOST, HIPBLASLT_POINTER_MODE_DEVICE
} hipblasLtPointerMode_t;
typedef enum hipblasLtMatrixLayoutAttribute_t {
    HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
    HIPBLASLT_MATRIX_LAYOUT_TYPE, HIPBLASLT_MATRIX_LAYOUT_ORDER, HIPBLASLT_MATRIX_LAYOUT_ROWS,
    HIPBLASLT_MATRIX_LAYOUT_COLS, HIPBLASLT_MATRIX_LAYOUT_LD
} hipblasLtMatrixLayoutAttribute_t;
typedef enum hipblasLtMatmulDescAttributes_t {
    HIPBLASLT_MATMUL_DESC_TRANSA, HIPBLASLT_MATMUL_DESC_TRANSB, HIPBLASLT_MATMUL_DESC_EPILOGUE,
    HIPBLASLT_MATMUL_DESC_BIAS_POINTER, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
    HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER, HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER,
    HIPBLASLT_MATMUL_DESC_C_SCALE_POINTER, HIPBLASLT_MATMUL_DESC_D_SCALE_POINTER,
    HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
    HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
    HIPBLASLT_MATMUL_DESC_POINTER_MODE, HIPBLASLT_MATMUL_DESC_AMAX_D_POINTER,
    HIPBLASLT_MATMUL_DESC_FAST_ACCUM, __WC_MATMUL_ATTRIBUTES
} hipblasLtMatmulDescAttributes_t;
typedef enum hipblasLtMatmulPreferenceAttributes_t {
    HIPBLASLT_MATMUL_PREF_SEARCH_MODE, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
} hipblasLtMatmulPreferenceAttributes_t;

struct __wc_layout {
    int type, order, batch;
    int64_t rows, columns, leading, stride;
};
struct __wc_matmul {
    hipblasComputeType_t compute;
    hipDataType scale_type;
    long long attributes[__WC_MATMUL_ATTRIBUTES];
};
typedef struct __wc_layout *hipblasLtMatrixLayout_t;
typedef struct __wc_matmul *hipblasLtMatmulDesc_t;
typedef struct __wc_matmul_preference {
    size_t workspace_bytes;
} *hipblasLtMatmulPreference_t;
typedef struct hipblasLtMatmulAlgo_t {
    uint8_t data[16];
    size_t max_workspace_bytes;
} hipblasLtMatmulAlgo_t;
typedef struct hipblasLtMatmulHeuristicResult_t {
    hipblasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    hipblasStatus_t state;
    float wavesCount;
    int reserved[4];
} hipblasLtMatmulHeuristicResult_t;

#define WC_FN WC_LIBRARY_FN hipblasStatus_t
#define WC_NEEDS(condition) if (!(condition)) return HIPBLAS_STATUS_INVALID_VALUE;
#define WC_DONE return HIPBLAS_STATUS_SUCCESS;
#define WC_MADE(to)                                     \
    *(void **)(to) = calloc(1, sizeof **(to));          \
    if (!*(to)) return HIPBLAS_STATUS_ALLOC_FAILED;
#define WC_FREES(name, type)                          \
    WC_FN hipblasLt##name##Destroy(const type what) { \
        free((void *)what);                           \
        WC_DONE                                       \
    }

WC_FN hipblasLtCreate(hipblasLtHandle_t *handle) { return hipblasCreate(handle); }
WC_FN hipblasLtDestroy(const hipblasLtHandle_t handle) { return hipblasDestroy(handle); }
WC_FREES(MatrixLayout, hipblasLtMatrixLayout_t)
WC_FREES(MatmulDesc, hipblasLtMatmulDesc_t)
WC_FREES(MatmulPreference, hipblasLtMatmulPreference_t)
WC_FN hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t *layout, hipDataType type, uint64_t rows,
                                  uint64_t columns, int64_t leading) {
    WC_MADE(layout)
    struct __wc_layout made = {type, HIPBLASLT_ORDER_COL, 1, (int64_t)rows, (int64_t)columns,
                               leading, 0};
    **layout = made;
    WC_DONE
}
WC_FN hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t layout,
                                        hipblasLtMatrixLayoutAttribute_t attribute,
                                        const void *value, size_t bytes) {
    WC_NEEDS(layout && value && (bytes == 4 || bytes == 8))
    long long number = bytes == 4 ? *(const int *)value : *(const long long *)value;
    switch (attribute) {
        case HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT: layout->batch = (int)number; break;
        case HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: layout->stride = number; break;
        case HIPBLASLT_MATRIX_LAYOUT_TYPE: layout->type = (int)number; break;
        case HIPBLASLT_MATRIX_LAYOUT_ORDER: layout->order = (int)number; break;
        case HIPBLASLT_MATRIX_LAYOUT_ROWS: layout->rows = number; break;
        case HIPBLASLT_MATRIX_LAYOUT_COLS: layout->columns = number; break;
        case HIPBLASLT_MATRIX_LAYOUT_LD: layout->leading = number; break;
    }
    WC_DONE
}
WC_FN hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t *matmul, hipblasComputeType_t compute,
                                hipDataType scale_type) {
    WC_MADE(matmul)
    (*matmul)->compute = compute, (*matmul)->scale_type = scale_type;
    (*matmul)->attributes[HIPBLASLT_MATMUL_DESC_TRANSA] = HIPBLAS_OP_N;
    (*matmul)->attributes[HIPBLASLT_MATMUL_DESC_TRANSB] = HIPBLAS_OP_N;
    (*matmul)->attributes[HIPBLASLT_MATMUL_DESC_EPILOGUE] = HIPBLASLT_EPILOGUE_DEFAULT;
    (*matmul)->attributes[HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = -1;
    WC_DONE
}
WC_FN hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t matmul,
                                      hipblasLtMatmulDescAttributes_t attribute,
                                      const void *value, size_t bytes) {
    WC_NEEDS(matmul && value && bytes <= 8 && attribute < __WC_MATMUL_ATTRIBUTES)
    matmul->attributes[attribute] = bytes == 4 ? *(const int *)value : 0;
    if (bytes != 4) __builtin_memcpy(&matmul->attributes[attribute], value, bytes);
    WC_DONE
}
WC_FN hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t *preference) {
    WC_MADE(preference)
    WC_DONE
}
WC_FN hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t preference,
                                            hipblasLtMatmulPreferenceAttributes_t,
                                            const void *value, size_t) {
    WC_NEEDS(preference && value)
    WC_DONE
}
// There is one algorithm, which needs no workspace.
WC_FN hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t matmul,
                                      hipblasLtMatrixLayout_t a, hipblasLtMatrixLayout_t b,
                                      hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d,
                                      hipblasLtMatmulPreference_t, int wanted,
                                      hipblasLtMatmulHeuristicResult_t *results, int *found) {
    WC_NEEDS(handle && matmul && a && b && c && d && results && found && wanted > 0)
    *found = 1;
    __builtin_memset(results, 0, sizeof *results);
    WC_DONE
}
WC_FN hipblasLtMatmul(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t matmul, const void *alpha,
                      const void *a, hipblasLtMatrixLayout_t a_layout, const void *b,
                      hipblasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                      hipblasLtMatrixLayout_t c_layout, void *d, hipblasLtMatrixLayout_t d_layout,
                      const hipblasLtMatmulAlgo_t *, void *, size_t, hipStream_t stream) {
    WC_NEEDS(handle && matmul && a_layout && b_layout && c_layout && d_layout)
    const long long *set = matmul->attributes;
#define WC_L "pilllil"
#define WC_LAYOUT(pointer, of)                                                                   \
    pointer, of->type, (long long)of->rows, (long long)of->columns, (long long)of->leading,      \
        of->order, (long long)of->stride
#define WC_POINTER(name) (void *)set[HIPBLASLT_MATMUL_DESC_##name]
    return (hipblasStatus_t)__wavecast_library(
        stream, "hipblas.matmul", __wc_scalar_bytes(matmul->scale_type),
        "iiiiss" WC_L WC_L WC_L WC_L "ipippppp", matmul->scale_type,
        (int)set[HIPBLASLT_MATMUL_DESC_TRANSA], (int)set[HIPBLASLT_MATMUL_DESC_TRANSB],
        a_layout->batch, alpha, beta, WC_LAYOUT(a, a_layout), WC_LAYOUT(b, b_layout),
        WC_LAYOUT(c, c_layout), WC_LAYOUT(d, d_layout), (int)set[HIPBLASLT_MATMUL_DESC_EPILOGUE],
        WC_POINTER(BIAS_POINTER), (int)set[HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE],
        WC_POINTER(A_SCALE_POINTER), WC_POINTER(B_SCALE_POINTER), WC_POINTER(C_SCALE_POINTER),
        WC_POINTER(D_SCALE_POINTER), WC_POINTER(AMAX_D_POINTER));
#undef WC_L
#undef WC_LAYOUT
#undef WC_POINTER
}
#undef WC_FN
#undef WC_NEEDS
#undef WC_DONE
#undef WC_MADE
#undef WC_FREES
