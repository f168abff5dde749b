// Part of hipblas.h.

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

#undef WC_FACTORS
