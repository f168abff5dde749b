#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void forces(const float4 *bodies, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float3 sum = {0, 0, 0};
    for (int j = 0; j < n; j++) {
        float dx = bodies[j].x - bodies[i].x;
        float dy = bodies[j].y - bodies[i].y;
        float dz = bodies[j].z - bodies[i].z;
        float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f);
        float weight = bodies[j].w * inverse * inverse * inverse;
        sum.x += dx * weight;
        sum.y += dy * weight;
        sum.z += dz * weight;
    }
    out[i] = {sum.x, sum.y, sum.z, 0};
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 256;
    int steps = argc > 2 ? atoi(argv[2]) : 1;
    float4 *bodies = (float4 *)malloc(n * sizeof(float4));
    float4 *result = (float4 *)malloc(n * sizeof(float4));
    for (int i = 0; i < n; i++)
        bodies[i] = {float(i % 16), float(i / 16 % 16), float(i / 256), 1};
    float4 *x, *y;
    if (hipMalloc(&x, n * sizeof(float4)) || hipMalloc(&y, n * sizeof(float4)))
        return 1;
    hipMemcpy(x, bodies, n * sizeof(float4), hipMemcpyHostToDevice);
    for (int step = 0; step < steps; step++)
        forces<<<(n + 63) / 64, 64>>>(x, y, n);
    hipMemcpy(result, y, n * sizeof(float4), hipMemcpyDeviceToHost);
    double total = 0;
    for (int i = 0; i < n; i++)
        total += result[i].x + result[i].y + result[i].z;
    printf("%d bodies, sum of forces %.3f\n", n, total);
    return total > 1 || total < -1;
}
