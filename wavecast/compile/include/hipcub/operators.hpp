// Operations, pairs, iterators and bits of keys, as hipcub names them.
#pragma once

#include <hip/hip_runtime.h>
#include <cstddef>
#include <iterator>
#include <limits>
#include <type_traits>

#define __WC_FN __host__ __device__ __wc_inline

namespace hipcub {

struct Sum {
    template <typename T, typename U> __WC_FN auto operator()(const T &a, const U &b) const {
        return a + b;
    }
};
struct Difference {
    template <typename T, typename U> __WC_FN auto operator()(const T &a, const U &b) const {
        return a - b;
    }
};
struct Max {
    template <typename T, typename U>
    __WC_FN std::common_type_t<T, U> operator()(const T &a, const U &b) const {
        return a < b ? b : a;
    }
};
struct Min {
    template <typename T, typename U>
    __WC_FN std::common_type_t<T, U> operator()(const T &a, const U &b) const {
        return b < a ? b : a;
    }
};
struct Equality {
    template <typename T, typename U> __WC_FN bool operator()(const T &a, const U &b) const {
        return a == b;
    }
};
struct Inequality {
    template <typename T, typename U> __WC_FN bool operator()(const T &a, const U &b) const {
        return a != b;
    }
};
template <typename Op> struct InequalityWrapper {
    Op op;
    template <typename T, typename U> __WC_FN bool operator()(const T &a, const U &b) {
        return !op(a, b);
    }
};

template <typename K, typename V> struct KeyValuePair {
    typedef K Key;
    typedef V Value;
    K key;
    V value;
    KeyValuePair() = default;
    __WC_FN KeyValuePair(const K &k, const V &v) : key(k), value(v) {}
    __WC_FN bool operator!=(const KeyValuePair &o) const {
        return key != o.key || value != o.value;
    }
    __WC_FN bool operator==(const KeyValuePair &o) const { return !(*this != o); }
};
struct ArgMax {
    template <typename P> __WC_FN P operator()(const P &a, const P &b) const {
        return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <typename P> __WC_FN P operator()(const P &a, const P &b) const {
        return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};

// --- iterators: what is needed to read them by index
#define __WC_ITERATOR(Self, Type)                                                                  \
    typedef Self self_type;                                                                        \
    typedef ptrdiff_t difference_type;                                                             \
    typedef Type value_type;                                                                       \
    typedef Type *pointer;                                                                         \
    typedef Type reference;                                                                        \
    typedef std::random_access_iterator_tag iterator_category;                                     \
    __WC_FN Type operator*() const { return (*this)[0]; }                                          \
    template <typename N> __WC_FN Self operator-(N n) const { return *this + -(ptrdiff_t)n; }      \
    template <typename N> __WC_FN Self &operator+=(N n) { return *this = *this + n; }              \
    __WC_FN Self &operator++() { return *this = *this + 1; }                                       \
    __WC_FN Self operator++(int) {                                                                 \
        Self before = *this;                                                                       \
        ++*this;                                                                                   \
        return before;                                                                             \
    }

template <typename T, typename Offset = ptrdiff_t> struct CountingInputIterator {
    T first;
    __WC_FN explicit CountingInputIterator(T from) : first(from) {}
    template <typename N> __WC_FN T operator[](N i) const { return first + (T)i; }
    template <typename N> __WC_FN CountingInputIterator operator+(N n) const {
        return CountingInputIterator(first + (T)n);
    }
    __WC_ITERATOR(CountingInputIterator, T)
};
template <typename T, typename Offset = ptrdiff_t> struct ConstantInputIterator {
    T value;
    __WC_FN explicit ConstantInputIterator(T one, Offset = 0) : value(one) {}
    template <typename N> __WC_FN T operator[](N) const { return value; }
    template <typename N> __WC_FN ConstantInputIterator operator+(N) const { return *this; }
    __WC_ITERATOR(ConstantInputIterator, T)
};
template <typename T, typename Op, typename In, typename Offset = ptrdiff_t>
struct TransformInputIterator {
    In in;
    Op op;
    __WC_FN TransformInputIterator(In from, Op with) : in(from), op(with) {}
    template <typename N> __WC_FN T operator[](N i) const { return const_cast<Op &>(op)(in[i]); }
    template <typename N> __WC_FN TransformInputIterator operator+(N n) const {
        return TransformInputIterator(in + n, op);
    }
    __WC_ITERATOR(TransformInputIterator, T)
};
template <typename In, typename Offset = ptrdiff_t> struct ArgIndexInputIterator {
    typedef KeyValuePair<Offset, std::remove_cv_t<typename std::iterator_traits<In>::value_type>>
        Pair;
    In in;
    Offset offset;
    __WC_FN explicit ArgIndexInputIterator(In from, Offset at = 0) : in(from), offset(at) {}
    template <typename N> __WC_FN Pair operator[](N i) const {
        return Pair(offset + (Offset)i, in[offset + (Offset)i]);
    }
    template <typename N> __WC_FN ArgIndexInputIterator operator+(N n) const {
        return ArgIndexInputIterator(in, offset + (Offset)n);
    }
    __WC_ITERATOR(ArgIndexInputIterator, Pair)
};
template <typename Offset = ptrdiff_t> struct DiscardOutputIterator {
    typedef ptrdiff_t difference_type;
    typedef int value_type;
    typedef void pointer, reference;
    typedef std::random_access_iterator_tag iterator_category;
    __WC_FN DiscardOutputIterator(Offset = 0) {}
    template <typename T> __WC_FN const DiscardOutputIterator &operator=(const T &) const {
        return *this;
    }
    __WC_FN const DiscardOutputIterator &operator*() const { return *this; }
    template <typename N> __WC_FN const DiscardOutputIterator &operator[](N) const { return *this; }
    template <typename N> __WC_FN DiscardOutputIterator operator+(N) const { return *this; }
};
#undef __WC_ITERATOR

// --- keys as unsigned bits in the same order
template <int Bytes> struct __wc_unsigned;
template <> struct __wc_unsigned<1> { typedef unsigned char type; };
template <> struct __wc_unsigned<2> { typedef unsigned short type; };
template <> struct __wc_unsigned<4> { typedef unsigned int type; };
template <> struct __wc_unsigned<8> { typedef unsigned long long type; };

template <typename T> struct Traits {
    typedef typename __wc_unsigned<sizeof(T)>::type UnsignedBits;
    static constexpr UnsignedBits HIGH = (UnsignedBits)1 << (sizeof(T) * 8 - 1);
    static constexpr bool integer = std::is_integral_v<T>;
    static constexpr bool is_signed = std::is_signed_v<T>;
    __WC_FN static UnsignedBits TwiddleIn(UnsignedBits bits) {
        if (integer) return is_signed ? (UnsignedBits)(bits ^ HIGH) : bits;
        return bits ^ (bits & HIGH ? (UnsignedBits)-1 : HIGH);
    }
    __WC_FN static UnsignedBits TwiddleOut(UnsignedBits bits) {
        if (integer) return is_signed ? (UnsignedBits)(bits ^ HIGH) : bits;
        return bits ^ (bits & HIGH ? HIGH : (UnsignedBits)-1);
    }
    __WC_FN static UnsignedBits ordered(T key) {
        if (!integer && key == T(0)) key = T(0);  // -0 is 0
        return TwiddleIn(__builtin_bit_cast(UnsignedBits, key));
    }
};

template <typename T> struct DoubleBuffer {
    T *d_buffers[2] = {nullptr, nullptr};
    int selector = 0;
    DoubleBuffer() = default;
    __WC_FN DoubleBuffer(T *current, T *other) : d_buffers{current, other} {}
    __WC_FN T *Current() const { return d_buffers[selector]; }
    __WC_FN T *Alternate() const { return d_buffers[selector ^ 1]; }
};

// Memory is allocated and freed at once: nothing is kept for later.
struct CachingDeviceAllocator {
    explicit CachingDeviceAllocator(bool = false, bool = false) {}
    CachingDeviceAllocator(unsigned, unsigned, unsigned, size_t, bool = false, bool = false) {}
    template <typename T>
    hipError_t DeviceAllocate(T **memory, size_t bytes, hipStream_t = 0) {
        return hipMalloc((void **)memory, bytes);
    }
    hipError_t DeviceFree(void *memory) { return hipFree(memory); }
    hipError_t FreeAllCached() { return hipSuccess; }
};

template <int A, int B> struct RoundUp { static constexpr int VALUE = (A + B - 1) / B * B; };
struct NullType {};

template <typename T> struct Uninitialized {
    alignas(T) unsigned char storage[sizeof(T)];
    __WC_FN T &Alias() { return reinterpret_cast<T &>(storage); }
};

}  // namespace hipcub

#undef __WC_FN
