// Conversions to 8-bit floats of numbers up to 1000, with and without a limit of the kernel's.
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#define KERNEL extern "C" __global__ void
#define ARGUMENTS (const float *x, unsigned char *out)
#define NUMBER x[threadIdx.x]
#define LIMITED(top) fminf(fmaxf(NUMBER, -top), top)

KERNEL fnuz_wrong ARGUMENTS {
    out[threadIdx.x] = __hip_fp8_e4m3_fnuz(NUMBER).__x; // PLANTED
}
KERNEL fnuz_right ARGUMENTS {
    out[threadIdx.x] = __hip_fp8_e4m3_fnuz(LIMITED(240.0f)).__x;
}
KERNEL ocp_wrong ARGUMENTS {
    out[threadIdx.x] = __hip_fp8_e4m3(NUMBER).__x; // PLANTED
}
KERNEL ocp_right ARGUMENTS {
    out[threadIdx.x] = __hip_fp8_e4m3(LIMITED(448.0f)).__x;
}
KERNEL scaled_wrong ARGUMENTS {
    float scale = 448.0f / 1000.0f;
    out[threadIdx.x] =
        __hip_cvt_float_to_fp8(NUMBER * scale, __HIP_SATFINITE, __HIP_E4M3_FNUZ); // PLANTED
}
KERNEL scaled_right ARGUMENTS {
    float scale = 240.0f / 1000.0f;
    out[threadIdx.x] = __hip_cvt_float_to_fp8(NUMBER * scale, __HIP_SATFINITE, __HIP_E4M3_FNUZ);
}
KERNEL wide_right ARGUMENTS {
    out[threadIdx.x] = __hip_fp8_e5m2(NUMBER).__x;
}

#if defined(__gfx942__) || defined(__gfx950__) || defined(__gfx1201__)
// Bytes of pairs that are permuted, then stored one by one: those of large numbers, or not.
__device__ int permuted(int pair) {
    int bytes, selector = 0x00010202;
    asm volatile("v_perm_b32 %0, %1, %1, %2" : "=v"(bytes) : "v"(pair), "s"(selector));
    return bytes;
}
KERNEL bytes_wrong ARGUMENTS {
    int bytes = permuted(__builtin_amdgcn_cvt_pk_fp8_f32(NUMBER, 1.0f, 0, false)); // PLANTED
    if (threadIdx.x < 32) out[threadIdx.x] = bytes >> 24;
}
KERNEL bytes_right ARGUMENTS {
    int bytes = permuted(__builtin_amdgcn_cvt_pk_fp8_f32(NUMBER, 1.0f, 0, false));
    if (threadIdx.x >= 32) return;
    out[threadIdx.x + 32] = bytes >> 16;
    if (fabsf(NUMBER) < 200.0f) out[threadIdx.x] = bytes >> 24;
}
#endif
