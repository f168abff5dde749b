// One program for all tests: `features NAME` uses one part of HIP, prints what was wrong with
// its line, and exits with 0 if nothing was.
#include <hip/hip_runtime.h>
#include <hip/hip_complex.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp8.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#if !defined(hipStreamNonBlocking) || !defined(hipEventDisableTiming) || !defined(hipHostMallocMapped)
#error "flags are macros in ROCm's headers"
#endif
extern "C" int hipMallocArray();  // as a program that was built with other headers calls it
#define NEED(condition)                                                     \
    if (!(condition)) return printf("line %d: %s\n", __LINE__, #condition), 1
#define OK(call) NEED((call) == hipSuccess)

__device__ int device_count;
__constant__ float table[4];
__managed__ int managed_value = 5;

template <typename T> __global__ void scale(T *x, int n, T by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
__global__ void with_symbols(float *out) {
    out[threadIdx.x] = table[threadIdx.x];
    atomicAdd(&device_count, 1);
    if (threadIdx.x == 0) managed_value += 1;
}
struct Pair {
    char small;
    double large;
};
__global__ void with_structure(Pair pair, short k, double *out) { *out = pair.small + pair.large + k; }
__global__ void printing(int n) {
    if (threadIdx.x < n)
        printf("lane %u of %s: %5.2f %lld %c %%\n", threadIdx.x, "text", threadIdx.x / 2.0f, -1LL, 'x');
}
__global__ void failing(int *x) { assert(x == nullptr && "never"); }
__global__ void outside(int *x) { x[1024] = 1; }
__global__ void with_lds(int *out) {
    extern __shared__ int values[];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
__global__ void racing(int *out) {
    __shared__ int values[128];
    values[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = values[127 - threadIdx.x];
}
__global__ void grid_sum(int *x, int *total) {
    auto grid = cooperative_groups::this_grid();
    x[grid.thread_rank()] = 1;
    grid.sync();
    if (grid.thread_rank() == 0)
        for (unsigned i = 0; i < grid.size(); ++i) *total += x[i];
}
__global__ void allocating(int **out) {
    int *made = (int *)malloc(sizeof(int));
    *made = threadIdx.x;
    out[threadIdx.x] = made;
}

__global__ void intrinsics(float *f, double *d, int *n, unsigned long long *m, int4 *v) {
    int i = threadIdx.x;
    f[0] = __fadd_rd(1.0f, 1e-20f), f[1] = __fadd_ru(1.0f, 1e-20f), f[2] = __int2float_rz(-16777217);
    d[0] = __ddiv_rd(1.0, 3.0), d[1] = __ddiv_ru(1.0, 3.0), d[2] = __ddiv_rz(-1.0, 3.0);
    hipFloatComplex z = hipCmulf(make_hipFloatComplex(1, 2), make_hipFloatComplex(3, 4));
    f[3] = hipCrealf(z), f[4] = hipCimagf(z);
    n[0] = __syncthreads_count(i < 70), n[1] = __syncthreads_and(i < 128);
    n[2] = __syncthreads_or(i > 127), n[3] = __double2int_rd(-1.5), n[4] = __double2int_rn(2.5);
    unsigned long long same = __match_any(i % 3);
    if (i == 1) m[0] = same, m[1] = __umul64hi(~0ull, 16);
    if (i < 64 && i % 2) {
        auto odd = cooperative_groups::coalesced_threads();
        if (i == 63) n[5] = odd.thread_rank(), n[6] = odd.size();
        int from = odd.shfl(i, 3);
        if (i == 63) n[7] = from;
    }
    if (i == 0) {
        *v *= 3, *v = 2 * *v, ++*v;
        n[8] = atomicCAS_system(&n[9], 0, 5);
    }
    cooperative_groups::thread_block_tile<32> tile =
        cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    if (i == 70) n[10] = tile.thread_rank(), n[11] = tile.meta_group_rank();
}

struct __align__(16) Aligned {
    int x;
};

static int memory() {
    float host[100], back[100];
    for (int i = 0; i < 100; ++i) host[i] = i;
    float *x;
    OK(hipMalloc(&x, sizeof host));
    OK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
    scale<<<1, 128, 0, hipStreamDefault>>>(x, 100, 2.0f);
    OK(hipGetLastError());
    OK(hipMemcpy(back, x, sizeof back, hipMemcpyDeviceToHost));
    for (int i = 0; i < 100; ++i) NEED(back[i] == 2 * i);
    OK(hipMemset(x, 0xff, 4));
    unsigned bits;
    OK(hipMemcpy(&bits, x, 4, hipMemcpyDefault));
    NEED(bits == 0xffffffffu);
    double *managed, *pinned;
    OK(hipMallocManaged(&managed, 8 * sizeof(double)));
    OK(hipHostMalloc(&pinned, 8 * sizeof(double)));
    for (int i = 0; i < 8; ++i) managed[i] = pinned[i] = i;
    scale<<<1, 64>>>(managed, 8, 3.0);
    scale<<<1, 64>>>(pinned, 8, 5.0);
    OK(hipDeviceSynchronize());
    NEED(managed[7] == 21 && pinned[7] == 35);
    static double own[1024];
    OK(hipHostRegister(own, sizeof own, hipHostRegisterDefault));
    own[3] = 2;
    double *alias;
    OK(hipHostGetDevicePointer(&alias, own, 0));
    scale<<<16, 64>>>(alias, 1024, 7.0);
    NEED(own[3] == 14);
    OK(hipHostUnregister(own));
    NEED(own[3] == 14);
    hipPointerAttribute_t attributes;
    OK(hipPointerGetAttributes(&attributes, managed + 1));
    NEED(attributes.type == hipMemoryTypeManaged && attributes.isManaged);
    size_t available, total;
    OK(hipMemGetInfo(&available, &total));
    NEED(available == total - sizeof host);
    OK(hipFree(x));
    NEED(hipFree(x) == hipErrorInvalidValue);
    NEED(hipMalloc(&x, (size_t)1 << 50) == hipErrorOutOfMemory && !x);
    OK(hipFree(nullptr));
    return 0;
}

// Reserved addresses, memory that is mapped there, and its content elsewhere.
static int virtual_memory() {
    hipMemAllocationProp properties = {};
    properties.type = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    size_t unit, free_bytes, total, after;
    OK(hipMemGetAllocationGranularity(&unit, &properties, hipMemAllocationGranularityMinimum));
    char *place;
    OK(hipMemAddressReserve((void **)&place, 4 * unit, 0, nullptr, 0));
    NEED((size_t)place % unit == 0);
    NEED(hipMemset(place, 0, 4) == hipErrorInvalidValue);
    hipMemGenericAllocationHandle_t first, other, again;
    OK(hipMemGetInfo(&free_bytes, &total));
    OK(hipMemCreate(&first, unit, &properties, 0));
    OK(hipMemCreate(&other, unit, &properties, 0));
    NEED(hipMemCreate(&again, unit + 1, &properties, 0) == hipErrorInvalidValue);
    OK(hipMemMap(place, unit, 0, first, 0));
    OK(hipMemMap(place + unit, unit, 0, other, 0));
    hipMemAccessDesc access = {properties.location, hipMemAccessFlagsProtReadWrite};
    OK(hipMemSetAccess(place, 2 * unit, &access, 1));
    OK(hipMemGetInfo(&after, &total));
    NEED(free_bytes - after == 2 * unit);
    float *x = (float *)(place + unit) - 32;  // a kernel over the border of both
    float values[64];
    for (int i = 0; i < 64; ++i) values[i] = i;
    OK(hipMemcpy(x, values, 128, hipMemcpyHostToDevice));
    OK(hipMemcpy(x + 32, values + 32, 128, hipMemcpyHostToDevice));
    scale<<<1, 64>>>(x, 64, 2.0f);
    OK(hipDeviceSynchronize());
    OK(hipMemcpy(values, x + 32, 128, hipMemcpyDeviceToHost));
    NEED(values[0] == 64 && values[31] == 126);
    OK(hipMemRetainAllocationHandle(&again, place + unit));
    NEED(again == other);
    OK(hipMemRelease(again));
    OK(hipMemUnmap(place, 2 * unit));
    OK(hipMemMap(place + 3 * unit, unit, 0, other, 0));
    OK(hipMemcpy(values, place + 3 * unit, 128, hipMemcpyDeviceToHost));
    NEED(values[0] == 64 && values[31] == 126);
    OK(hipMemUnmap(place + 3 * unit, unit));
    OK(hipMemRelease(first));
    OK(hipMemRelease(other));
    OK(hipMemAddressFree(place, 4 * unit));
    OK(hipMemGetInfo(&after, &total));
    NEED(after == free_bytes);
    return 0;
}

// What libraries ask of pointers, and how they pass memory on.
static int pointers() {
    char *x;
    OK(hipMalloc(&x, 1000));
    void *first;
    size_t bytes;
    unsigned type;
    OK(hipPointerGetAttribute(&first, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, x + 10));
    OK(hipPointerGetAttribute(&bytes, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, x + 10));
    OK(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, x + 10));
    NEED(first == x && bytes == 1000 && type == hipMemoryTypeDevice);
    NEED(hipPointerGetAttribute(&first, HIP_POINTER_ATTRIBUTE_HOST_POINTER, x));
    NEED(hipPointerGetAttribute(&first, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, &bytes));
    hipIpcMemHandle_t handle;
    OK(hipIpcGetMemHandle(&handle, x));
    OK(hipIpcOpenMemHandle(&first, handle, 0));
    NEED(first == x);
    OK(hipIpcCloseMemHandle(first));
    void *function;
    hipDriverProcAddressQueryResult status;
    OK(hipGetProcAddress("hipMalloc", &function, 0, 0, &status));
    NEED(function && status == HIP_GET_PROC_ADDRESS_SUCCESS);
    NEED(hipGetProcAddress("hipNothing", &function, 0, 0, &status) == hipErrorInvalidValue);
    NEED(status == HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(hipFree(x));
    return 0;
}

static int copies() {
    int host[6][8], *x, back[6][4];
    for (int i = 0; i < 48; ++i) host[i / 8][i % 8] = i;
    size_t pitch;
    OK(hipMallocPitch(&x, &pitch, 16, 6));
    NEED(pitch >= 16 && pitch % 16 == 0);
    OK(hipMemcpy2D(x, pitch, host, 32, 16, 6, hipMemcpyHostToDevice));
    OK(hipMemcpy2D(back, 16, x, pitch, 16, 6, hipMemcpyDeviceToHost));
    NEED(back[5][3] == 43 && back[1][0] == 8);
    NEED(hipMemcpy2D(x, 8, host, 32, 16, 6, hipMemcpyHostToDevice) == hipErrorInvalidPitchValue);
    NEED(hipMemcpy(x, host, pitch * 6 + 1, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    NEED(hipMemcpy(x, host, 4, (hipMemcpyKind)77) == hipErrorInvalidMemcpyDirection);
    OK(hipMemsetD32(x, 9, 4));
    OK(hipMemcpy(back, x, 16, hipMemcpyDeviceToHost));
    NEED(back[0][3] == 9);
    return 0;
}

static int symbols() {
    float values[4] = {1, 2, 3, 4}, back[4], *out;
    int count;
    OK(hipMalloc(&out, 16));
    OK(hipMemcpyToSymbol(table, values, 12));
    OK(hipMemcpyToSymbol(HIP_SYMBOL(table), values, 4, 12));
    with_symbols<<<2, 4>>>(out);
    OK(hipMemcpy(back, out, 16, hipMemcpyDeviceToHost));
    NEED(back[1] == 2 && back[3] == 1);
    OK(hipMemcpyFromSymbol(&count, device_count, 4));
    NEED(count == 8);
    NEED(managed_value > 5);
    size_t bytes;
    void *address;
    OK(hipGetSymbolSize(&bytes, table));
    OK(hipGetSymbolAddress(&address, device_count));
    NEED(bytes == 16);
    OK(hipMemset(address, 0, 4));
    NEED(hipMemcpyToSymbol(table, values, 20) == hipErrorInvalidValue);
    NEED(hipMemcpyToSymbol((const void *)values, values, 4) == hipErrorInvalidSymbol);
    double *sum, result;
    OK(hipMalloc(&sum, 8));
    with_structure<<<1, 1>>>(Pair{1, 2.5}, 3, sum);
    OK(hipMemcpy(&result, sum, 8, hipMemcpyDeviceToHost));
    NEED(result == 6.5);
    return 0;
}

static void add_one(void *data) { ++*(int *)data; }

static int streams() {
    hipStream_t a, b;
    hipEvent_t start, stop;
    OK(hipStreamCreate(&a));
    OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    OK(hipEventCreate(&start));
    OK(hipEventCreate(&stop));
    float *x, ms = -1, back;
    OK(hipMallocAsync(&x, 400, a));
    float ones[100];
    for (float &one : ones) one = 1;
    OK(hipMemcpyAsync(x, ones, 400, hipMemcpyHostToDevice, a));
    OK(hipEventRecord(start, a));
    for (int i = 0; i < 3; ++i) scale<<<1, 128, 0, a>>>(x, 100, 2.0f);
    OK(hipEventRecord(stop, a));
    OK(hipStreamWaitEvent(b, stop, 0));
    OK(hipMemcpyAsync(&back, x + 99, 4, hipMemcpyDeviceToHost, b));
    OK(hipStreamSynchronize(b));
    NEED(back == 8);
    OK(hipEventElapsedTime(&ms, start, stop));
    NEED(ms > 0);
    printf("elapsed %.6f ms\n", ms);
    int calls = 0;
    OK(hipLaunchHostFunc(a, add_one, &calls));
    NEED(calls == 1);
    OK(hipStreamBeginCapture(a, hipStreamCaptureModeGlobal));
    scale<<<1, 128, 0, a>>>(x, 100, 3.0f);
    OK(hipMemcpyAsync(&back, x, 4, hipMemcpyDeviceToHost, a));
    NEED(back == 8);
    hipGraph_t graph;
    hipGraphExec_t executable;
    OK(hipStreamEndCapture(a, &graph));
    OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    OK(hipGraphDestroy(graph));
    OK(hipGraphLaunch(executable, a));
    OK(hipGraphLaunch(executable, a));
    NEED(back == 72);
    OK(hipGraphExecDestroy(executable));
    OK(hipFreeAsync(x, a));
    OK(hipStreamDestroy(a));
    NEED(hipStreamDestroy(a) != hipSuccess);
    NEED(hipEventElapsedTime(&ms, start, nullptr) == hipErrorInvalidHandle);
    return 0;
}

static int launches() {
    int *out, back[64];
    OK(hipMalloc(&out, 256));
    with_lds<<<1, 64, 256>>>(out);
    OK(hipMemcpy(back, out, 256, hipMemcpyDeviceToHost));
    NEED(back[0] == 63);
    with_lds<<<1, 2048>>>(out);
    NEED(hipPeekAtLastError() == hipErrorInvalidConfiguration);
    NEED(hipGetLastError() == hipErrorInvalidConfiguration);
    with_lds<<<1, 64, 1 << 20>>>(out);
    NEED(hipGetLastError() == hipErrorInvalidValue);
    with_lds<<<0, 64>>>(out);
    NEED(hipGetLastError() == hipErrorInvalidConfiguration);
    NEED(hipGetLastError() == hipSuccess);
    int blocks, grid_size, block_size;
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_lds, 256, 0));
    NEED(blocks == 8);
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_lds, 256, 32768));
    NEED(blocks == 2);
    OK(hipOccupancyMaxPotentialBlockSize(&grid_size, &block_size, with_lds, 0, 0));
    NEED(block_size == 1024 && grid_size == 608);
    hipFunction_t handle = nullptr;
    OK(hipGetFuncBySymbol(&handle, (const void *)with_lds));
    OK(hipMemset(out, 0, 256));
    void *handed[] = {&out};
    OK(hipModuleLaunchKernel(handle, 1, 1, 1, 64, 1, 1, 256, nullptr, handed, nullptr));
    OK(hipMemcpy(back, out, 256, hipMemcpyDeviceToHost));
    NEED(back[0] == 63);
    NEED(hipGetFuncBySymbol(&handle, &blocks) == hipErrorInvalidDeviceFunction);
    (void)hipGetLastError();
    hipFuncAttributes attributes;
    OK(hipFuncGetAttributes(&attributes, (const void *)with_lds));
    NEED(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0);
    int *x, *total, sum;
    OK(hipMalloc(&x, 4 * 512));
    OK(hipMalloc(&total, 4));
    OK(hipMemset(total, 0, 4));
    void *arguments[] = {&x, &total};
    OK(hipLaunchCooperativeKernel(grid_sum, dim3(8), dim3(64), arguments, 0, 0));
    OK(hipMemcpy(&sum, total, 4, hipMemcpyDeviceToHost));
    NEED(sum == 512);
    NEED(hipLaunchCooperativeKernel(grid_sum, dim3(1 << 20), dim3(64), arguments, 0, 0) ==
         hipErrorCooperativeLaunchTooLarge);
    int **made, *pointers[64];
    OK(hipMalloc(&made, sizeof pointers));
    allocating<<<1, 64>>>(made);
    OK(hipMemcpy(pointers, made, sizeof pointers, hipMemcpyDeviceToHost));
    NEED(*pointers[9] == 9);
    return 0;
}

static int device_functions() {
    float *f;
    double *d;
    int *n;
    unsigned long long *m;
    int4 *v;
    OK(hipMallocManaged(&f, 64));
    OK(hipMallocManaged(&d, 64));
    OK(hipMallocManaged(&n, 64));
    OK(hipMallocManaged(&m, 64));
    OK(hipMallocManaged(&v, 16));
    *v = make_int4(1, 2, 3, 4);
    n[9] = 0;
    intrinsics<<<1, 128>>>(f, d, n, m, v);
    NEED(f[0] == 1.0f && f[1] > 1.0f && f[1] < 1.000001f && f[2] == -16777216.0f);
    NEED(d[0] < d[1] && d[1] - d[0] < 1e-16 && d[2] == -d[0]);
    NEED(f[3] == -5 && f[4] == 10);
    NEED(n[0] == 70 && n[1] == 1 && n[2] == 0 && n[3] == -2 && n[4] == 2);
    NEED(m[0] == 0x2492492492492492ull && m[1] == 15);
    NEED(n[5] == 31 && n[6] == 32 && n[7] == 7);
    NEED(v->x == 7 && v->w == 25 && n[8] == 0 && n[9] == 5);
    NEED((float)__hip_fp8_e4m3(0.3f) == 0.3125f && (float)__hip_fp8_e4m3(-1000.0f) == -448.0f);
    NEED((float)__hip_fp8_e5m2_fnuz(0.3f) == 0.3125f && (float)__hip_fp8_e4m3_fnuz(999.0f) == 240);
    NEED(((float4)__hip_fp8x4_e4m3(float4(1, 2, 3, 17))).w == 16.0f);
    NEED(n[10] == 6 && n[11] == 2 && sizeof(Aligned) == 16 && min(3, 2) == max(1, 2));
    return 0;
}

static int modules(const char *path) {
    hipModule_t module;
    hipFunction_t function;
    float *x;
    int n = 100;
    OK(hipModuleLoad(&module, path));
    OK(hipModuleGetFunction(&function, module, "twice"));
    NEED(hipModuleGetFunction(&function, module, "thrice") == hipErrorNotFound);
    OK(hipModuleGetFunction(&function, module, "twice"));
    OK(hipMallocManaged(&x, 400));
    x[99] = 4;
    void *arguments[] = {&x, &n};
    OK(hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr));
    NEED(x[99] == 8);
    struct {
        float *x;
        int n;
    } packed = {x, n};
    size_t bytes = sizeof packed;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    OK(hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, nullptr, extra));
    NEED(x[99] == 16);
    hipLaunchAttribute attribute = {};
    attribute.id = hipLaunchAttributeCooperative;
    HIP_LAUNCH_CONFIG launch = {2, 1, 1, 64, 1, 1, 0, 0, &attribute, 1};
    OK(hipDrvLaunchKernelEx(&launch, function, nullptr, extra));
    attribute.val.cooperative = 1;
    OK(hipDrvLaunchKernelEx(&launch, function, nullptr, extra));
    launch.gridDimX = 1 << 20;
    NEED(hipDrvLaunchKernelEx(&launch, function, nullptr, extra) ==
         hipErrorCooperativeLaunchTooLarge);
    OK(hipExtModuleLaunchKernel(function, 128, 1, 1, 64, 1, 1, 0, 0, nullptr, extra));
    NEED(x[99] == 128);
    OK(hipModuleUnload(module));
    NEED(hipModuleLoad(&module, "/nowhere.hsaco") == hipErrorFileNotFound);
    return 0;
}

static int devices() {
    int count, device, value, can;
    OK(hipGetDeviceCount(&count));
    OK(hipGetDevice(&device));
    NEED(device == 0);
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, 0));
    OK(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0));
    NEED(value == properties.multiProcessorCount);
    // Numbers of ROCm's hip_runtime_api.h, which programs in other languages repeat.
    static_assert(hipDeviceAttributeGlobalL1CacheSupported == 14, "");
    static_assert(hipDeviceAttributeMaxThreadsDim == 55, "");
    static_assert(hipDeviceAttributeMultiprocessorCount == 63, "");
    static_assert(hipDeviceAttributeIsLargeBar == 10011, "");
    static_assert(hipDeviceAttributeWallClockRate == 10017, "");
    OK(hipDeviceGetAttribute(&can, hipDeviceAttributeGlobalL1CacheSupported, 0));
    NEED(can == 1);
    OK(hipDeviceGetAttribute(&can, hipDeviceAttributePhysicalMultiProcessorCount, 0));
    NEED(can == value);
    OK(hipDeviceGetAttribute(&can, hipDeviceAttributeImageSupport, 0));
    NEED(can == 0);
    NEED(warpSize == properties.warpSize);
    NEED(hipSetDevice(count) == hipErrorInvalidDevice);
    printf("%d of %s: %s, %d CUs, wave %d, %zu bytes\n", count, properties.gcnArchName,
           properties.name, value, properties.warpSize, properties.totalGlobalMem);
    NEED(!strcmp(hipGetErrorName(hipErrorInvalidDevice), "hipErrorInvalidDevice"));
    if (count > 1) {
        int *here, *there, back;
        OK(hipDeviceCanAccessPeer(&can, 0, 1));
        NEED(can);
        OK(hipDeviceEnablePeerAccess(1, 0));
        NEED(hipDeviceEnablePeerAccess(1, 0) == hipErrorPeerAccessAlreadyEnabled);
        OK(hipMalloc(&here, 4));
        OK(hipSetDevice(1));
        OK(hipMalloc(&there, 4));
        OK(hipMemset(there, 0, 4));
        OK(hipMemcpyPeer(here, 0, there, 1, 4));
        OK(hipMemcpy(&back, here, 4, hipMemcpyDeviceToHost));
        NEED(back == 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    int *x = nullptr;
    if (!strcmp(name, "memory")) return memory();
    if (!strcmp(name, "virtual_memory")) return virtual_memory();
    if (!strcmp(name, "pointers")) return pointers();
    if (!strcmp(name, "copies")) return copies();
    if (!strcmp(name, "symbols")) return symbols();
    if (!strcmp(name, "streams")) return streams();
    if (!strcmp(name, "launches")) return launches();
    if (!strcmp(name, "device_functions")) return device_functions();
    if (!strcmp(name, "devices")) return devices();
    if (!strcmp(name, "modules")) return modules(argv[2]);
    if (!strcmp(name, "nothing")) return 3;
    if (!strcmp(name, "crash")) return *(volatile int *)8;
    OK(hipMalloc(&x, 4096));
    if (!strcmp(name, "printing")) printing<<<1, 64>>>(2);
    if (!strcmp(name, "failing")) failing<<<1, 1>>>(x);
    if (!strcmp(name, "outside")) outside<<<1, 1>>>(x);
    if (!strcmp(name, "racing")) racing<<<1, 128>>>(x);
    if (!strcmp(name, "unsupported")) return hipMallocArray();
    printf("end\n");
    return 0;
}
