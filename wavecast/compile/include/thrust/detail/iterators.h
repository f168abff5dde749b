// Pointers to device memory and iterators that compute.
#pragma once

#include <thrust/detail/tuple.h>
#include <iterator>

#define __WC_FN __host__ __device__ __wc_inline

namespace thrust {

// What iterators share: `Self` has at(i), a reference or a value, and moved(n).
template <typename Self, typename Value, typename Reference> struct __wc_iterator {
    typedef ptrdiff_t difference_type;
    typedef Value value_type;
    typedef Value *pointer;
    typedef Reference reference;
    typedef std::random_access_iterator_tag iterator_category;
    __WC_FN const Self &self() const { return static_cast<const Self &>(*this); }
    __WC_FN Self &self() { return static_cast<Self &>(*this); }
    __WC_FN Reference operator*() const { return self().at(0); }
    template <typename N> __WC_FN Reference operator[](N n) const { return self().at(n); }
    __WC_FN Self operator+(ptrdiff_t n) const { return self().moved(n); }
    __WC_FN Self operator-(ptrdiff_t n) const { return self().moved(-n); }
    __WC_FN Self &operator+=(ptrdiff_t n) { return self() = self().moved(n); }
    __WC_FN Self &operator-=(ptrdiff_t n) { return self() = self().moved(-n); }
    __WC_FN Self &operator++() { return *this += 1; }
    __WC_FN Self &operator--() { return *this -= 1; }
    __WC_FN Self operator++(int) {
        Self before = self();
        ++*this;
        return before;
    }
    __WC_FN Self operator--(int) {
        Self before = self();
        --*this;
        return before;
    }
    __WC_FN ptrdiff_t operator-(const Self &o) const { return self().from(o); }
    __WC_FN bool operator==(const Self &o) const { return self().from(o) == 0; }
    __WC_FN bool operator!=(const Self &o) const { return self().from(o) != 0; }
    __WC_FN bool operator<(const Self &o) const { return self().from(o) < 0; }
    __WC_FN bool operator>(const Self &o) const { return self().from(o) > 0; }
    __WC_FN bool operator<=(const Self &o) const { return self().from(o) <= 0; }
    __WC_FN bool operator>=(const Self &o) const { return self().from(o) >= 0; }
};
template <typename Self, typename Value, typename Reference>
__WC_FN Self operator+(ptrdiff_t n, const __wc_iterator<Self, Value, Reference> &it) {
    return it.self().moved(n);
}

// Device memory. The host reads and writes it too: it has the same addresses there.
template <typename T>
struct device_ptr : __wc_iterator<device_ptr<T>, std::remove_cv_t<T>, std::add_lvalue_reference_t<T>> {
    typedef T element_type;
    T *raw;
    __WC_FN device_ptr() : raw(nullptr) {}
    __WC_FN device_ptr(std::nullptr_t) : raw(nullptr) {}
    __WC_FN explicit device_ptr(T *pointer) : raw(pointer) {}
    template <typename U, typename = std::enable_if_t<std::is_convertible_v<U *, T *>>>
    __WC_FN device_ptr(const device_ptr<U> &o) : raw(o.raw) {}
    __WC_FN T *get() const { return raw; }
    __WC_FN T *operator->() const { return raw; }
    __WC_FN explicit operator bool() const { return raw != nullptr; }
    template <typename N> __WC_FN T &at(N n) const { return raw[n]; }
    __WC_FN device_ptr moved(ptrdiff_t n) const { return device_ptr(raw + n); }
    __WC_FN ptrdiff_t from(const device_ptr &o) const { return raw - o.raw; }
};
template <typename T> using device_reference = T &;
template <typename T> __WC_FN device_ptr<T> device_pointer_cast(T *p) { return device_ptr<T>(p); }
template <typename T> __WC_FN device_ptr<T> device_pointer_cast(device_ptr<T> p) { return p; }
template <typename T> __WC_FN T *raw_pointer_cast(T *p) { return p; }
template <typename T> __WC_FN T *raw_pointer_cast(const device_ptr<T> &p) { return p.raw; }
template <typename T> __WC_FN T &raw_reference_cast(T &value) { return value; }

template <typename T, typename System = void, typename Traversal = void, typename Diff = void>
struct counting_iterator : __wc_iterator<counting_iterator<T, System, Traversal, Diff>, T, T> {
    T value;
    __WC_FN counting_iterator() : value() {}
    __WC_FN explicit counting_iterator(T first) : value(first) {}
    template <typename N> __WC_FN T at(N n) const { return (T)(value + n); }
    __WC_FN counting_iterator moved(ptrdiff_t n) const { return counting_iterator((T)(value + n)); }
    __WC_FN ptrdiff_t from(const counting_iterator &o) const {
        return (ptrdiff_t)value - (ptrdiff_t)o.value;
    }
};
template <typename T> __WC_FN counting_iterator<T> make_counting_iterator(T first) {
    return counting_iterator<T>(first);
}

template <typename T> struct constant_iterator : __wc_iterator<constant_iterator<T>, T, T> {
    T value;
    ptrdiff_t index;
    __WC_FN explicit constant_iterator(T one, ptrdiff_t at = 0) : value(one), index(at) {}
    template <typename N> __WC_FN T at(N) const { return value; }
    __WC_FN constant_iterator moved(ptrdiff_t n) const { return constant_iterator(value, index + n); }
    __WC_FN ptrdiff_t from(const constant_iterator &o) const { return index - o.index; }
};
template <typename T> __WC_FN constant_iterator<T> make_constant_iterator(T value) {
    return constant_iterator<T>(value);
}

template <typename It> using __wc_reference = typename std::iterator_traits<It>::reference;
template <typename It>
using __wc_value = std::remove_cv_t<typename std::iterator_traits<It>::value_type>;

template <typename F, typename It> struct __wc_result {
    typedef std::decay_t<decltype(std::declval<F &>()(std::declval<__wc_reference<It>>()))> type;
};
template <typename F, typename It, typename Reference = void, typename Value = void>
struct transform_iterator : __wc_iterator<transform_iterator<F, It, Reference, Value>,
                                          typename __wc_result<F, It>::type,
                                          typename __wc_result<F, It>::type> {
    It it;
    F f;
    __WC_FN transform_iterator(It base, F with) : it(base), f(with) {}
    template <typename N> __WC_FN auto at(N n) const ->
        typename __wc_result<F, It>::type {
        return const_cast<F &>(f)(it[n]);
    }
    __WC_FN It base() const { return it; }
    __WC_FN transform_iterator moved(ptrdiff_t n) const { return transform_iterator(it + n, f); }
    __WC_FN transform_iterator &operator=(const transform_iterator &o) {
        it = o.it;  // functions may have no assignment
        return *this;
    }
    transform_iterator(const transform_iterator &) = default;
    __WC_FN ptrdiff_t from(const transform_iterator &o) const { return it - o.it; }
};
template <typename It, typename F> __WC_FN transform_iterator<F, It> make_transform_iterator(It it, F f) {
    return transform_iterator<F, It>(it, f);
}

template <typename It, typename Map>
struct permutation_iterator
    : __wc_iterator<permutation_iterator<It, Map>, __wc_value<It>, __wc_reference<It>> {
    It it;
    Map map;
    __WC_FN permutation_iterator(It base, Map indices) : it(base), map(indices) {}
    template <typename N> __WC_FN __wc_reference<It> at(N n) const { return it[map[n]]; }
    __WC_FN permutation_iterator moved(ptrdiff_t n) const {
        return permutation_iterator(it, map + n);
    }
    __WC_FN ptrdiff_t from(const permutation_iterator &o) const { return map - o.map; }
};
template <typename It, typename Map>
__WC_FN permutation_iterator<It, Map> make_permutation_iterator(It it, Map map) {
    return permutation_iterator<It, Map>(it, map);
}

template <typename Tuple> struct zip_iterator;
template <typename... It>
struct zip_iterator<tuple<It...>>
    : __wc_iterator<zip_iterator<tuple<It...>>, tuple<__wc_value<It>...>,
                    tuple<__wc_reference<It>...>> {
    typedef std::index_sequence_for<It...> Indices;
    tuple<It...> iterators;
    __WC_FN zip_iterator(tuple<It...> all) : iterators(all) {}
    __WC_FN const tuple<It...> &get_iterator_tuple() const { return iterators; }
    template <typename N> __WC_FN tuple<__wc_reference<It>...> at(N n) const {
        return at(n, Indices());
    }
    __WC_FN zip_iterator moved(ptrdiff_t n) const { return moved(n, Indices()); }
    __WC_FN ptrdiff_t from(const zip_iterator &o) const {
        return iterators.head - o.iterators.head;
    }

   private:
    template <typename N, size_t... I>
    __WC_FN tuple<__wc_reference<It>...> at(N n, std::index_sequence<I...>) const {
        return tuple<__wc_reference<It>...>(thrust::get<I>(iterators)[n]...);
    }
    template <size_t... I>
    __WC_FN zip_iterator moved(ptrdiff_t n, std::index_sequence<I...>) const {
        return zip_iterator(tuple<It...>((thrust::get<I>(iterators) + n)...));
    }
};
template <typename... It>
__WC_FN zip_iterator<tuple<It...>> make_zip_iterator(const tuple<It...> &all) {
    return zip_iterator<tuple<It...>>(all);
}
template <typename First, typename... It>
__WC_FN zip_iterator<tuple<First, It...>> make_zip_iterator(First first, It... rest) {
    return zip_iterator<tuple<First, It...>>(tuple<First, It...>(first, rest...));
}

struct __wc_discard {
    template <typename T> __WC_FN const __wc_discard &operator=(const T &) const { return *this; }
};
struct discard_iterator : __wc_iterator<discard_iterator, int, __wc_discard> {
    ptrdiff_t index;
    __WC_FN explicit discard_iterator(ptrdiff_t at = 0) : index(at) {}
    template <typename N> __WC_FN __wc_discard at(N) const { return {}; }
    __WC_FN discard_iterator moved(ptrdiff_t n) const { return discard_iterator(index + n); }
    __WC_FN ptrdiff_t from(const discard_iterator &o) const { return index - o.index; }
};
__WC_FN discard_iterator make_discard_iterator() { return discard_iterator(); }

template <typename It>
struct reverse_iterator : __wc_iterator<reverse_iterator<It>, __wc_value<It>, __wc_reference<It>> {
    It it;
    __WC_FN explicit reverse_iterator(It end) : it(end) {}
    template <typename N> __WC_FN __wc_reference<It> at(N n) const { return it[-1 - (ptrdiff_t)n]; }
    __WC_FN reverse_iterator moved(ptrdiff_t n) const { return reverse_iterator(it - n); }
    __WC_FN ptrdiff_t from(const reverse_iterator &o) const { return o.it - it; }
};
template <typename It> __WC_FN reverse_iterator<It> make_reverse_iterator(It it) {
    return reverse_iterator<It>(it);
}

// Whether an iterator reads device memory, so that algorithms without a policy are kernels.
template <typename It> struct __wc_on_device : std::false_type {};
template <typename T> struct __wc_on_device<device_ptr<T>> : std::true_type {};
template <typename F, typename It, typename R, typename V>
struct __wc_on_device<transform_iterator<F, It, R, V>> : __wc_on_device<It> {};
template <typename It> struct __wc_on_device<reverse_iterator<It>> : __wc_on_device<It> {};
template <typename It, typename Map>
struct __wc_on_device<permutation_iterator<It, Map>>
    : std::bool_constant<__wc_on_device<It>::value || __wc_on_device<Map>::value> {};
template <typename... It>
struct __wc_on_device<zip_iterator<tuple<It...>>>
    : std::bool_constant<(__wc_on_device<It>::value || ...)> {};

template <typename It, typename N> __WC_FN void advance(It &it, N n) { it += n; }
template <typename It> __WC_FN ptrdiff_t distance(It first, It last) { return last - first; }
template <typename It> __WC_FN It next(It it, ptrdiff_t n = 1) { return it + n; }
template <typename It> __WC_FN It prev(It it, ptrdiff_t n = 1) { return it - n; }
template <typename It> struct iterator_traits : std::iterator_traits<It> {};
template <typename It> struct iterator_value { typedef __wc_value<It> type; };
template <typename It> struct iterator_reference { typedef __wc_reference<It> type; };
template <typename It> struct iterator_difference {
    typedef typename std::iterator_traits<It>::difference_type type;
};

}  // namespace thrust

#undef __WC_FN
