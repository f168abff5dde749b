// Order between workgroups: pairs of kernels, `NAME_wrong` and `NAME_right`. A report of the wrong one
// must name a line with the comment PLANTED, as the access or as the earlier one. Where it names a
// family, other targets make correct machine code of the mistake: their barriers, or their volatile
// stores, wait for earlier stores.
#include <hip/hip_runtime.h>

#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define GROUP __HIP_MEMORY_SCOPE_WORKGROUP

// A flag that is set before the data behind it is visible.

extern "C" __global__ void flag_relaxed_wrong(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        if (t == 0) {
            data[0] = 5.0f;  // PLANTED
            __hip_atomic_store(sync, 1u, __ATOMIC_RELAXED, AGENT);
        }
    } else if (t == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void flag_relaxed_right(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        if (t == 0) {
            data[0] = 5.0f;
            __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, AGENT);
        }
    } else if (t == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void flag_exchanged_wrong(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t * 2.0f;  // PLANTED on gfx9
        __syncthreads();
        if (t == 0) atomicExch(sync, 1u);
    } else {
        if (t == 0) while (atomicAdd(sync, 0u) == 0u) {}
        __syncthreads();
        __threadfence();
        out[blockIdx.x * blockDim.x + t] = data[t];
    }
}

extern "C" __global__ void flag_exchanged_right(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t * 2.0f;
        __threadfence();
        __syncthreads();
        if (t == 0) atomicExch(sync, 1u);
    } else {
        if (t == 0) while (atomicAdd(sync, 0u) == 0u) {}
        __syncthreads();
        __threadfence();
        out[blockIdx.x * blockDim.x + t] = data[t];
    }
}

extern "C" __global__ void flag_without_barrier_wrong(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1.0f;  // PLANTED
        __threadfence();
        if (t == 0) __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, AGENT);
    } else {
        if (t == 0) while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        __syncthreads();
        out[blockIdx.x * blockDim.x + t] = data[t];
    }
}

extern "C" __global__ void flag_without_barrier_right(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1.0f;
        __threadfence();
        __syncthreads();
        if (t == 0) __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, AGENT);
    } else {
        if (t == 0) while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        __syncthreads();
        out[blockIdx.x * blockDim.x + t] = data[t];
    }
}

extern "C" __global__ void flag_first_wrong(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, AGENT);  // PLANTED
            data[0] = 5.0f;                                         // PLANTED
        }
    } else if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void flag_first_right(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 5.0f;
            __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, AGENT);
        }
    } else if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void not_acquired_wrong(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7.0f;
            __threadfence();
            __hip_atomic_store(sync, 1u, __ATOMIC_RELAXED, AGENT);
        }
    } else if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_RELAXED, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];  // PLANTED
    }
}

extern "C" __global__ void not_acquired_right(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7.0f;
            __threadfence();
            __hip_atomic_store(sync, 1u, __ATOMIC_RELAXED, AGENT);
        }
    } else if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_RELAXED, AGENT) == 0u) {}
        __threadfence();
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void workgroup_fence_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        data[0] = 6.0f;  // PLANTED on gfx9
        __threadfence_block();
        __hip_atomic_store(sync, 1u, __ATOMIC_RELAXED, AGENT);
    } else {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void workgroup_fence_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        data[0] = 6.0f;
        __threadfence();
        __hip_atomic_store(sync, 1u, __ATOMIC_RELAXED, AGENT);
    } else {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void workgroup_scope_wrong(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7.0f;  // PLANTED
            __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, GROUP);
        }
    } else if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, GROUP) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void workgroup_scope_right(float* out, float* data, unsigned* sync) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7.0f;
            __hip_atomic_store(sync, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
        }
    } else if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) == 0u) {}
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void builtin_relaxed_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        data[3] = 9.0f;  // PLANTED
        __atomic_store_n(sync, 1u, __ATOMIC_RELAXED);
    } else {
        while (__atomic_load_n(sync, __ATOMIC_ACQUIRE) == 0u) {}
        out[blockIdx.x] = data[3];
    }
}

extern "C" __global__ void builtin_relaxed_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        data[3] = 9.0f;
        __atomic_store_n(sync, 1u, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(sync, __ATOMIC_ACQUIRE) == 0u) {}
        out[blockIdx.x] = data[3];
    }
}

extern "C" __global__ void volatile_flag_wrong(float* out, float* data, unsigned* sync) {
    volatile unsigned* flag = sync;
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        data[0] = 2.0f;  // PLANTED on gfx9 gfx11
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void volatile_flag_right(float* out, float* data, unsigned* sync) {
    volatile unsigned* flag = sync;
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        data[0] = 2.0f;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[blockIdx.x] = data[0];
    }
}

extern "C" __global__ void volatile_release_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(sync, 0u, 1u) != 0u) {}
    __threadfence();
    data[0] += 1.0f;
    __threadfence();
    *(volatile unsigned*)sync = 0;  // PLANTED
}

extern "C" __global__ void volatile_poll_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    data[blockIdx.x] = 2.0f;
    __threadfence();
    atomicAdd(sync, 1u);
    while (*(volatile unsigned*)sync < gridDim.x) {}
    __threadfence();
    out[blockIdx.x] = data[(blockIdx.x + 1) % gridDim.x];
}

// Reductions whose last workgroup adds up what the others have stored.

extern "C" __global__ void last_block_wrong(float* out, float* data, unsigned* sync) {
    __shared__ bool last;
    unsigned t = threadIdx.x;
    if (t == 0) {
        data[blockIdx.x] = blockIdx.x + 0.5f;  // PLANTED
        last = atomicAdd(sync, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t < gridDim.x) out[t] = data[t];
}

extern "C" __global__ void last_block_right(float* out, float* data, unsigned* sync) {
    __shared__ bool last;
    unsigned t = threadIdx.x;
    if (t == 0) {
        data[blockIdx.x] = blockIdx.x + 0.5f;
        __threadfence();
        last = atomicAdd(sync, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t < gridDim.x) out[t] = data[t];
    if (last && t == 0) *sync = 0;
}

extern "C" __global__ void last_block_tile_wrong(float* out, float* data, unsigned* sync) {
    __shared__ unsigned ticket;
    unsigned t = threadIdx.x, n = blockDim.x;
    data[blockIdx.x * n + t] = t * 1.0f;  // PLANTED
    __syncthreads();
    if (t == 0) ticket = __hip_atomic_fetch_add(sync, 1u, __ATOMIC_RELAXED, AGENT);
    __syncthreads();
    if (ticket == gridDim.x - 1) {
        float sum = 0.0f;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += data[b * n + t];
        out[t] = sum;
    }
}

extern "C" __global__ void last_block_tile_right(float* out, float* data, unsigned* sync) {
    __shared__ unsigned ticket;
    unsigned t = threadIdx.x, n = blockDim.x;
    data[blockIdx.x * n + t] = t * 1.0f;
    __syncthreads();
    if (t == 0) ticket = __hip_atomic_fetch_add(sync, 1u, __ATOMIC_ACQ_REL, AGENT);
    __syncthreads();
    if (ticket == gridDim.x - 1) {
        float sum = 0.0f;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += data[b * n + t];
        out[t] = sum;
    }
}

extern "C" __global__ void last_block_not_acquired_wrong(float* out, float* data, unsigned* sync) {
    __shared__ bool last;
    unsigned t = threadIdx.x, n = blockDim.x;
    data[blockIdx.x * n + t] = t + 3.0f;
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicInc(sync, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        float sum = 0.0f;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += data[b * n + t];  // PLANTED
        out[t] = sum;
    }
}

extern "C" __global__ void last_block_not_acquired_right(float* out, float* data, unsigned* sync) {
    __shared__ bool last;
    unsigned t = threadIdx.x, n = blockDim.x;
    data[blockIdx.x * n + t] = t + 3.0f;
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicInc(sync, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    if (last) {
        float sum = 0.0f;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += data[b * n + t];
        out[t] = sum;
    }
}

// Locks.

extern "C" __global__ void lock_plain_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(sync, 0u, 1u) != 0u) {}
    data[0] = data[0] + 1.0f;  // PLANTED
    *sync = 0u;
}

extern "C" __global__ void lock_plain_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(sync, 0u, 1u) != 0u) {}
    __threadfence();
    data[0] = data[0] + 1.0f;
    __threadfence();
    atomicExch(sync, 0u);
}

extern "C" __global__ void lock_relaxed_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    unsigned expected = 0u;
    while (!__hip_atomic_compare_exchange_strong(sync, &expected, 1u, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED, AGENT)) expected = 0u;
    data[1] += 1.0f;  // PLANTED
    __hip_atomic_store(sync, 0u, __ATOMIC_RELAXED, AGENT);
}

extern "C" __global__ void lock_relaxed_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    unsigned expected = 0u;
    while (!__hip_atomic_compare_exchange_strong(sync, &expected, 1u, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED, AGENT)) expected = 0u;
    data[1] += 1.0f;
    __hip_atomic_store(sync, 0u, __ATOMIC_RELEASE, AGENT);
}

extern "C" __global__ void lock_exchange_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        while (atomicExch(sync, 1u)) {}
        __threadfence();
        for (int i = 0; i < 4; ++i) data[i] += i;  // PLANTED
        atomicExch(sync, 0u);
    }
}

extern "C" __global__ void lock_exchange_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        while (atomicExch(sync, 1u)) {}
        __threadfence();
        for (int i = 0; i < 4; ++i) data[i] += i;
        __threadfence();
        atomicExch(sync, 0u);
    }
}

// Plain accesses beside atomic ones.

extern "C" __global__ void plain_read_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicAdd(sync, 1u);
        out[blockIdx.x] = *sync > 2u ? 1.0f : 2.0f;  // PLANTED
    }
}

extern "C" __global__ void plain_read_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        atomicAdd(sync, 1u);
        unsigned seen = __hip_atomic_load(sync, __ATOMIC_RELAXED, AGENT);
        out[blockIdx.x] = seen > 2u ? 1.0f : 2.0f;
    }
}

extern "C" __global__ void plain_reset_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 1) sync[2] = 0u;  // PLANTED
        atomicAdd(&sync[2], 1u);
    }
}

extern "C" __global__ void plain_reset_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 1) atomicExch(&sync[2], 0u);
        atomicAdd(&sync[2], 1u);
    }
}

extern "C" __global__ void plain_histogram_wrong(float* out, float* data, unsigned* sync) {
    unsigned bin = threadIdx.x % 16;
    if (blockIdx.x % 2) atomicAdd(&sync[bin], 1u);
    else if (threadIdx.x < 16) sync[bin] += 8u;  // PLANTED
}

extern "C" __global__ void plain_histogram_right(float* out, float* data, unsigned* sync) {
    unsigned bin = threadIdx.x % 16;
    if (blockIdx.x % 2) atomicAdd(&sync[bin], 1u);
    else if (threadIdx.x < 16) atomicAdd(&sync[bin], 8u);
}

// Races beside atomics that have nothing to do with them.

extern "C" __global__ void hidden_by_count_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sync[threadIdx.x % 4], 1u);
    data[at + blockDim.x] = data[at] + 1.0f;  // PLANTED
    atomicAdd(&sync[4 + threadIdx.x % 4], 1u);
}

extern "C" __global__ void hidden_by_count_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sync[threadIdx.x % 4], 1u);
    out[at] = data[at] + 1.0f;
    atomicAdd(&sync[4 + threadIdx.x % 4], 1u);
}

extern "C" __global__ void hidden_by_swap_wrong(float* out, float* data, unsigned* sync) {
    float mine = blockIdx.x + threadIdx.x;
    unsigned old = sync[0], seen;
    do {
        seen = old;
        old = atomicCAS(sync, seen, __float_as_uint(fmaxf(__uint_as_float(seen), mine)));
    } while (old != seen);
    if (threadIdx.x == 0) data[0] = mine;  // PLANTED
}

extern "C" __global__ void hidden_by_swap_right(float* out, float* data, unsigned* sync) {
    float mine = blockIdx.x + threadIdx.x;
    unsigned old = sync[0], seen;
    do {
        seen = old;
        old = atomicCAS(sync, seen, __float_as_uint(fmaxf(__uint_as_float(seen), mine)));
    } while (old != seen);
    if (threadIdx.x == 0) data[blockIdx.x] = mine;
}

// The order of workgroups taken for granted.

extern "C" __global__ void ticket_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        unsigned ticket = atomicAdd(sync, 1u);
        float before = ticket ? data[ticket - 1] : 0.0f;  // PLANTED
        data[ticket] = before + 1.0f;
    }
}

extern "C" __global__ void ticket_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        unsigned ticket = atomicAdd(sync, 1u);
        while (__hip_atomic_load(&sync[1], __ATOMIC_ACQUIRE, AGENT) != ticket) {}
        float before = ticket ? data[ticket - 1] : 0.0f;
        data[ticket] = before + 1.0f;
        __hip_atomic_store(&sync[1], ticket + 1, __ATOMIC_RELEASE, AGENT);
    }
}

extern "C" __global__ void scan_wrong(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        float carry = blockIdx.x ? out[blockIdx.x - 1] : 0.0f;  // PLANTED
        out[blockIdx.x] = carry + data[blockIdx.x];
        __threadfence();
    }
}

extern "C" __global__ void scan_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x == 0) {
        unsigned b = blockIdx.x;
        if (b) {
            while (__hip_atomic_load(&sync[b - 1], __ATOMIC_RELAXED, AGENT) == 0u)
                __builtin_amdgcn_s_sleep(1);
            __threadfence();
        }
        float carry = b ? out[b - 1] : 0.0f;
        out[b] = carry + data[b];
        __threadfence();
        __hip_atomic_store(&sync[b], 1u, __ATOMIC_RELAXED, AGENT);
    }
}

// Tiles.

extern "C" __global__ void tiles_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * (blockDim.x - 8) + threadIdx.x;
    out[at] = data[threadIdx.x] + blockIdx.x;  // PLANTED
}

extern "C" __global__ void tiles_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = data[threadIdx.x] + blockIdx.x;
}

extern "C" __global__ void halo_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    float left = at ? data[at - 1] : 0.0f;  // PLANTED
    data[at] = left * 0.5f + 1.0f;
}

extern "C" __global__ void halo_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    float left = at ? data[at - 1] : 0.0f;
    out[at] = left * 0.5f + 1.0f;
}

// Lanes of one instruction.

extern "C" __global__ void lanes_wrong(float* out, float* data, unsigned* sync) {
    out[blockIdx.x * blockDim.x + threadIdx.x / 2] = threadIdx.x;  // PLANTED
}

extern "C" __global__ void lanes_right(float* out, float* data, unsigned* sync) {
    out[blockIdx.x * blockDim.x + threadIdx.x / 2] = threadIdx.x / 2;
}

extern "C" __global__ void lanes_scatter_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + (threadIdx.x * 7) % 31;
    if (threadIdx.x < 32) out[at] = threadIdx.x;  // PLANTED
}

extern "C" __global__ void lanes_scatter_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + (threadIdx.x * 7) % 32;
    if (threadIdx.x < 32) out[at] = threadIdx.x;
}

extern "C" __global__ void lanes_lds_wrong(float* out, float* data, unsigned* sync) {
    __shared__ float tile[64];
    if (threadIdx.x < 32) tile[threadIdx.x & 15] = data[threadIdx.x];  // PLANTED
    __syncthreads();
    if (threadIdx.x < 16) out[blockIdx.x * 16 + threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void lanes_lds_right(float* out, float* data, unsigned* sync) {
    __shared__ float tile[64];
    if (threadIdx.x < 32) tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 16) out[blockIdx.x * 16 + threadIdx.x] = tile[threadIdx.x];
}

// A barrier of the whole grid.

extern "C" __global__ void grid_barrier_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    data[at] = at;  // PLANTED
    __syncthreads();
    if (threadIdx.x == 0) {
        __hip_atomic_fetch_add(sync, 1u, __ATOMIC_RELAXED, AGENT);
        while (__hip_atomic_load(sync, __ATOMIC_RELAXED, AGENT) < gridDim.x) {}
    }
    __syncthreads();
    out[at] = data[n - 1 - at];
}

extern "C" __global__ void grid_barrier_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (unsigned round = 1; round <= 3; ++round) {
        data[at] = at * round;
        for (unsigned half = 0; half < 2; ++half) {
            __syncthreads();
            if (threadIdx.x == 0) {
                unsigned goal = (2 * round - 1 + half) * gridDim.x;
                __hip_atomic_fetch_add(sync, 1u, __ATOMIC_ACQ_REL, AGENT);
                while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) < goal) {}
            }
            __syncthreads();
            if (half == 0) out[at] = data[n - 1 - at];
        }
    }
}

// A plain store that resets a counter takes back nothing that was observed before it.

extern "C" __global__ void counter_reset_wrong(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    data[at] = at;  // PLANTED
    __syncthreads();
    if (threadIdx.x == 0) {
        if (atomicAdd(sync, 1u) == gridDim.x - 1) {
            sync[0] = 0;
            __hip_atomic_store(sync + 16, 1u, __ATOMIC_RELAXED, AGENT);
        } else {
            while (__hip_atomic_load(sync + 16, __ATOMIC_RELAXED, AGENT) == 0) {}
        }
    }
    __syncthreads();
    out[at] = data[n - 1 - at];
}

extern "C" __global__ void counter_reset_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    data[at] = at;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(sync, 1u) == gridDim.x - 1) {
            sync[0] = 0;
            __threadfence();
            __hip_atomic_store(sync + 16, 1u, __ATOMIC_RELEASE, AGENT);
        } else {
            while (__hip_atomic_load(sync + 16, __ATOMIC_ACQUIRE, AGENT) == 0) {}
        }
        __threadfence();
    }
    __syncthreads();
    out[at] = data[n - 1 - at];
}

// Right, and easily mistaken for wrong.

extern "C" __global__ void sense_barrier_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (unsigned sense = 1; sense <= 2; ++sense) {
        if (sense == 1) data[at] = at;
        else out[at] = data[n - 1 - at];
        __syncthreads();
        if (threadIdx.x == 0) {
            if (__hip_atomic_fetch_add(sync, 1u, __ATOMIC_ACQ_REL, AGENT) == gridDim.x - 1) {
                __hip_atomic_store(sync, 0u, __ATOMIC_RELAXED, AGENT);
                __hip_atomic_store(&sync[1], sense, __ATOMIC_RELEASE, AGENT);
            } else {
                while (__hip_atomic_load(&sync[1], __ATOMIC_ACQUIRE, AGENT) < sense) {}
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void semaphore_right(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x;
    if (t == 0) while (atomicAdd(sync, 0u) != blockIdx.x) {}
    __syncthreads();
    __threadfence();
    data[t] = data[t] + 1.0f;
    __threadfence();
    __syncthreads();
    if (t == 0) atomicAdd(sync, 1u);
}

extern "C" __global__ void compaction_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (data[at] >= 0.0f) out[atomicAdd(sync, 1u)] = data[at];
}

extern "C" __global__ void ping_pong_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0 || blockIdx.x > 1) return;
    for (unsigned turn = 0; turn < 4; ++turn) {
        unsigned mine = 2 * turn + blockIdx.x;
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) != mine) {}
        data[0] = data[0] + 1.0f;
        __hip_atomic_store(sync, mine + 1, __ATOMIC_RELEASE, AGENT);
    }
}

extern "C" __global__ void value_in_the_flag_right(float* out, float* data, unsigned* sync) {
    if (threadIdx.x != 0) return;
    unsigned b = blockIdx.x, carry = 0u;
    if (b) while ((carry = __hip_atomic_load(&sync[b - 1], __ATOMIC_RELAXED, AGENT)) == 0u) {}
    __hip_atomic_store(&sync[b], carry + 1u, __ATOMIC_RELAXED, AGENT);
    out[b] = carry;
}

extern "C" __global__ void maximum_right(float* out, float* data, unsigned* sync) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    int* target = (int*)sync;
    int old = *target, seen;
    do {
        seen = old;
        old = atomicCAS(target, seen, max(seen, (int)at));
    } while (seen != old);
}

extern "C" __global__ void volatile_partials_right(float* out, float* data, unsigned* sync) {
    __shared__ bool last;
    volatile float* partial = data;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x + 1.0f;
        __threadfence();
        last = atomicInc(sync, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) out[threadIdx.x] = partial[threadIdx.x];
}

extern "C" __global__ void waves_of_one_group_right(float* out, float* data, unsigned* sync) {
    __shared__ float tile[64];
    __shared__ int ready;
    unsigned t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (__builtin_amdgcn_readfirstlane(t / 64) == 0) {
        tile[t] = data[t];
        if (t == 0) __hip_atomic_store(&ready, 1, __ATOMIC_RELEASE, GROUP);
    } else {
        while (__hip_atomic_load(&ready, __ATOMIC_ACQUIRE, GROUP) == 0) {}
        out[blockIdx.x * 64 + t - 64] = tile[(t - 64) % 32];
    }
}

extern "C" __global__ void memory_by_lds_flag_wrong(float* out, float* data, unsigned* sync) {
    __shared__ int ready;
    unsigned t = threadIdx.x, at = blockIdx.x * 64;
    if (t == 0) ready = 0;
    __syncthreads();
    if (__builtin_amdgcn_readfirstlane(t / 64) == 0) {
        if (t < 32) data[at + t] = t * 3.0f;  // PLANTED on gfx11 gfx12
        if (t == 0) __hip_atomic_store(&ready, 1, __ATOMIC_RELAXED, GROUP);
    } else {
        while (__hip_atomic_load(&ready, __ATOMIC_RELAXED, GROUP) == 0) {}
        out[at + t - 64] = data[at + (t - 64) % 32];
    }
}

extern "C" __global__ void memory_by_lds_flag_right(float* out, float* data, unsigned* sync) {
    __shared__ int ready;
    unsigned t = threadIdx.x, at = blockIdx.x * 64;
    if (t == 0) ready = 0;
    __syncthreads();
    if (__builtin_amdgcn_readfirstlane(t / 64) == 0) {
        if (t < 32) data[at + t] = t * 3.0f;
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        if (t == 0) __hip_atomic_store(&ready, 1, __ATOMIC_RELAXED, GROUP);
    } else {
        while (__hip_atomic_load(&ready, __ATOMIC_RELAXED, GROUP) == 0) {}
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        out[at + t - 64] = data[at + (t - 64) % 32];
    }
}

extern "C" __global__ void halves_right(float* out, float* data, unsigned* sync) {
    unsigned t = threadIdx.x, tile = blockIdx.x / 2 * blockDim.x;
    if (blockIdx.x % 2) {
        out[tile + t] = data[t];
        __threadfence();
        __syncthreads();
        if (t == 0) atomicExch(&sync[blockIdx.x / 2], 1u);
    } else {
        if (t == 0) while (atomicCAS(&sync[blockIdx.x / 2], 1u, 1u) != 1u) {}
        __syncthreads();
        __threadfence();
        out[tile + t] += data[t];
    }
}

// Notes.

extern "C" __global__ void same_value_note(float* out, float* data, unsigned* sync) {
    if (data[blockIdx.x * blockDim.x + threadIdx.x] >= 0.0f) out[0] = 1.0f;
}
