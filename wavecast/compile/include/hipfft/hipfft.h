// hipFFT. Transforms are computed on the host (docs/hip.md, "Libraries").
#pragma once

#include <hip/hip_complex.h>
#include <wavecast/library_call.h>

#define HIPFFT_FORWARD -1
#define HIPFFT_BACKWARD 1

typedef enum hipfftResult_t {
    HIPFFT_SUCCESS = 0, HIPFFT_INVALID_PLAN = 1, HIPFFT_ALLOC_FAILED = 2, HIPFFT_INVALID_TYPE = 3,
    HIPFFT_INVALID_VALUE = 4, HIPFFT_INTERNAL_ERROR = 5, HIPFFT_EXEC_FAILED = 6,
    HIPFFT_SETUP_FAILED = 7, HIPFFT_INVALID_SIZE = 8, HIPFFT_UNALIGNED_DATA = 9,
    HIPFFT_INCOMPLETE_PARAMETER_LIST = 10, HIPFFT_INVALID_DEVICE = 11, HIPFFT_PARSE_ERROR = 12,
    HIPFFT_NO_WORKSPACE = 13, HIPFFT_NOT_IMPLEMENTED = 14, HIPFFT_NOT_SUPPORTED = 16
} hipfftResult;
typedef enum hipfftType_t {
    HIPFFT_R2C = 0x2a, HIPFFT_C2R = 0x2c, HIPFFT_C2C = 0x29, HIPFFT_D2Z = 0x6a, HIPFFT_Z2D = 0x6c,
    HIPFFT_Z2Z = 0x69
} hipfftType;
typedef float hipfftReal;
typedef double hipfftDoubleReal;
typedef hipFloatComplex hipfftComplex;
typedef hipDoubleComplex hipfftDoubleComplex;

struct hipfftHandle_t {
    hipStream_t stream;
    int rank, n[3], type, batch;
    int in[3], in_step, in_distance, out[3], out_step, out_distance;  // as of hipfftPlanMany
};
typedef struct hipfftHandle_t *hipfftHandle;

#define WC_FN WC_LIBRARY_FN hipfftResult

WC_FN hipfftCreate(hipfftHandle *plan) {
    if (!plan) return HIPFFT_INVALID_PLAN;
    *plan = (hipfftHandle)calloc(1, sizeof **plan);
    return *plan ? HIPFFT_SUCCESS : HIPFFT_ALLOC_FAILED;
}
WC_FN hipfftDestroy(hipfftHandle plan) {
    if (!plan) return HIPFFT_INVALID_PLAN;
    free(plan);
    return HIPFFT_SUCCESS;
}
// Elements of the last dimension that a side has: half a spectrum has n / 2 + 1.
WC_LIBRARY_FN int __wc_fft_last(int n, hipfftType type, int output) {
    int half = output ? type == HIPFFT_R2C || type == HIPFFT_D2Z
                      : type == HIPFFT_C2R || type == HIPFFT_Z2D;
    return half ? n / 2 + 1 : n;
}
WC_FN hipfftMakePlanMany(hipfftHandle plan, int rank, int *n, int *in, int in_step,
                         int in_distance, int *out, int out_step, int out_distance,
                         hipfftType type, int batch, size_t *work_bytes) {
    if (!plan) return HIPFFT_INVALID_PLAN;
    if (rank < 1 || rank > 3 || batch < 1) return HIPFFT_INVALID_SIZE;
    plan->rank = rank, plan->type = type, plan->batch = batch;
    plan->in_step = in ? in_step : 1, plan->out_step = out ? out_step : 1;
    plan->in_distance = plan->out_distance = 1;
    for (int at = 0; at < rank; ++at) {
        if (n[at] < 1) return HIPFFT_INVALID_SIZE;
        int last = at == rank - 1;
        plan->n[at] = n[at];
        plan->in[at] = in ? in[at] : last ? __wc_fft_last(n[at], type, 0) : n[at];
        plan->out[at] = out ? out[at] : last ? __wc_fft_last(n[at], type, 1) : n[at];
        plan->in_distance *= plan->in[at], plan->out_distance *= plan->out[at];
    }
    if (in) plan->in_distance = in_distance;
    if (out) plan->out_distance = out_distance;
    if (work_bytes) *work_bytes = 0;
    return HIPFFT_SUCCESS;
}
WC_FN hipfftPlanMany(hipfftHandle *plan, int rank, int *n, int *in, int in_step, int in_distance,
                     int *out, int out_step, int out_distance, hipfftType type, int batch) {
    hipfftResult result = hipfftCreate(plan);
    return result ? result
                  : hipfftMakePlanMany(*plan, rank, n, in, in_step, in_distance, out, out_step,
                                       out_distance, type, batch, NULL);
}
#define WC_PLAN(plan, rank, type, batch, work) \
    hipfftMakePlanMany(plan, rank, n, NULL, 1, 0, NULL, 1, 0, type, batch, work)
WC_FN hipfftMakePlan1d(hipfftHandle plan, int x, hipfftType type, int batch, size_t *work_bytes) {
    int n[] = {x};
    return WC_PLAN(plan, 1, type, batch, work_bytes);
}
WC_FN hipfftMakePlan2d(hipfftHandle plan, int x, int y, hipfftType type, size_t *work_bytes) {
    int n[] = {x, y};
    return WC_PLAN(plan, 2, type, 1, work_bytes);
}
WC_FN hipfftMakePlan3d(hipfftHandle plan, int x, int y, int z, hipfftType type,
                       size_t *work_bytes) {
    int n[] = {x, y, z};
    return WC_PLAN(plan, 3, type, 1, work_bytes);
}
WC_FN hipfftPlan1d(hipfftHandle *plan, int x, hipfftType type, int batch) {
    hipfftResult result = hipfftCreate(plan);
    return result ? result : hipfftMakePlan1d(*plan, x, type, batch, NULL);
}
WC_FN hipfftPlan2d(hipfftHandle *plan, int x, int y, hipfftType type) {
    hipfftResult result = hipfftCreate(plan);
    return result ? result : hipfftMakePlan2d(*plan, x, y, type, NULL);
}
WC_FN hipfftPlan3d(hipfftHandle *plan, int x, int y, int z, hipfftType type) {
    hipfftResult result = hipfftCreate(plan);
    return result ? result : hipfftMakePlan3d(*plan, x, y, z, type, NULL);
}
#undef WC_PLAN
WC_FN hipfftSetStream(hipfftHandle plan, hipStream_t stream) {
    if (!plan) return HIPFFT_INVALID_PLAN;
    plan->stream = stream;
    return HIPFFT_SUCCESS;
}
WC_FN hipfftSetAutoAllocation(hipfftHandle plan, int automatic) {
    (void)automatic;
    return plan ? HIPFFT_SUCCESS : HIPFFT_INVALID_PLAN;
}
WC_FN hipfftSetWorkArea(hipfftHandle plan, void *area) {
    (void)area;
    return plan ? HIPFFT_SUCCESS : HIPFFT_INVALID_PLAN;
}
WC_FN hipfftGetSize(hipfftHandle plan, size_t *work_bytes) {
    *work_bytes = 0;
    return plan ? HIPFFT_SUCCESS : HIPFFT_INVALID_PLAN;
}
WC_FN hipfftGetVersion(int *version) {
    *version = 10017;
    return HIPFFT_SUCCESS;
}

WC_FN __wc_fft(hipfftHandle p, int type, const void *from, void *to, int direction) {
    if (!p || !p->rank) return HIPFFT_INVALID_PLAN;
    if (p->type != type) return HIPFFT_INVALID_TYPE;
    return (hipfftResult)__wavecast_library(
        p->stream, "hipfft.exec", 0, "iiiiiiipiiiiipiiiii", type, p->rank, p->n[0], p->n[1],
        p->n[2], p->batch, direction, from, p->in_step, p->in_distance, p->in[0], p->in[1],
        p->in[2], to, p->out_step, p->out_distance, p->out[0], p->out[1], p->out[2]);
}
#define WC_EXEC(name, from, to)                                                       \
    WC_FN hipfftExec##name(hipfftHandle plan, from *in, to *out, int direction) {     \
        return __wc_fft(plan, HIPFFT_##name, in, out, direction);                     \
    }
#define WC_EXEC_REAL(name, from, to, direction)                       \
    WC_FN hipfftExec##name(hipfftHandle plan, from *in, to *out) {    \
        return __wc_fft(plan, HIPFFT_##name, in, out, direction);     \
    }
WC_EXEC(C2C, hipfftComplex, hipfftComplex)
WC_EXEC(Z2Z, hipfftDoubleComplex, hipfftDoubleComplex)
WC_EXEC_REAL(R2C, hipfftReal, hipfftComplex, HIPFFT_FORWARD)
WC_EXEC_REAL(D2Z, hipfftDoubleReal, hipfftDoubleComplex, HIPFFT_FORWARD)
WC_EXEC_REAL(C2R, hipfftComplex, hipfftReal, HIPFFT_BACKWARD)
WC_EXEC_REAL(Z2D, hipfftDoubleComplex, hipfftDoubleReal, HIPFFT_BACKWARD)
#undef WC_EXEC
#undef WC_EXEC_REAL
#undef WC_FN
