// rocRAND's classes of engines and distributions, of the functions of rocrand.h.
#pragma once

#include <rocrand/rocrand.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <type_traits>

namespace rocrand_cpp {

class error : public std::exception {
   public:
    typedef rocrand_status error_type;
    error(error_type code) noexcept
        : code(code), message("rocRAND status " + std::to_string((int)code)) {}
    error_type error_code() const noexcept { return code; }
    std::string error_string() const noexcept { return message; }
    const char *what() const noexcept override { return message.c_str(); }

   private:
    error_type code;
    std::string message;
};
inline void __wc_check(rocrand_status status) {
    if (!status) return;
#ifdef __cpp_exceptions
    throw error(status);
#else
    fprintf(stderr, "wavecast: rocRAND status %d\n", (int)status);
    abort();
#endif
}

template <rocrand_rng_type Type, unsigned long long Seed = ROCRAND_DEFAULT_SEED> class engine {
   public:
    typedef unsigned int result_type;
    typedef unsigned long long offset_type;
    typedef unsigned long long seed_type;
    static constexpr seed_type default_seed = Seed;
    engine(seed_type seed_value = Seed, offset_type offset_value = 0) {
        __wc_check(rocrand_create_generator(&generator, Type));
        seed(seed_value);
        offset(offset_value);
    }
    engine(const engine &) = delete;
    engine &operator=(const engine &) = delete;
    ~engine() { rocrand_destroy_generator(generator); }
    void seed(seed_type value) { __wc_check(rocrand_set_seed(generator, value)); }
    void offset(offset_type value) { __wc_check(rocrand_set_offset(generator, value)); }
    void stream(hipStream_t value) { __wc_check(rocrand_set_stream(generator, value)); }
    void operator()(result_type *to, size_t count) {
        __wc_check(rocrand_generate(generator, to, count));
    }
    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return ~0u; }
    rocrand_generator generator = nullptr;
};
#define WC_ENGINE(name, TYPE)                                                                 \
    template <unsigned long long Seed = ROCRAND_DEFAULT_SEED>                                 \
    using name##_engine = engine<ROCRAND_RNG_PSEUDO_##TYPE, Seed>;                            \
    typedef name##_engine<> name;
WC_ENGINE(xorwow, XORWOW)
WC_ENGINE(philox4x32_10, PHILOX4_32_10)
WC_ENGINE(mrg32k3a, MRG32K3A)
WC_ENGINE(mt19937, MT19937)
#undef WC_ENGINE
typedef xorwow default_random_engine;

template <typename T = unsigned int> struct uniform_int_distribution {
    typedef T result_type;
    template <typename Engine> void operator()(Engine &of, T *to, size_t count) {
        if constexpr (sizeof(T) == 1) __wc_check(rocrand_generate_char(of.generator, to, count));
        else if constexpr (sizeof(T) == 2)
            __wc_check(rocrand_generate_short(of.generator, to, count));
        else if constexpr (sizeof(T) == 4) __wc_check(rocrand_generate(of.generator, to, count));
        else __wc_check(rocrand_generate_long_long(of.generator, (unsigned long long *)to, count));
    }
};
template <typename T = float> struct uniform_real_distribution {
    typedef T result_type;
    template <typename Engine> void operator()(Engine &of, T *to, size_t count) {
        if constexpr (std::is_same<T, double>::value)
            __wc_check(rocrand_generate_uniform_double(of.generator, to, count));
        else __wc_check(rocrand_generate_uniform(of.generator, to, count));
    }
};
#define WC_NORMALS(name, function)                                                            \
    template <typename T = float> class name {                                                \
       public:                                                                                \
        typedef T result_type;                                                                \
        name(T mean = 0, T stddev = 1) : of_mean(mean), of_stddev(stddev) {}                  \
        T mean() const { return of_mean; }                                                    \
        T stddev() const { return of_stddev; }                                                \
        template <typename Engine> void operator()(Engine &of, T *to, size_t count) {         \
            if constexpr (std::is_same<T, double>::value)                                     \
                __wc_check(function##_double(of.generator, to, count, of_mean, of_stddev));   \
            else __wc_check(function(of.generator, to, count, of_mean, of_stddev));           \
        }                                                                                     \
                                                                                              \
       private:                                                                               \
        T of_mean, of_stddev;                                                                 \
    };
WC_NORMALS(normal_distribution, rocrand_generate_normal)
WC_NORMALS(lognormal_distribution, rocrand_generate_log_normal)
#undef WC_NORMALS
template <typename T = unsigned int> class poisson_distribution {
   public:
    typedef T result_type;
    poisson_distribution(double mean = 1) : of_mean(mean) {}
    double mean() const { return of_mean; }
    template <typename Engine> void operator()(Engine &of, T *to, size_t count) {
        __wc_check(rocrand_generate_poisson(of.generator, to, count, of_mean));
    }

   private:
    double of_mean;
};

}  // namespace rocrand_cpp
