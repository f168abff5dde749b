// rocRAND's functions of the host, as hipRAND (docs/hip.md, "Libraries"): numbers are not those of rocRAND.
#pragma once

#include <hiprand/hiprand.h>

#define ROCRAND_VERSION 400000
#define ROCRAND_DEFAULT_SEED 0ULL

typedef enum rocrand_status {
    ROCRAND_STATUS_SUCCESS = 0, ROCRAND_STATUS_VERSION_MISMATCH = 100,
    ROCRAND_STATUS_NOT_CREATED = 101, ROCRAND_STATUS_ALLOCATION_FAILED = 102,
    ROCRAND_STATUS_TYPE_ERROR = 103, ROCRAND_STATUS_OUT_OF_RANGE = 104,
    ROCRAND_STATUS_LENGTH_NOT_MULTIPLE = 105, ROCRAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    ROCRAND_STATUS_LAUNCH_FAILURE = 107, ROCRAND_STATUS_INTERNAL_ERROR = 108
} rocrand_status;
typedef enum rocrand_rng_type {
    ROCRAND_RNG_PSEUDO_DEFAULT = 400, ROCRAND_RNG_PSEUDO_XORWOW = 401,
    ROCRAND_RNG_PSEUDO_MRG32K3A = 402, ROCRAND_RNG_PSEUDO_MTGP32 = 403,
    ROCRAND_RNG_PSEUDO_PHILOX4_32_10 = 404, ROCRAND_RNG_PSEUDO_MRG31K3P = 405,
    ROCRAND_RNG_PSEUDO_LFSR113 = 406, ROCRAND_RNG_PSEUDO_MT19937 = 407,
    ROCRAND_RNG_PSEUDO_THREEFRY2_32_20 = 408, ROCRAND_RNG_PSEUDO_THREEFRY2_64_20 = 409,
    ROCRAND_RNG_PSEUDO_THREEFRY4_32_20 = 410, ROCRAND_RNG_PSEUDO_THREEFRY4_64_20 = 411,
    ROCRAND_RNG_QUASI_DEFAULT = 500, ROCRAND_RNG_QUASI_SOBOL32 = 501
} rocrand_rng_type;
typedef struct hiprandGenerator_st *rocrand_generator;

#define WC_FN WC_LIBRARY_FN rocrand_status
WC_FN __wc_rocrand(hiprandStatus_t status) {
    return status == HIPRAND_STATUS_SUCCESS            ? ROCRAND_STATUS_SUCCESS
           : status == HIPRAND_STATUS_NOT_INITIALIZED  ? ROCRAND_STATUS_NOT_CREATED
           : status == HIPRAND_STATUS_NOT_IMPLEMENTED  ? ROCRAND_STATUS_TYPE_ERROR
           : status == HIPRAND_STATUS_OUT_OF_RANGE     ? ROCRAND_STATUS_OUT_OF_RANGE
                                                       : ROCRAND_STATUS_ALLOCATION_FAILED;
}
WC_FN rocrand_create_generator(rocrand_generator *generator, rocrand_rng_type type) {
    if (!generator) return ROCRAND_STATUS_NOT_CREATED;
    if (type < ROCRAND_RNG_PSEUDO_DEFAULT) return ROCRAND_STATUS_TYPE_ERROR;
    return __wc_rocrand(hiprandCreateGenerator(generator, (hiprandRngType_t)type));
}
WC_FN rocrand_create_generator_host(rocrand_generator *generator, rocrand_rng_type type) {
    if (!generator) return ROCRAND_STATUS_NOT_CREATED;
    if (type < ROCRAND_RNG_PSEUDO_DEFAULT) return ROCRAND_STATUS_TYPE_ERROR;
    return __wc_rocrand(hiprandCreateGeneratorHost(generator, (hiprandRngType_t)type));
}
WC_FN rocrand_destroy_generator(rocrand_generator generator) {
    return __wc_rocrand(hiprandDestroyGenerator(generator));
}
WC_FN rocrand_initialize_generator(rocrand_generator generator) {
    return __wc_rocrand(hiprandGenerateSeeds(generator));
}
WC_FN rocrand_set_stream(rocrand_generator generator, hipStream_t stream) {
    return __wc_rocrand(hiprandSetStream(generator, stream));
}
WC_FN rocrand_set_seed(rocrand_generator generator, unsigned long long seed) {
    return __wc_rocrand(hiprandSetPseudoRandomGeneratorSeed(generator, seed));
}
WC_FN rocrand_set_offset(rocrand_generator generator, unsigned long long offset) {
    return __wc_rocrand(hiprandSetGeneratorOffset(generator, offset));
}
WC_FN rocrand_get_version(int *version) {
    if (!version) return ROCRAND_STATUS_OUT_OF_RANGE;
    *version = ROCRAND_VERSION;
    return ROCRAND_STATUS_SUCCESS;
}
#define WC_NUMBERS(name, Name, T)                                                             \
    WC_FN rocrand_generate##name(rocrand_generator generator, T *to, size_t count) {          \
        return __wc_rocrand(hiprandGenerate##Name(generator, to, count));                     \
    }
#define WC_NORMAL_NUMBERS(name, Name, T)                                                      \
    WC_FN rocrand_generate_##name(rocrand_generator generator, T *to, size_t count, T mean,   \
                                  T deviation) {                                              \
        return __wc_rocrand(hiprandGenerate##Name(generator, to, count, mean, deviation));    \
    }
WC_NUMBERS(, , unsigned int)
WC_NUMBERS(_char, Char, unsigned char)
WC_NUMBERS(_short, Short, unsigned short)
WC_NUMBERS(_long_long, LongLong, unsigned long long)
WC_NUMBERS(_uniform, Uniform, float)
WC_NUMBERS(_uniform_double, UniformDouble, double)
WC_NORMAL_NUMBERS(normal, Normal, float)
WC_NORMAL_NUMBERS(normal_double, NormalDouble, double)
WC_NORMAL_NUMBERS(log_normal, LogNormal, float)
WC_NORMAL_NUMBERS(log_normal_double, LogNormalDouble, double)
WC_FN rocrand_generate_poisson(rocrand_generator generator, unsigned int *to, size_t count,
                               double lambda) {
    return __wc_rocrand(hiprandGeneratePoisson(generator, to, count, lambda));
}
#undef WC_NUMBERS
#undef WC_NORMAL_NUMBERS
#undef WC_FN
