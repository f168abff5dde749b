// The functions of rocBLAS that programs call directly most, as hipBLAS (docs/hip.md, "Libraries").
#pragma once

#include <hipblas/hipblas.h>

typedef hipblasHandle_t rocblas_handle;
typedef int rocblas_int;
typedef int64_t rocblas_stride;
typedef hipblasHalf rocblas_half;
typedef hipblasBfloat16 rocblas_bfloat16;
typedef hipblasComplex rocblas_float_complex;
typedef hipblasDoubleComplex rocblas_double_complex;
typedef enum rocblas_status_ {
    rocblas_status_success = 0, rocblas_status_invalid_handle = 1,
    rocblas_status_not_implemented = 2, rocblas_status_invalid_pointer = 3,
    rocblas_status_invalid_size = 4, rocblas_status_memory_error = 5,
    rocblas_status_internal_error = 6, rocblas_status_perf_degraded = 7,
    rocblas_status_size_query_mismatch = 8, rocblas_status_size_increased = 9,
    rocblas_status_size_unchanged = 10, rocblas_status_invalid_value = 11,
    rocblas_status_continue = 12
} rocblas_status;
typedef hipblasOperation_t rocblas_operation;
static const rocblas_operation rocblas_operation_none = HIPBLAS_OP_N,
                               rocblas_operation_transpose = HIPBLAS_OP_T,
                               rocblas_operation_conjugate_transpose = HIPBLAS_OP_C;
typedef hipblasFillMode_t rocblas_fill;
static const rocblas_fill rocblas_fill_upper = HIPBLAS_FILL_MODE_UPPER,
                          rocblas_fill_lower = HIPBLAS_FILL_MODE_LOWER;
typedef hipblasDiagType_t rocblas_diagonal;
static const rocblas_diagonal rocblas_diagonal_non_unit = HIPBLAS_DIAG_NON_UNIT,
                              rocblas_diagonal_unit = HIPBLAS_DIAG_UNIT;
typedef hipblasSideMode_t rocblas_side;
static const rocblas_side rocblas_side_left = HIPBLAS_SIDE_LEFT,
                          rocblas_side_right = HIPBLAS_SIDE_RIGHT;
typedef enum rocblas_datatype_ {
    rocblas_datatype_f16_r = 150, rocblas_datatype_f32_r = 151, rocblas_datatype_f64_r = 152,
    rocblas_datatype_f32_c = 154, rocblas_datatype_f64_c = 155, rocblas_datatype_i8_r = 160,
    rocblas_datatype_u8_r = 161, rocblas_datatype_i32_r = 162, rocblas_datatype_u32_r = 163,
    rocblas_datatype_bf16_r = 168
} rocblas_datatype;
typedef enum rocblas_gemm_algo_ {
    rocblas_gemm_algo_standard = 0, rocblas_gemm_algo_solution_index = 1
} rocblas_gemm_algo;
typedef enum rocblas_gemm_flags_ { rocblas_gemm_flags_none = 0 } rocblas_gemm_flags;
typedef hipblasPointerMode_t rocblas_pointer_mode;
static const rocblas_pointer_mode rocblas_pointer_mode_host = HIPBLAS_POINTER_MODE_HOST,
                                  rocblas_pointer_mode_device = HIPBLAS_POINTER_MODE_DEVICE;

#define WC_FN WC_LIBRARY_FN rocblas_status

WC_FN __wc_rocblas(hipblasStatus_t status) {
    if (status == HIPBLAS_STATUS_NOT_INITIALIZED) return rocblas_status_invalid_handle;
    return status ? rocblas_status_invalid_value : rocblas_status_success;
}
WC_FN rocblas_create_handle(rocblas_handle *handle) { return __wc_rocblas(hipblasCreate(handle)); }
WC_FN rocblas_destroy_handle(rocblas_handle handle) {
    return __wc_rocblas(hipblasDestroy(handle));
}
WC_FN rocblas_set_stream(rocblas_handle handle, hipStream_t stream) {
    return __wc_rocblas(hipblasSetStream(handle, stream));
}
WC_FN rocblas_get_stream(rocblas_handle handle, hipStream_t *stream) {
    return __wc_rocblas(hipblasGetStream(handle, stream));
}
WC_FN rocblas_set_pointer_mode(rocblas_handle handle, rocblas_pointer_mode mode) {
    return __wc_rocblas(hipblasSetPointerMode(handle, mode));
}
WC_LIBRARY_FN void rocblas_initialize(void) {}

#define WC_ROCBLAS_REAL(p, P, T)                                                                   \
    WC_FN rocblas_##p##axpy(rocblas_handle h, int n, const T *alpha, const T *x, int incx, T *y,   \
                            int incy) {                                                            \
        return __wc_rocblas(hipblas##P##axpy(h, n, alpha, x, incx, y, incy));                      \
    }                                                                                              \
    WC_FN rocblas_##p##scal(rocblas_handle h, int n, const T *alpha, T *x, int incx) {             \
        return __wc_rocblas(hipblas##P##scal(h, n, alpha, x, incx));                               \
    }                                                                                              \
    WC_FN rocblas_##p##copy(rocblas_handle h, int n, const T *x, int incx, T *y, int incy) {       \
        return __wc_rocblas(hipblas##P##copy(h, n, x, incx, y, incy));                             \
    }                                                                                              \
    WC_FN rocblas_##p##dot(rocblas_handle h, int n, const T *x, int incx, const T *y, int incy,    \
                           T *result) {                                                            \
        return __wc_rocblas(hipblas##P##dot(h, n, x, incx, y, incy, result));                      \
    }                                                                                              \
    WC_FN rocblas_##p##nrm2(rocblas_handle h, int n, const T *x, int incx, T *result) {            \
        return __wc_rocblas(hipblas##P##nrm2(h, n, x, incx, result));                              \
    }                                                                                              \
    WC_FN rocblas_##p##asum(rocblas_handle h, int n, const T *x, int incx, T *result) {            \
        return __wc_rocblas(hipblas##P##asum(h, n, x, incx, result));                              \
    }                                                                                              \
    WC_FN rocblas_i##p##amax(rocblas_handle h, int n, const T *x, int incx, int *result) {         \
        return __wc_rocblas(hipblasI##p##amax(h, n, x, incx, result));                             \
    }                                                                                              \
    WC_FN rocblas_##p##gemv(rocblas_handle h, rocblas_operation op, int m, int n, const T *alpha,  \
                            const T *a, int lda, const T *x, int incx, const T *beta, T *y,        \
                            int incy) {                                                            \
        return __wc_rocblas(                                                                       \
            hipblas##P##gemv(h, op, m, n, alpha, a, lda, x, incx, beta, y, incy));                 \
    }                                                                                              \
    WC_FN rocblas_##p##ger(rocblas_handle h, int m, int n, const T *alpha, const T *x, int incx,   \
                           const T *y, int incy, T *a, int lda) {                                  \
        return __wc_rocblas(hipblas##P##ger(h, m, n, alpha, x, incx, y, incy, a, lda));            \
    }                                                                                              \
    WC_FN rocblas_##p##trsm(rocblas_handle h, rocblas_side side, rocblas_fill uplo,                \
                            rocblas_operation op, rocblas_diagonal diag, int m, int n,             \
                            const T *alpha, const T *a, int lda, T *b, int ldb) {                  \
        return __wc_rocblas(                                                                       \
            hipblas##P##trsm(h, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb));               \
    }
WC_ROCBLAS_REAL(s, S, float)
WC_ROCBLAS_REAL(d, D, double)

#define WC_ROCBLAS_GEMM(p, P, T)                                                                   \
    WC_FN rocblas_##p##gemm(rocblas_handle h, rocblas_operation op_a, rocblas_operation op_b,      \
                            int m, int n, int k, const T *alpha, const T *a, int lda, const T *b,  \
                            int ldb, const T *beta, T *c, int ldc) {                               \
        return __wc_rocblas(hipblas##P##gemm(h, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta,  \
                                             c, ldc));                                             \
    }                                                                                              \
    WC_FN rocblas_##p##gemm_batched(rocblas_handle h, rocblas_operation op_a,                      \
                                    rocblas_operation op_b, int m, int n, int k, const T *alpha,   \
                                    const T *const a[], int lda, const T *const b[], int ldb,      \
                                    const T *beta, T *const c[], int ldc, int batch) {             \
        return __wc_rocblas(hipblas##P##gemmBatched(h, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, \
                                                    beta, c, ldc, batch));                         \
    }                                                                                              \
    WC_FN rocblas_##p##gemm_strided_batched(                                                       \
        rocblas_handle h, rocblas_operation op_a, rocblas_operation op_b, int m, int n, int k,     \
        const T *alpha, const T *a, int lda, rocblas_stride sa, const T *b, int ldb,               \
        rocblas_stride sb, const T *beta, T *c, int ldc, rocblas_stride sc, int batch) {           \
        return __wc_rocblas(hipblas##P##gemmStridedBatched(h, op_a, op_b, m, n, k, alpha, a, lda,  \
                                                           sa, b, ldb, sb, beta, c, ldc, sc,       \
                                                           batch));                                \
    }
WC_ROCBLAS_GEMM(h, H, rocblas_half)
WC_ROCBLAS_GEMM(s, S, float)
WC_ROCBLAS_GEMM(d, D, double)
WC_ROCBLAS_GEMM(c, C, rocblas_float_complex)
WC_ROCBLAS_GEMM(z, Z, rocblas_double_complex)

WC_LIBRARY_FN int __wc_rocblas_type(rocblas_datatype type) {
    switch (type) {
        case rocblas_datatype_f16_r: return HIP_R_16F;
        case rocblas_datatype_f32_r: return HIP_R_32F;
        case rocblas_datatype_f64_r: return HIP_R_64F;
        case rocblas_datatype_f32_c: return HIP_C_32F;
        case rocblas_datatype_f64_c: return HIP_C_64F;
        case rocblas_datatype_i8_r: return HIP_R_8I;
        case rocblas_datatype_u8_r: return HIP_R_8U;
        case rocblas_datatype_i32_r: return HIP_R_32I;
        case rocblas_datatype_u32_r: return HIP_R_32U;
        case rocblas_datatype_bf16_r: return HIP_R_16BF;
    }
    return HIP_R_32F;
}
WC_FN rocblas_gemm_strided_batched_ex(
    rocblas_handle h, rocblas_operation op_a, rocblas_operation op_b, int m, int n, int k,
    const void *alpha, const void *a, rocblas_datatype a_type, int lda, rocblas_stride sa,
    const void *b, rocblas_datatype b_type, int ldb, rocblas_stride sb, const void *beta,
    const void *c, rocblas_datatype c_type, int ldc, rocblas_stride sc, void *d,
    rocblas_datatype d_type, int ldd, rocblas_stride sd, int batch, rocblas_datatype compute,
    rocblas_gemm_algo, int32_t, uint32_t) {
    if (c_type != d_type) return rocblas_status_not_implemented;
    int scalar = __wc_rocblas_type(compute);
    return __wc_rocblas(__wc_gemm(h, op_a, op_b, m, n, k, alpha, a, __wc_rocblas_type(a_type), lda,
                                  sa, b, __wc_rocblas_type(b_type), ldb, sb, beta, c,
                                  __wc_rocblas_type(c_type), ldc, sc, d, ldd, sd, batch, 0, scalar,
                                  __wc_scalar_bytes(scalar)));
}
WC_FN rocblas_gemm_ex(rocblas_handle h, rocblas_operation op_a, rocblas_operation op_b, int m,
                      int n, int k, const void *alpha, const void *a, rocblas_datatype a_type,
                      int lda, const void *b, rocblas_datatype b_type, int ldb, const void *beta,
                      const void *c, rocblas_datatype c_type, int ldc, void *d,
                      rocblas_datatype d_type, int ldd, rocblas_datatype compute,
                      rocblas_gemm_algo algorithm, int32_t index, uint32_t flags) {
    return rocblas_gemm_strided_batched_ex(h, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b,
                                           b_type, ldb, 0, beta, c, c_type, ldc, 0, d, d_type, ldd,
                                           0, 1, compute, algorithm, index, flags);
}
#undef WC_FN
#undef WC_ROCBLAS_REAL
#undef WC_ROCBLAS_GEMM
