#include <hip/hip_runtime.h>

__global__ void vecCopy(double *a, double *b, double *c, int n, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = a[i];
}
