// hipRAND's functions of the host. Numbers are made on the host (docs/hip.md, "Libraries"); they are
// not those of rocRAND.
#pragma once

#include <wavecast/library_call.h>

#define HIPRAND_VERSION 300000
#define HIPRAND_DEFAULT_SEED 0ULL

typedef enum hiprandStatus {
    HIPRAND_STATUS_SUCCESS = 0, HIPRAND_STATUS_VERSION_MISMATCH = 100,
    HIPRAND_STATUS_NOT_INITIALIZED = 101, HIPRAND_STATUS_ALLOCATION_FAILED = 102,
    HIPRAND_STATUS_TYPE_ERROR = 103, HIPRAND_STATUS_OUT_OF_RANGE = 104,
    HIPRAND_STATUS_LENGTH_NOT_MULTIPLE = 105, HIPRAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    HIPRAND_STATUS_LAUNCH_FAILURE = 201, HIPRAND_STATUS_PREEXISTING_FAILURE = 202,
    HIPRAND_STATUS_INITIALIZATION_FAILED = 203, HIPRAND_STATUS_ARCH_MISMATCH = 204,
    HIPRAND_STATUS_INTERNAL_ERROR = 999, HIPRAND_STATUS_NOT_IMPLEMENTED = 1000
} hiprandStatus_t;
typedef enum hiprandRngType {
    HIPRAND_RNG_TEST = 0, HIPRAND_RNG_PSEUDO_DEFAULT = 400, HIPRAND_RNG_PSEUDO_XORWOW = 401,
    HIPRAND_RNG_PSEUDO_MRG32K3A = 402, HIPRAND_RNG_PSEUDO_MTGP32 = 403,
    HIPRAND_RNG_PSEUDO_MT19937 = 404, HIPRAND_RNG_PSEUDO_PHILOX4_32_10 = 405,
    HIPRAND_RNG_QUASI_DEFAULT = 500, HIPRAND_RNG_QUASI_SOBOL32 = 501,
    HIPRAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 502, HIPRAND_RNG_QUASI_SOBOL64 = 503,
    HIPRAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 504
} hiprandRngType_t;
typedef enum hiprandOrdering {
    HIPRAND_ORDERING_PSEUDO_BEST = 100, HIPRAND_ORDERING_PSEUDO_DEFAULT = 101,
    HIPRAND_ORDERING_PSEUDO_SEEDED = 102, HIPRAND_ORDERING_PSEUDO_LEGACY = 103,
    HIPRAND_ORDERING_PSEUDO_DYNAMIC = 104, HIPRAND_ORDERING_QUASI_DEFAULT = 201
} hiprandOrdering_t;

struct hiprandGenerator_st {
    hipStream_t stream;
    unsigned long long seed, position;  // of numbers of 32 bits
    int on_host;
};
typedef struct hiprandGenerator_st *hiprandGenerator_t;

#define WC_FN WC_LIBRARY_FN hiprandStatus_t
#define WC_NEEDS_GENERATOR if (!generator) return HIPRAND_STATUS_NOT_INITIALIZED;

WC_FN hiprandCreateGenerator(hiprandGenerator_t *generator, hiprandRngType_t type) {
    if (type >= HIPRAND_RNG_QUASI_DEFAULT) return HIPRAND_STATUS_NOT_IMPLEMENTED;
    *generator = (hiprandGenerator_t)calloc(1, sizeof **generator);
    return *generator ? HIPRAND_STATUS_SUCCESS : HIPRAND_STATUS_ALLOCATION_FAILED;
}
WC_FN hiprandCreateGeneratorHost(hiprandGenerator_t *generator, hiprandRngType_t type) {
    hiprandStatus_t status = hiprandCreateGenerator(generator, type);
    if (!status) (*generator)->on_host = 1;
    return status;
}
WC_FN hiprandDestroyGenerator(hiprandGenerator_t generator) {
    WC_NEEDS_GENERATOR
    free(generator);
    return HIPRAND_STATUS_SUCCESS;
}
WC_FN hiprandSetPseudoRandomGeneratorSeed(hiprandGenerator_t generator, unsigned long long seed) {
    WC_NEEDS_GENERATOR
    generator->seed = seed, generator->position = 0;
    return HIPRAND_STATUS_SUCCESS;
}
WC_FN hiprandSetGeneratorOffset(hiprandGenerator_t generator, unsigned long long offset) {
    WC_NEEDS_GENERATOR
    generator->position = offset;
    return HIPRAND_STATUS_SUCCESS;
}
WC_FN hiprandSetGeneratorOrdering(hiprandGenerator_t generator, hiprandOrdering_t order) {
    (void)order;
    WC_NEEDS_GENERATOR
    return HIPRAND_STATUS_SUCCESS;
}
WC_FN hiprandSetStream(hiprandGenerator_t generator, hipStream_t stream) {
    WC_NEEDS_GENERATOR
    generator->stream = stream;
    return HIPRAND_STATUS_SUCCESS;
}
WC_FN hiprandGenerateSeeds(hiprandGenerator_t generator) {
    WC_NEEDS_GENERATOR
    return HIPRAND_STATUS_SUCCESS;
}
WC_FN hiprandGetVersion(int *version) {
    *version = HIPRAND_VERSION;
    return HIPRAND_STATUS_SUCCESS;
}

// `count` numbers that take `words` of 32 bits each; the parameters are of the distribution.
WC_FN __wc_random(hiprandGenerator_t generator, const char *function, void *to, size_t count,
                  unsigned words, double first, double second) {
    WC_NEEDS_GENERATOR
    unsigned long long position = generator->position;
    generator->position += count * words;
    int status =
        generator->on_host
            ? __wavecast_library(generator->stream, function, 0, "lllddpr", generator->seed,
                                 position, (long long)count, first, second, NULL, to)
            : __wavecast_library(generator->stream, function, 0, "lllddp", generator->seed,
                                 position, (long long)count, first, second, to);
    return status ? HIPRAND_STATUS_OUT_OF_RANGE : HIPRAND_STATUS_SUCCESS;
}
#define WC_PLAIN(name, T, function, words)                                                \
    WC_FN hiprandGenerate##name(hiprandGenerator_t generator, T *to, size_t count) {      \
        return __wc_random(generator, "hiprand." function, to, count, words, 0, 0);       \
    }
#define WC_NORMAL(name, T, function, words)                                                \
    WC_FN hiprandGenerate##name(hiprandGenerator_t generator, T *to, size_t count, T mean, \
                                T deviation) {                                             \
        return __wc_random(generator, "hiprand." function, to, count, words, mean,         \
                           deviation);                                                     \
    }
WC_PLAIN(, unsigned int, "bits.u4", 1)
WC_PLAIN(Char, unsigned char, "bits.u1", 1)
WC_PLAIN(Short, unsigned short, "bits.u2", 1)
WC_PLAIN(LongLong, unsigned long long, "bits.u8", 2)
WC_PLAIN(Uniform, float, "uniform.S", 1)
WC_PLAIN(UniformDouble, double, "uniform.D", 2)
WC_NORMAL(Normal, float, "normal.S", 2)
WC_NORMAL(NormalDouble, double, "normal.D", 4)
WC_NORMAL(LogNormal, float, "lognormal.S", 2)
WC_NORMAL(LogNormalDouble, double, "lognormal.D", 4)
WC_FN hiprandGeneratePoisson(hiprandGenerator_t generator, unsigned int *to, size_t count,
                             double lambda) {
    return __wc_random(generator, "hiprand.poisson.u4", to, count, 64, lambda, 0);
}
#undef WC_PLAIN
#undef WC_NORMAL
#undef WC_NEEDS_GENERATOR
#undef WC_FN
