// Complex numbers that kernels can use.
#pragma once

#include <hip/hip_runtime.h>

#define __WC_FN __host__ __device__ __wc_inline

namespace thrust {

template <typename T> struct complex {
    typedef T value_type;
    T x, y;
    __WC_FN complex(T real = T(), T imaginary = T()) : x(real), y(imaginary) {}
    template <typename U> __WC_FN complex(const complex<U> &o) : x((T)o.x), y((T)o.y) {}
    __WC_FN T real() const { return x; }
    __WC_FN T imag() const { return y; }
    __WC_FN void real(T value) { x = value; }
    __WC_FN void imag(T value) { y = value; }
    __WC_FN complex operator-() const { return complex(-x, -y); }
    __WC_FN complex operator+() const { return *this; }
#define __WC_ASSIGN(op)                                                                            \
    template <typename U> __WC_FN complex &operator op##=(const U &other) {                        \
        return *this = *this op complex(other);                                                    \
    }
    __WC_ASSIGN(+)
    __WC_ASSIGN(-)
    __WC_ASSIGN(*)
    __WC_ASSIGN(/)
#undef __WC_ASSIGN
    friend __WC_FN complex operator+(const complex &a, const complex &b) {
        return complex(a.x + b.x, a.y + b.y);
    }
    friend __WC_FN complex operator-(const complex &a, const complex &b) {
        return complex(a.x - b.x, a.y - b.y);
    }
    friend __WC_FN complex operator*(const complex &a, const complex &b) {
        return complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    }
    friend __WC_FN complex operator/(const complex &a, const complex &b) {
        T scale = b.x * b.x + b.y * b.y;
        return complex((a.x * b.x + a.y * b.y) / scale, (a.y * b.x - a.x * b.y) / scale);
    }
    friend __WC_FN bool operator==(const complex &a, const complex &b) {
        return a.x == b.x && a.y == b.y;
    }
    friend __WC_FN bool operator!=(const complex &a, const complex &b) { return !(a == b); }
};

template <typename T> __WC_FN T norm(const complex<T> &z) { return z.x * z.x + z.y * z.y; }
template <typename T> __WC_FN T abs(const complex<T> &z) { return ::hypot(z.x, z.y); }
template <typename T> __WC_FN T arg(const complex<T> &z) { return ::atan2(z.y, z.x); }
template <typename T> __WC_FN complex<T> conj(const complex<T> &z) { return complex<T>(z.x, -z.y); }
template <typename T> __WC_FN complex<T> polar(T radius, T angle = T()) {
    return complex<T>(radius * ::cos(angle), radius * ::sin(angle));
}
template <typename T> __WC_FN complex<T> exp(const complex<T> &z) {
    return polar((T)::exp(z.x), z.y);
}
template <typename T> __WC_FN complex<T> log(const complex<T> &z) {
    return complex<T>(::log(abs(z)), arg(z));
}
template <typename T> __WC_FN complex<T> sqrt(const complex<T> &z) {
    return polar((T)::sqrt(abs(z)), arg(z) / 2);
}

}  // namespace thrust

#undef __WC_FN
