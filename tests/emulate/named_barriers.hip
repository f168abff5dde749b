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
