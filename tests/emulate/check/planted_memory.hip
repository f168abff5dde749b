// Mistakes in what a kernel reads and writes, each with the kernel without it. A line with PLANTED
// has the mistake; the word behind it is the kind of the report.
//
// `in` has 256 floats and lies in the middle of its storage; `pick` counts from 0.
#include <hip/hip_runtime.h>


// arrays of LDS

extern "C" __global__ void lds_overrun_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ float first[128];
    __shared__ float second[128];
    first[threadIdx.x] = in[threadIdx.x];
    second[threadIdx.x] = in[threadIdx.x] + 1;
    __syncthreads();
    out[threadIdx.x] = first[threadIdx.x + n] + second[threadIdx.x];  // PLANTED out-of-bounds
}

extern "C" __global__ void lds_overrun_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float first[128];
    __shared__ float second[128];
    first[threadIdx.x] = in[threadIdx.x];
    second[threadIdx.x] = in[threadIdx.x] + 1;
    __syncthreads();
    out[threadIdx.x] = first[(threadIdx.x + n) % 128] + second[threadIdx.x];
}

extern "C" __global__ void lds_negative_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ float first[128];
    __shared__ float second[128];
    first[threadIdx.x] = in[threadIdx.x];
    second[threadIdx.x] = in[threadIdx.x] + 1;
    __syncthreads();
    int left = (int)threadIdx.x - 1;
    out[threadIdx.x] = first[threadIdx.x ^ 1] + second[left];  // PLANTED out-of-bounds
}

extern "C" __global__ void lds_negative_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float first[128];
    __shared__ float second[128];
    first[threadIdx.x] = in[threadIdx.x];
    second[threadIdx.x] = in[threadIdx.x] + 1;
    __syncthreads();
    int left = threadIdx.x ? threadIdx.x - 1 : 127;
    out[threadIdx.x] = first[threadIdx.x ^ 1] + second[left];
}

extern "C" __global__ void lds_loop_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ int keys[128];
    __shared__ int sums[128];
    keys[threadIdx.x] = pick[threadIdx.x];
    sums[threadIdx.x] = 0;
    __syncthreads();
    int sum = 0;
    for (int i = n; i <= 128; i++) sum += keys[i];  // PLANTED out-of-bounds
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    out[threadIdx.x] = sums[127 - threadIdx.x];
}

extern "C" __global__ void lds_loop_right(const float* in, float* out, const int* pick, int n) {
    __shared__ int keys[128];
    __shared__ int sums[128];
    keys[threadIdx.x] = pick[threadIdx.x];
    sums[threadIdx.x] = 0;
    __syncthreads();
    int sum = 0;
    for (int i = n; i < 128; i++) sum += keys[i];
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    out[threadIdx.x] = sums[127 - threadIdx.x];
}

struct Pair {
    int count;
    float sum;
};

extern "C" __global__ void lds_bins_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ Pair bins[64];
    __shared__ float kept[96];
    if (threadIdx.x < 96) kept[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 64) bins[threadIdx.x] = {0, 0.0f};
    __syncthreads();
    atomicAdd(&bins[pick[threadIdx.x]].count, 1);  // PLANTED out-of-bounds
    __syncthreads();
    out[threadIdx.x] = kept[threadIdx.x % 96] + bins[threadIdx.x % 64].count;
}

extern "C" __global__ void lds_bins_right(const float* in, float* out, const int* pick, int n) {
    __shared__ Pair bins[64];
    __shared__ float kept[96];
    if (threadIdx.x < 96) kept[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 64) bins[threadIdx.x] = {0, 0.0f};
    __syncthreads();
    atomicAdd(&bins[pick[threadIdx.x] % 64].count, 1);
    __syncthreads();
    out[threadIdx.x] = kept[threadIdx.x % 96] + bins[threadIdx.x % 64].count;
}

// neighbours that compilers load and store together

extern "C" __global__ void lds_scalars_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float low, high, sums[2][128];
    if (threadIdx.x == 0) {
        low = in[0];
        high = in[127];
    }
    sums[0][threadIdx.x] = in[threadIdx.x];
    sums[1][threadIdx.x] = in[threadIdx.x ^ 1];
    __syncthreads();
    out[threadIdx.x] = low + high + sums[0][threadIdx.x ^ 3] + sums[1][threadIdx.x ^ 5];
}

extern "C" __global__ void lds_chosen_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float even[128];
    __shared__ float odd[128];
    float* mine = threadIdx.x & 1 ? odd : even;
    mine[threadIdx.x] = in[threadIdx.x];
    (threadIdx.x & 1 ? even : odd)[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = (pick[threadIdx.x] & 1 ? even : odd)[127 - threadIdx.x];
}

extern "C" __global__ void lds_dynamic_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float fixed[128];
    extern __shared__ float rest[];
    fixed[threadIdx.x] = in[threadIdx.x];
    rest[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = fixed[threadIdx.x ^ 1] + rest[threadIdx.x ^ 2];
}

extern "C" __global__ void lds_dynamic_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ float fixed[128];
    extern __shared__ float rest[];
    fixed[threadIdx.x] = in[threadIdx.x];
    rest[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = fixed[threadIdx.x ^ 1] + rest[(int)threadIdx.x - n];  // PLANTED out-of-bounds
}
