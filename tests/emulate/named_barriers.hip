// Waves 0 and 2, and 1 and 3, exchange numbers by way of LDS, a barrier for each pair.
#define NAMED __shared__ __amdgpu_named_workgroup_barrier_t

__device__ void arrive(bool odd_wave, __amdgpu_named_workgroup_barrier_t* even,
                       __amdgpu_named_workgroup_barrier_t* odd) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    if (odd_wave) __builtin_amdgcn_s_barrier_signal_var(odd, 2);
    else __builtin_amdgcn_s_barrier_signal_var(even, 2);
    __builtin_amdgcn_s_barrier_wait(1);
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

extern "C" __global__ void exchange_in_pairs(int* out) {
    NAMED even;
    NAMED odd;
    __shared__ int numbers[128];
    int wave = __builtin_amdgcn_readfirstlane(threadIdx.x / 32);
    if (wave == 0) {
        __builtin_amdgcn_s_barrier_init(&even, 2);
        __builtin_amdgcn_s_barrier_init(&odd, 2);
    }
    __syncthreads();
    if (wave & 1) __builtin_amdgcn_s_barrier_join(&odd);
    else __builtin_amdgcn_s_barrier_join(&even);
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        numbers[threadIdx.x] = threadIdx.x + i;
        arrive(wave & 1, &even, &odd);
        sum += numbers[threadIdx.x ^ 64];
        arrive(wave & 1, &even, &odd);
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}

// In workgroup 0 wave 1 stores and wave 0 publishes; in workgroup 1 wave 0 polls and wave 1 loads.
__device__ void relay_by(int* data, int* flag, int* out, bool meet_first, bool meet_last) {
    NAMED both;
    int wave = __builtin_amdgcn_readfirstlane(threadIdx.x / 32), lane = threadIdx.x & 31;
    if (wave == 0) __builtin_amdgcn_s_barrier_init(&both, 2);
    __syncthreads();
    __builtin_amdgcn_s_barrier_join(&both);
    if (blockIdx.x == 0) {
        if (wave == 1) data[lane] = lane + 1;
        if (meet_first) arrive(false, &both, &both);
        if (wave == 0 && lane == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    } else {
        if (wave == 0)
            while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) {}
        if (meet_last) arrive(false, &both, &both);
        if (wave == 1) out[lane] = data[lane];
    }
}

extern "C" __global__ void relay(int* data, int* flag, int* out) {
    relay_by(data, flag, out, true, true);
}
extern "C" __global__ void relay_unordered_store(int* data, int* flag, int* out) {
    relay_by(data, flag, out, false, true);
}
extern "C" __global__ void relay_unordered_load(int* data, int* flag, int* out) {
    relay_by(data, flag, out, true, false);
}
