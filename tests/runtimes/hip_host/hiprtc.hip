// Source that is compiled while the program runs.
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static const char *SOURCE = R"(
#include "factor.h"
__device__ int seen;
extern "C" __global__ void plain(float *x) { x[threadIdx.x] *= FACTOR; }
template <typename T, int N> __global__ void scale(T *x) {
    x[threadIdx.x] *= N;
    if (threadIdx.x == 3) seen = N;
}
)";

int main() {
    hiprtcProgram program;
    const char *headers[] = {"#define FACTOR OF_OPTION"}, *names[] = {"factor.h"};
    hiprtcCreateProgram(&program, SOURCE, "scale.cu", 1, headers, names);
    hiprtcAddNameExpression(program, "scale<float, 3>");
    hiprtcAddNameExpression(program, "&seen");
    const char *options[] = {"-DOF_OPTION=5", "--gpu-architecture=gfx942"};
    hiprtcResult result = hiprtcCompileProgram(program, 2, options);
    if (result) {
        size_t bytes;
        hiprtcGetProgramLogSize(program, &bytes);
        std::string log(bytes, 0);
        hiprtcGetProgramLog(program, &log[0]);
        puts(log.c_str());
        return 1;
    }
    const char *scale = nullptr, *seen = nullptr;
    hiprtcGetLoweredName(program, "scale<float, 3>", &scale);
    hiprtcGetLoweredName(program, "&seen", &seen);
    size_t bytes = 0;
    hiprtcGetCodeSize(program, &bytes);
    std::vector<char> code(bytes);
    hiprtcGetCode(program, code.data());
    hipCtx_t context, found;  // as programs of the driver API begin
    hipDevice_t device;
    hipInit(0), hipDeviceGet(&device, 0), hipCtxCreate(&context, 0, device);
    hipCtxPopCurrent(&found), hipCtxPushCurrent(context);
    if (found != context || hipCtxGetCurrent(&found) || found != context) puts("no context");
    hipModule_t module;
    hipFunction_t one, other;
    hipDeviceptr_t variable;
    hipModuleLoadData(&module, code.data());
    hipModuleGetFunction(&one, module, "plain");
    hipModuleGetFunction(&other, module, scale);
    hipModuleGetGlobal(&variable, &bytes, module, seen);
    hiprtcDestroyProgram(&program);
    float *x, ones[4] = {1, 1, 1, 1};
    hipMalloc(&x, sizeof ones);
    hipMemcpy(x, ones, sizeof ones, hipMemcpyHostToDevice);
    void *arguments[] = {&x};
    hipModuleLaunchKernel(one, 1, 1, 1, 4, 1, 1, 0, 0, arguments, nullptr);
    hipModuleLaunchKernel(other, 1, 1, 1, 4, 1, 1, 0, 0, arguments, nullptr);
    hipMemcpy(ones, x, sizeof ones, hipMemcpyDeviceToHost);
    int value = 0;
    hipMemcpy(&value, variable, sizeof value, hipMemcpyDeviceToHost);
    hipCtxDestroy(context);
    if (hipCtxPopCurrent(&found) != hipErrorInvalidContext) puts("a context without one");
    printf("%g %g %d\n", ones[0], ones[3], value);

    hiprtcCreateProgram(&program, "__global__ void broken() { undeclared(); }", "broken.cu", 0,
                        nullptr, nullptr);
    result = hiprtcCompileProgram(program, 0, nullptr);
    hiprtcGetProgramLogSize(program, &bytes);
    std::string log(bytes, 0);
    hiprtcGetProgramLog(program, &log[0]);
    bool named = log.find("broken.cu:1") != std::string::npos &&
                 log.find("undeclared") != std::string::npos;
    printf("%s, %s\n", hiprtcGetErrorString(result), named ? "the log has the line" : log.c_str());
}
