// Part of hipblas.h: functions with the types of elements as arguments.

// The type of alpha and beta of a product.
WC_LIBRARY_FN int __wc_scalar_type(hipblasComputeType_t compute, int c_type) {
    int complex = c_type == HIP_C_32F || c_type == HIP_C_64F;
    if (compute <= HIPBLAS_COMPUTE_16F_PEDANTIC) return HIP_R_16F;
    if (compute >= HIPBLAS_COMPUTE_32I) return HIP_R_32I;
    if (compute >= HIPBLAS_COMPUTE_64F) return complex ? HIP_C_64F : HIP_R_64F;
    return complex ? HIP_C_32F : HIP_R_32F;
}
WC_LIBRARY_FN unsigned __wc_scalar_bytes(int type) {
    if (type == HIP_C_64F) return 16;
    if (type == HIP_R_64F || type == HIP_C_32F) return 8;
    return type == HIP_R_16F || type == HIP_R_16BF ? 2 : 4;
}
#define WC_GEMM_EX(N, U)                                                                           \
    WC_FN hipblasGemmEx##U(WC_H, WC_TR transa, WC_TR transb, N m, N n, N k, const void *alpha,     \
                           const void *a, hipDataType a_type, N lda, const void *b,                \
                           hipDataType b_type, N ldb, const void *beta, void *c,                   \
                           hipDataType c_type, N ldc, hipblasComputeType_t compute,                \
                           hipblasGemmAlgo_t algorithm) {                                          \
        (void)algorithm;                                                                           \
        int scalar = __wc_scalar_type(compute, c_type);                                            \
        return __wc_gemm(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type,     \
                         ldb, 0, beta, c, c_type, ldc, 0, c, ldc, 0, 1, 0, scalar,                 \
                         __wc_scalar_bytes(scalar));                                               \
    }                                                                                              \
    WC_FN hipblasGemmBatchedEx##U(WC_H, WC_TR transa, WC_TR transb, N m, N n, N k,                 \
                                  const void *alpha, const void *const a[], hipDataType a_type,    \
                                  N lda, const void *const b[], hipDataType b_type, N ldb,         \
                                  const void *beta, void *const c[], hipDataType c_type, N ldc,    \
                                  N batch, hipblasComputeType_t compute,                           \
                                  hipblasGemmAlgo_t algorithm) {                                   \
        (void)algorithm;                                                                           \
        int scalar = __wc_scalar_type(compute, c_type);                                            \
        return __wc_gemm(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type,     \
                         ldb, 0, beta, c, c_type, ldc, 0, (void *)c, ldc, 0, batch, 1, scalar,     \
                         __wc_scalar_bytes(scalar));                                               \
    }                                                                                              \
    WC_FN hipblasGemmStridedBatchedEx##U(                                                          \
        WC_H, WC_TR transa, WC_TR transb, N m, N n, N k, const void *alpha, const void *a,         \
        hipDataType a_type, N lda, hipblasStride stride_a, const void *b, hipDataType b_type,      \
        N ldb, hipblasStride stride_b, const void *beta, void *c, hipDataType c_type, N ldc,       \
        hipblasStride stride_c, N batch, hipblasComputeType_t compute,                             \
        hipblasGemmAlgo_t algorithm) {                                                             \
        (void)algorithm;                                                                           \
        int scalar = __wc_scalar_type(compute, c_type);                                            \
        return __wc_gemm(handle, transa, transb, m, n, k, alpha, a, a_type, lda, stride_a, b,      \
                         b_type, ldb, stride_b, beta, c, c_type, ldc, stride_c, c, ldc, stride_c,  \
                         batch, 0, scalar, __wc_scalar_bytes(scalar));                             \
    }
WC_GEMM_EX(int, )
WC_GEMM_EX(int64_t, _64)

#define WC_VECTORS_EX(N, n, U)                                                                     \
    WC_FN hipblasDotEx##U(WC_H, N m, const void *x, hipDataType x_type, N incx, const void *y,     \
                          hipDataType y_type, N incy, void *result, hipDataType type,              \
                          hipDataType compute)                                                     \
        WC_BLAS("dot_ex", 0, n "pi" n "pi" n "iir", m, x, x_type, incx, y, y_type, incy, type,     \
                compute, result)                                                                   \
    WC_FN hipblasNrm2Ex##U(WC_H, N m, const void *x, hipDataType x_type, N incx, void *result,     \
                           hipDataType type, hipDataType compute)                                  \
        WC_BLAS("nrm2_ex", 0, n "pi" n "iir", m, x, x_type, incx, type, compute, result)           \
    WC_FN hipblasAxpyEx##U(WC_H, N m, const void *alpha, hipDataType alpha_type, const void *x,    \
                           hipDataType x_type, N incx, void *y, hipDataType y_type, N incy,        \
                           hipDataType compute)                                                    \
        WC_BLAS("axpy_ex", __wc_scalar_bytes(alpha_type), n "sipi" n "pi" n "i", m, alpha,         \
                alpha_type, x, x_type, incx, y, y_type, incy, compute)                             \
    WC_FN hipblasScalEx##U(WC_H, N m, const void *alpha, hipDataType alpha_type, void *x,          \
                           hipDataType x_type, N incx, hipDataType compute)                        \
        WC_BLAS("scal_ex", __wc_scalar_bytes(alpha_type), n "sipi" n "i", m, alpha, alpha_type, x, \
                x_type, incx, compute)
WC_VECTORS_EX(int, "i", )
WC_VECTORS_EX(int64_t, "l", _64)

#if defined(__cplusplus) && !defined(HIPBLAS_V2)
// As before version 3 of hipBLAS.
WC_LIBRARY_FN hipDataType __wc_type_of(hipblasDatatype_t type) {
    switch (type) {
        case HIPBLAS_R_16F: return HIP_R_16F;
        case HIPBLAS_R_32F: return HIP_R_32F;
        case HIPBLAS_R_64F: return HIP_R_64F;
        case HIPBLAS_C_32F: return HIP_C_32F;
        case HIPBLAS_C_64F: return HIP_C_64F;
        case HIPBLAS_R_8I: return HIP_R_8I;
        case HIPBLAS_R_8U: return HIP_R_8U;
        case HIPBLAS_R_32I: return HIP_R_32I;
        case HIPBLAS_R_32U: return HIP_R_32U;
        case HIPBLAS_R_16B: return HIP_R_16BF;
    }
    return HIP_R_32F;
}
WC_LIBRARY_FN hipblasComputeType_t __wc_compute_of(hipblasDatatype_t type) {
    if (type == HIPBLAS_R_16F) return HIPBLAS_COMPUTE_16F;
    if (type == HIPBLAS_R_32I) return HIPBLAS_COMPUTE_32I;
    if (type == HIPBLAS_R_64F || type == HIPBLAS_C_64F) return HIPBLAS_COMPUTE_64F;
    return HIPBLAS_COMPUTE_32F;
}
static inline hipblasStatus_t hipblasGemmEx(
    WC_H, WC_TR transa, WC_TR transb, int m, int n, int k, const void *alpha, const void *a,
    hipblasDatatype_t a_type, int lda, const void *b, hipblasDatatype_t b_type, int ldb,
    const void *beta, void *c, hipblasDatatype_t c_type, int ldc, hipblasDatatype_t compute,
    hipblasGemmAlgo_t algorithm) {
    return hipblasGemmEx(handle, transa, transb, m, n, k, alpha, a, __wc_type_of(a_type), lda, b,
                         __wc_type_of(b_type), ldb, beta, c, __wc_type_of(c_type), ldc,
                         __wc_compute_of(compute), algorithm);
}
static inline hipblasStatus_t hipblasGemmStridedBatchedEx(
    WC_H, WC_TR transa, WC_TR transb, int m, int n, int k, const void *alpha, const void *a,
    hipblasDatatype_t a_type, int lda, hipblasStride stride_a, const void *b,
    hipblasDatatype_t b_type, int ldb, hipblasStride stride_b, const void *beta, void *c,
    hipblasDatatype_t c_type, int ldc, hipblasStride stride_c, int batch,
    hipblasDatatype_t compute, hipblasGemmAlgo_t algorithm) {
    return hipblasGemmStridedBatchedEx(
        handle, transa, transb, m, n, k, alpha, a, __wc_type_of(a_type), lda, stride_a, b,
        __wc_type_of(b_type), ldb, stride_b, beta, c, __wc_type_of(c_type), ldc, stride_c, batch,
        __wc_compute_of(compute), algorithm);
}
#endif
#undef WC_GEMM_EX
#undef WC_VECTORS_EX
