// Tuples and pairs that kernels can use, of values or of references.
#pragma once

#include <hip/hip_runtime.h>
#include <cstddef>
#include <type_traits>
#include <utility>

#define __WC_FN __host__ __device__ __wc_inline

namespace thrust {

template <typename... T> struct tuple;
template <> struct tuple<> {
    __WC_FN bool operator==(const tuple &) const { return true; }
    __WC_FN bool operator<(const tuple &) const { return false; }
};
template <typename H, typename... T> struct tuple<H, T...> {
    H head;
    tuple<T...> tail;
    tuple() = default;
    tuple(const tuple &) = default;
    __WC_FN tuple(H first, T... rest) : head(first), tail(rest...) {}
    template <typename H2, typename... T2,
              typename = std::enable_if_t<sizeof...(T) == sizeof...(T2)>>
    __WC_FN tuple(const tuple<H2, T2...> &other) : head(other.head), tail(other.tail) {}
    __WC_FN tuple &operator=(const tuple &other) {
        head = other.head;
        tail = other.tail;
        return *this;
    }
    template <typename H2, typename... T2>
    __WC_FN tuple &operator=(const tuple<H2, T2...> &other) {
        head = other.head;
        tail = other.tail;
        return *this;
    }
    template <typename H2, typename... T2>
    __WC_FN bool operator==(const tuple<H2, T2...> &o) const {
        return head == o.head && tail == o.tail;
    }
    template <typename H2, typename... T2>
    __WC_FN bool operator!=(const tuple<H2, T2...> &o) const {
        return !(*this == o);
    }
    template <typename H2, typename... T2>
    __WC_FN bool operator<(const tuple<H2, T2...> &o) const {
        return head < o.head || (!(o.head < head) && tail < o.tail);
    }
    template <typename H2, typename... T2>
    __WC_FN bool operator>(const tuple<H2, T2...> &o) const {
        return o < *this;
    }
};

template <size_t I, typename Tuple> struct tuple_element;
template <typename H, typename... T> struct tuple_element<0, tuple<H, T...>> { typedef H type; };
template <size_t I, typename H, typename... T>
struct tuple_element<I, tuple<H, T...>> : tuple_element<I - 1, tuple<T...>> {};
template <size_t I, typename Tuple> using tuple_element_t = typename tuple_element<I, Tuple>::type;
template <typename Tuple> struct tuple_size;
template <typename... T>
struct tuple_size<tuple<T...>> : std::integral_constant<size_t, sizeof...(T)> {};

template <size_t I, typename... T>
__WC_FN std::add_lvalue_reference_t<tuple_element_t<I, tuple<T...>>> get(tuple<T...> &t) {
    if constexpr (I == 0)
        return t.head;
    else
        return get<I - 1>(t.tail);
}
template <size_t I, typename... T>
__WC_FN const std::remove_reference_t<tuple_element_t<I, tuple<T...>>> &get(const tuple<T...> &t) {
    if constexpr (I == 0)
        return t.head;
    else
        return get<I - 1>(t.tail);
}
template <typename... T> __WC_FN tuple<std::decay_t<T>...> make_tuple(T &&...values) {
    return tuple<std::decay_t<T>...>(values...);
}
template <typename... T> __WC_FN tuple<T &...> tie(T &...values) { return tuple<T &...>(values...); }

template <typename A, typename B> struct pair {
    typedef A first_type;
    typedef B second_type;
    A first;
    B second;
    pair() = default;
    __WC_FN pair(const A &a, const B &b) : first(a), second(b) {}
    template <typename C, typename D>
    __WC_FN pair(const pair<C, D> &o) : first(o.first), second(o.second) {}
    __WC_FN bool operator==(const pair &o) const { return first == o.first && second == o.second; }
    __WC_FN bool operator<(const pair &o) const {
        return first < o.first || (!(o.first < first) && second < o.second);
    }
};
template <typename A, typename B>
__WC_FN pair<std::decay_t<A>, std::decay_t<B>> make_pair(A &&a, B &&b) {
    return pair<std::decay_t<A>, std::decay_t<B>>(a, b);
}
template <size_t I, typename A, typename B> __WC_FN auto &get(pair<A, B> &p) {
    if constexpr (I == 0)
        return p.first;
    else
        return p.second;
}
template <size_t I, typename A, typename B> __WC_FN const auto &get(const pair<A, B> &p) {
    if constexpr (I == 0)
        return p.first;
    else
        return p.second;
}
// A tuple of references takes a pair too: tie(a, b) = pair.
template <typename A, typename B> struct tuple<A &, B &> {
    A &head;
    tuple<B &> tail;
    __WC_FN tuple(A &a, B &b) : head(a), tail(b) {}
    tuple(const tuple &) = default;
    __WC_FN tuple &operator=(const tuple &o) { return assign(o.head, o.tail.head); }
    template <typename C, typename D> __WC_FN tuple &operator=(const tuple<C, D> &o) {
        return assign(o.head, o.tail.head);
    }
    template <typename C, typename D> __WC_FN tuple &operator=(const pair<C, D> &o) {
        return assign(o.first, o.second);
    }

   private:
    template <typename C, typename D> __WC_FN tuple &assign(const C &a, const D &b) {
        head = a;
        tail.head = b;
        return *this;
    }
};

}  // namespace thrust

#undef __WC_FN
