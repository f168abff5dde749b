// hipBLAS. The functions are computed on the host (docs/hip.md, "Libraries").
#pragma once

#include <hip/hip_complex.h>
#include <wavecast/library_call.h>
#include <wavecast/library_types.h>

#define hipblasVersionMajor 3
#define hipblasVersionMinor 0
#define hipblasVersionPatch 0

typedef void *hipblasHandle_t;
typedef int64_t hipblasStride;
#ifdef __cplusplus
#include <hip/hip_fp16.h>
typedef __half hipblasHalf;
#else
typedef uint16_t hipblasHalf;
#endif
typedef hipFloatComplex hipblasComplex;
typedef hipDoubleComplex hipblasDoubleComplex;
typedef struct hipblasBfloat16 {
    uint16_t data;
} hipblasBfloat16;

typedef enum hipblasStatus_t {
    HIPBLAS_STATUS_SUCCESS = 0, HIPBLAS_STATUS_NOT_INITIALIZED = 1, HIPBLAS_STATUS_ALLOC_FAILED = 2,
    HIPBLAS_STATUS_INVALID_VALUE = 3, HIPBLAS_STATUS_MAPPING_ERROR = 4,
    HIPBLAS_STATUS_EXECUTION_FAILED = 5, HIPBLAS_STATUS_INTERNAL_ERROR = 6,
    HIPBLAS_STATUS_NOT_SUPPORTED = 7, HIPBLAS_STATUS_ARCH_MISMATCH = 8,
    HIPBLAS_STATUS_HANDLE_IS_NULLPTR = 9, HIPBLAS_STATUS_INVALID_ENUM = 10,
    HIPBLAS_STATUS_UNKNOWN = 11
} hipblasStatus_t;
typedef enum hipblasOperation_t {
    HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112, HIPBLAS_OP_C = 113
} hipblasOperation_t;
typedef enum hipblasPointerMode_t {
    HIPBLAS_POINTER_MODE_HOST, HIPBLAS_POINTER_MODE_DEVICE
} hipblasPointerMode_t;
typedef enum hipblasFillMode_t {
    HIPBLAS_FILL_MODE_UPPER = 121, HIPBLAS_FILL_MODE_LOWER = 122, HIPBLAS_FILL_MODE_FULL = 123
} hipblasFillMode_t;
typedef enum hipblasDiagType_t {
    HIPBLAS_DIAG_NON_UNIT = 131, HIPBLAS_DIAG_UNIT = 132
} hipblasDiagType_t;
typedef enum hipblasSideMode_t {
    HIPBLAS_SIDE_LEFT = 141, HIPBLAS_SIDE_RIGHT = 142, HIPBLAS_SIDE_BOTH = 143
} hipblasSideMode_t;
typedef enum hipblasComputeType_t {
    HIPBLAS_COMPUTE_16F, HIPBLAS_COMPUTE_16F_PEDANTIC, HIPBLAS_COMPUTE_32F,
    HIPBLAS_COMPUTE_32F_PEDANTIC, HIPBLAS_COMPUTE_32F_FAST_16F, HIPBLAS_COMPUTE_32F_FAST_16BF,
    HIPBLAS_COMPUTE_32F_FAST_TF32, HIPBLAS_COMPUTE_64F, HIPBLAS_COMPUTE_64F_PEDANTIC,
    HIPBLAS_COMPUTE_32I, HIPBLAS_COMPUTE_32I_PEDANTIC
} hipblasComputeType_t;
#ifdef HIPBLAS_V2
typedef hipDataType hipblasDatatype_t;
#define HIPBLAS_R_16F HIP_R_16F
#define HIPBLAS_R_32F HIP_R_32F
#define HIPBLAS_R_64F HIP_R_64F
#define HIPBLAS_C_32F HIP_C_32F
#define HIPBLAS_C_64F HIP_C_64F
#define HIPBLAS_R_8I HIP_R_8I
#define HIPBLAS_R_8U HIP_R_8U
#define HIPBLAS_R_32I HIP_R_32I
#define HIPBLAS_R_32U HIP_R_32U
#define HIPBLAS_R_16B HIP_R_16BF
#else  // the types of hipBLAS before version 3
typedef enum hipblasDatatype_t {
    HIPBLAS_R_16F = 150, HIPBLAS_R_32F = 151, HIPBLAS_R_64F = 152, HIPBLAS_C_32F = 154,
    HIPBLAS_C_64F = 155, HIPBLAS_R_8I = 160, HIPBLAS_R_8U = 161, HIPBLAS_R_32I = 162,
    HIPBLAS_R_32U = 163, HIPBLAS_R_16B = 168
} hipblasDatatype_t;
#endif
typedef enum hipblasGemmAlgo_t { HIPBLAS_GEMM_DEFAULT = 160 } hipblasGemmAlgo_t;
typedef enum hipblasAtomicsMode_t {
    HIPBLAS_ATOMICS_NOT_ALLOWED, HIPBLAS_ATOMICS_ALLOWED
} hipblasAtomicsMode_t;
typedef enum hipblasMath_t {
    HIPBLAS_DEFAULT_MATH, HIPBLAS_PEDANTIC_MATH, HIPBLAS_TF32_TENSOR_OP_MATH,
    HIPBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, HIPBLAS_TENSOR_OP_MATH,
    HIPBLAS_XF32_XDL_MATH
} hipblasMath_t;

#define WC_FN WC_LIBRARY_FN hipblasStatus_t

struct __wc_blas_context {
    hipStream_t stream;
    hipblasPointerMode_t pointer_mode;
    hipblasMath_t math_mode;
    hipblasAtomicsMode_t atomics_mode;
};
#define WC_CONTEXT ((struct __wc_blas_context *)handle)
#define WC_NEEDS_HANDLE if (!handle) return HIPBLAS_STATUS_NOT_INITIALIZED;

// --- handles
WC_FN hipblasCreate(hipblasHandle_t *handle) {
    if (!handle) return HIPBLAS_STATUS_HANDLE_IS_NULLPTR;
    *handle = calloc(1, sizeof(struct __wc_blas_context));
    return *handle ? HIPBLAS_STATUS_SUCCESS : HIPBLAS_STATUS_ALLOC_FAILED;
}
WC_FN hipblasDestroy(hipblasHandle_t handle) {
    WC_NEEDS_HANDLE
    free(handle);
    return HIPBLAS_STATUS_SUCCESS;
}
#define WC_SETTING(name, type, field, condition)                            \
    WC_FN hipblasSet##name(hipblasHandle_t handle, type value) {            \
        WC_NEEDS_HANDLE                                                     \
        if (!(condition)) return HIPBLAS_STATUS_INVALID_ENUM;               \
        WC_CONTEXT->field = value;                                          \
        return HIPBLAS_STATUS_SUCCESS;                                      \
    }                                                                       \
    WC_FN hipblasGet##name(hipblasHandle_t handle, type *value) {           \
        WC_NEEDS_HANDLE                                                     \
        if (!value) return HIPBLAS_STATUS_INVALID_VALUE;                    \
        *value = WC_CONTEXT->field;                                         \
        return HIPBLAS_STATUS_SUCCESS;                                      \
    }
WC_SETTING(Stream, hipStream_t, stream, 1)
WC_SETTING(PointerMode, hipblasPointerMode_t, pointer_mode, (unsigned)value <= 1)
WC_SETTING(MathMode, hipblasMath_t, math_mode, (unsigned)value <= 5)
WC_SETTING(AtomicsMode, hipblasAtomicsMode_t, atomics_mode, (unsigned)value <= 1)
#undef WC_SETTING

WC_LIBRARY_FN const char *hipblasStatusToString(hipblasStatus_t status) {
    static const char *const names[] = {
        "HIPBLAS_STATUS_SUCCESS", "HIPBLAS_STATUS_NOT_INITIALIZED", "HIPBLAS_STATUS_ALLOC_FAILED",
        "HIPBLAS_STATUS_INVALID_VALUE", "HIPBLAS_STATUS_MAPPING_ERROR",
        "HIPBLAS_STATUS_EXECUTION_FAILED", "HIPBLAS_STATUS_INTERNAL_ERROR",
        "HIPBLAS_STATUS_NOT_SUPPORTED", "HIPBLAS_STATUS_ARCH_MISMATCH",
        "HIPBLAS_STATUS_HANDLE_IS_NULLPTR", "HIPBLAS_STATUS_INVALID_ENUM",
    };
    return (unsigned)status < 11 ? names[status] : "HIPBLAS_STATUS_UNKNOWN";
}

// --- vectors and matrices between host and device
WC_FN __wc_blas_copy(int rows, int columns, int bytes, const void *from, int from_rows, void *to,
                     int to_rows, hipMemcpyKind kind) {
    if (rows < 0 || columns < 0 || bytes <= 0 || from_rows <= 0 || to_rows <= 0 || !from || !to)
        return HIPBLAS_STATUS_INVALID_VALUE;
    hipError_t error = hipMemcpy2D(to, (size_t)to_rows * bytes, from, (size_t)from_rows * bytes,
                                   (size_t)rows * bytes, columns, kind);
    return error ? HIPBLAS_STATUS_MAPPING_ERROR : HIPBLAS_STATUS_SUCCESS;
}
#define WC_COPIES(verb, kind)                                                                      \
    WC_FN hipblas##verb##Vector(int n, int bytes, const void *x, int incx, void *y, int incy) {    \
        return __wc_blas_copy(1, n, bytes, x, incx, y, incy, kind);                                \
    }                                                                                              \
    WC_FN hipblas##verb##VectorAsync(int n, int bytes, const void *x, int incx, void *y, int incy, \
                                     hipStream_t stream) {                                         \
        (void)stream;                                                                              \
        return __wc_blas_copy(1, n, bytes, x, incx, y, incy, kind);                                \
    }                                                                                              \
    WC_FN hipblas##verb##Matrix(int rows, int columns, int bytes, const void *a, int lda, void *b, \
                                int ldb) {                                                         \
        return __wc_blas_copy(rows, columns, bytes, a, lda, b, ldb, kind);                         \
    }                                                                                              \
    WC_FN hipblas##verb##MatrixAsync(int rows, int columns, int bytes, const void *a, int lda,     \
                                     void *b, int ldb, hipStream_t stream) {                       \
        (void)stream;                                                                              \
        return __wc_blas_copy(rows, columns, bytes, a, lda, b, ldb, kind);                         \
    }
WC_COPIES(Set, hipMemcpyHostToDevice)
WC_COPIES(Get, hipMemcpyDeviceToHost)
#undef WC_COPIES

#define WC_BLAS(name, bytes, ...)                                                                  \
    {                                                                                              \
        WC_NEEDS_HANDLE                                                                            \
        return (hipblasStatus_t)__wavecast_library(WC_CONTEXT->stream, "hipblas." name, bytes,     \
                                                   __VA_ARGS__);                                   \
    }
#define WC_H hipblasHandle_t handle
#define WC_TR hipblasOperation_t
#define WC_FILL hipblasFillMode_t
#define WC_DIAG hipblasDiagType_t
#define WC_SIDE hipblasSideMode_t

#define WC_NAME(P, name, U) hipblas##P##name##U
#define WC_INDEX_NAME(P, name, U) hipblasI##P##name##U
#define WC_BATCHED_NAME(P, name, U) hipblas##P##name##Batched##U
#define WC_STRIDED_NAME(P, name, U) hipblas##P##name##StridedBatched##U
#define WC_RESULT(status) (status)

// Every product of matrices is this call: `batch` products of m x k by k x n, `pointers` where a, b, c
// and d are arrays of pointers. `scalar` is the type of alpha and beta.
WC_FN __wc_gemm(WC_H, int transa, int transb, int64_t m, int64_t n,
                int64_t k, const void *alpha, const void *a, int a_type, int64_t lda,
                int64_t stride_a, const void *b, int b_type, int64_t ldb, int64_t stride_b,
                const void *beta, const void *c, int c_type, int64_t ldc, int64_t stride_c, void *d,
                int64_t ldd, int64_t stride_d, int64_t batch, int pointers, int scalar,
                unsigned scalar_bytes) {
    if (m && n && batch && !(alpha && beta)) return HIPBLAS_STATUS_INVALID_VALUE;
    WC_BLAS("gemm", scalar_bytes, "iiilllspillpillspillpllli", scalar, transa, transb,
            (long long)m, (long long)n, (long long)k, alpha, a, a_type, (long long)lda,
            (long long)stride_a, b, b_type, (long long)ldb, (long long)stride_b, beta, c, c_type,
            (long long)ldc, (long long)stride_c, d, (long long)ldd, (long long)stride_d,
            (long long)batch, pointers)
}

#include <hipblas/level_1_2.h>
#include <hipblas/level_3.h>
#include <hipblas/factors.h>
#include <hipblas/extended.h>

#undef WC_NAME
#undef WC_INDEX_NAME
#undef WC_BATCHED_NAME
#undef WC_STRIDED_NAME
#undef WC_RESULT
#undef WC_BLAS
#undef WC_H
#undef WC_TR
#undef WC_FILL
#undef WC_DIAG
#undef WC_SIDE
#undef WC_CONTEXT
#undef WC_NEEDS_HANDLE
#undef WC_FN
