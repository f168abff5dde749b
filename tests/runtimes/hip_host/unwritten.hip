// Memory of narrow values whose end nobody has written, each next to one that is written:
// `PROGRAM CASE right|wrong`. Comments name the loads.
#include <hip/hip_runtime.h>
#include <string.h>

typedef unsigned char u8;
typedef unsigned short u16;
struct Padded { int number; u8 flag; };

__global__ void bytes(const u8* x, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * 3;  // bytes
}
__global__ void halves(const u16* x, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * 3;  // halves
}
__global__ void fill_bytes(u8* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}
__global__ void clear(uint4* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = make_uint4(0, 0, 0, 0);
}
__global__ void make_padded(Padded* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { x[i].number = i; x[i].flag = 1; }
}
__global__ void copy_padded(const Padded* x, Padded* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

enum { N = 1024, WRITTEN = 1000 };
static void *x, *y;
static unsigned* out;
static char host[2 * N];
static int part;

static void read_bytes() { bytes<<<4, 256>>>((const u8*)x, out, N); }
static void read_halves() { halves<<<4, 256>>>((const u16*)x, out, N); }

static void set() { hipMemset(x, 1, part); read_bytes(); }
static void copied() { hipMemcpy(x, host, part, hipMemcpyHostToDevice); read_bytes(); }
static void filled() { fill_bytes<<<4, 256>>>((u8*)x, part); read_bytes(); }
static void cleared() { clear<<<1, 64>>>((uint4*)x, part / 16); read_bytes(); }
static void set_halves() { hipMemsetD16(x, 7, part); read_halves(); }
static void copied_halves() { hipMemcpy(x, host, 2 * part, hipMemcpyHostToDevice); read_halves(); }
static void rows() {
    hipMemcpy2D(x, 64, host, 64, part == N ? 64 : 60, N / 64, hipMemcpyHostToDevice);
    read_bytes();
}
static void again() {
    hipMemset(x, 1, N);
    read_bytes();
    hipFree(x);
    hipMalloc(&x, 2 * N);
    hipMemset(x, 1, part);
    read_bytes();
}

static void padded() {
    make_padded<<<1, 64>>>((Padded*)x, 64);
    copy_padded<<<1, 64>>>((const Padded*)x, (Padded*)y, 64);
}
static void freed() {
    hipMemset(x, 1, N);
    if (part == WRITTEN) hipFree(x);
    read_bytes();
}
// A pool as frameworks reserve it, and a second stream: works are compared.
static void pooled() {
    void* pool;
    hipStream_t stream;
    hipStreamCreate(&stream);
    hipMalloc(&pool, (size_t)128 << 30);
    hipMemset(pool, 1, part == N ? 64 * sizeof(Padded) : 60 * sizeof(Padded));
    hipDeviceSynchronize();
    copy_padded<<<1, 64, 0, stream>>>((const Padded*)pool, (Padded*)y, 64);
}
static void pinned() {
    u8* both;
    hipHostMalloc((void**)&both, N, 0);
    for (int i = 0; i < N; ++i) both[i] = i;
    bytes<<<4, 256>>>(both, out, N);
}
static void only_what_is_there() {
    hipMemcpy(x, host, WRITTEN, hipMemcpyHostToDevice);
    bytes<<<4, 256>>>((const u8*)x, out, WRITTEN);
}

int main(int count, char** arguments) {
    const char* name = count > 1 ? arguments[1] : "";
    part = count > 2 && !strcmp(arguments[2], "right") ? N : WRITTEN;
    for (int i = 0; i < 2 * N; ++i) host[i] = i;
    hipMalloc(&x, 2 * N);
    hipMalloc(&y, 2 * N);
    hipMalloc((void**)&out, 4 * N);
#define CASE(of) if (!strcmp(name, #of)) of();
    CASE(set) CASE(copied) CASE(filled) CASE(cleared) CASE(set_halves) CASE(copied_halves)
    CASE(rows) CASE(again) CASE(padded) CASE(freed) CASE(pooled) CASE(pinned) CASE(only_what_is_there)
    hipDeviceSynchronize();
    return 0;
}
