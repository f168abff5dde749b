// hipRAND's functions of kernels. Philox gives the numbers of rocRAND; the others start a sequence at
// a state that is a hash of seed and subsequence, so that they give other numbers than rocRAND's.
#pragma once

#include <hip/hip_runtime.h>
#include <hiprand/hiprand.h>

#define __WC_FN static __host__ __device__ __wc_inline

// --- generators: Philox 4x32-10 (Salmon et al., SC 2011), xorwow (Marsaglia, JSS 8, 2003), MRG32k3a
// (L'Ecuyer, Operations Research 47, 1999)
struct hiprandStatePhilox4_32_10 {
    unsigned key[2], counter[4], result[4], at;
    float spare;
    double spare_double;
    int has_spare;
};
struct hiprandStateXORWOW {
    unsigned x[5], weyl;
    float spare;
    double spare_double;
    int has_spare;
};
struct hiprandStateMRG32k3a {
    unsigned first[3], second[3];
    float spare;
    double spare_double;
    int has_spare;
};
typedef hiprandStatePhilox4_32_10 hiprandStatePhilox4_32_10_t;
typedef hiprandStateXORWOW hiprandStateXORWOW_t;
typedef hiprandStateMRG32k3a hiprandStateMRG32k3a_t;
typedef hiprandStateXORWOW hiprandState;
typedef hiprandStateXORWOW hiprandState_t;

__WC_FN void __wc_philox_round(unsigned *counter, const unsigned *key) {
    unsigned long long first = 0xD2511F53ull * counter[0], second = 0xCD9E8D57ull * counter[2];
    unsigned x = (unsigned)(second >> 32) ^ counter[1] ^ key[0];
    unsigned z = (unsigned)(first >> 32) ^ counter[3] ^ key[1];
    counter[0] = x, counter[1] = (unsigned)second, counter[2] = z, counter[3] = (unsigned)first;
}
__WC_FN void __wc_philox(const unsigned *key, const unsigned *counter, unsigned *result) {
    unsigned used[2] = {key[0], key[1]};
    for (int at = 0; at < 4; ++at) result[at] = counter[at];
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        __wc_philox_round(result, used);
        used[0] += 0x9E3779B9u, used[1] += 0xBB67AE85u;
    }
}
__WC_FN void __wc_skip(hiprandStatePhilox4_32_10 *state, unsigned long long count) {
    unsigned long long within = state->at + count, low = state->counter[0];
    low |= (unsigned long long)state->counter[1] << 32;
    unsigned long long next = low + within / 4;
    state->counter[0] = (unsigned)next, state->counter[1] = (unsigned)(next >> 32);
    if (next < low && !++state->counter[2]) ++state->counter[3];
    state->at = within % 4;
    __wc_philox(state->key, state->counter, state->result);
}
__WC_FN unsigned hiprand(hiprandStatePhilox4_32_10 *state) {
    unsigned result = state->result[state->at];
    if (state->at < 3)
        ++state->at;
    else
        __wc_skip(state, 1);
    return result;
}
__WC_FN unsigned hiprand(hiprandStateXORWOW *state) {
    unsigned t = state->x[0] ^ (state->x[0] >> 2);
    for (int at = 0; at < 4; ++at) state->x[at] = state->x[at + 1];
    state->x[4] ^= (state->x[4] << 4) ^ t ^ (t << 1);
    state->weyl += 362437;
    return state->weyl + state->x[4];
}
__WC_FN unsigned hiprand(hiprandStateMRG32k3a *state) {
    const long long m1 = 4294967087ll, m2 = 4294944443ll;
    long long p1 = (1403580ll * state->first[1] - 810728ll * state->first[0]) % m1;
    long long p2 = (527612ll * state->second[2] - 1370589ll * state->second[0]) % m2;
    p1 += p1 < 0 ? m1 : 0, p2 += p2 < 0 ? m2 : 0;
    for (int at = 0; at < 2; ++at) {
        state->first[at] = state->first[at + 1], state->second[at] = state->second[at + 1];
    }
    state->first[2] = (unsigned)p1, state->second[2] = (unsigned)p2;
    return (unsigned)(p1 > p2 ? p1 - p2 : p1 - p2 + m1);
}

__WC_FN void __wc_seed(hiprandStatePhilox4_32_10 *state, unsigned long long seed,
                       unsigned long long subsequence) {
    *state = {{(unsigned)seed, (unsigned)(seed >> 32)},
              {0, 0, (unsigned)subsequence, (unsigned)(subsequence >> 32)}};
}
__WC_FN void __wc_seed(hiprandStateXORWOW *state, unsigned long long seed,
                       unsigned long long subsequence) {
    hiprandStatePhilox4_32_10 hash;
    __wc_seed(&hash, seed, subsequence);
    __wc_skip(&hash, 0);
    *state = {{hash.result[0], hash.result[1], hash.result[2], hash.result[3] | 1, 88675123u}, 6615241u};
}
__WC_FN void __wc_seed(hiprandStateMRG32k3a *state, unsigned long long seed,
                       unsigned long long subsequence) {
    hiprandStatePhilox4_32_10 hash;
    __wc_seed(&hash, seed, subsequence);
    __wc_skip(&hash, 0);
    *state = {{hash.result[0] >> 1, hash.result[1] >> 1, 12345}, {hash.result[2] >> 1, hash.result[3] >> 1, 12345}};
}
template <typename State> __WC_FN void __wc_skip(State *state, unsigned long long count) {
    while (count--) hiprand(state);
}
template <typename State>
__WC_FN void hiprand_init(unsigned long long seed, unsigned long long subsequence,
                          unsigned long long offset, State *state) {
    __wc_seed(state, seed, subsequence);
    __wc_skip(state, offset);
}
template <typename State> __WC_FN void skipahead(unsigned long long count, State *state) {
    __wc_skip(state, count);
}

// --- distributions
__WC_FN float __wc_uniform(unsigned bits) { return bits * 2.3283064e-10f + 2.3283064e-10f; }
__WC_FN double __wc_uniform(unsigned low, unsigned high) {
    unsigned long long bits = (unsigned long long)high << 21 ^ low;
    return bits * 0x1p-53 + 0x1p-53;
}
template <typename State> __WC_FN float hiprand_uniform(State *state) {
    return __wc_uniform(hiprand(state));
}
template <typename State> __WC_FN double hiprand_uniform_double(State *state) {
    unsigned low = hiprand(state);
    return __wc_uniform(low, hiprand(state));
}
template <typename State> __WC_FN float2 hiprand_normal2(State *state) {
    float radius = sqrtf(-2.0f * logf(hiprand_uniform(state)));
    float angle = 6.2831853f * hiprand_uniform(state);
    return {radius * sinf(angle), radius * cosf(angle)};
}
template <typename State> __WC_FN double2 hiprand_normal2_double(State *state) {
    double radius = sqrt(-2.0 * log(hiprand_uniform_double(state)));
    double angle = 6.283185307179586 * hiprand_uniform_double(state);
    return {radius * sin(angle), radius * cos(angle)};
}
template <typename State> __WC_FN float hiprand_normal(State *state) {
    if (state->has_spare & 1) {
        state->has_spare ^= 1;
        return state->spare;
    }
    float2 pair = hiprand_normal2(state);
    state->spare = pair.y, state->has_spare |= 1;
    return pair.x;
}
template <typename State> __WC_FN double hiprand_normal_double(State *state) {
    if (state->has_spare & 2) {
        state->has_spare ^= 2;
        return state->spare_double;
    }
    double2 pair = hiprand_normal2_double(state);
    state->spare_double = pair.y, state->has_spare |= 2;
    return pair.x;
}
template <typename State>
__WC_FN float hiprand_log_normal(State *state, float mean, float deviation) {
    return expf(mean + deviation * hiprand_normal(state));
}
template <typename State>
__WC_FN double hiprand_log_normal_double(State *state, double mean, double deviation) {
    return exp(mean + deviation * hiprand_normal_double(state));
}
// Products of uniform numbers for small means (Knuth, TAOCP 2, 3.4.1), a rounded normal for large.
template <typename State> __WC_FN unsigned hiprand_poisson(State *state, double mean) {
    if (mean > 64) {
        double found = rint(mean + sqrt(mean) * hiprand_normal_double(state));
        return found < 0 ? 0 : (unsigned)found;
    }
    double limit = exp(-mean), product = hiprand_uniform_double(state);
    unsigned count = 0;
    for (; product > limit; ++count) product *= hiprand_uniform_double(state);
    return count;
}
typedef hiprandStatePhilox4_32_10 __wc_philox_state;
__WC_FN uint4 hiprand4(__wc_philox_state *state) {
    unsigned x = hiprand(state), y = hiprand(state), z = hiprand(state);
    return {x, y, z, hiprand(state)};
}
__WC_FN float4 hiprand_uniform4(__wc_philox_state *state) {
    uint4 bits = hiprand4(state);
    return {__wc_uniform(bits.x), __wc_uniform(bits.y), __wc_uniform(bits.z), __wc_uniform(bits.w)};
}
__WC_FN double2 hiprand_uniform2_double(__wc_philox_state *state) {
    double x = hiprand_uniform_double(state);
    return {x, hiprand_uniform_double(state)};
}
__WC_FN float4 hiprand_normal4(__wc_philox_state *state) {
    float2 first = hiprand_normal2(state), second = hiprand_normal2(state);
    return {first.x, first.y, second.x, second.y};
}
#undef __WC_FN
