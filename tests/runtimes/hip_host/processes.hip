// A program of several processes; the first argument says what they do.
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        hipError_t error = (call);                                         \
        if (error) {                                                       \
            printf("line %d: %s\n", __LINE__, hipGetErrorString(error));   \
            fflush(stdout);                                                \
            _exit(1);                                                      \
        }                                                                  \
    } while (0)

static const int COUNT = 1024, BLOCKS = 4;

__global__ void produce(int *flag, float *x, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = factor * i;
    __syncthreads();
    if (threadIdx.x == 0)
        __hip_atomic_fetch_add(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

__global__ void consume(int *flag, const float *x, float *y) {
    if (threadIdx.x == 0)
        while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) < BLOCKS) {}
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + 1;
}

typedef struct {
    hipIpcMemHandle_t flag, x;
} Handles;

static void wait_for_all(int children) {
    for (int child = 0; child < children; ++child) {
        int status;
        wait(&status);
        if (status) printf("a child ended with %d\n", status);
    }
}

// Each child writes to memory of the parent, in which a kernel of the parent waits for it.
static void child_writes(int pipe_end, int number) {
    Handles handles;
    if (read(pipe_end, &handles, sizeof handles) != sizeof handles) _exit(1);
    void *flag, *x;
    CHECK(hipSetDevice(number + 1));
    CHECK(hipIpcOpenMemHandle(&flag, handles.flag, hipIpcMemLazyEnablePeerAccess));
    CHECK(hipIpcOpenMemHandle(&x, handles.x, hipIpcMemLazyEnablePeerAccess));
    void *again;
    CHECK(hipIpcOpenMemHandle(&again, handles.x, hipIpcMemLazyEnablePeerAccess));
    if (again != x) _exit(3);
    CHECK(hipIpcCloseMemHandle(again));
    float *own;
    CHECK(hipMalloc(&own, COUNT * sizeof(float)));
    produce<<<BLOCKS, COUNT / BLOCKS>>>((int *)flag, (float *)x, number + 2.0f);
    CHECK(hipMemcpy(own, x, COUNT * sizeof(float), hipMemcpyDeviceToDevice));
    float last;
    CHECK(hipMemcpy(&last, own + COUNT - 1, sizeof last, hipMemcpyDeviceToHost));
    if (last != (number + 2.0f) * (COUNT - 1)) _exit(1);
    CHECK(hipIpcCloseMemHandle(flag));
    CHECK(hipIpcCloseMemHandle(x));
    if (hipMemset(x, 0, 4) != hipErrorInvalidValue) _exit(2);
    _exit(0);
}

static void exchange(int children, bool writes) {
    int pipes[8][2];
    for (int child = 0; child < children; ++child) {
        if (pipe(pipes[child])) exit(1);
        if (!fork()) {
            if (writes) child_writes(pipes[child][0], child);
            _exit(0);
        }
    }
    for (int child = 0; child < children; ++child) {
        int *flag;
        float *x, *y, host[COUNT];
        CHECK(hipMalloc(&flag, sizeof *flag));
        CHECK(hipMalloc(&x, sizeof host));
        CHECK(hipMalloc(&y, sizeof host));
        CHECK(hipMemset(flag, 0, sizeof *flag));
        Handles handles;
        CHECK(hipIpcGetMemHandle(&handles.flag, flag));
        CHECK(hipIpcGetMemHandle(&handles.x, x));
        if (write(pipes[child][1], &handles, sizeof handles) != sizeof handles) exit(1);
        consume<<<BLOCKS, COUNT / BLOCKS>>>(flag, x, y);
        CHECK(hipMemcpy(host, y, sizeof host, hipMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; ++i)
            if (host[i] != (child + 2.0f) * i + 1) printf("child %d: %d: %g\n", child, i, host[i]);
    }
    wait_for_all(children);
    puts("exchanged");
}

static void fork_late() {
    int *x;
    CHECK(hipMalloc(&x, 4));
    if (!fork()) {
        CHECK(hipMalloc(&x, 4));
        _exit(0);
    }
    wait_for_all(1);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "exchange")) exchange(3, true);
    if (!strcmp(what, "absent")) exchange(1, false);
    if (!strcmp(what, "fork_late")) fork_late();
}
