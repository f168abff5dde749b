// What two GPUs, or a GPU and the host, may not share: `PROGRAM CASE right|wrong`. The comments name
// the line of the host in reports of the wrong ones.
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <string.h>

__global__ void count(int* c) { atomicAdd(c, 1); }
__global__ void count_system(int* c) { atomicAdd_system(c, 1); }
__global__ void signal(int* flag) {
    __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

static bool right;

static int* fine_memory() {
    int* memory;
    hipExtMallocWithFlags((void**)&memory, 64, hipDeviceMallocFinegrained);
    hipMemset(memory, 0, 64);
    hipDeviceSynchronize();
    return memory;
}

static void scope() {
    int* counter = fine_memory();
    for (int device = 0; device < 2; ++device) {
        hipSetDevice(device);
        if (right) count_system<<<1, 64>>>(counter);
        else count<<<1, 64>>>(counter);  // scope
    }
}
static void grain() {
    int* counter = fine_memory();
    if (!right) hipMalloc((void**)&counter, 64);
    hipMemset(counter, 0, 64);
    hipDeviceSynchronize();
    for (int device = 0; device < 2; ++device) {
        hipSetDevice(device);
        count_system<<<1, 64>>>(counter);  // grain
    }
}
static void flag() {
    int* host;
    hipHostMalloc((void**)&host, 64, right ? hipHostMallocCoherent : hipHostMallocNonCoherent);
    *host = 0;
    signal<<<1, 1>>>(host);
    while (!*(volatile int*)host) {}  // flag
}
static void advised() {
    int* both;
    hipMallocManaged((void**)&both, 64, hipMemAttachGlobal);
    *both = 0;
    if (!right) hipMemAdvise(both, 64, hipMemAdviseSetCoarseGrain, 0);
    signal<<<1, 1>>>(both);
    while (!*(volatile int*)both) {}  // advised
}
static void plain() {
    float* x;
    hipMalloc((void**)&x, 256);
    hipSetDevice(0);
    hipMemset(x, 0, 256);
    if (right) hipDeviceSynchronize();
    hipSetDevice(1);
    count<<<1, 64>>>((int*)x);  // plain
}

int main(int arguments_count, char** arguments) {
    const char* name = arguments_count > 1 ? arguments[1] : "";
    right = arguments_count > 2 && !strcmp(arguments[2], "right");
#define CASE(of) if (!strcmp(name, #of)) of();
    CASE(scope) CASE(grain) CASE(flag) CASE(advised) CASE(plain)
    for (int device = 0; device < 2; ++device) {
        hipSetDevice(device);
        hipDeviceSynchronize();
    }
    return 0;
}
