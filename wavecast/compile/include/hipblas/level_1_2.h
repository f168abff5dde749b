// Part of hipblas.h: vectors, and matrices with vectors. A macro has the functions of one type: T its
// elements and R their parts; N is the type of sizes, `n` its letter, and U the end of the names.
// rocblas.h includes it too: WC_NAME makes a name, WC_RESULT a status.

#define WC_LEVEL_1(P, T, R, N, n, U)                                                               \
    WC_FN WC_NAME(P, axpy, U)(WC_H, N m, const T *alpha, const T *x, N incx, T *y, N incy)         \
        WC_BLAS("axpy." #P, sizeof(T), n "sp" n "p" n, m, alpha, x, incx, y, incy)                 \
    WC_FN WC_NAME(P, scal, U)(WC_H, N m, const T *alpha, T *x, N incx)                             \
        WC_BLAS("scal." #P, sizeof(T), n "sp" n, m, alpha, x, incx)                                \
    WC_FN WC_NAME(P, copy, U)(WC_H, N m, const T *x, N incx, T *y, N incy)                         \
        WC_BLAS("copy." #P, sizeof(T), n "p" n "p" n, m, x, incx, y, incy)                         \
    WC_FN WC_NAME(P, swap, U)(WC_H, N m, T *x, N incx, T *y, N incy)                               \
        WC_BLAS("swap." #P, sizeof(T), n "p" n "p" n, m, x, incx, y, incy)
#define WC_NORMS(P, RP, T, R, N, n, U)                                                             \
    WC_FN WC_NAME(RP, nrm2, U)(WC_H, N m, const T *x, N incx, R *result)                           \
        WC_BLAS("nrm2." #P, 0, n "p" n "r", m, x, incx, result)                                    \
    WC_FN WC_NAME(RP, asum, U)(WC_H, N m, const T *x, N incx, R *result)                           \
        WC_BLAS("asum." #P, 0, n "p" n "r", m, x, incx, result)
#define WC_DOT(P, F, T, N, n, U)                                                                   \
    WC_FN WC_NAME(P, F, U)(WC_H, N m, const T *x, N incx, const T *y, N incy, T *result)           \
        WC_BLAS(#F "." #P, 0, n "p" n "p" n "r", m, x, incx, y, incy, result)
#define WC_EXTREMES(P, L, T, N, n, U)                                                              \
    WC_FN WC_INDEX_NAME(L, amax, U)(WC_H, N m, const T *x, N incx, N *result)                      \
        WC_BLAS("amax." #P, 0, "i" n "p" n "r", (int)sizeof(N), m, x, incx, result)                \
    WC_FN WC_INDEX_NAME(L, amin, U)(WC_H, N m, const T *x, N incx, N *result)                      \
        WC_BLAS("amin." #P, 0, "i" n "p" n "r", (int)sizeof(N), m, x, incx, result)
#define WC_SCALED_BY_REAL(L, P, T, R, N, n, U)                                                     \
    WC_FN WC_NAME(L, scal, U)(WC_H, N m, const R *alpha, T *x, N incx)                             \
        WC_BLAS("scal_real." #P, sizeof(T), n "hp" n, m, alpha, x, incx)

#define WC_LEVEL_2(P, T, R, N, n, U)                                                               \
    WC_FN WC_NAME(P, gemv, U)(WC_H, WC_TR trans, N m, N k, const T *alpha, const T *a, N lda,      \
                              const T *x, N incx, const T *beta, T *y, N incy)                     \
        WC_BLAS("gemv." #P, sizeof(T), "i" n n "sp" n "p" n "sp" n, trans, m, k, alpha, a, lda, x, \
                incx, beta, y, incy)                                                               \
    WC_FN WC_NAME(P, trmv, U)(WC_H, WC_FILL uplo, WC_TR trans, WC_DIAG diag, N m, const T *a,      \
                              N lda, T *x, N incx)                                                 \
        WC_BLAS("trmv." #P, 0, "iii" n "p" n "p" n, uplo, trans, diag, m, a, lda, x, incx)         \
    WC_FN WC_NAME(P, trsv, U)(WC_H, WC_FILL uplo, WC_TR trans, WC_DIAG diag, N m, const T *a,      \
                              N lda, T *x, N incx)                                                 \
        WC_BLAS("trsv." #P, 0, "iii" n "p" n "p" n, uplo, trans, diag, m, a, lda, x, incx)
#define WC_GER(P, F, T, N, n, U)                                                                   \
    WC_FN WC_NAME(P, F, U)(WC_H, N m, N k, const T *alpha, const T *x, N incx, const T *y, N incy, \
                           T *a, N lda)                                                            \
        WC_BLAS(#F "." #P, sizeof(T), n n "sp" n "p" n "p" n, m, k, alpha, x, incx, y, incy, a,    \
                lda)
#define WC_SYMMETRIC_2(P, MV, R1, LETTER, A, R2, T, N, n, U)                                       \
    WC_FN WC_NAME(P, MV, U)(WC_H, WC_FILL uplo, N m, const T *alpha, const T *a, N lda,            \
                            const T *x, N incx, const T *beta, T *y, N incy)                       \
        WC_BLAS(#MV "." #P, sizeof(T), "i" n "sp" n "p" n "sp" n, uplo, m, alpha, a, lda, x, incx, \
                beta, y, incy)                                                                     \
    WC_FN WC_NAME(P, R1, U)(WC_H, WC_FILL uplo, N m, const A *alpha, const T *x, N incx, T *a,     \
                            N lda)                                                                 \
        WC_BLAS(#R1 "." #P, sizeof(T), "i" n LETTER "p" n "p" n, uplo, m, alpha, x, incx, a, lda)  \
    WC_FN WC_NAME(P, R2, U)(WC_H, WC_FILL uplo, N m, const T *alpha, const T *x, N incx,           \
                            const T *y, N incy, T *a, N lda)                                       \
        WC_BLAS(#R2 "." #P, sizeof(T), "i" n "sp" n "p" n "p" n, uplo, m, alpha, x, incx, y, incy, \
                a, lda)

#define WC_VECTORS(N, n, U)                                                                        \
    WC_LEVEL_1(S, float, float, N, n, U)                                                           \
    WC_LEVEL_1(D, double, double, N, n, U)                                                         \
    WC_LEVEL_1(C, hipblasComplex, float, N, n, U)                                                  \
    WC_LEVEL_1(Z, hipblasDoubleComplex, double, N, n, U)                                           \
    WC_EXTREMES(S, s, float, N, n, U)                                                              \
    WC_EXTREMES(D, d, double, N, n, U)                                                             \
    WC_EXTREMES(C, c, hipblasComplex, N, n, U)                                                     \
    WC_EXTREMES(Z, z, hipblasDoubleComplex, N, n, U)                                               \
    WC_NORMS(S, S, float, float, N, n, U)                                                          \
    WC_NORMS(D, D, double, double, N, n, U)                                                        \
    WC_NORMS(C, Sc, hipblasComplex, float, N, n, U)                                                \
    WC_NORMS(Z, Dz, hipblasDoubleComplex, double, N, n, U)                                         \
    WC_DOT(H, dot, hipblasHalf, N, n, U)                                                           \
    WC_DOT(Bf, dot, hipblasBfloat16, N, n, U)                                                      \
    WC_DOT(S, dot, float, N, n, U)                                                                 \
    WC_DOT(D, dot, double, N, n, U)                                                                \
    WC_DOT(C, dotu, hipblasComplex, N, n, U)                                                       \
    WC_DOT(C, dotc, hipblasComplex, N, n, U)                                                       \
    WC_DOT(Z, dotu, hipblasDoubleComplex, N, n, U)                                                 \
    WC_DOT(Z, dotc, hipblasDoubleComplex, N, n, U)                                                 \
    WC_SCALED_BY_REAL(Cs, C, hipblasComplex, float, N, n, U)                                       \
    WC_SCALED_BY_REAL(Zd, Z, hipblasDoubleComplex, double, N, n, U)                                \
    WC_LEVEL_2(S, float, float, N, n, U)                                                           \
    WC_LEVEL_2(D, double, double, N, n, U)                                                         \
    WC_LEVEL_2(C, hipblasComplex, float, N, n, U)                                                  \
    WC_LEVEL_2(Z, hipblasDoubleComplex, double, N, n, U)                                           \
    WC_GER(S, ger, float, N, n, U)                                                                 \
    WC_GER(D, ger, double, N, n, U)                                                                \
    WC_GER(C, geru, hipblasComplex, N, n, U)                                                       \
    WC_GER(C, gerc, hipblasComplex, N, n, U)                                                       \
    WC_GER(Z, geru, hipblasDoubleComplex, N, n, U)                                                 \
    WC_GER(Z, gerc, hipblasDoubleComplex, N, n, U)                                                 \
    WC_SYMMETRIC_2(S, symv, syr, "s", float, syr2, float, N, n, U)                                 \
    WC_SYMMETRIC_2(D, symv, syr, "s", double, syr2, double, N, n, U)                               \
    WC_SYMMETRIC_2(C, hemv, her, "h", float, her2, hipblasComplex, N, n, U)                        \
    WC_SYMMETRIC_2(Z, hemv, her, "h", double, her2, hipblasDoubleComplex, N, n, U)
WC_VECTORS(int, "i", )
WC_VECTORS(int64_t, "l", _64)

#define WC_ROTATIONS(P, T)                                                                         \
    WC_FN WC_NAME(P, rot, )(WC_H, int m, T *x, int incx, T *y, int incy, const T *c, const T *s)   \
        WC_BLAS("rot." #P, sizeof(T), "ipipiss", m, x, incx, y, incy, c, s)                        \
    WC_FN WC_NAME(P, rotg, )(WC_H, T *a, T *b, T *c, T *s) {                                       \
        WC_NEEDS_HANDLE                                                                            \
        T parts[4];                                                                                \
        int status = __wavecast_library(WC_CONTEXT->stream, "hipblas.rotg." #P, sizeof(T), "ssr",  \
                                        a, b, parts);                                              \
        *a = parts[0], *b = parts[1], *c = parts[2], *s = parts[3];                                \
        return WC_RESULT((hipblasStatus_t)status);                                                 \
    }
WC_ROTATIONS(S, float)
WC_ROTATIONS(D, double)

#undef WC_LEVEL_1
#undef WC_LEVEL_2
#undef WC_NORMS
#undef WC_DOT
#undef WC_EXTREMES
#undef WC_SCALED_BY_REAL
#undef WC_GER
#undef WC_SYMMETRIC_2
#undef WC_VECTORS
#undef WC_ROTATIONS
