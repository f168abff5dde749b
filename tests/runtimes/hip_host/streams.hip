// Works that nothing orders, each next to one that is ordered: `PROGRAM CASE right|wrong`. The
// comments name the line of the host in reports of the wrong ones.
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__global__ void fill(float* x, float v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = v;
}
__global__ void scale(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
__global__ void count(int* c) { atomicAdd(c, 1); }

enum { N = 2048, BYTES = 4 * N };
static float *x, *y, *pinned;
static hipStream_t a, b, alone;
static hipEvent_t event;
static bool right;

static void launch(float* to, float value, hipStream_t stream) {
    fill<<<N / 256, 256, 0, stream>>>(to, value, N);
}

static void events() {
    launch(x, 1, a);
    hipEventRecord(event, a);
    if (right) hipStreamWaitEvent(b, event, 0);
    scale<<<8, 256, 0, b>>>(y, x, N);  // events
}
static void recorded_early() {
    if (!right) hipEventRecord(event, a);
    launch(x, 1, a);
    if (right) hipEventRecord(event, a);
    hipStreamWaitEvent(b, event, 0);
    scale<<<8, 256, 0, b>>>(y, x, N);  // recorded_early
}
static void copied() {
    launch(x, 1, a);
    hipMemcpyAsync(pinned, x, BYTES, hipMemcpyDeviceToHost, right ? a : b);  // copied
}
static void read_back() {
    launch(x, 1, a);
    hipMemcpyAsync(pinned, x, BYTES, hipMemcpyDeviceToHost, a);
    if (right) hipStreamSynchronize(a);
    printf("%g\n", pinned[7]);  // read_back
}
static void reused() {
    hipMemcpyAsync(x, pinned, BYTES, hipMemcpyHostToDevice, a);
    hipEventRecord(event, a);
    if (right) hipEventSynchronize(event);
    pinned[3] = 5;  // reused
}
static void managed() {
    float* both;
    hipMallocManaged((void**)&both, BYTES, 0);
    for (int i = 0; i < N; ++i) both[i] = 3;
    launch(both, 1, 0);
    if (right) hipDeviceSynchronize();
    printf("%g\n", both[5]);  // managed
}
static void null_stream() {
    launch(x, 1, 0);
    if (right) hipStreamSynchronize(0);
    scale<<<8, 256, 0, alone>>>(y, x, N);  // null_stream
}
static void halves() {
    fill<<<4, 256, 0, a>>>(x, 1, N / 2);
    fill<<<4, 256, 0, b>>>(x + N / 2 - !right, 2, N / 2);  // halves
}
static void cleared() {
    hipMemsetAsync(x, 0, BYTES, a);
    if (right) hipStreamSynchronize(a);
    scale<<<8, 256, 0, b>>>(y, x, N);  // cleared
}
static void freed() {
    float* z;
    hipMallocAsync((void**)&z, BYTES, a);
    launch(z, 1, a);
    hipEventRecord(event, a);
    hipStreamWaitEvent(b, event, 0);
    scale<<<8, 256, 0, b>>>(y, z, N);
    hipFreeAsync(z, right ? b : a);  // freed
}

// Right, and easily mistaken for wrong.
static void legal() {
    int* c;
    hipMalloc((void**)&c, 4);
    hipMemset(c, 0, 4);
    hipDeviceSynchronize();
    count<<<4, 64, 0, a>>>(c);  // atomics of two streams
    count<<<4, 64, 0, b>>>(c);
    launch(x, 1, 0);  // the null stream waits for blocking streams, and they for it
    scale<<<8, 256, 0, a>>>(y, x, N);
    launch(y, 1, 0);
    hipDeviceSynchronize();
    scale<<<8, 256, 0, a>>>(y, x, N);  // two readers
    scale<<<8, 256, 0, b>>>(pinned, x, N);
    hipDeviceSynchronize();
    float* pageable = (float*)malloc(BYTES);  // such copies return with the data
    hipMemcpyAsync(pageable, y, BYTES, hipMemcpyDeviceToHost, a);
    printf("%g\n", pageable[5]);
    for (int k = 0; k < 4; ++k) {  // two buffers of one page
        hipStream_t stream = k % 2 ? a : b;
        float *device = k % 2 ? x : y, *host = pinned + k % 2 * 64;
        hipStreamSynchronize(stream);
        for (int i = 0; i < 64; ++i) host[i] = i;
        hipMemcpyAsync(device, host, 256, hipMemcpyHostToDevice, stream);
        hipMemcpyAsync(host, device, 256, hipMemcpyDeviceToHost, stream);
    }
    while (hipStreamQuery(a) == hipErrorNotReady) {}
    printf("%g\n", pinned[64 + 9]);
}

int main(int count, char** arguments) {
    const char* name = count > 1 ? arguments[1] : "";
    right = count > 2 && !strcmp(arguments[2], "right");
    hipMalloc((void**)&x, BYTES);
    hipMalloc((void**)&y, BYTES);
    hipHostMalloc((void**)&pinned, BYTES, 0);
    for (int i = 0; i < N; ++i) pinned[i] = i;
    hipMemcpy(x, pinned, BYTES, hipMemcpyHostToDevice);
    hipMemcpy(y, pinned, BYTES, hipMemcpyHostToDevice);
    hipStreamCreate(&a);
    hipStreamCreateWithFlags(&b, hipStreamDefault);
    hipStreamCreateWithFlags(&alone, hipStreamNonBlocking);
    hipEventCreate(&event);
#define CASE(of) if (!strcmp(name, #of)) of();
    CASE(events) CASE(recorded_early) CASE(copied) CASE(read_back) CASE(reused) CASE(managed)
    CASE(null_stream) CASE(halves) CASE(cleared) CASE(freed) CASE(legal)
    hipDeviceSynchronize();
    hipFree(x);
    return 0;
}
