#include <hip/hip_runtime.h>
__global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
int main() {
  float host[1000], *x, *y;
  for (int i = 0; i < 1000; ++i) host[i] = i;
  if (hipMalloc(&x, sizeof host) || hipMalloc(&y, sizeof host)) return 1;
  if (hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice)) return 1;
  add<<<4, 256>>>(x, y, 1000);
  if (hipMemcpy(host, y, sizeof host, hipMemcpyDeviceToHost)) return 1;
  for (int i = 0; i < 1000; ++i)
    if (host[i] != i + 1) return 1;
  return 0;
}
