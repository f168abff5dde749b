// rocRAND's functions of kernels: hipRAND's with other names.
#pragma once

#include <hiprand/hiprand_kernel.h>

typedef hiprandStatePhilox4_32_10 rocrand_state_philox4x32_10;
typedef hiprandStateXORWOW rocrand_state_xorwow;
typedef hiprandStateMRG32k3a rocrand_state_mrg32k3a;

#define __WC_FN template <typename State> static __host__ __device__ __wc_inline
#define __WC_RENAMED(T, name, hiprand_name)                                                        \
    __WC_FN T name(State *state) { return hiprand_name(state); }
__WC_FN void rocrand_init(unsigned long long seed, unsigned long long subsequence,
                          unsigned long long offset, State *state) {
    hiprand_init(seed, subsequence, offset, state);
}
__WC_RENAMED(unsigned, rocrand, hiprand)
__WC_RENAMED(uint4, rocrand4, hiprand4)
__WC_RENAMED(float, rocrand_uniform, hiprand_uniform)
__WC_RENAMED(float4, rocrand_uniform4, hiprand_uniform4)
__WC_RENAMED(double, rocrand_uniform_double, hiprand_uniform_double)
__WC_RENAMED(double2, rocrand_uniform_double2, hiprand_uniform2_double)
__WC_RENAMED(float, rocrand_normal, hiprand_normal)
__WC_RENAMED(float2, rocrand_normal2, hiprand_normal2)
__WC_RENAMED(float4, rocrand_normal4, hiprand_normal4)
__WC_RENAMED(double, rocrand_normal_double, hiprand_normal_double)
__WC_RENAMED(double2, rocrand_normal_double2, hiprand_normal2_double)
__WC_FN float2 rocrand_uniform2(State *state) {
    float x = hiprand_uniform(state);
    return {x, hiprand_uniform(state)};
}
__WC_FN float rocrand_log_normal(State *state, float mean, float deviation) {
    return hiprand_log_normal(state, mean, deviation);
}
__WC_FN double rocrand_log_normal_double(State *state, double mean, double deviation) {
    return hiprand_log_normal_double(state, mean, deviation);
}
__WC_FN unsigned rocrand_poisson(State *state, double mean) { return hiprand_poisson(state, mean); }
#undef __WC_RENAMED
#undef __WC_FN
