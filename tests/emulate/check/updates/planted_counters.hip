// Workgroups that count their arrivals; the last one adds up what all have stored.
#include <hip/hip_runtime.h>

__device__ void add_up(const float* parts, float* out, int groups) {
  __threadfence();
  float total = 0;
  for (int i = 0; i < groups; ++i) total += parts[i * blockDim.x + threadIdx.x];
  out[threadIdx.x] = total;
}

__device__ void store_part(const float* x, float* parts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[i] = x[i];
  __threadfence();
  __syncthreads();
}

extern "C" __global__ void last_of_grid(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ bool last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x - 1;  // PLANT last_of_grid
  __syncthreads();
  if (last) add_up(parts, out, gridDim.x);
}

extern "C" __global__ void old_value_shared(const float* x, float* parts, float* out, int* counter) {
  __shared__ int old;
  store_part(x, parts);
  if (threadIdx.x == 0)
    old = __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);  // PLANT old_value_shared
  __syncthreads();
  if (old + 1 == (int)gridDim.x) add_up(parts, out, gridDim.x);
}

extern "C" __global__ void wide_counter(const float* x, float* parts, float* out, unsigned long long* counter) {
  __shared__ int last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = atomicAdd(counter, 1ull) == gridDim.x - 1;  // PLANT wide_counter
  __syncthreads();
  if (last) add_up(parts, out, gridDim.x);
}

// Two tiles of gridDim.x / 2 workgroups, with two counters each; the second one is reset.
extern "C" __global__ void two_per_tile(const float* x, float* parts, float* out, unsigned* counters) {
  __shared__ bool first_done, last;
  unsigned tile = blockIdx.x & 1, share = gridDim.x / 2;
  store_part(x, parts);
  if (threadIdx.x == 0) {
    first_done = atomicAdd(&counters[2 * tile], 1u) == share - 1;  // PLANT two_per_tile
    last = atomicAdd(&counters[2 * tile + 1], 1u) == share - 1;
    if (last) atomicExch(&counters[2 * tile + 1], 0u);
  }
  __syncthreads();
  if (first_done) out[tile * blockDim.x + threadIdx.x] = 1;
  if (last) __threadfence();
}

extern "C" __global__ void counts_down(const float* x, float* parts, float* out, int* counter) {
  __shared__ bool last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = atomicSub(counter, 1) == 1;  // PLANT counts_down
  __syncthreads();
  if (last) add_up(parts, out, gridDim.x);
}

// Every work-item counts.
extern "C" __global__ void counted_by_all(const float* x, float* parts, float* out, unsigned* counter) {
  store_part(x, parts);
  unsigned old = atomicAdd(counter, 1u);  // PLANT counted_by_all
  if (old == gridDim.x * blockDim.x - 1) out[0] = 1;
}

extern "C" __global__ void shuffled(const float* x, float* parts, float* out, unsigned* counter) {
  unsigned old = 0;
  store_part(x, parts);
  if (threadIdx.x == 0) old = atomicInc(counter, 0xffffffffu);  // PLANT shuffled
  old = __shfl(old, threadIdx.x & 0);
  if (old == gridDim.x - 1) out[threadIdx.x % warpSize] = 1;
}

extern "C" __global__ void at_least(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ bool last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) >= gridDim.x - 1;  // PLANT at_least
  __syncthreads();
  if (last) add_up(parts, out, gridDim.x);
}

extern "C" __global__ void not_below(const float* x, float* parts, float* out, int* counter) {
  __shared__ int old;
  store_part(x, parts);
  if (threadIdx.x == 0) old = atomicAdd(counter, 1);  // PLANT not_below
  __syncthreads();
  if (old + 1 < (int)gridDim.x) return;
  add_up(parts, out, gridDim.x);
}

// Right programs.

// Space that is given away, as long as there is some.
extern "C" __global__ void appends(const float* x, float* parts, float* out, unsigned* counter) {
  store_part(x, parts);
  unsigned place = atomicAdd(counter, 1u);
  if (place < gridDim.x * blockDim.x / 2) out[place % blockDim.x] = 1;
}

extern "C" __global__ void stores_zero(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ bool last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  add_up(parts, out, gridDim.x);
  if (threadIdx.x == 0) __hip_atomic_store(counter, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

extern "C" __global__ void wraps(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ bool last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last) add_up(parts, out, gridDim.x);
}

extern "C" __global__ void modulo(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ bool last;
  store_part(x, parts);
  if (threadIdx.x == 0) last = (atomicAdd(counter, 1u) + 1) % gridDim.x == 0;
  __syncthreads();
  if (last) add_up(parts, out, gridDim.x);
}

extern "C" __global__ void epochs(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ bool last;
  store_part(x, parts);
  unsigned epoch = counter[1];
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x * (epoch + 1) - 1;
  __syncthreads();
  if (!last) return;
  add_up(parts, out, gridDim.x);
  if (threadIdx.x == 0) counter[1] = epoch + 1;
}

// Takes numbers from a queue that lasts.
extern "C" __global__ void tickets(const float* x, float* parts, float* out, unsigned* counter) {
  __shared__ unsigned ticket;
  for (;;) {
    if (threadIdx.x == 0) ticket = atomicAdd(counter, 1u);
    __syncthreads();
    unsigned mine = ticket;
    __syncthreads();
    if (mine >= 2 * gridDim.x) return;
    if (mine < gridDim.x) parts[mine * blockDim.x + threadIdx.x] = x[mine * blockDim.x + threadIdx.x];
  }
}

// Initialises once in the life of the program.
extern "C" __global__ void once(const float* x, float* parts, float* out, unsigned* counter) {
  store_part(x, parts);
  if (threadIdx.x == 0 && atomicAdd(counter, 1u) == 0) out[0] = 1;
}

// Counts what is rare in all launches, and notes when there are eleven.
extern "C" __global__ void threshold(const float* x, float* parts, float* out, unsigned* counter) {
  store_part(x, parts);
  if (atomicAdd(counter, 1u) == 10) out[0] = 1;
}

extern "C" __global__ void histogram(const float* x, float* parts, float* out, unsigned* bins) {
  store_part(x, parts);
  if (atomicAdd(&bins[(threadIdx.x * threadIdx.x) & 15], 1u) == 20) out[0] = 1;
}
