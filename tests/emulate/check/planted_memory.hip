// Mistakes in what a kernel reads and writes, each with the kernel without it. A line with PLANTED
// has the mistake; the word behind it is the kind of the report, then the families of targets where
// it is found.
//
// `in` and `out` have 256 floats and lie in the middle of their storage; `pick` counts from 0.
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

// bounds of tensors

extern "C" __global__ void negative_index_wrong(const float* in, float* out, const int* pick, int n) {
    int left = (int)threadIdx.x - 1;
    out[threadIdx.x] = in[left];  // PLANTED out-of-bounds
}

extern "C" __global__ void negative_index_right(const float* in, float* out, const int* pick, int n) {
    int left = threadIdx.x ? threadIdx.x - 1 : 0;
    out[threadIdx.x] = in[left];
}

extern "C" __global__ void halo_wrong(const float* in, float* out, const int* pick, int n) {
    float sum = 0;
    for (int d = -2; d <= 2; ++d) {
        int at = (int)threadIdx.x + d;
        if (at < 256) sum += in[at];  // PLANTED out-of-bounds
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void halo_right(const float* in, float* out, const int* pick, int n) {
    float sum = 0;
    for (int d = -2; d <= 2; ++d) {
        int at = (int)threadIdx.x + d;
        if (at >= 0 && at < 256) sum += in[at];
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void view_overrun_wrong(const float* in, float* out, const int* pick, int n) {
    for (int i = threadIdx.x; i < 256 + n; i += 128) out[i % 256] = in[i];  // PLANTED out-of-bounds
}

extern "C" __global__ void view_overrun_right(const float* in, float* out, const int* pick, int n) {
    for (int i = threadIdx.x; i < 256; i += 128) out[i % 256] = in[i];
}

extern "C" __global__ void index_from_memory_wrong(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x] = in[4 * pick[threadIdx.x]];  // PLANTED out-of-bounds
}

extern "C" __global__ void index_from_memory_right(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x] = in[pick[threadIdx.x]];
}

extern "C" __global__ void store_overrun_wrong(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x + (threadIdx.x > 120) * n * 32] = in[threadIdx.x];  // PLANTED out-of-bounds
}

extern "C" __global__ void store_overrun_right(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x + (threadIdx.x > 120) * n] = in[threadIdx.x];
}

extern "C" __global__ void wrapped_product_wrong(const float* in, float* out, const int* pick, int n) {
    int at = threadIdx.x * (n + 0xfffffff7u);
    out[threadIdx.x] = in[at];  // PLANTED out-of-bounds
}

extern "C" __global__ void wrapped_product_right(const float* in, float* out, const int* pick, int n) {
    int at = threadIdx.x * (n - 7u);
    out[threadIdx.x] = in[at];
}

extern "C" __global__ void behind_its_end_wrong(const float* in, float* out, const int* pick, int n) {
    int at = blockIdx.x * 128 + threadIdx.x;
    out[at] = in[at + 24 * n * (1 - blockIdx.x)];  // PLANTED out-of-bounds
}

extern "C" __global__ void behind_its_end_right(const float* in, float* out, const int* pick, int n) {
    int at = blockIdx.x * 128 + threadIdx.x;
    out[at] = in[(at + 8 * n) % 128];
}

// memory that nothing has written

extern "C" __global__ void lds_atomic_unwritten_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ int bins[128];

    atomicAdd(&bins[pick[threadIdx.x]], 1);  // PLANTED uninitialised-lds
    __syncthreads();
    out[threadIdx.x] = bins[127 - threadIdx.x];
}

extern "C" __global__ void lds_atomic_unwritten_right(const float* in, float* out, const int* pick, int n) {
    __shared__ int bins[128];
    bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[pick[threadIdx.x]], 1);
    __syncthreads();
    out[threadIdx.x] = bins[127 - threadIdx.x];
}

extern "C" __global__ void lds_bytes_unwritten_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ unsigned char bytes[128];
    if (threadIdx.x % 2) bytes[threadIdx.x] = pick[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = bytes[127 - threadIdx.x];  // PLANTED uninitialised-lds
}

extern "C" __global__ void lds_bytes_unwritten_right(const float* in, float* out, const int* pick, int n) {
    __shared__ unsigned char bytes[128];
    bytes[threadIdx.x] = pick[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = bytes[127 - threadIdx.x];
}

extern "C" __global__ void lds_word_of_bytes_wrong(const float* in, float* out, const int* pick, int n) {
    alignas(4) __shared__ unsigned char bytes[128];
    if (threadIdx.x % 4 != 3) bytes[threadIdx.x] = pick[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = *(int*)(bytes + 4 * threadIdx.x);  // PLANTED uninitialised-lds
}

extern "C" __global__ void lds_word_of_bytes_right(const float* in, float* out, const int* pick, int n) {
    alignas(4) __shared__ unsigned char bytes[128];
    bytes[threadIdx.x] = pick[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = *(int*)(bytes + 4 * threadIdx.x);
}

extern "C" __global__ void lds_half_unwritten_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ _Float16 halves[256];
    halves[2 * threadIdx.x] = (_Float16)in[threadIdx.x];

    __syncthreads();
    out[threadIdx.x] = (float)halves[255 - 2 * threadIdx.x];  // PLANTED uninitialised-lds
}

extern "C" __global__ void lds_half_unwritten_right(const float* in, float* out, const int* pick, int n) {
    __shared__ _Float16 halves[256];
    halves[2 * threadIdx.x] = (_Float16)in[threadIdx.x];
    halves[2 * threadIdx.x + 1] = (_Float16)1.0f;
    __syncthreads();
    out[threadIdx.x] = (float)halves[255 - 2 * threadIdx.x];
}

extern "C" __global__ void lds_maximum_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ int top;
    atomicMax(&top, pick[threadIdx.x] * n);  // PLANTED uninitialised-lds
    __syncthreads();
    out[threadIdx.x] = top - pick[threadIdx.x];
}

extern "C" __global__ void lds_maximum_right(const float* in, float* out, const int* pick, int n) {
    __shared__ int top;
    if (threadIdx.x == 0) top = -1;
    __syncthreads();
    atomicMax(&top, pick[threadIdx.x] * n);
    __syncthreads();
    out[threadIdx.x] = top - pick[threadIdx.x];
}

extern "C" __global__ void private_unwritten_wrong(const float* in, float* out, const int* pick, int n) {
    int mine[64];
    int first = pick[threadIdx.x];
    for (int i = 0; i < 64; ++i)
        if (i % 3) mine[(i * 7 + first) & 63] = pick[i];
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum ^= mine[(first * 5 + i) & 63];
    out[threadIdx.x] = sum;  // PLANTED uninitialised-private
}

extern "C" __global__ void private_unwritten_right(const float* in, float* out, const int* pick, int n) {
    int mine[64];
    int first = pick[threadIdx.x];
    for (int i = 0; i < 64; ++i)
        if (i < 64 || n) mine[(i * 7 + first) & 63] = pick[i];
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum ^= mine[(first * 5 + i) & 63];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void private_small_wrong(const float* in, float* out, const int* pick, int n) {
    float mine[16];
    for (int i = 0; i < 12; ++i) mine[i] = in[i + n];
    float value = mine[pick[threadIdx.x] & 15];
    out[threadIdx.x] = value;  // PLANTED uninitialised-private
}

extern "C" __global__ void private_small_right(const float* in, float* out, const int* pick, int n) {
    float mine[16];
    for (int i = 0; i < 16; ++i) mine[i] = in[i + n];
    float value = mine[pick[threadIdx.x] & 15];
    out[threadIdx.x] = value;
}

extern "C" __global__ void private_bytes_wrong(const float* in, float* out, const int* pick, int n) {
    unsigned char mine[32];
    for (int i = 0; i < n * 4; i += 1 + (i == 9)) mine[i] = pick[i];
    out[threadIdx.x] = mine[pick[threadIdx.x] & 31];  // PLANTED uninitialised-private
}

extern "C" __global__ void private_bytes_right(const float* in, float* out, const int* pick, int n) {
    unsigned char mine[32];
    for (int i = 0; i < n * 4; ++i) mine[i] = pick[i];
    out[threadIdx.x] = mine[pick[threadIdx.x] & 31];
}

extern "C" __global__ void private_halves_wrong(const float* in, float* out, const int* pick, int n) {
    _Float16 mine[64];
    for (int i = 0; i < 64; ++i)
        if (pick[i] != n + 3) mine[pick[i]] = (_Float16)in[i];
    out[threadIdx.x] = (float)mine[pick[threadIdx.x] & 63] + 1;  // PLANTED uninitialised-private
}

extern "C" __global__ void private_halves_right(const float* in, float* out, const int* pick, int n) {
    _Float16 mine[64];
    for (int i = 0; i < 64; ++i)
        if (pick[i] != n * 9) mine[pick[i]] = (_Float16)in[i];
    out[threadIdx.x] = (float)mine[pick[threadIdx.x] & 63] + 1;
}

extern "C" __global__ void private_neighbour_wrong(const float* in, float* out, const int* pick, int n) {
    int first[16], second[16];
    for (int i = 0; i < 16; ++i) {
        first[pick[i]] = pick[i + n];
        second[pick[i]] = pick[i] * n;
    }
    out[threadIdx.x] = first[pick[threadIdx.x] % 16 + n] + second[n];  // PLANTED out-of-bounds
}

extern "C" __global__ void private_neighbour_right(const float* in, float* out, const int* pick, int n) {
    int first[16], second[16];
    for (int i = 0; i < 16; ++i) {
        first[pick[i]] = pick[i + n];
        second[pick[i]] = pick[i] * n;
    }
    out[threadIdx.x] = first[pick[threadIdx.x] % 16] + second[n];
}

extern "C" __global__ void private_before_wrong(const float* in, float* out, const int* pick, int n) {
    int first[16], second[16];
    for (int i = 0; i < 16; ++i) first[pick[i]] = second[pick[i]] = pick[i + n];
    int at = pick[threadIdx.x] % 16 - n;
    out[threadIdx.x] = first[n] + second[at];  // PLANTED out-of-bounds
}

extern "C" __global__ void private_before_right(const float* in, float* out, const int* pick, int n) {
    int first[16], second[16];
    for (int i = 0; i < 16; ++i) first[pick[i]] = second[pick[i]] = pick[i + n];
    int at = pick[threadIdx.x] % 16;
    out[threadIdx.x] = first[n] + second[at];
}

extern "C" __global__ void private_loop_wrong(const float* in, float* out, const int* pick, int n) {
    float first[16], second[16];
    for (int i = 0; i < n * 2; ++i) second[i] = in[i];
    for (int i = 0; i <= n * 2; ++i) first[i] = in[i + n];  // PLANTED out-of-bounds
    out[threadIdx.x] = first[pick[threadIdx.x] % 16] + second[pick[threadIdx.x + 1] % 16];
}

extern "C" __global__ void private_loop_right(const float* in, float* out, const int* pick, int n) {
    float first[16], second[16];
    for (int i = 0; i < n * 2; ++i) second[i] = in[i];
    for (int i = 0; i < n * 2; ++i) first[i] = in[i + n];
    out[threadIdx.x] = first[pick[threadIdx.x] % 16] + second[pick[threadIdx.x + 1] % 16];
}

extern "C" __global__ void private_pairs_wrong(const float* in, float* out, const int* pick, int n) {
    float first[8], second[8];
    for (int i = 0; i < n; ++i) first[i] = in[i], second[i] = in[i + n];
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += second[i] - second[i - 1];  // PLANTED out-of-bounds
    out[threadIdx.x] = sum + first[threadIdx.x % n];
}

extern "C" __global__ void private_pairs_right(const float* in, float* out, const int* pick, int n) {
    float first[8], second[8];
    for (int i = 0; i < n; ++i) first[i] = in[i], second[i] = in[i + n];
    float sum = 0;
    for (int i = 1; i < n; ++i) sum += second[i] - second[i - 1];
    out[threadIdx.x] = sum + first[threadIdx.x % n];
}

__attribute__((noinline)) __device__ int added(const int* row, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += row[i];
    return sum;
}

extern "C" __global__ void private_passed_right(const float* in, float* out, const int* pick, int n) {
    int first[16], second[16];
    for (int i = 0; i < 16; ++i) first[pick[i]] = second[15 - pick[i]] = pick[i + n];
    const int* chosen = pick[threadIdx.x] % 2 ? first : second;
    out[threadIdx.x] = added(first, n) + chosen[pick[threadIdx.x] % 16];
}

// lanes, waves and barriers

extern "C" __global__ void shuffle_in_branch_wrong(const float* in, float* out, const int* pick, int n) {
    int value = pick[threadIdx.x] * 3;
    if (threadIdx.x & 1) value += __shfl_xor(value, 1);  // PLANTED inactive-lane
    out[threadIdx.x] = value;
}

extern "C" __global__ void shuffle_in_branch_right(const float* in, float* out, const int* pick, int n) {
    int value = pick[threadIdx.x] * 3;
    int other = __shfl_xor(value, 1);
    if (threadIdx.x & 1) value += other;
    out[threadIdx.x] = value;
}

extern "C" __global__ void lanes_of_a_store_wrong(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x / 2] = in[threadIdx.x];  // PLANTED lane-race
}

extern "C" __global__ void lanes_of_a_store_right(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void lanes_of_bytes_wrong(const float* in, float* out, const int* pick, int n) {
    ((unsigned char*)out)[threadIdx.x >> 1] = threadIdx.x;  // PLANTED lane-race
}

extern "C" __global__ void lanes_of_bytes_right(const float* in, float* out, const int* pick, int n) {
    ((unsigned char*)out)[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void lanes_far_apart_wrong(const float* in, float* out, const int* pick, int n) {
    ((unsigned char*)out)[pick[threadIdx.x] % 16] = threadIdx.x;  // PLANTED lane-race
}

extern "C" __global__ void lanes_far_apart_right(const float* in, float* out, const int* pick, int n) {
    ((unsigned char*)out)[pick[threadIdx.x] % 128] = threadIdx.x;
}

extern "C" __global__ void lanes_of_lds_bytes_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ unsigned char last[128];
    last[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) last[pick[threadIdx.x] % 8] = threadIdx.x;  // PLANTED lane-race
    __syncthreads();
    out[threadIdx.x] = last[threadIdx.x];
}

extern "C" __global__ void lanes_of_lds_bytes_right(const float* in, float* out, const int* pick, int n) {
    __shared__ unsigned char last[128];
    last[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) last[pick[threadIdx.x] % 32] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = last[threadIdx.x];
}

extern "C" __global__ void barrier_in_loop_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ float tile[128];
    float sum = 0;
    for (int i = threadIdx.x; i < 192; i += 128) {
        tile[threadIdx.x] = in[i];
        __syncthreads();  // PLANTED exited-wave
        sum += tile[127 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void barrier_in_loop_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float tile[128];
    float sum = 0;
    for (int i = 0; i < 192; i += 128) {
        tile[threadIdx.x] = i + (int)threadIdx.x < 192 ? in[i + threadIdx.x] : 0.0f;
        __syncthreads();
        sum += tile[127 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void lanes_of_lds_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ int last[128];
    last[threadIdx.x] = 0;
    __syncthreads();
    last[pick[threadIdx.x] % 16] = threadIdx.x;  // PLANTED lane-race
    __syncthreads();
    out[threadIdx.x] = last[threadIdx.x];
}

extern "C" __global__ void lanes_of_lds_right(const float* in, float* out, const int* pick, int n) {
    __shared__ int last[128];
    last[threadIdx.x] = 0;
    __syncthreads();
    last[pick[threadIdx.x]] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = last[threadIdx.x];
}

extern "C" __global__ void exit_before_barrier_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ float tile[128];
    bool leaves = __builtin_amdgcn_readfirstlane(pick[threadIdx.x]) >= 64;
    if (leaves) return;
    tile[threadIdx.x] = leaves ? 0.0f : in[threadIdx.x];
    __syncthreads();  // PLANTED exited-wave
    out[threadIdx.x] = tile[threadIdx.x ^ 3];
}

extern "C" __global__ void exit_before_barrier_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float tile[128];
    bool leaves = __builtin_amdgcn_readfirstlane(pick[threadIdx.x]) >= 64;

    tile[threadIdx.x] = leaves ? 0.0f : in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 3];
}

extern "C" __global__ void unequal_barriers_wrong(const float* in, float* out, const int* pick, int n) {
    __shared__ float tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
    int trips = 2 + __builtin_amdgcn_readfirstlane(pick[threadIdx.x]) / 64;
    for (int i = 0; i < trips; ++i) __syncthreads();  // PLANTED exited-wave
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void unequal_barriers_right(const float* in, float* out, const int* pick, int n) {
    __shared__ float tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
    int trips = n;
    for (int i = 0; i < trips; ++i) __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// integers

extern "C" __global__ void divided_by_zero_wrong(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x] = n / pick[threadIdx.x];  // PLANTED integer-division-by-zero
}

extern "C" __global__ void divided_by_zero_right(const float* in, float* out, const int* pick, int n) {
    out[threadIdx.x] = n / (pick[threadIdx.x] + 1);
}

extern "C" __global__ void long_remainder_wrong(const float* in, float* out, const int* pick, int n) {
    long by = pick[threadIdx.x];
    out[threadIdx.x] = (float)((((long)n << 40) + threadIdx.x) % by);  // PLANTED integer-division-by-zero
}

extern "C" __global__ void long_remainder_right(const float* in, float* out, const int* pick, int n) {
    long by = pick[threadIdx.x] + (1l << 33);
    out[threadIdx.x] = (float)((((long)n << 40) + threadIdx.x) % by);
}
