#include <hip/hip_runtime.h>

__global__ void scale(const float *x, float *y, float factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * factor;
}
