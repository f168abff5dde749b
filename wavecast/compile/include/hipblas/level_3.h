// Part of hipblas.h: matrices with matrices, of one pair, a batch in arrays of pointers, or a batch at
// equal distances. D is the hipDataType of T.

#define WC_GEMM(P, T, D, N, U)                                                                     \
    WC_FN WC_NAME(P, gemm, U)(WC_H, WC_TR transa, WC_TR transb, N m, N n, N k, const T *alpha,     \
                              const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc) {  \
        return WC_RESULT(__wc_gemm(handle, transa, transb, m, n, k, alpha, a, D, lda, 0, b, D, ldb, 0, beta, \
                         c, D, ldc, 0, c, ldc, 0, 1, 0, D, sizeof(T)));                            \
    }                                                                                              \
    WC_FN WC_BATCHED_NAME(P, gemm, U)(WC_H, WC_TR transa, WC_TR transb, N m, N n, N k,             \
                                     const T *alpha, const T *const a[], N lda,                    \
                                     const T *const b[], N ldb, const T *beta, T *const c[],       \
                                     N ldc, N batch) {                                             \
        return WC_RESULT(__wc_gemm(handle, transa, transb, m, n, k, alpha, a, D, lda, 0, b, D, ldb, 0, beta, \
                         c, D, ldc, 0, (void *)c, ldc, 0, batch, 1, D, sizeof(T)));                \
    }                                                                                              \
    WC_FN WC_STRIDED_NAME(P, gemm, U)(                                                             \
        WC_H, WC_TR transa, WC_TR transb, N m, N n, N k, const T *alpha, const T *a, N lda,        \
        long long stride_a, const T *b, N ldb, long long stride_b, const T *beta, T *c, N ldc,     \
        long long stride_c, N batch) {                                                             \
        return WC_RESULT(__wc_gemm(handle, transa, transb, m, n, k, alpha, a, D, lda, stride_a, b, D, ldb, \
                         stride_b, beta, c, D, ldc, stride_c, c, ldc, stride_c, batch, 0, D,       \
                         sizeof(T)));                                                              \
    }
#define WC_GEMMS(N, U)                                                                             \
    WC_GEMM(H, hipblasHalf, HIP_R_16F, N, U)                                                       \
    WC_GEMM(S, float, HIP_R_32F, N, U)                                                             \
    WC_GEMM(D, double, HIP_R_64F, N, U)                                                            \
    WC_GEMM(C, hipblasComplex, HIP_C_32F, N, U)                                                    \
    WC_GEMM(Z, hipblasDoubleComplex, HIP_C_64F, N, U)
WC_GEMMS(int, )
WC_GEMMS(int64_t, _64)

#define WC_LEVEL_3(P, T, N, n, U)                                                                  \
    WC_FN WC_NAME(P, symm, U)(WC_H, WC_SIDE side, WC_FILL uplo, N m, N k, const T *alpha,          \
                              const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc)    \
        WC_BLAS("symm." #P, sizeof(T), "ii" n n "sp" n "p" n "sp" n, side, uplo, m, k, alpha, a,   \
                lda, b, ldb, beta, c, ldc)                                                         \
    WC_FN WC_NAME(P, syrk, U)(WC_H, WC_FILL uplo, WC_TR trans, N m, N k, const T *alpha,           \
                              const T *a, N lda, const T *beta, T *c, N ldc)                       \
        WC_BLAS("syrk." #P, sizeof(T), "ii" n n "sp" n "sp" n, uplo, trans, m, k, alpha, a, lda,   \
                beta, c, ldc)                                                                      \
    WC_FN WC_NAME(P, syr2k, U)(WC_H, WC_FILL uplo, WC_TR trans, N m, N k, const T *alpha,          \
                               const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc)   \
        WC_BLAS("syr2k." #P, sizeof(T), "ii" n n "sp" n "p" n "sp" n, uplo, trans, m, k, alpha, a, \
                lda, b, ldb, beta, c, ldc)                                                         \
    WC_FN WC_NAME(P, trmm, U)(WC_H, WC_SIDE side, WC_FILL uplo, WC_TR trans, WC_DIAG diag, N m,    \
                              N k, const T *alpha, const T *a, N lda, const T *b, N ldb, T *c,     \
                              N ldc)                                                               \
        WC_BLAS("trmm." #P, sizeof(T), "iiii" n n "sp" n "p" n "p" n, side, uplo, trans, diag, m,  \
                k, alpha, a, lda, b, ldb, c, ldc)                                                  \
    WC_FN WC_NAME(P, trsm, U)(WC_H, WC_SIDE side, WC_FILL uplo, WC_TR trans, WC_DIAG diag, N m,    \
                              N k, const T *alpha, const T *a, N lda, T *b, N ldb)                 \
        WC_BLAS("trsm." #P, sizeof(T), "iiii" n n "sp" n "p" n "lli", side, uplo, trans, diag, m,  \
                k, alpha, a, lda, b, ldb, 0LL, 1LL, 0)                                             \
    WC_FN WC_BATCHED_NAME(P, trsm, U)(WC_H, WC_SIDE side, WC_FILL uplo, WC_TR trans, WC_DIAG diag, \
                                     N m, N k, const T *alpha, const T *const a[], N lda,          \
                                     T *const b[], N ldb, N batch)                                 \
        WC_BLAS("trsm." #P, sizeof(T), "iiii" n n "sp" n "p" n "lli", side, uplo, trans, diag, m,  \
                k, alpha, a, lda, b, ldb, 0LL, (long long)batch, 1)                                \
    WC_FN WC_NAME(P, geam, U)(WC_H, WC_TR transa, WC_TR transb, N m, N k, const T *alpha,          \
                              const T *a, N lda, const T *beta, const T *b, N ldb, T *c, N ldc)    \
        WC_BLAS("geam." #P, sizeof(T), "ii" n n "sp" n "sp" n "p" n, transa, transb, m, k, alpha,  \
                a, lda, beta, b, ldb, c, ldc)                                                      \
    WC_FN WC_NAME(P, dgmm, U)(WC_H, WC_SIDE side, N m, N k, const T *a, N lda, const T *x, N incx, \
                              T *c, N ldc)                                                         \
        WC_BLAS("dgmm." #P, 0, "i" n n "p" n "p" n "p" n, side, m, k, a, lda, x, incx, c, ldc)
#define WC_HERMITIAN(P, T, R, N, n, U)                                                             \
    WC_FN WC_NAME(P, hemm, U)(WC_H, WC_SIDE side, WC_FILL uplo, N m, N k, const T *alpha,          \
                              const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc)    \
        WC_BLAS("hemm." #P, sizeof(T), "ii" n n "sp" n "p" n "sp" n, side, uplo, m, k, alpha, a,   \
                lda, b, ldb, beta, c, ldc)                                                         \
    WC_FN WC_NAME(P, herk, U)(WC_H, WC_FILL uplo, WC_TR trans, N m, N k, const R *alpha,           \
                              const T *a, N lda, const R *beta, T *c, N ldc)                       \
        WC_BLAS("herk." #P, sizeof(T), "ii" n n "hp" n "hp" n, uplo, trans, m, k, alpha, a, lda,   \
                beta, c, ldc)
#define WC_MATRICES(N, n, U)                                                                       \
    WC_LEVEL_3(S, float, N, n, U)                                                                  \
    WC_LEVEL_3(D, double, N, n, U)                                                                 \
    WC_LEVEL_3(C, hipblasComplex, N, n, U)                                                         \
    WC_LEVEL_3(Z, hipblasDoubleComplex, N, n, U)                                                   \
    WC_HERMITIAN(C, hipblasComplex, float, N, n, U)                                                \
    WC_HERMITIAN(Z, hipblasDoubleComplex, double, N, n, U)
WC_MATRICES(int, "i", )
WC_MATRICES(int64_t, "l", _64)

#undef WC_GEMM
#undef WC_GEMMS
#undef WC_LEVEL_3
#undef WC_HERMITIAN
#undef WC_MATRICES
