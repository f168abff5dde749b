// Random engines and distributions that kernels can use, and shuffles.
#pragma once

#include <thrust/detail/ordering.h>

namespace thrust {

// x -> A x mod M
template <typename T, T A, T C, T M> struct linear_congruential_engine {
    typedef T result_type;
    T state;
    static constexpr T default_seed = 1, min = 1, max = M - 1;
    __WC_FN explicit linear_congruential_engine(T value = 1) { seed(value); }
    __WC_FN void seed(T value = 1) { state = value % M ? value % M : 1; }
    __WC_FN T operator()() {
        return state = (T)(((unsigned long long)A * state + C) % M);
    }
    __WC_FN void discard(unsigned long long n) {
        for (unsigned long long power = A; n; n >>= 1, power = power * power % M)
            if (n & 1) state = (T)(power * state % M);
    }
};
typedef linear_congruential_engine<unsigned, 16807, 0, 2147483647> minstd_rand0;
typedef linear_congruential_engine<unsigned, 48271, 0, 2147483647> minstd_rand;
typedef minstd_rand default_random_engine;

template <typename T = double> struct uniform_real_distribution {
    T low, high;
    __WC_FN explicit uniform_real_distribution(T a = 0, T b = 1) : low(a), high(b) {}
    template <typename E> __WC_FN T operator()(E &engine) const {
        T unit = (T)(engine() - E::min) / ((T)(E::max - E::min) + (T)1);
        return unit * (high - low) + low;
    }
};
template <typename T = int> struct uniform_int_distribution {
    T low, high;
    __WC_FN explicit uniform_int_distribution(T a = 0, T b = 2147483647) : low(a), high(b) {}
    template <typename E> __WC_FN T operator()(E &engine) const {
        double unit = (double)(engine() - E::min) / ((double)(E::max - E::min) + 1);
        return (T)(low + (long long)(unit * ((double)high - (double)low + 1)));
    }
};
template <typename T = double> struct normal_distribution {
    T mean, deviation;
    __WC_FN explicit normal_distribution(T a = 0, T b = 1) : mean(a), deviation(b) {}
    template <typename E> __WC_FN T operator()(E &engine) const {
        uniform_real_distribution<double> unit;
        double radius = ::sqrt(-2.0 * ::log(1.0 - unit(engine)));
        return (T)(mean + deviation * radius * ::cos(6.283185307179586 * unit(engine)));
    }
};
namespace random = ::thrust;

template <typename P, typename It, typename E, __wc_if_policy<P> = 0>
__WC_FN void shuffle(const P &, It first, It last, E engine) {
    for (ptrdiff_t i = last - first - 1; i > 0; --i) {
        ptrdiff_t other = uniform_int_distribution<ptrdiff_t>(0, i)(engine);
        __wc_value<It> value = first[i];
        first[i] = first[other];
        first[other] = value;
    }
}
template <typename It, typename E> __WC_FN void shuffle(It first, It last, E engine) {
    thrust::shuffle(seq, first, last, engine);
}

}  // namespace thrust
