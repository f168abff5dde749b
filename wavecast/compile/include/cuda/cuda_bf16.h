// CUDA's bfloat16 under the names of HIP's.
#pragma once

#include <cuda_runtime.h>
#include <hip/hip_bf16.h>

typedef __hip_bfloat16 __nv_bfloat16;
typedef __hip_bfloat16 nv_bfloat16;
typedef __hip_bfloat162 __nv_bfloat162;
typedef __hip_bfloat162 nv_bfloat162;
