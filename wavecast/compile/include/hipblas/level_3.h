// Part of hipblas.h: matrices with matrices, of one pair, a batch in arrays of pointers, or a batch at
// equal distances. D is the hipDataType of T.

// Every product of matrices is this call: `batch` products of m x k by k x n, `pointers` where a, b, c
// and d are arrays of pointers. `scalar` is the type of alpha and beta.
WC_FN __wc_gemm(WC_H, hipblasOperation_t transa, hipblasOperation_t transb, int64_t m, int64_t n,
                int64_t k, const void *alpha, const void *a, int a_type, int64_t lda,
                int64_t stride_a, const void *b, int b_type, int64_t ldb, int64_t stride_b,
                const void *beta, const void *c, int c_type, int64_t ldc, int64_t stride_c, void *d,
                int64_t ldd, int64_t stride_d, int64_t batch, int pointers, int scalar,
                unsigned scalar_bytes)
    WC_BLAS("gemm", scalar_bytes, "iiilllspillpillspillpllli", scalar, transa, transb,
            (long long)m, (long long)n, (long long)k, alpha, a, a_type, (long long)lda,
            (long long)stride_a, b, b_type, (long long)ldb, (long long)stride_b, beta, c, c_type,
            (long long)ldc, (long long)stride_c, d, (long long)ldd, (long long)stride_d,
            (long long)batch, pointers)

#define WC_GEMM(P, T, D, N, U)                                                                     \
    WC_FN hipblas##P##gemm##U(WC_H, WC_TR transa, WC_TR transb, N m, N n, N k, const T *alpha,     \
                              const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc) {  \
        return __wc_gemm(handle, transa, transb, m, n, k, alpha, a, D, lda, 0, b, D, ldb, 0, beta, \
                         c, D, ldc, 0, c, ldc, 0, 1, 0, D, sizeof(T));                             \
    }                                                                                              \
    WC_FN hipblas##P##gemmBatched##U(WC_H, WC_TR transa, WC_TR transb, N m, N n, N k,              \
                                     const T *alpha, const T *const a[], N lda,                    \
                                     const T *const b[], N ldb, const T *beta, T *const c[],       \
                                     N ldc, N batch) {                                             \
        return __wc_gemm(handle, transa, transb, m, n, k, alpha, a, D, lda, 0, b, D, ldb, 0, beta, \
                         c, D, ldc, 0, (void *)c, ldc, 0, batch, 1, D, sizeof(T));                 \
    }                                                                                              \
    WC_FN hipblas##P##gemmStridedBatched##U(                                                       \
        WC_H, WC_TR transa, WC_TR transb, N m, N n, N k, const T *alpha, const T *a, N lda,        \
        long long stride_a, const T *b, N ldb, long long stride_b, const T *beta, T *c, N ldc,     \
        long long stride_c, N batch) {                                                             \
        return __wc_gemm(handle, transa, transb, m, n, k, alpha, a, D, lda, stride_a, b, D, ldb,   \
                         stride_b, beta, c, D, ldc, stride_c, c, ldc, stride_c, batch, 0, D,       \
                         sizeof(T));                                                               \
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
    WC_FN hipblas##P##symm##U(WC_H, WC_SIDE side, WC_FILL uplo, N m, N k, const T *alpha,          \
                              const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc)    \
        WC_BLAS("symm." #P, sizeof(T), "ii" n n "sp" n "p" n "sp" n, side, uplo, m, k, alpha, a,   \
                lda, b, ldb, beta, c, ldc)                                                         \
    WC_FN hipblas##P##syrk##U(WC_H, WC_FILL uplo, WC_TR trans, N m, N k, const T *alpha,           \
                              const T *a, N lda, const T *beta, T *c, N ldc)                       \
        WC_BLAS("syrk." #P, sizeof(T), "ii" n n "sp" n "sp" n, uplo, trans, m, k, alpha, a, lda,   \
                beta, c, ldc)                                                                      \
    WC_FN hipblas##P##syr2k##U(WC_H, WC_FILL uplo, WC_TR trans, N m, N k, const T *alpha,          \
                               const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc)   \
        WC_BLAS("syr2k." #P, sizeof(T), "ii" n n "sp" n "p" n "sp" n, uplo, trans, m, k, alpha, a, \
                lda, b, ldb, beta, c, ldc)                                                         \
    WC_FN hipblas##P##trmm##U(WC_H, WC_SIDE side, WC_FILL uplo, WC_TR trans, WC_DIAG diag, N m,    \
                              N k, const T *alpha, const T *a, N lda, const T *b, N ldb, T *c,     \
                              N ldc)                                                               \
        WC_BLAS("trmm." #P, sizeof(T), "iiii" n n "sp" n "p" n "p" n, side, uplo, trans, diag, m,  \
                k, alpha, a, lda, b, ldb, c, ldc)                                                  \
    WC_FN hipblas##P##trsm##U(WC_H, WC_SIDE side, WC_FILL uplo, WC_TR trans, WC_DIAG diag, N m,    \
                              N k, const T *alpha, const T *a, N lda, T *b, N ldb)                 \
        WC_BLAS("trsm." #P, sizeof(T), "iiii" n n "sp" n "p" n "lli", side, uplo, trans, diag, m,  \
                k, alpha, a, lda, b, ldb, 0LL, 1LL, 0)                                             \
    WC_FN hipblas##P##trsmBatched##U(WC_H, WC_SIDE side, WC_FILL uplo, WC_TR trans, WC_DIAG diag,  \
                                     N m, N k, const T *alpha, const T *const a[], N lda,          \
                                     T *const b[], N ldb, N batch)                                 \
        WC_BLAS("trsm." #P, sizeof(T), "iiii" n n "sp" n "p" n "lli", side, uplo, trans, diag, m,  \
                k, alpha, a, lda, b, ldb, 0LL, (long long)batch, 1)                                \
    WC_FN hipblas##P##geam##U(WC_H, WC_TR transa, WC_TR transb, N m, N k, const T *alpha,          \
                              const T *a, N lda, const T *beta, const T *b, N ldb, T *c, N ldc)    \
        WC_BLAS("geam." #P, sizeof(T), "ii" n n "sp" n "sp" n "p" n, transa, transb, m, k, alpha,  \
                a, lda, beta, b, ldb, c, ldc)                                                      \
    WC_FN hipblas##P##dgmm##U(WC_H, WC_SIDE side, N m, N k, const T *a, N lda, const T *x, N incx, \
                              T *c, N ldc)                                                         \
        WC_BLAS("dgmm." #P, 0, "i" n n "p" n "p" n "p" n, side, m, k, a, lda, x, incx, c, ldc)
#define WC_HERMITIAN(P, T, R, N, n, U)                                                             \
    WC_FN hipblas##P##hemm##U(WC_H, WC_SIDE side, WC_FILL uplo, N m, N k, const T *alpha,          \
                              const T *a, N lda, const T *b, N ldb, const T *beta, T *c, N ldc)    \
        WC_BLAS("hemm." #P, sizeof(T), "ii" n n "sp" n "p" n "sp" n, side, uplo, m, k, alpha, a,   \
                lda, b, ldb, beta, c, ldc)                                                         \
    WC_FN hipblas##P##herk##U(WC_H, WC_FILL uplo, WC_TR trans, N m, N k, const R *alpha,           \
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

// --- factorisations of many matrices
#define WC_FACTORS(P, T)                                                                           \
    WC_FN hipblas##P##getrfBatched(WC_H, int n, T *const a[], int lda, int *pivots, int *info,     \
                                   int batch)                                                      \
        WC_BLAS("getrf." #P, 0, "ipippii", n, a, lda, pivots, info, batch, 1)                      \
    WC_FN hipblas##P##getrf(WC_H, int n, T *a, int lda, int *pivots, int *info)                    \
        WC_BLAS("getrf." #P, 0, "ipippii", n, a, lda, pivots, info, 1, 0)                          \
    WC_FN hipblas##P##getrsBatched(WC_H, WC_TR trans, int n, int columns, T *const a[], int lda,   \
                                   const int *pivots, T *const b[], int ldb, int *info,            \
                                   int batch) {                                                    \
        *info = 0;                                                                                 \
        WC_BLAS("getrs." #P, 0, "iiipippiii", trans, n, columns, a, lda, pivots, b, ldb, batch, 1) \
    }                                                                                              \
    WC_FN hipblas##P##getriBatched(WC_H, int n, T *const a[], int lda, int *pivots, T *const c[],  \
                                   int ldc, int *info, int batch)                                  \
        WC_BLAS("getri." #P, 0, "ipippipi", n, a, lda, pivots, c, ldc, info, batch)                \
    WC_FN hipblas##P##gelsBatched(WC_H, WC_TR trans, int m, int n, int columns, T *const a[],      \
                                  int lda, T *const b[], int ldb, int *info, int *infos,           \
                                  int batch) {                                                     \
        *info = 0;                                                                                 \
        WC_BLAS("gels." #P, 0, "iiiipipipi", trans, m, n, columns, a, lda, b, ldb, infos, batch)   \
    }
WC_FACTORS(S, float)
WC_FACTORS(D, double)
WC_FACTORS(C, hipblasComplex)
WC_FACTORS(Z, hipblasDoubleComplex)

#undef WC_GEMM
#undef WC_GEMMS
#undef WC_LEVEL_3
#undef WC_HERMITIAN
#undef WC_MATRICES
#undef WC_FACTORS
