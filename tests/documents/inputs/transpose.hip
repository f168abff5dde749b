#include <hip/hip_runtime.h>

__global__ void transpose(const float *in, float *out, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8)
        tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8)
        out[(y + row) * n + x] = tile[threadIdx.x][threadIdx.y + row];
}
