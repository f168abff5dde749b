// Plain accesses next to atomics, updates that get lost between lanes, volatile accesses: pairs of
// kernels, `NAME_wrong` and `NAME_right`. A report of the kind in the comment PLANTED must name its
// line, as the access or as the earlier one.
#include <hip/hip_runtime.h>

#define AGENT __HIP_MEMORY_SCOPE_AGENT

// A plain access that an atomic of the same workgroup follows or precedes.

extern "C" __global__ void zeroed_wrong(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0 && threadIdx.x == 0) sync[3] = 0u;  // PLANTED workgroup-race
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&sync[3], 1u);
}

extern "C" __global__ void zeroed_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) sync[blockIdx.x] = 0u;
    __syncthreads();
    if (threadIdx.x < 9) atomicAdd(&sync[blockIdx.x], 1u);
}

extern "C" __global__ void zeroed_array_wrong(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 2 && threadIdx.x < 16) data[threadIdx.x] = 0.0f;  // PLANTED workgroup-race
    __syncthreads();
    atomicAdd(&data[threadIdx.x % 16], 1.0f);
}

extern "C" __global__ void zeroed_array_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * 16 + threadIdx.x % 16;
    if (threadIdx.x < 16) data[at] = 0.0f;
    __syncthreads();
    atomicAdd(&data[at], 1.0f);
}

extern "C" __global__ void zeroed_behind_flag_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            sync[8] = 0u;
            __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, AGENT);
        } else {
            while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        }
        atomicAdd(&sync[8], 1u);
    }
}

extern "C" __global__ void read_late_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicAdd(&sync[5], 1u);
        if (blockIdx.x == gridDim.x - 1) out[0] = sync[5];  // PLANTED workgroup-race
    }
}

extern "C" __global__ void read_late_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicAdd(&sync[5], 1u);
        __threadfence();
        if (atomicAdd(&sync[6], 1u) == gridDim.x - 1) {
            __threadfence();
            out[0] = sync[5];
        }
    }
}

extern "C" __global__ void unfenced_sum_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicAdd(data, 1.0f);
        if (atomicAdd(sync, 1u) == gridDim.x - 1) out[0] = data[0];  // PLANTED workgroup-race
    }
}

extern "C" __global__ void unfenced_sum_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicAdd(data, 1.0f);
        __threadfence();
        if (atomicAdd(sync, 1u) == gridDim.x - 1) {
            out[0] = __hip_atomic_load(data, __ATOMIC_RELAXED, AGENT);
        }
    }
}

extern "C" __global__ void set_late_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicMax(&sync[7], blockIdx.x);
        if (blockIdx.x == gridDim.x - 1) sync[7] = 100u;  // PLANTED workgroup-race
    }
}

extern "C" __global__ void set_late_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicMax(&sync[7], blockIdx.x);
        if (blockIdx.x == gridDim.x - 1) atomicExch(&sync[7], 100u);
    }
}

extern "C" __global__ void last_resets_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0 && atomicAdd(sync, 1u) == gridDim.x - 1) sync[0] = 0u;
}

extern "C" __global__ void looked_first_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            float before = sync[9];  // PLANTED workgroup-race
            unsigned now = __hip_atomic_load(&sync[9], __ATOMIC_RELAXED, AGENT);
            out[0] = before + now;
        } else {
            atomicAdd(&sync[9], 1u);
        }
    }
}

extern "C" __global__ void looked_first_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            out[0] = __hip_atomic_load(&sync[9], __ATOMIC_RELAXED, AGENT);
        } else {
            atomicAdd(&sync[9], 1u);
        }
    }
}

extern "C" __global__ void queue_wrong(float* out, float* data, unsigned* sync) {
    __shared__ unsigned item;
    for (int k = 0; k < 3; ++k) {
        if (threadIdx.x == 0) item = sync[1] < 16u ? atomicAdd(&sync[1], 1u) : 99u;  // PLANTED workgroup-race
        __syncthreads();
        if (item < 16) out[item * 128 + threadIdx.x] = data[threadIdx.x];
        __syncthreads();
    }
}

extern "C" __global__ void queue_right(float* out, float* data, unsigned* sync) {
    __shared__ unsigned item;
    for (int k = 0; k < 3; ++k) {
        if (threadIdx.x == 0) item = atomicAdd(&sync[1], 1u);
        __syncthreads();
        if (item < 16) out[item * 128 + threadIdx.x] = data[threadIdx.x];
        __syncthreads();
    }
}

// The same between waves.

extern "C" __global__ void zeroed_lds_wrong(float* out, float* data, unsigned* sync) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0u;  // PLANTED lds-race
    atomicAdd(&bins[threadIdx.x % 16], 1u);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x + 16 * blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void zeroed_lds_right(float* out, float* data, unsigned* sync) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0u;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x % 16], 1u);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x + 16 * blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void read_lds_late_wrong(float* out, float* data, unsigned* sync) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0.0f;
    __syncthreads();
    unsigned wave = threadIdx.x / warpSize;
    if (threadIdx.x % warpSize == 0) atomicAdd(&total, 1.0f);
    if (threadIdx.x == blockDim.x - 1) out[blockIdx.x] = total + wave;  // PLANTED lds-race
}

extern "C" __global__ void read_lds_late_right(float* out, float* data, unsigned* sync) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0.0f;
    __syncthreads();
    unsigned wave = threadIdx.x / warpSize;
    if (threadIdx.x % warpSize == 0) atomicAdd(&total, 1.0f);
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) out[blockIdx.x] = total + wave;
}

extern "C" __global__ void zeroed_memory_wrong(float* out, float* data, unsigned* sync) {
    unsigned* bins = sync + 4 * blockIdx.x;
    if (threadIdx.x < 4) bins[threadIdx.x] = 0u;  // PLANTED global-race
    atomicAdd(&bins[threadIdx.x % 4], 1u);
}

extern "C" __global__ void zeroed_memory_right(float* out, float* data, unsigned* sync) {
    unsigned* bins = sync + 4 * blockIdx.x;
    if (threadIdx.x < 4) bins[threadIdx.x] = 0u;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x % 4], 1u);
}

// Updates that get lost: lanes of one wave that read and write the same address.

extern "C" __global__ void count_wrong(float* out, float* data, unsigned* sync) {
    unsigned* bins = sync + 4 * blockIdx.x;
    if (threadIdx.x < 32) bins[threadIdx.x % 4] += 1u;  // PLANTED lost-update
}

extern "C" __global__ void count_right(float* out, float* data, unsigned* sync) {
    unsigned* bins = sync + 4 * blockIdx.x;
    if (threadIdx.x < 4) bins[threadIdx.x] += 1u;
}

extern "C" __global__ void count_data_wrong(float* out, float* data, unsigned* sync) {
    unsigned bin = (unsigned)data[threadIdx.x] / 4;
    if (threadIdx.x < 32) out[64 * blockIdx.x + bin] += 1.0f;  // PLANTED lost-update
}

extern "C" __global__ void count_data_right(float* out, float* data, unsigned* sync) {
    unsigned bin = (unsigned)data[threadIdx.x] / 4;
    if (threadIdx.x < 32) atomicAdd(&out[64 * blockIdx.x + bin], 1.0f);
}

extern "C" __global__ void count_lds_wrong(float* out, float* data, unsigned* sync) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0u;
    __syncthreads();
    if (threadIdx.x < 32) bins[(unsigned)data[threadIdx.x] % 16] += 1u;  // PLANTED lost-update
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x + 16 * blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void count_lds_right(float* out, float* data, unsigned* sync) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0u;
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&bins[(unsigned)data[threadIdx.x] % 16], 1u);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x + 16 * blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void count_bytes_wrong(float* out, float* data, unsigned* sync) {
    unsigned char* bins = (unsigned char*)(sync + 4 * blockIdx.x);
    if (threadIdx.x < 32) bins[threadIdx.x / 2] += 1;  // PLANTED lost-update
}

extern "C" __global__ void count_bytes_right(float* out, float* data, unsigned* sync) {
    unsigned char* bins = (unsigned char*)(sync + 4 * blockIdx.x);
    if (threadIdx.x < 16) bins[threadIdx.x] += 1;
}

extern "C" __global__ void every_lane_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x < 32) out[blockIdx.x] = out[blockIdx.x] + 1.0f;  // PLANTED lost-update
}

extern "C" __global__ void every_lane_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) out[blockIdx.x] = out[blockIdx.x] + 1.0f;
}

extern "C" __global__ void doubled_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * 64 + min(threadIdx.x, 20u);
    if (threadIdx.x < 32) out[at] = data[at] + out[at] * 2.0f;  // PLANTED lost-update
}

extern "C" __global__ void doubled_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * 64 + min(threadIdx.x, 20u);
    if (threadIdx.x <= 20) out[at] = data[at] + out[at] * 2.0f;
}

extern "C" __global__ void updated_twice_wrong(float* out, float* data, unsigned* sync) {
    float* mine = out + 64 * blockIdx.x;
    if (threadIdx.x < 32) {
        for (int i = 0; i < 3; ++i) mine[(threadIdx.x * (i + 1)) % 31] += data[i];  // PLANTED lost-update
    }
}

extern "C" __global__ void updated_twice_right(float* out, float* data, unsigned* sync) {
    float* mine = out + 64 * blockIdx.x;
    if (threadIdx.x < 32) {
        for (int i = 0; i < 3; ++i) mine[threadIdx.x ^ i] += data[i];
    }
}


extern "C" __global__ void doubles_wrong(float* out, float* data, unsigned* sync) {
    __shared__ double acc[8];
    if (threadIdx.x < 8) acc[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) acc[threadIdx.x >> 2] += 1.5;  // PLANTED lost-update
    __syncthreads();
    if (threadIdx.x < 8) out[8 * blockIdx.x + threadIdx.x] = acc[threadIdx.x];
}

extern "C" __global__ void doubles_right(float* out, float* data, unsigned* sync) {
    __shared__ double acc[32];
    if (threadIdx.x < 32) acc[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) acc[threadIdx.x] += 1.5;
    __syncthreads();
    if (threadIdx.x < 8) out[8 * blockIdx.x + threadIdx.x] = acc[threadIdx.x];
}

extern "C" __global__ void flags_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x < 32) sync[4 * blockIdx.x + threadIdx.x % 4] = 1u;
}

extern "C" __global__ void copied_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x < 32) out[64 * blockIdx.x + threadIdx.x / 2] = data[threadIdx.x / 2] + 1.0f;
}

extern "C" __global__ void bits_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x < 32) sync[4 * blockIdx.x + threadIdx.x % 4] |= 2u;
}

extern "C" __global__ void reduced_right(float* out, float* data, unsigned* sync) {
    __shared__ float part[64];
    if (threadIdx.x < 64) part[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        float v = part[threadIdx.x % 4];
        for (int o = 1; o < 4; o *= 2) v += __shfl_xor(v, o);
        part[0] = v;
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

extern "C" __global__ void group_sums_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x >= 32) return;
    float sum = data[threadIdx.x];
    for (int o = 1; o < 8; o *= 2) sum += __shfl_xor(sum, o);
    out[4 * blockIdx.x + threadIdx.x / 8] += sum;  // every lane of eight has the sum of all
}

extern "C" __global__ void scaled_broadcast_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x >= 32) return;
    float first = __shfl(data[threadIdx.x] + 1.0f, 0) * 3.0f;
    out[4 * blockIdx.x + threadIdx.x / 8] += first;  // PLANTED lost-update
}

// Volatile is not atomic.

extern "C" __global__ void volatile_count_wrong(float* out, float* data, unsigned* sync) {
    volatile unsigned* counter = sync;
    if (threadIdx.x == 0) *counter = *counter + 1u;  // PLANTED workgroup-race
}

extern "C" __global__ void volatile_count_right(float* out, float* data, unsigned* sync) {
    volatile unsigned* counter = sync + blockIdx.x;
    if (threadIdx.x == 0) *counter = *counter + 1u;
}

extern "C" __global__ void volatile_last_wrong(float* out, float* data, unsigned* sync) {
    volatile float* winner = out;
    if (threadIdx.x == 0) *winner = blockIdx.x;  // PLANTED workgroup-race
}

extern "C" __global__ void volatile_last_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) __hip_atomic_store(out, (float)blockIdx.x, __ATOMIC_RELAXED, AGENT);
}

extern "C" __global__ void volatile_look_wrong(float* out, float* data, unsigned* sync) {
    volatile float* shared = data;
    if (threadIdx.x != 0) return;
    shared[blockIdx.x] = 2.0f * blockIdx.x;  // PLANTED workgroup-race
    out[blockIdx.x] = shared[(blockIdx.x + gridDim.x - 1) % gridDim.x];
}

extern "C" __global__ void volatile_look_right(float* out, float* data, unsigned* sync) {
    volatile float* shared = data;
    if (threadIdx.x != 0) return;
    shared[blockIdx.x] = 2.0f * blockIdx.x;
    __threadfence();
    atomicAdd(sync, 1u);
    while (__hip_atomic_load(sync, __ATOMIC_RELAXED, AGENT) < gridDim.x) {}
    __threadfence();
    out[blockIdx.x] = shared[(blockIdx.x + gridDim.x - 1) % gridDim.x];
}

extern "C" __global__ void volatile_barrier_wrong(float* out, float* data, unsigned* sync) {
    volatile unsigned* arrived = sync;
    if (threadIdx.x != 0) return;
    *arrived = *arrived + 1u;  // PLANTED workgroup-race
    __threadfence();
    while (*arrived < gridDim.x) {}
    out[blockIdx.x] = 1.0f;
}

extern "C" __global__ void volatile_barrier_right(float* out, float* data, unsigned* sync) {
    volatile unsigned* arrived = sync;
    if (threadIdx.x != 0) return;
    data[blockIdx.x] = 1.0f;
    __threadfence();
    atomicAdd(sync, 1u);
    while (*arrived < gridDim.x) {}
    __threadfence();
    out[blockIdx.x] = data[(blockIdx.x + 1) % gridDim.x];
}
