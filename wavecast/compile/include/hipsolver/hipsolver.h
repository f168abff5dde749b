// hipSOLVER: LU, Cholesky, QR, eigenvalues and singular values of dense matrices, computed on the host
// (docs/hip.md, "Libraries").
#pragma once

#include <hip/hip_complex.h>
#include <wavecast/library_call.h>
#include <wavecast/library_types.h>

typedef enum hipsolverStatus_t {
    HIPSOLVER_STATUS_SUCCESS = 0, HIPSOLVER_STATUS_NOT_INITIALIZED = 1,
    HIPSOLVER_STATUS_ALLOC_FAILED = 2, HIPSOLVER_STATUS_INVALID_VALUE = 3,
    HIPSOLVER_STATUS_MAPPING_ERROR = 4, HIPSOLVER_STATUS_EXECUTION_FAILED = 5,
    HIPSOLVER_STATUS_INTERNAL_ERROR = 6, HIPSOLVER_STATUS_NOT_SUPPORTED = 7,
    HIPSOLVER_STATUS_ARCH_MISMATCH = 8, HIPSOLVER_STATUS_HANDLE_IS_NULLPTR = 9,
    HIPSOLVER_STATUS_INVALID_ENUM = 10, HIPSOLVER_STATUS_UNKNOWN = 11,
    HIPSOLVER_STATUS_ZERO_PIVOT = 12, HIPSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 13
} hipsolverStatus_t;
typedef enum { HIPSOLVER_OP_N = 111, HIPSOLVER_OP_T = 112, HIPSOLVER_OP_C = 113 } hipsolverOperation_t;
typedef enum { HIPSOLVER_FILL_MODE_UPPER = 121, HIPSOLVER_FILL_MODE_LOWER = 122 } hipsolverFillMode_t;
typedef enum { HIPSOLVER_SIDE_LEFT = 141, HIPSOLVER_SIDE_RIGHT = 142 } hipsolverSideMode_t;
typedef enum {
    HIPSOLVER_EIG_MODE_NOVECTOR = 201, HIPSOLVER_EIG_MODE_VECTOR = 202
} hipsolverEigMode_t;

typedef enum {
    HIPSOLVER_EIG_TYPE_1 = 211, HIPSOLVER_EIG_TYPE_2 = 212, HIPSOLVER_EIG_TYPE_3 = 213
} hipsolverEigType_t;
typedef enum {
    HIPSOLVER_EIG_RANGE_ALL = 221, HIPSOLVER_EIG_RANGE_V = 222, HIPSOLVER_EIG_RANGE_I = 223
} hipsolverEigRange_t;

struct __wc_solver_context {
    hipStream_t stream;
};
typedef void *hipsolverHandle_t, *hipsolverDnHandle_t;

#define WC_FN WC_LIBRARY_FN hipsolverStatus_t
#define WC_H hipsolverHandle_t handle
#define WC_SOLVER(name, ...)                                                                       \
    {                                                                                              \
        if (!handle) return HIPSOLVER_STATUS_NOT_INITIALIZED;                                      \
        return (hipsolverStatus_t)__wavecast_library(                                              \
            ((struct __wc_solver_context *)handle)->stream, "hipsolver." name, 0, __VA_ARGS__);    \
    }
// Work areas are not needed; programs allocate what these functions say.
#define WC_WORK                                                \
    {                                                          \
        if (!handle) return HIPSOLVER_STATUS_NOT_INITIALIZED;  \
        if (!count) return HIPSOLVER_STATUS_INVALID_VALUE;     \
        *count = 1;                                            \
        return HIPSOLVER_STATUS_SUCCESS;                       \
    }

WC_FN hipsolverCreate(hipsolverHandle_t *handle) {
    if (!handle) return HIPSOLVER_STATUS_INVALID_VALUE;
    *handle = calloc(1, sizeof(struct __wc_solver_context));
    return *handle ? HIPSOLVER_STATUS_SUCCESS : HIPSOLVER_STATUS_ALLOC_FAILED;
}
WC_FN hipsolverDestroy(WC_H) {
    free(handle);
    return HIPSOLVER_STATUS_SUCCESS;
}
WC_FN hipsolverSetStream(WC_H, hipStream_t stream) {
    if (!handle) return HIPSOLVER_STATUS_NOT_INITIALIZED;
    ((struct __wc_solver_context *)handle)->stream = stream;
    return HIPSOLVER_STATUS_SUCCESS;
}
WC_FN hipsolverGetStream(WC_H, hipStream_t *stream) {
    if (!handle) return HIPSOLVER_STATUS_NOT_INITIALIZED;
    if (!stream) return HIPSOLVER_STATUS_INVALID_VALUE;
    *stream = ((struct __wc_solver_context *)handle)->stream;
    return HIPSOLVER_STATUS_SUCCESS;
}

// Jacobi's method stops at no tolerance here: eigenvalues are exact to rounding, after one sweep.
struct __wc_jacobi {
    double tolerance;
    int sweeps, sorts;
};
typedef struct __wc_jacobi *hipsolverSyevjInfo_t;
WC_FN hipsolverCreateSyevjInfo(hipsolverSyevjInfo_t *info) {
    if (!info) return HIPSOLVER_STATUS_INVALID_VALUE;
    *info = (hipsolverSyevjInfo_t)calloc(1, sizeof(struct __wc_jacobi));
    return *info ? HIPSOLVER_STATUS_SUCCESS : HIPSOLVER_STATUS_ALLOC_FAILED;
}
WC_FN hipsolverDestroySyevjInfo(hipsolverSyevjInfo_t info) {
    free(info);
    return HIPSOLVER_STATUS_SUCCESS;
}
#define WC_JACOBI(name, T, field)                                                                  \
    WC_FN hipsolverXsyevjSet##name(hipsolverSyevjInfo_t info, T value) {                           \
        if (!info) return HIPSOLVER_STATUS_INVALID_VALUE;                                          \
        info->field = value;                                                                       \
        return HIPSOLVER_STATUS_SUCCESS;                                                           \
    }
WC_JACOBI(Tolerance, double, tolerance)
WC_JACOBI(MaxSweeps, int, sweeps)
WC_JACOBI(SortEig, int, sorts)
#undef WC_JACOBI
WC_FN hipsolverXsyevjGetSweeps(WC_H, hipsolverSyevjInfo_t info, int *sweeps) {
    if (!handle || !info) return HIPSOLVER_STATUS_NOT_INITIALIZED;
    *sweeps = 1;
    return HIPSOLVER_STATUS_SUCCESS;
}
WC_FN hipsolverXsyevjGetResidual(WC_H, hipsolverSyevjInfo_t info, double *residual) {
    if (!handle || !info) return HIPSOLVER_STATUS_NOT_INITIALIZED;
    *residual = 0;
    return HIPSOLVER_STATUS_SUCCESS;
}
WC_FN hipsolverDnCreate(hipsolverHandle_t *handle) { return hipsolverCreate(handle); }
WC_FN hipsolverDnDestroy(WC_H) { return hipsolverDestroy(handle); }
WC_FN hipsolverDnSetStream(WC_H, hipStream_t stream) { return hipsolverSetStream(handle, stream); }

// The functions of one type under both names, `hipsolverDn` as of cuSOLVER and `hipsolver`. T is the
// type of elements, R of their parts.
#define WC_DENSE(Dn, P, T, R)                                                                      \
    WC_FN hipsolver##Dn##P##potrf_bufferSize(WC_H, hipsolverFillMode_t, int, T *, int,             \
                                             int *count) WC_WORK                                   \
    WC_FN hipsolver##Dn##P##potrf(WC_H, hipsolverFillMode_t uplo, int n, T *a, int lda, T *, int,  \
                                  int *info)                                                       \
        WC_SOLVER("potrf." #P, "iipiP", uplo, n, a, lda, info)                                     \
    WC_FN hipsolver##Dn##P##getrf_bufferSize(WC_H, int, int, T *, int, int *count) WC_WORK         \
    WC_FN hipsolver##Dn##P##geqrf_bufferSize(WC_H, int, int, T *, int, int *count) WC_WORK         \
    WC_FN hipsolver##Dn##P##geqrf(WC_H, int m, int n, T *a, int lda, T *tau, T *, int, int *info)  \
        WC_SOLVER("geqrf." #P, "iipipp", m, n, a, lda, tau, info)                                  \
    WC_FN hipsolver##Dn##P##gesvd(WC_H, signed char left, signed char right, int m, int n, T *a,   \
                                  int lda, R *s, T *u, int ldu, T *v, int ldv, T *, int, R *,      \
                                  int *info)                                                       \
        WC_SOLVER("gesvd." #P, "iiiipippipiP", left, right, m, n, a, lda, s, u, ldu, v, ldv, info)
#define WC_EIGEN(Dn, P, name, general, T, R)                                                       \
    WC_FN hipsolver##Dn##P##name##j_bufferSize(WC_H, hipsolverEigMode_t, hipsolverFillMode_t, int, \
                                               const T *, int, const R *, int *count,              \
                                               hipsolverSyevjInfo_t) WC_WORK                       \
    WC_FN hipsolver##Dn##P##name##j(WC_H, hipsolverEigMode_t mode, hipsolverFillMode_t uplo,       \
                                    int n, T *a, int lda, R *w, T *, int, int *info,               \
                                    hipsolverSyevjInfo_t)                                          \
        WC_SOLVER("syevd." #P, "iiipipPilli", mode, uplo, n, a, lda, w, info, 1, 0LL, 0LL, 0)   \
    WC_FN hipsolver##Dn##P##name##jBatched_bufferSize(                                             \
        WC_H, hipsolverEigMode_t, hipsolverFillMode_t, int, const T *, int, const R *, int *count, \
        hipsolverSyevjInfo_t, int) WC_WORK                                                         \
    WC_FN hipsolver##Dn##P##name##jBatched(WC_H, hipsolverEigMode_t mode,                          \
                                           hipsolverFillMode_t uplo, int n, T *a, int lda, R *w,   \
                                           T *, int, int *info, hipsolverSyevjInfo_t, int batch)   \
        WC_SOLVER("syevd." #P, "iiipipPilli", mode, uplo, n, a, lda, w, info, batch,            \
                  (long long)n * lda, (long long)n, 0)                                             \
    WC_FN hipsolver##Dn##P##name##dx_bufferSize(                                                   \
        WC_H, hipsolverEigMode_t, hipsolverEigRange_t, hipsolverFillMode_t, int, const T *, int,   \
        R, R, int, int, int *, const R *, int *count) WC_WORK                                      \
    WC_FN hipsolver##Dn##P##name##dx(                                                              \
        WC_H, hipsolverEigMode_t mode, hipsolverEigRange_t range, hipsolverFillMode_t uplo, int n, \
        T *a, int lda, R lower, R upper, int first, int last, int *values, R *w, T *, int,         \
        int *info)                                                                                 \
        WC_SOLVER("syevdx." #P, "iiiipiddiipPr", mode, range, uplo, n, a, lda, (double)lower,      \
                  (double)upper, first, last, w, info, values)                                     \
    WC_FN hipsolver##Dn##P##general##d_bufferSize(                                                 \
        WC_H, hipsolverEigType_t, hipsolverEigMode_t, hipsolverFillMode_t, int, const T *, int,    \
        const T *, int, const R *, int *count) WC_WORK                                             \
    WC_FN hipsolver##Dn##P##general##d(                                                            \
        WC_H, hipsolverEigType_t type, hipsolverEigMode_t mode, hipsolverFillMode_t uplo, int n,   \
        T *a, int lda, T *b, int ldb, R *w, T *, int, int *info)                                   \
        WC_SOLVER("sygvd." #P, "iiiipipipP", type, mode, uplo, n, a, lda, b, ldb, w, info)         \
    WC_FN hipsolver##Dn##P##general##j_bufferSize(                                                 \
        WC_H, hipsolverEigType_t, hipsolverEigMode_t, hipsolverFillMode_t, int, const T *, int,    \
        const T *, int, const R *, int *count, hipsolverSyevjInfo_t) WC_WORK                       \
    WC_FN hipsolver##Dn##P##general##j(                                                            \
        WC_H, hipsolverEigType_t type, hipsolverEigMode_t mode, hipsolverFillMode_t uplo, int n,   \
        T *a, int lda, T *b, int ldb, R *w, T *, int, int *info, hipsolverSyevjInfo_t)             \
        WC_SOLVER("sygvd." #P, "iiiipipipP", type, mode, uplo, n, a, lda, b, ldb, w, info)         \
    WC_FN hipsolver##Dn##P##name##d_bufferSize(WC_H, hipsolverEigMode_t, hipsolverFillMode_t, int,  \
                                              const T *, int, const R *, int *count) WC_WORK       \
    WC_FN hipsolver##Dn##P##name##d(WC_H, hipsolverEigMode_t mode, hipsolverFillMode_t uplo, int n, \
                                 T *a, int lda, R *w, T *, int, int *info)                         \
        WC_SOLVER("syevd." #P, "iiipipPilli", mode, uplo, n, a, lda, w, info, 1, 0LL, 0LL, 0)
#define WC_ORTHOGONAL(Dn, P, make, multiply, T)                                                    \
    WC_FN hipsolver##Dn##P##make##_bufferSize(WC_H, int, int, int, const T *, int, const T *,      \
                                              int *count) WC_WORK                                  \
    WC_FN hipsolver##Dn##P##make(WC_H, int m, int n, int k, T *a, int lda, const T *tau, T *, int, \
                                 int *info)                                                        \
        WC_SOLVER("orgqr." #P, "iiipipp", m, n, k, a, lda, tau, info)                              \
    WC_FN hipsolver##Dn##P##multiply##_bufferSize(WC_H, hipsolverSideMode_t,                       \
                                                  hipsolverOperation_t, int, int, int, const T *,  \
                                                  int, const T *, const T *, int, int *count)      \
        WC_WORK                                                                                    \
    WC_FN hipsolver##Dn##P##multiply(WC_H, hipsolverSideMode_t side, hipsolverOperation_t op,      \
                                     int m, int n, int k, const T *a, int lda, const T *tau, T *c, \
                                     int ldc, T *, int, int *info)                                 \
        WC_SOLVER("ormqr." #P, "iiiiipippip", side, op, m, n, k, a, lda, tau, c, ldc, info)
#define WC_LU(P, T)                                                                                \
    WC_FN hipsolverDn##P##gesvd_bufferSize(WC_H, int, int, int *count) WC_WORK                     \
    WC_FN hipsolver##P##gesvd_bufferSize(WC_H, signed char, signed char, int, int, int *count)     \
        WC_WORK                                                                                    \
    WC_FN hipsolver##P##potrs_bufferSize(WC_H, hipsolverFillMode_t, int, int, T *, int, T *, int,  \
                                         int *count) WC_WORK                                       \
    WC_FN hipsolver##P##potrs(WC_H, hipsolverFillMode_t uplo, int n, int columns, T *a, int lda,   \
                              T *b, int ldb, T *, int, int *info)                                  \
        WC_SOLVER("potrs." #P, "iiipipip", uplo, n, columns, a, lda, b, ldb, info)                 \
    WC_FN hipsolver##P##P##gels_bufferSize(WC_H, int, int, int, T *, int, T *, int, T *, int,      \
                                           size_t *count) WC_WORK                                  \
    WC_FN hipsolver##P##P##gels(WC_H, int m, int n, int columns, T *a, int lda, T *b, int ldb,     \
                                T *x, int ldx, void *, size_t, int *iterations, int *info)         \
        WC_SOLVER("gels." #P, "iiipipipiPr", m, n, columns, a, lda, b, ldb, x, ldx, info,          \
                  iterations)                                                                      \
    WC_FN hipsolverDn##P##getrf(WC_H, int m, int n, T *a, int lda, T *, int *pivots, int *info)    \
        WC_SOLVER("getrf." #P, "iipipP", m, n, a, lda, pivots, info)                               \
    WC_FN hipsolver##P##getrf(WC_H, int m, int n, T *a, int lda, T *, int, int *pivots, int *info) \
        WC_SOLVER("getrf." #P, "iipipP", m, n, a, lda, pivots, info)                               \
    WC_FN hipsolverDn##P##getrs(WC_H, hipsolverOperation_t op, int n, int columns, const T *a,     \
                                int lda, const int *pivots, T *b, int ldb, int *info)              \
        WC_SOLVER("getrs." #P, "iiipippip", op, n, columns, a, lda, pivots, b, ldb, info)          \
    WC_FN hipsolver##P##getrs(WC_H, hipsolverOperation_t op, int n, int columns, T *a, int lda,    \
                              int *pivots, T *b, int ldb, T *, int, int *info)                     \
        WC_SOLVER("getrs." #P, "iiipippip", op, n, columns, a, lda, pivots, b, ldb, info)          \
    WC_FN hipsolver##P##getrs_bufferSize(WC_H, hipsolverOperation_t, int, int, T *, int, int *,    \
                                         T *, int, int *count) WC_WORK                             \
    WC_FN hipsolverDn##P##potrs(WC_H, hipsolverFillMode_t uplo, int n, int columns, const T *a,    \
                                int lda, T *b, int ldb, int *info)                                 \
        WC_SOLVER("potrs." #P, "iiipipip", uplo, n, columns, a, lda, b, ldb, info)
#define WC_TYPES(Dn)                                                \
    WC_DENSE(Dn, S, float, float)                                   \
    WC_DENSE(Dn, D, double, double)                                 \
    WC_DENSE(Dn, C, hipFloatComplex, float)                         \
    WC_DENSE(Dn, Z, hipDoubleComplex, double)                       \
    WC_EIGEN(Dn, S, syev, sygv, float, float)                       \
    WC_EIGEN(Dn, D, syev, sygv, double, double)                     \
    WC_EIGEN(Dn, C, heev, hegv, hipFloatComplex, float)             \
    WC_EIGEN(Dn, Z, heev, hegv, hipDoubleComplex, double)           \
    WC_ORTHOGONAL(Dn, S, orgqr, ormqr, float)                       \
    WC_ORTHOGONAL(Dn, D, orgqr, ormqr, double)                      \
    WC_ORTHOGONAL(Dn, C, ungqr, unmqr, hipFloatComplex)             \
    WC_ORTHOGONAL(Dn, Z, ungqr, unmqr, hipDoubleComplex)
WC_TYPES(Dn)
WC_TYPES()
WC_LU(S, float)
WC_LU(D, double)
WC_LU(C, hipFloatComplex)
WC_LU(Z, hipDoubleComplex)

#undef WC_DENSE
#undef WC_EIGEN
#undef WC_ORTHOGONAL
#undef WC_LU
#undef WC_TYPES
#undef WC_WORK
#undef WC_SOLVER
#undef WC_H
#undef WC_FN
