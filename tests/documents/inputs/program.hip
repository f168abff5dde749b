#include <hip/hip_runtime.h>

#include <cstdio>

int total(const int *values, int n);

__global__ void squares(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i * i;
}

int main()
{
    int *values;
    if (hipMallocManaged(&values, 128 * sizeof(int)))
        return 1;
    squares<<<2, 64>>>(values);
    if (hipDeviceSynchronize())
        return 1;
    printf("%d\n", total(values, 128));
    return total(values, 128) != 690880;
}
