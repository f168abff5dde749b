// CUDA's 8-bit floats (OCP) under the names of HIP's.
#pragma once

#include <cuda_fp16.h>
#include <hip/hip_fp8.h>

typedef __hip_fp8_storage_t __nv_fp8_storage_t;
typedef __hip_fp8_e4m3 __nv_fp8_e4m3;
typedef __hip_fp8_e5m2 __nv_fp8_e5m2;
