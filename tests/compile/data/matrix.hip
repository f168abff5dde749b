#include <hip/hip_runtime.h>
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef _Float16 f16x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x8 __attribute__((ext_vector_type(8)));
extern "C" __global__ __launch_bounds__(64) void mm(const _Float16 *a, const _Float16 *b, float *c) {
#if defined(__GFX9__)
  f32x4 acc = {0};
  f16x4 x = ((const f16x4 *)a)[threadIdx.x], y = ((const f16x4 *)b)[threadIdx.x];
  acc = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, acc, 0, 0, 0);
  ((f32x4 *)c)[threadIdx.x] = acc;
#elif defined(__gfx1250__)
  f32x8 acc = {0};
  f16x16 x = ((const f16x16 *)a)[threadIdx.x], y = ((const f16x16 *)b)[threadIdx.x];
  acc = __builtin_amdgcn_wmma_f32_16x16x32_f16(0, x, 0, y, 0, acc, false, false);
  ((f32x8 *)c)[threadIdx.x] = acc;
#elif defined(__GFX12__)
  f32x8 acc = {0};
  f16x8 x = ((const f16x8 *)a)[threadIdx.x], y = ((const f16x8 *)b)[threadIdx.x];
  acc = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x, y, acc);
  ((f32x8 *)c)[threadIdx.x] = acc;
#else
  f32x8 acc = {0};
  f16x16 x = ((const f16x16 *)a)[threadIdx.x], y = ((const f16x16 *)b)[threadIdx.x];
  acc = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, acc);
  ((f32x8 *)c)[threadIdx.x] = acc;
#endif
}
