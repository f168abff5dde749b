// float2, int4 and their kin: x, y, z, w, `data[]`, arithmetic by element, make_float4(...).
// As in HIP, a number becomes a vector of two or more only where the source says so.
#pragma once

#include <hip/hip_runtime_api.h>

#define __WC_FN __host__ __device__ __wc_inline constexpr

template <typename T, int N> struct HIP_vector_type;

template <typename T> struct HIP_vector_type<T, 1> {
    union {
        struct { T x; };
        T data[1];
    };
    static constexpr int size = 1;
    HIP_vector_type() = default;
    __WC_FN HIP_vector_type(T x) : x(x) {}
};
template <typename T> struct alignas(2 * sizeof(T)) HIP_vector_type<T, 2> {
    union {
        struct { T x, y; };
        T data[2];
    };
    static constexpr int size = 2;
    HIP_vector_type() = default;
    __WC_FN explicit HIP_vector_type(T all) : x(all), y(all) {}
    __WC_FN HIP_vector_type(T x, T y) : x(x), y(y) {}
};
template <typename T> struct HIP_vector_type<T, 3> {
    union {
        struct { T x, y, z; };
        T data[3];
    };
    static constexpr int size = 3;
    HIP_vector_type() = default;
    __WC_FN explicit HIP_vector_type(T all) : x(all), y(all), z(all) {}
    __WC_FN HIP_vector_type(T x, T y, T z) : x(x), y(y), z(z) {}
};
template <typename T> struct alignas(4 * sizeof(T)) HIP_vector_type<T, 4> {
    union {
        struct { T x, y, z, w; };
        T data[4];
    };
    static constexpr int size = 4;
    HIP_vector_type() = default;
    __WC_FN explicit HIP_vector_type(T all) : x(all), y(all), z(all), w(all) {}
    __WC_FN HIP_vector_type(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
};

#define __WC_VECTOR_OPERATOR(op)                                                                   \
    template <typename T, int N>                                                                   \
    __host__ __device__ __wc_inline HIP_vector_type<T, N> &operator op##=(                         \
        HIP_vector_type<T, N> &a, const HIP_vector_type<T, N> &b) {                                \
        for (int i = 0; i < N; ++i) a.data[i] = static_cast<T>(a.data[i] op b.data[i]);            \
        return a;                                                                                  \
    }                                                                                              \
    template <typename T, int N, typename U>                                                       \
    __host__ __device__ __wc_inline HIP_vector_type<T, N> &operator op##=(                         \
        HIP_vector_type<T, N> &a, U b) {                                                           \
        for (int i = 0; i < N; ++i) a.data[i] = static_cast<T>(a.data[i] op static_cast<T>(b));    \
        return a;                                                                                  \
    }                                                                                              \
    template <typename T, int N>                                                                   \
    __host__ __device__ __wc_inline HIP_vector_type<T, N> operator op(                             \
        HIP_vector_type<T, N> a, const HIP_vector_type<T, N> &b) {                                 \
        return a op##= b;                                                                          \
    }                                                                                              \
    template <typename T, int N, typename U>                                                       \
    __host__ __device__ __wc_inline HIP_vector_type<T, N> operator op(                             \
        HIP_vector_type<T, N> a, U b) {                                                            \
        return a op##= static_cast<T>(b);                                                          \
    }                                                                                              \
    template <typename T, int N, typename U>                                                       \
    __host__ __device__ __wc_inline HIP_vector_type<T, N> operator op(                             \
        U a, const HIP_vector_type<T, N> &b) {                                                     \
        HIP_vector_type<T, N> all(static_cast<T>(a));                                              \
        return all op##= b;                                                                        \
    }
__WC_VECTOR_OPERATOR(+)
__WC_VECTOR_OPERATOR(-)
__WC_VECTOR_OPERATOR(*)
__WC_VECTOR_OPERATOR(/)
__WC_VECTOR_OPERATOR(&)
__WC_VECTOR_OPERATOR(|)
__WC_VECTOR_OPERATOR(^)
__WC_VECTOR_OPERATOR(%)
__WC_VECTOR_OPERATOR(<<)
__WC_VECTOR_OPERATOR(>>)
#undef __WC_VECTOR_OPERATOR

template <typename T, int N>
__host__ __device__ __wc_inline HIP_vector_type<T, N> operator-(HIP_vector_type<T, N> a) {
    for (int i = 0; i < N; ++i) a.data[i] = -a.data[i];
    return a;
}
template <typename T, int N>
__host__ __device__ __wc_inline HIP_vector_type<T, N> operator~(HIP_vector_type<T, N> a) {
    for (int i = 0; i < N; ++i) a.data[i] = static_cast<T>(~a.data[i]);
    return a;
}
template <typename T, int N>
__host__ __device__ __wc_inline HIP_vector_type<T, N> &operator++(HIP_vector_type<T, N> &a) {
    return a += HIP_vector_type<T, N>(T(1));
}
template <typename T, int N>
__host__ __device__ __wc_inline HIP_vector_type<T, N> &operator--(HIP_vector_type<T, N> &a) {
    return a -= HIP_vector_type<T, N>(T(1));
}
template <typename T, int N>
__host__ __device__ __wc_inline bool operator==(const HIP_vector_type<T, N> &a,
                                                    const HIP_vector_type<T, N> &b) {
    bool same = true;
    for (int i = 0; i < N; ++i) same = same && a.data[i] == b.data[i];
    return same;
}
template <typename T, int N>
__host__ __device__ __wc_inline bool operator!=(const HIP_vector_type<T, N> &a,
                                                    const HIP_vector_type<T, N> &b) {
    return !(a == b);
}

#define __WC_VECTOR_TYPES(element, name)                                                           \
    typedef HIP_vector_type<element, 1> name##1;                                                   \
    typedef HIP_vector_type<element, 2> name##2;                                                   \
    typedef HIP_vector_type<element, 3> name##3;                                                   \
    typedef HIP_vector_type<element, 4> name##4;                                                   \
    __WC_FN name##1 make_##name##1(element x) { return {x}; }                                      \
    __WC_FN name##2 make_##name##2(element x, element y) { return {x, y}; }                        \
    __WC_FN name##3 make_##name##3(element x, element y, element z) { return {x, y, z}; }          \
    __WC_FN name##4 make_##name##4(element x, element y, element z, element w) {                   \
        return {x, y, z, w};                                                                       \
    }
__WC_VECTOR_TYPES(signed char, char)
__WC_VECTOR_TYPES(unsigned char, uchar)
__WC_VECTOR_TYPES(short, short)
__WC_VECTOR_TYPES(unsigned short, ushort)
__WC_VECTOR_TYPES(int, int)
__WC_VECTOR_TYPES(unsigned int, uint)
__WC_VECTOR_TYPES(long, long)
__WC_VECTOR_TYPES(unsigned long, ulong)
__WC_VECTOR_TYPES(long long, longlong)
__WC_VECTOR_TYPES(unsigned long long, ulonglong)
__WC_VECTOR_TYPES(float, float)
__WC_VECTOR_TYPES(double, double)
#undef __WC_VECTOR_TYPES
#undef __WC_FN
