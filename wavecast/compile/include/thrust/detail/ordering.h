// Scans, selections, sorts and searches.
#pragma once

#include <thrust/detail/algorithms.h>
#include <algorithm>
#include <vector>

namespace thrust {

// --- scans
template <bool Inclusive, typename T, typename P, typename In, typename Out, typename Op>
__WC_FN Out __wc_scan(const P &policy, In first, In last, Out out, T init, bool has_init, Op op) {
    ptrdiff_t count = last - first;
    if constexpr (P::device) {
        __wc_done([&](__wcp::Workspace &space) {
            __wcp::scan<Inclusive, T>(space, first, out, count, op, init, has_init, policy.stream);
        });
    } else {
        T sum = init;
        for (ptrdiff_t i = 0; i < count; ++i) {
            T next = i || has_init ? (T)op(sum, (T)first[i]) : (T)first[i];
            out[i] = Inclusive ? next : sum;
            sum = next;
        }
    }
    return out + count;
}
template <typename P, typename In, typename Out, typename Op, __wc_if_policy<P> = 0>
__WC_FN Out inclusive_scan(const P &policy, In first, In last, Out out, Op op) {
    return __wc_scan<true>(policy, first, last, out, __wc_value<In>(), false, op);
}
template <typename P, typename In, typename Out, __wc_if_policy<P> = 0>
__WC_FN Out inclusive_scan(const P &policy, In first, In last, Out out) {
    return thrust::inclusive_scan(policy, first, last, out, plus<>());
}
__WC_BY_ITERATORS(inclusive_scan)
template <typename P, typename In, typename Out, typename T, typename Op, __wc_if_policy<P> = 0>
__WC_FN Out exclusive_scan(const P &policy, In first, In last, Out out, T init, Op op) {
    return __wc_scan<false>(policy, first, last, out, init, true, op);
}
template <typename P, typename In, typename Out, typename T, __wc_if_policy<P> = 0>
__WC_FN Out exclusive_scan(const P &policy, In first, In last, Out out, T init) {
    return thrust::exclusive_scan(policy, first, last, out, init, plus<>());
}
template <typename P, typename In, typename Out, __wc_if_policy<P> = 0>
__WC_FN Out exclusive_scan(const P &policy, In first, In last, Out out) {
    return thrust::exclusive_scan(policy, first, last, out, __wc_value<In>(0));
}
__WC_BY_ITERATORS(exclusive_scan)
template <typename P, typename In, typename Out, typename F, typename Op, __wc_if_policy<P> = 0>
__WC_FN Out transform_inclusive_scan(const P &policy, In first, In last, Out out, F f, Op op) {
    typedef transform_iterator<F, In> Mapped;
    return thrust::inclusive_scan(policy, Mapped(first, f), Mapped(last, f), out, op);
}
__WC_BY_ITERATORS(transform_inclusive_scan)
template <typename P, typename In, typename Out, typename F, typename T, typename Op,
          __wc_if_policy<P> = 0>
__WC_FN Out transform_exclusive_scan(const P &policy, In first, In last, Out out, F f, T init,
                                     Op op) {
    typedef transform_iterator<F, In> Mapped;
    return thrust::exclusive_scan(policy, Mapped(first, f), Mapped(last, f), out, init, op);
}
__WC_BY_ITERATORS(transform_exclusive_scan)

// --- selections: store(i, position) for the indices that `flag` names, and their number
template <typename P, typename Flag, typename Store>
__WC_FN ptrdiff_t __wc_select(const P &policy, ptrdiff_t count, Flag flag, Store store) {
    if constexpr (P::device) {
        return (ptrdiff_t)__wc_computed<unsigned long long>(
            [&](__wcp::Workspace &space, unsigned long long *selected) {
                __wcp::select(space, flag, store, 0, selected, count, policy.stream);
            });
    } else {
        ptrdiff_t position = 0;
        for (ptrdiff_t i = 0; i < count; ++i)
            if (flag(i)) store(i, position++);
        return position;
    }
}
template <typename Stencil, typename Test> struct __wc_tested {
    Stencil stencil;
    Test test;
    template <typename I> __WC_FN bool operator()(I i) const {
        return (bool)__wc_mutable(test)(stencil[i]);
    }
};
template <typename In, typename Out> struct __wc_move {
    In in;
    Out out;
    template <typename I, typename J> __WC_FN void operator()(I from, J to) const {
        out[to] = in[from];
    }
};
template <typename P, typename In, typename Stencil, typename Out, typename Test,
          __wc_if_policy<P> = 0>
__WC_FN Out copy_if(const P &policy, In first, In last, Stencil stencil, Out out, Test test) {
    return out + __wc_select(policy, last - first, __wc_tested<Stencil, Test>{stencil, test},
                             __wc_move<In, Out>{first, out});
}
template <typename P, typename In, typename Out, typename Test, __wc_if_policy<P> = 0>
__WC_FN Out copy_if(const P &policy, In first, In last, Out out, Test test) {
    return thrust::copy_if(policy, first, last, first, out, test);
}
__WC_BY_ITERATORS(copy_if)

// A copy in memory of the GPU, as kernels cannot select in place.
template <typename T> struct __wc_copied {
    T *data = nullptr;
    template <typename P, typename It> __wc_copied(const P &policy, It first, ptrdiff_t count) {
        if (hipMalloc((void **)&data, (count ? count : 1) * sizeof(T)) != hipSuccess)
            thrust::__wc_no_memory();
        thrust::copy(policy, first, first + count, data);
    }
    ~__wc_copied() { (void)hipFree((void *)data); }
};
template <typename P, typename It, typename Stencil, typename Test>
ptrdiff_t __wc_kept_on_device(const P &policy, It first, ptrdiff_t count, Stencil stencil,
                              Test test) {
    typedef __wc_value<It> T;
    __wc_copied<T> all(policy, first, count);
    return __wc_select(policy, count, __wc_tested<Stencil, Test>{stencil, test},
                       __wc_move<const T *, It>{all.data, first});
}
template <typename P, typename It, typename Test, __wc_if_policy<P> = 0>
__WC_FN It remove_if(const P &policy, It first, It last, Test test) {
    if constexpr (P::device) {
        typedef __wc_value<It> T;
        ptrdiff_t count = last - first;
        __wc_copied<T> all(policy, first, count);
        const T *from = all.data;
        return thrust::copy_if(policy, from, from + count, first, thrust::not_fn(test));
    } else {
        return thrust::copy_if(policy, first, last, first, thrust::not_fn(test));
    }
}
template <typename P, typename It, typename Stencil, typename Test, __wc_if_policy<P> = 0>
__WC_FN It remove_if(const P &policy, It first, It last, Stencil stencil, Test test) {
    if constexpr (P::device)
        return first + __wc_kept_on_device(policy, first, last - first, stencil,
                                           thrust::not_fn(test));
    else
        return thrust::copy_if(policy, first, last, stencil, first, thrust::not_fn(test));
}
__WC_BY_ITERATORS(remove_if)
template <typename P, typename It, typename T, __wc_if_policy<P> = 0>
__WC_FN It remove(const P &policy, It first, It last, T value) {
    return thrust::remove_if(policy, first, last, __wc_equals<T>{value});
}
__WC_BY_ITERATORS(remove)

// Whether an element begins a run of equal ones.
template <typename It, typename Same> struct __wc_head {
    It it;
    Same same;
    template <typename I> __WC_FN bool operator()(I i) const {
        return i == 0 || !__wc_mutable(same)(it[i - 1], it[i]);
    }
};
template <typename P, typename K, typename V, typename KOut, typename VOut, typename Same>
__WC_FN pair<KOut, VOut> __wc_unique(const P &policy, K first, ptrdiff_t count, V values, KOut out,
                                     VOut values_out, Same same) {
    auto from = thrust::make_zip_iterator(first, values);
    auto to = thrust::make_zip_iterator(out, values_out);
    ptrdiff_t n = __wc_select(policy, count, __wc_head<K, Same>{first, same},
                              __wc_move<decltype(from), decltype(to)>{from, to});
    return pair<KOut, VOut>(out + n, values_out + n);
}
template <typename P, typename K, typename V, typename Same, __wc_if_policy<P> = 0>
__WC_FN pair<K, V> unique_by_key(const P &policy, K first, K last, V values, Same same) {
    ptrdiff_t count = last - first;
    if constexpr (P::device) {
        __wc_copied<__wc_value<K>> keys(policy, first, count);
        __wc_copied<__wc_value<V>> others(policy, values, count);
        return __wc_unique(policy, keys.data, count, others.data, first, values, same);
    } else {
        return __wc_unique(policy, first, count, values, first, values, same);
    }
}
template <typename P, typename K, typename V, __wc_if_policy<P> = 0>
__WC_FN pair<K, V> unique_by_key(const P &policy, K first, K last, V values) {
    return thrust::unique_by_key(policy, first, last, values, equal_to<>());
}
__WC_BY_ITERATORS(unique_by_key)
template <typename P, typename It, typename Same, __wc_if_policy<P> = 0>
__WC_FN It unique(const P &policy, It first, It last, Same same) {
    ptrdiff_t count = last - first;
    if constexpr (P::device) {
        typedef __wc_value<It> T;
        __wc_copied<T> all(policy, first, count);
        return first + __wc_select(policy, count, __wc_head<T *, Same>{all.data, same},
                                   __wc_move<const T *, It>{all.data, first});
    } else {
        return first + __wc_select(policy, count, __wc_head<It, Same>{first, same},
                                   __wc_move<It, It>{first, first});
    }
}
template <typename P, typename It, __wc_if_policy<P> = 0>
__WC_FN It unique(const P &policy, It first, It last) {
    return thrust::unique(policy, first, last, equal_to<>());
}
__WC_BY_ITERATORS(unique)

// --- reductions of runs: each head sums its run
template <typename K, typename V, typename KOut, typename VOut, typename Same, typename Op>
struct __wc_sum_run {
    K keys;
    V values;
    KOut keys_out;
    VOut values_out;
    ptrdiff_t count;
    Same same;
    Op op;
    template <typename I, typename J> __WC_FN void operator()(I from, J to) const {
        __wc_value<V> sum = values[from];
        for (ptrdiff_t i = (ptrdiff_t)from + 1; i < count; ++i) {
            if (!__wc_mutable(same)(keys[i - 1], keys[i])) break;
            sum = __wc_mutable(op)(sum, values[i]);
        }
        keys_out[to] = keys[from];
        values_out[to] = sum;
    }
};
template <typename P, typename K, typename V, typename KOut, typename VOut, typename Same,
          typename Op, __wc_if_policy<P> = 0>
__WC_FN pair<KOut, VOut> reduce_by_key(const P &policy, K first, K last, V values, KOut keys_out,
                                       VOut values_out, Same same, Op op) {
    __wc_sum_run<K, V, KOut, VOut, Same, Op> sum{first,        values, keys_out, values_out,
                                                 last - first, same,   op};
    ptrdiff_t n = __wc_select(policy, last - first, __wc_head<K, Same>{first, same}, sum);
    return pair<KOut, VOut>(keys_out + n, values_out + n);
}
template <typename P, typename K, typename V, typename KOut, typename VOut, typename Same,
          __wc_if_policy<P> = 0>
__WC_FN pair<KOut, VOut> reduce_by_key(const P &policy, K first, K last, V values, KOut keys_out,
                                       VOut values_out, Same same) {
    return thrust::reduce_by_key(policy, first, last, values, keys_out, values_out, same, plus<>());
}
template <typename P, typename K, typename V, typename KOut, typename VOut, __wc_if_policy<P> = 0>
__WC_FN pair<KOut, VOut> reduce_by_key(const P &policy, K first, K last, V values, KOut keys_out,
                                       VOut values_out) {
    return thrust::reduce_by_key(policy, first, last, values, keys_out, values_out, equal_to<>());
}
__WC_BY_ITERATORS(reduce_by_key)

// --- sorts, all of them stable; a thread of a kernel shifts elements
template <typename P, typename K, typename V, typename Less, __wc_if_policy<P> = 0>
__WC_FN void stable_sort_by_key(const P &policy, K first, K last, V values, Less less) {
    ptrdiff_t count = last - first;
    if constexpr (P::device) {
        __wc_done([&](__wcp::Workspace &space) {
            __wcp::sort<__wc_value<K>, __wc_value<V>>(space, first, first, values, values, count,
                                                      less, policy.stream);
        });
    } else {
#ifndef __HIP_DEVICE_COMPILE__
        typedef std::pair<__wc_value<K>, __wc_value<V>> Both;
        std::vector<Both> pairs;
        for (ptrdiff_t i = 0; i < count; ++i) pairs.emplace_back(first[i], values[i]);
        std::stable_sort(pairs.begin(), pairs.end(), [&](const Both &a, const Both &b) {
            return less(a.first, b.first);
        });
        for (ptrdiff_t i = 0; i < count; ++i) {
            first[i] = pairs[i].first;
            values[i] = pairs[i].second;
        }
#else
        for (ptrdiff_t i = 1; i < count; ++i) {
            __wc_value<K> key = first[i];
            __wc_value<V> value = values[i];
            ptrdiff_t at = i;
            for (; at > 0 && less(key, first[at - 1]); --at) {
                first[at] = first[at - 1];
                values[at] = values[at - 1];
            }
            first[at] = key;
            values[at] = value;
        }
#endif
    }
}
template <typename P, typename K, typename V, __wc_if_policy<P> = 0>
__WC_FN void stable_sort_by_key(const P &policy, K first, K last, V values) {
    thrust::stable_sort_by_key(policy, first, last, values, less<>());
}
__WC_BY_ITERATORS(stable_sort_by_key)
template <typename... A> __WC_FN void sort_by_key(const A &...arguments) {
    thrust::stable_sort_by_key(arguments...);
}
template <typename P, typename It, typename Less, __wc_if_policy<P> = 0>
__WC_FN void stable_sort(const P &policy, It first, It last, Less less) {
    if constexpr (P::device) {
        const __wcp::none *no_values = nullptr;
        __wc_done([&](__wcp::Workspace &space) {
            __wcp::sort<__wc_value<It>, __wcp::none>(space, first, first, no_values, no_values,
                                                     last - first, less, policy.stream);
        });
    } else {
#ifndef __HIP_DEVICE_COMPILE__
        std::vector<__wc_value<It>> values;
        for (It it = first; it != last; ++it) values.push_back(*it);
        std::stable_sort(values.begin(), values.end(), less);
        for (ptrdiff_t i = 0; i < last - first; ++i) first[i] = values[i];
#else
        for (ptrdiff_t i = 1; i < last - first; ++i) {
            __wc_value<It> key = first[i];
            ptrdiff_t at = i;
            for (; at > 0 && less(key, first[at - 1]); --at) first[at] = first[at - 1];
            first[at] = key;
        }
#endif
    }
}
template <typename P, typename It, __wc_if_policy<P> = 0>
__WC_FN void stable_sort(const P &policy, It first, It last) {
    thrust::stable_sort(policy, first, last, less<>());
}
__WC_BY_ITERATORS(stable_sort)
template <typename... A> __WC_FN void sort(const A &...arguments) {
    thrust::stable_sort(arguments...);
}
template <typename It, typename Less> struct __wc_disorder {
    It it;
    Less less;
    __WC_FN bool operator()(ptrdiff_t i) const { return __wc_mutable(less)(it[i + 1], it[i]); }
};
template <typename P, typename It, typename Less, __wc_if_policy<P> = 0>
__WC_FN bool is_sorted(const P &policy, It first, It last, Less less) {
    if (last - first < 2) return true;
    counting_iterator<ptrdiff_t> indices(0);
    return thrust::none_of(policy, indices, indices + (last - first - 1),
                           __wc_disorder<It, Less>{first, less});
}
template <typename P, typename It, __wc_if_policy<P> = 0>
__WC_FN bool is_sorted(const P &policy, It first, It last) {
    return thrust::is_sorted(policy, first, last, less<>());
}
__WC_BY_ITERATORS(is_sorted)

// --- searches of many values in a sorted range
template <bool Upper, typename It, typename Less> struct __wc_bound {
    It first;
    ptrdiff_t count;
    Less less;
    template <typename T> __WC_FN ptrdiff_t operator()(const T &value) const {
        ptrdiff_t low = 0, high = count;
        while (low < high) {
            ptrdiff_t at = (low + high) / 2;
            bool after = Upper ? !__wc_mutable(less)(value, first[at])
                               : (bool)__wc_mutable(less)(first[at], value);
            if (after)
                low = at + 1;
            else
                high = at;
        }
        return low;
    }
};
#define __WC_SEARCH(name, upper)                                                                   \
    template <typename P, typename It, typename V, typename Out, typename Less,                    \
              __wc_if_policy<P> = 0>                                                               \
    __WC_FN Out name(const P &policy, It first, It last, V values, V values_end, Out out,          \
                     Less less) {                                                                  \
        return thrust::transform(policy, values, values_end, out,                                  \
                                 __wc_bound<upper, It, Less>{first, last - first, less});          \
    }                                                                                              \
    template <typename P, typename It, typename V, typename Out, __wc_if_policy<P> = 0>            \
    __WC_FN Out name(const P &policy, It first, It last, V values, V values_end, Out out) {        \
        return thrust::name(policy, first, last, values, values_end, out, less<>());               \
    }                                                                                              \
    template <typename P, typename It, typename T, __wc_if_policy<P> = 0>                          \
    __WC_FN It name(const P &, It first, It last, const T &value) {                                \
        return first + __wc_bound<upper, It, less<>>{first, last - first, {}}(value);              \
    }                                                                                              \
    __WC_BY_ITERATORS(name)
__WC_SEARCH(lower_bound, false)
__WC_SEARCH(upper_bound, true)
#undef __WC_SEARCH

}  // namespace thrust
