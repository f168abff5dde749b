// Numbers that are none, each with the kernel that computes right. `x[3]` and `y[3]` are given.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define KERNEL extern "C" __global__ void
#define ARGUMENTS(T) (const T *x, const T *y, T *out, int n)

KERNEL divided_f32 ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = x[i] / y[i]; // PLANTED
}
KERNEL divided_f64 ARGUMENTS(double) {
    int i = threadIdx.x;
    out[i] = x[i] / y[i]; // PLANTED
}
KERNEL divided_f16 ARGUMENTS(_Float16) {
    int i = threadIdx.x;
    out[i] = x[i] / y[i]; // PLANTED
}
KERNEL fast ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = __fdividef(x[i], y[i]); // PLANTED
}
KERNEL reciprocal ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = x[i] * __builtin_amdgcn_rcpf(y[i]); // PLANTED
}
KERNEL root_f32 ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = sqrtf(x[i]); // PLANTED
}
KERNEL root_f64 ARGUMENTS(double) {
    int i = threadIdx.x;
    out[i] = sqrt(x[i]); // PLANTED
}
KERNEL logarithm ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = logf(x[i]); // PLANTED
}
KERNEL difference ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = x[i] - y[i]; // PLANTED
}
KERNEL accumulated ARGUMENTS(float) {
    float total = 0;
    for (int i = threadIdx.x; i < n; i += 64)
        total += x[i] / y[i]; // PLANTED
    out[threadIdx.x] = total;
}
KERNEL chosen_f32 ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = y[i] != 0 ? x[i] / y[i] : 0;
}
KERNEL chosen_f64 ARGUMENTS(double) {
    int i = threadIdx.x;
    out[i] = y[i] != 0 ? x[i] / y[i] : 0;
}
KERNEL chosen_fast ARGUMENTS(float) {
    int i = threadIdx.x;
    float value = x[i] * __builtin_amdgcn_rcpf(y[i]);
    out[i] = y[i] != 0 ? value : 0;
}
KERNEL chosen_later ARGUMENTS(float) {
    int i = threadIdx.x;
    float value = 2 * (x[i] / y[i]) + 1;
    out[i] = y[i] != 0 ? value : 0;
}
KERNEL finite ARGUMENTS(float) {
    int i = threadIdx.x;
    float value = x[i] / y[i];
    out[i] = isfinite(value) ? value : 0;
}
KERNEL stored_where ARGUMENTS(float) {
    int i = threadIdx.x;
    float value = x[i] / y[i];
    if (y[i] != 0) out[i] = value;
}
KERNEL power_f32 ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = powf(x[i], y[i]); // PLANTED
}
KERNEL power_f64 ARGUMENTS(double) {
    int i = threadIdx.x;
    out[i] = pow(x[i], y[i]); // PLANTED
}
KERNEL rest_f32 ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = fmodf(x[i], y[i]); // PLANTED
}
KERNEL power_chosen ARGUMENTS(float) {
    int i = threadIdx.x;
    float high = 1.055f * powf(x[i], 1 / 2.4f) - 0.055f;
    out[i] = x[i] > 0.0031308f ? high : 12.92f * x[i];
}
KERNEL hyperbolic ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = tanhf(x[i]);
}
KERNEL error_function ARGUMENTS(float) {
    int i = threadIdx.x;
    out[i] = erff(x[i]);
}
KERNEL gate ARGUMENTS(float) {
    __shared__ float gates[64];
    int i = threadIdx.x;
    gates[i] = 1 / (1 + expf(x[i]));
    out[i] = gates[i];
}
