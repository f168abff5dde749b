// rocBLAS: vectors, matrices with vectors, matrices with matrices, as hipBLAS (docs/hip.md, "Libraries").
#pragma once

#include <hipblas/hipblas.h>

typedef hipblasHandle_t rocblas_handle;
typedef int rocblas_int;
typedef int64_t rocblas_stride;
typedef float rocblas_float;
typedef double rocblas_double;
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
typedef enum rocblas_operation_ {
    rocblas_operation_none = 111, rocblas_operation_transpose = 112,
    rocblas_operation_conjugate_transpose = 113
} rocblas_operation;
typedef enum rocblas_fill_ {
    rocblas_fill_upper = 121, rocblas_fill_lower = 122, rocblas_fill_full = 123
} rocblas_fill;
typedef enum rocblas_diagonal_ {
    rocblas_diagonal_non_unit = 131, rocblas_diagonal_unit = 132
} rocblas_diagonal;
typedef enum rocblas_side_ {
    rocblas_side_left = 141, rocblas_side_right = 142, rocblas_side_both = 143
} rocblas_side;
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
typedef enum rocblas_pointer_mode_ {
    rocblas_pointer_mode_host = 0, rocblas_pointer_mode_device = 1
} rocblas_pointer_mode;

#define WC_FN WC_LIBRARY_FN rocblas_status

WC_FN __wc_rocblas(hipblasStatus_t status) {
    if (status == HIPBLAS_STATUS_NOT_INITIALIZED) return rocblas_status_invalid_handle;
    return status ? rocblas_status_invalid_value : rocblas_status_success;
}
WC_LIBRARY_FN const char *rocblas_status_to_string(rocblas_status status) {
    static const char *const names[] = {
        "rocblas_status_success", "rocblas_status_invalid_handle",
        "rocblas_status_not_implemented", "rocblas_status_invalid_pointer",
        "rocblas_status_invalid_size", "rocblas_status_memory_error",
        "rocblas_status_internal_error", "rocblas_status_perf_degraded",
        "rocblas_status_size_query_mismatch", "rocblas_status_size_increased",
        "rocblas_status_size_unchanged", "rocblas_status_invalid_value",
        "rocblas_status_continue",
    };
    return (unsigned)status < 13 ? names[status] : "<undefined rocblas_status value>";
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
    return __wc_rocblas(hipblasSetPointerMode(handle, (hipblasPointerMode_t)mode));
}
WC_FN rocblas_get_pointer_mode(rocblas_handle handle, rocblas_pointer_mode *mode) {
    return __wc_rocblas(hipblasGetPointerMode(handle, (hipblasPointerMode_t *)mode));
}
WC_LIBRARY_FN void rocblas_initialize(void) {}

#define WC_COPIES(verb, Verb)                                                                      \
    WC_FN rocblas_##verb##_vector(int n, int bytes, const void *x, int incx, void *y, int incy) {  \
        return __wc_rocblas(hipblas##Verb##Vector(n, bytes, x, incx, y, incy));                    \
    }                                                                                              \
    WC_FN rocblas_##verb##_vector_async(int n, int bytes, const void *x, int incx, void *y,        \
                                        int incy, hipStream_t stream) {                            \
        (void)stream;                                                                              \
        return __wc_rocblas(hipblas##Verb##Vector(n, bytes, x, incx, y, incy));                    \
    }                                                                                              \
    WC_FN rocblas_##verb##_matrix(int rows, int columns, int bytes, const void *a, int lda,        \
                                  void *b, int ldb) {                                              \
        return __wc_rocblas(hipblas##Verb##Matrix(rows, columns, bytes, a, lda, b, ldb));          \
    }                                                                                              \
    WC_FN rocblas_##verb##_matrix_async(int rows, int columns, int bytes, const void *a, int lda,  \
                                        void *b, int ldb, hipStream_t stream) {                    \
        (void)stream;                                                                              \
        return __wc_rocblas(hipblas##Verb##Matrix(rows, columns, bytes, a, lda, b, ldb));          \
    }
WC_COPIES(set, Set)
WC_COPIES(get, Get)
#undef WC_COPIES

// The functions of hipBLAS under their names in rocBLAS.
#define WC_ROCBLAS_H(name) rocblas_h##name
#define WC_ROCBLAS_Bf(name) rocblas_bf##name
#define WC_ROCBLAS_S(name) rocblas_s##name
#define WC_ROCBLAS_D(name) rocblas_d##name
#define WC_ROCBLAS_C(name) rocblas_c##name
#define WC_ROCBLAS_Z(name) rocblas_z##name
#define WC_ROCBLAS_Sc(name) rocblas_sc##name
#define WC_ROCBLAS_Dz(name) rocblas_dz##name
#define WC_ROCBLAS_Cs(name) rocblas_cs##name
#define WC_ROCBLAS_Zd(name) rocblas_zd##name
#define WC_NAME(P, name, U) WC_ROCBLAS_##P(name##U)
#define WC_INDEX_NAME(P, name, U) rocblas_i##P##name##U
#define WC_BATCHED_NAME(P, name, U) WC_ROCBLAS_##P(name##_batched##U)
#define WC_STRIDED_NAME(P, name, U) WC_ROCBLAS_##P(name##_strided_batched##U)
#define WC_RESULT(status) __wc_rocblas(status)
#define WC_H rocblas_handle handle
#define WC_TR rocblas_operation
#define WC_FILL rocblas_fill
#define WC_DIAG rocblas_diagonal
#define WC_SIDE rocblas_side
#define WC_CONTEXT ((struct __wc_blas_context *)handle)
#define WC_NEEDS_HANDLE if (!handle) return rocblas_status_invalid_handle;
#define WC_BLAS(name, bytes, ...)                                                                  \
    {                                                                                              \
        WC_NEEDS_HANDLE                                                                            \
        return __wc_rocblas((hipblasStatus_t)__wavecast_library(WC_CONTEXT->stream,                \
                                                                "hipblas." name, bytes,            \
                                                                __VA_ARGS__));                     \
    }

#include <hipblas/level_1_2.h>
#include <hipblas/level_3.h>

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
#undef WC_ROCBLAS_H
#undef WC_ROCBLAS_Bf
#undef WC_ROCBLAS_S
#undef WC_ROCBLAS_D
#undef WC_ROCBLAS_C
#undef WC_ROCBLAS_Z
#undef WC_ROCBLAS_Sc
#undef WC_ROCBLAS_Dz
#undef WC_ROCBLAS_Cs
#undef WC_ROCBLAS_Zd
#undef WC_NAME
#undef WC_INDEX_NAME
#undef WC_BATCHED_NAME
#undef WC_STRIDED_NAME
#undef WC_RESULT
#undef WC_H
#undef WC_TR
#undef WC_FILL
#undef WC_DIAG
#undef WC_SIDE
#undef WC_CONTEXT
#undef WC_NEEDS_HANDLE
#undef WC_BLAS
#undef WC_FN
