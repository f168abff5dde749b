// rocSOLVER on dense matrices, as hipSOLVER (docs/hip.md, "Libraries"). Handles are those of rocBLAS.
#pragma once

#include <rocblas/rocblas.h>

typedef enum rocblas_evect_ {
    rocblas_evect_original = 211, rocblas_evect_tridiagonal = 212, rocblas_evect_none = 213
} rocblas_evect;
typedef enum rocblas_svect_ {
    rocblas_svect_all = 191, rocblas_svect_singular = 192, rocblas_svect_overwrite = 193,
    rocblas_svect_none = 194
} rocblas_svect;
typedef enum rocblas_workmode_ {
    rocblas_outofplace = 201, rocblas_inplace = 202
} rocblas_workmode;

#define WC_FN WC_LIBRARY_FN rocblas_status
#define WC_H rocblas_handle handle
#define WC_SOLVER(name, ...)                                                                       \
    {                                                                                              \
        if (!handle) return rocblas_status_invalid_handle;                                         \
        return __wc_rocblas((hipblasStatus_t)__wavecast_library(                                   \
            ((struct __wc_blas_context *)handle)->stream, "hipsolver." name, 0, __VA_ARGS__));     \
    }

// What hipSOLVER's functions call the vectors: 202 wants them, and a letter per job.
WC_LIBRARY_FN int __wc_eigenvectors(rocblas_evect mode) {
    return mode == rocblas_evect_original ? 202 : mode == rocblas_evect_none ? 201 : 0;
}
WC_LIBRARY_FN int __wc_singular_vectors(rocblas_svect mode) {
    const char letters[] = {'A', 'S', 'O', 'N'};
    return mode < rocblas_svect_all || mode > rocblas_svect_none ? 0
                                                                 : letters[mode - rocblas_svect_all];
}

#define WC_LU(P, p, T, name)                                                                       \
    WC_FN rocsolver_##p##name(WC_H, int m, int n, T *a, int lda, int *pivots, int *info)           \
        WC_SOLVER("getrf." #P, "iipipP", m, n, a, lda, pivots, info)
#define WC_CHOLESKY(P, p, T, name)                                                                 \
    WC_FN rocsolver_##p##name(WC_H, rocblas_fill uplo, int n, T *a, int lda, int *info)            \
        WC_SOLVER("potrf." #P, "iipiP", uplo, n, a, lda, info)
#define WC_QR(P, p, T, name)                                                                       \
    WC_FN rocsolver_##p##name(WC_H, int m, int n, T *a, int lda, T *tau)                           \
        WC_SOLVER("geqrf." #P, "iipipp", m, n, a, lda, tau, 0)
#define WC_EIGEN(P, p, T, R, name)                                                                 \
    WC_FN rocsolver_##p##name##_strided_batched(                                                   \
        WC_H, rocblas_evect mode, rocblas_fill uplo, int n, T *a, int lda, rocblas_stride sa,      \
        R *w, rocblas_stride sw, R *, rocblas_stride, int *info, int batch)                        \
        WC_SOLVER("syevd." #P, "iiipipPilli", __wc_eigenvectors(mode), uplo, n, a, lda, w, info,   \
                  batch, (long long)sa, (long long)sw, 0)                                          \
    WC_FN rocsolver_##p##name##_batched(WC_H, rocblas_evect mode, rocblas_fill uplo, int n,        \
                                        T *const a[], int lda, R *w, rocblas_stride sw, R *,       \
                                        rocblas_stride, int *info, int batch)                      \
        WC_SOLVER("syevd." #P, "iiipipPilli", __wc_eigenvectors(mode), uplo, n, a, lda, w, info,   \
                  batch, 0LL, (long long)sw, 1)                                                    \
    WC_FN rocsolver_##p##name(WC_H, rocblas_evect mode, rocblas_fill uplo, int n, T *a, int lda,   \
                              R *w, R *, int *info)                                                \
        WC_SOLVER("syevd." #P, "iiipipPilli", __wc_eigenvectors(mode), uplo, n, a, lda, w, info,   \
                  1, 0LL, 0LL, 0)
#define WC_DENSE(P, p, T, R, syev, orgqr, ormqr)                                                   \
    WC_LU(P, p, T, getf2)                                                                          \
    WC_LU(P, p, T, getrf)                                                                          \
    WC_CHOLESKY(P, p, T, potf2)                                                                    \
    WC_CHOLESKY(P, p, T, potrf)                                                                    \
    WC_QR(P, p, T, geqr2)                                                                          \
    WC_QR(P, p, T, geqrf)                                                                          \
    WC_EIGEN(P, p, T, R, syev)                                                                     \
    WC_EIGEN(P, p, T, R, syev##d)                                                                  \
    WC_FN rocsolver_##p##getrs(WC_H, rocblas_operation op, int n, int columns, T *a, int lda,      \
                               const int *pivots, T *b, int ldb)                                   \
        WC_SOLVER("getrs." #P, "iiipippip", op, n, columns, a, lda, pivots, b, ldb, 0)             \
    WC_FN rocsolver_##p##getri(WC_H, int n, T *a, int lda, int *pivots, int *info)                 \
        WC_SOLVER("getri." #P, "ipipP", n, a, lda, pivots, info)                                   \
    WC_FN rocsolver_##p##potrs(WC_H, rocblas_fill uplo, int n, int columns, T *a, int lda, T *b,   \
                               int ldb)                                                            \
        WC_SOLVER("potrs." #P, "iiipipip", uplo, n, columns, a, lda, b, ldb, 0)                    \
    WC_FN rocsolver_##p##orgqr(WC_H, int m, int n, int k, T *a, int lda, T *tau)                   \
        WC_SOLVER("orgqr." #P, "iiipipp", m, n, k, a, lda, tau, 0)                                 \
    WC_FN rocsolver_##p##ormqr(WC_H, rocblas_side side, rocblas_operation op, int m, int n, int k, \
                               T *a, int lda, T *tau, T *c, int ldc)                               \
        WC_SOLVER("ormqr." #P, "iiiiipippip", side, op, m, n, k, a, lda, tau, c, ldc, 0)           \
    WC_FN rocsolver_##p##gesvd(WC_H, rocblas_svect left, rocblas_svect right, int m, int n, T *a,  \
                               int lda, R *s, T *u, int ldu, T *v, int ldv, R *, rocblas_workmode, \
                               int *info)                                                          \
        WC_SOLVER("gesvd." #P, "iiiipippipiP", __wc_singular_vectors(left),                        \
                  __wc_singular_vectors(right), m, n, a, lda, s, u, ldu, v, ldv, info)
WC_DENSE(S, s, float, float, syev, orgqr, ormqr)
WC_DENSE(D, d, double, double, syev, orgqr, ormqr)
WC_DENSE(C, c, rocblas_float_complex, float, heev, ungqr, unmqr)
WC_DENSE(Z, z, rocblas_double_complex, double, heev, ungqr, unmqr)

#undef WC_LU
#undef WC_CHOLESKY
#undef WC_QR
#undef WC_EIGEN
#undef WC_DENSE
#undef WC_SOLVER
#undef WC_H
#undef WC_FN
