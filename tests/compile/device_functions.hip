// Functions of ROCm's headers by group, one element per lane: test_device_functions.py.
#include <hip/hip_runtime.h>

extern "C" __global__ void bits(const unsigned *x, const unsigned *y, const unsigned *z, unsigned *out) {
    int i = threadIdx.x, n = blockDim.x;
    unsigned long long wide = (unsigned long long)y[i] << 32 | x[i];
    unsigned long long results[] = {
        __bitextract_u32(x[i], y[i], z[i]), __bitinsert_u32(x[i], y[i], z[i], y[i] >> 7),
        __bitextract_u64(wide, y[i], z[i]), __bitinsert_u64(wide, ~wide, z[i], y[i] >> 7),
        __funnelshift_lc(x[i], y[i], z[i] & 63), __funnelshift_rc(x[i], y[i], z[i] & 63),
        __lastbit_u32_u64(i % 4 ? wide : wide & ~0xfffull), __lastbit_u32_u64(0),
        (unsigned)__fns32(x[i], z[i] & 31, (int)(y[i] % 9) - 4),
        (unsigned)__fns64(wide, z[i] & 63, (int)(y[i] % 33) - 16),
    };
    for (int k = 0; k < 10; ++k) {
        out[(2 * k) * n + i] = (unsigned)results[k];
        out[(2 * k + 1) * n + i] = (unsigned)(results[k] >> 32);
    }
}

extern "C" __global__ void lanes(unsigned *out) {
    int i = threadIdx.x, n = blockDim.x;
    if (i % 3 == 1) return;
    unsigned long long masks[] = {__lanemask_lt(), __lanemask_eq(), __lanemask_gt()};
    for (int k = 0; k < 3; ++k) {
        out[(2 * k) * n + i] = (unsigned)masks[k];
        out[(2 * k + 1) * n + i] = (unsigned)(masks[k] >> 32);
    }
    out[6 * n + i] = __mbcnt_hi(0xffffffff, __mbcnt_lo(0xffffffff, 5));
}

extern "C" __global__ void reductions(float *largest, double *least, float *sum, const float *x) {
    int i = threadIdx.x;
    safeAtomicMax(&largest[0], x[i]);
    unsafeAtomicMax(&largest[1], x[i]);
    safeAtomicMin(&least[0], (double)x[i]);
    unsafeAtomicMin(&least[1], (double)x[i]);
    atomicAddNoRet(sum, 0.5f);
}

extern "C" __global__ void copies(char *to, const char *from, int bytes) {
    int i = threadIdx.x;
    memset(to + i * 2 * bytes, i, 2 * bytes);
    memcpy(to + i * 2 * bytes, from + i * bytes, bytes);
}

// T with the suffix f of its functions; results are rows of `out`.
#define MATH(name, T, f)                                                                       \
    extern "C" __global__ void name(const T *x, const T *y, T *out, int *integers) {                  \
        int i = threadIdx.x, n = blockDim.x, quotient;                                                \
        T four[] = {x[i], y[i], x[i] + 1, y[i] - 1}, s, c;                                            \
        sincospi##f(x[i], &s, &c);                                                                    \
        T results[] = {                                                                               \
            rhypot##f(x[i], y[i]), norm3d##f(x[i], y[i], four[2]),                                    \
            norm4d##f(x[i], y[i], four[2], four[3]), rnorm3d##f(x[i], y[i], four[2]),                 \
            rnorm4d##f(x[i], y[i], four[2], four[3]), norm##f(4, four), rnorm##f(4, four),            \
            scalbn##f(x[i], (int)y[i]), scalbln##f(x[i], (long)y[i]), s, c,                           \
            remquo##f(x[i], y[i], &quotient), powi##f(y[i], 5), cyl_bessel_i0##f(x[i]),               \
            cyl_bessel_i1##f(x[i]), jn##f(3, x[i]), yn##f(3, fabs##f(x[i]) + 2), jn##f(0, x[i]),      \
            jn##f(1, x[i]),                                                                           \
        };                                                                                            \
        for (int k = 0; k < 19; ++k) out[k * n + i] = results[k];                                     \
        integers[i] = quotient & 7;                                                                   \
        integers[n + i] = ilogb##f(x[i]);                                                             \
        integers[2 * n + i] = __isnan##f(x[i]) | __isinf##f(x[i]) << 1 | __finite##f(x[i]) << 2 |     \
                              (__signbit##f(x[i]) != 0) << 3;                                         \
    }
MATH(floats, float, f)
MATH(doubles, double, )
