// Algorithms: kernels of wavecast/parallel with a device policy or device iterators, else loops.
#pragma once

#include <thrust/detail/functional.h>
#include <thrust/detail/no_memory.h>
#include <thrust/detail/policies.h>
#include <wavecast/parallel/algorithms.h>

#define __WC_FN __host__ __device__ inline
// The same without a policy: that of the iterators.
#define __WC_BY_ITERATORS(name)                                                                    \
    template <typename It, typename... Rest, __wc_unless_policy<It> = 0>                           \
    __WC_FN auto name(It first, Rest... rest) {                                                    \
        return thrust::name(__wc_policy_of<It, Rest...>(), first, rest...);                        \
    }

namespace thrust {

namespace __wcp = ::__wc_parallel;

// Calls call(workspace, result) once to measure it and once to do it; what it has left in result.
template <typename T, typename Call> T __wc_computed(Call call) {
    __wcp::Workspace measure(nullptr);
    T *result = measure.take<T>(1);
    call(measure, result);
    char *memory = nullptr;
    if (hipMalloc((void **)&memory, measure.used) != hipSuccess) thrust::__wc_no_memory();
    __wcp::Workspace space(memory);
    result = space.take<T>(1);
    call(space, result);
    __wcp::raw_storage<T, 1> value;
    hipError_t status = hipMemcpy(&value, (void *)result, sizeof(T), hipMemcpyDeviceToHost);
    (void)hipFree(memory);
    if (status != hipSuccess) thrust::__wc_no_memory();
    return reinterpret_cast<T &>(value);
}
template <typename Call> void __wc_done(Call call) {
    __wc_computed<int>([&](__wcp::Workspace &space, int *) { call(space); });
}

// --- one call for every index
template <typename P, typename F> __WC_FN void __wc_each(const P &policy, ptrdiff_t count, F f) {
    if constexpr (P::device)
        __wcp::for_each(f, count, policy.stream);
    else
        for (ptrdiff_t i = 0; i < count; ++i) f(i);
}
// A function of the elements at an index of some iterators, stored in the last of them.
#define __WC_BODY(Name, Members, Statement)                                                        \
    struct Name {                                                                                  \
        Members template <typename I> __WC_FN void operator()(I i) const { Statement; }            \
    };
template <typename F> __WC_FN F &__wc_mutable(const F &f) { return const_cast<F &>(f); }

template <typename It, typename F>
__WC_BODY(__wc_call, It it; F f;, __wc_mutable(f)(it[i]))
template <typename P, typename It, typename F, __wc_if_policy<P> = 0>
__WC_FN It for_each(const P &policy, It first, It last, F f) {
    __wc_each(policy, last - first, __wc_call<It, F>{first, f});
    return last;
}
__WC_BY_ITERATORS(for_each)
template <typename P, typename It, typename N, typename F, __wc_if_policy<P> = 0>
__WC_FN It for_each_n(const P &policy, It first, N n, F f) {
    return thrust::for_each(policy, first, first + n, f);
}
__WC_BY_ITERATORS(for_each_n)

template <typename In, typename Out, typename F>
__WC_BODY(__wc_map1, In in; Out out; F f;, out[i] = __wc_mutable(f)(in[i]))
template <typename A, typename B, typename Out, typename F>
__WC_BODY(__wc_map2, A a; B b; Out out; F f;, out[i] = __wc_mutable(f)(a[i], b[i]))
template <typename P, typename In, typename Out, typename F, __wc_if_policy<P> = 0>
__WC_FN Out transform(const P &policy, In first, In last, Out out, F f) {
    __wc_each(policy, last - first, __wc_map1<In, Out, F>{first, out, f});
    return out + (last - first);
}
template <typename P, typename A, typename B, typename Out, typename F, __wc_if_policy<P> = 0>
__WC_FN Out transform(const P &policy, A first, A last, B other, Out out, F f) {
    __wc_each(policy, last - first, __wc_map2<A, B, Out, F>{first, other, out, f});
    return out + (last - first);
}
__WC_BY_ITERATORS(transform)

template <typename Out, typename T> __WC_BODY(__wc_fill, Out out; T value;, out[i] = value)
template <typename P, typename Out, typename T, __wc_if_policy<P> = 0>
__WC_FN void fill(const P &policy, Out first, Out last, T value) {
    __wc_each(policy, last - first, __wc_fill<Out, T>{first, value});
}
__WC_BY_ITERATORS(fill)
template <typename P, typename Out, typename N, typename T, __wc_if_policy<P> = 0>
__WC_FN Out fill_n(const P &policy, Out first, N n, T value) {
    thrust::fill(policy, first, first + n, value);
    return first + n;
}
__WC_BY_ITERATORS(fill_n)

template <typename Out, typename T>
__WC_BODY(__wc_sequence, Out out; T first; T step;, out[i] = first + step * (T)i)
template <typename P, typename Out, typename T = __wc_value<Out>, __wc_if_policy<P> = 0>
__WC_FN void sequence(const P &policy, Out first, Out last, T init = T(0), T step = T(1)) {
    __wc_each(policy, last - first, __wc_sequence<Out, T>{first, init, step});
}
__WC_BY_ITERATORS(sequence)

template <typename Out, typename F>
__WC_BODY(__wc_tabulate, Out out; F f;, out[i] = __wc_mutable(f)(i))
template <typename P, typename Out, typename F, __wc_if_policy<P> = 0>
__WC_FN void tabulate(const P &policy, Out first, Out last, F f) {
    __wc_each(policy, last - first, __wc_tabulate<Out, F>{first, f});
}
__WC_BY_ITERATORS(tabulate)
template <typename Out, typename F>
__WC_BODY(__wc_generate, Out out; F f;, out[i] = __wc_mutable(f)())
template <typename P, typename Out, typename F, __wc_if_policy<P> = 0>
__WC_FN void generate(const P &policy, Out first, Out last, F f) {
    __wc_each(policy, last - first, __wc_generate<Out, F>{first, f});
}
__WC_BY_ITERATORS(generate)

template <typename In, typename Out> __WC_BODY(__wc_copy, In in; Out out;, out[i] = in[i])
template <typename P, typename In, typename Out, __wc_if_policy<P> = 0>
__WC_FN Out copy(const P &policy, In first, In last, Out out) {
    __wc_each(policy, last - first, __wc_copy<In, Out>{first, out});
    return out + (last - first);
}
// Between host and device the host copies: kernels do not see its memory.
template <typename In, typename Out, __wc_unless_policy<In> = 0>
__WC_FN Out copy(In first, In last, Out out) {
    constexpr bool both = __wc_on_device<In>::value && __wc_on_device<Out>::value;
    return thrust::copy(std::conditional_t<both, __wc_parallel_policy, __wc_sequential>(), first,
                        last, out);
}
template <typename In, typename N, typename Out> __WC_FN Out copy_n(In first, N n, Out out) {
    return thrust::copy(first, first + n, out);
}

template <typename Map, typename In, typename Out>
__WC_BODY(__wc_gather, Map map; In in; Out out;, out[i] = in[map[i]])
template <typename P, typename Map, typename In, typename Out, __wc_if_policy<P> = 0>
__WC_FN Out gather(const P &policy, Map first, Map last, In in, Out out) {
    __wc_each(policy, last - first, __wc_gather<Map, In, Out>{first, in, out});
    return out + (last - first);
}
__WC_BY_ITERATORS(gather)
template <typename Map, typename In, typename Out>
__WC_BODY(__wc_scatter, Map map; In in; Out out;, out[map[i]] = in[i])
template <typename P, typename In, typename Map, typename Out, __wc_if_policy<P> = 0>
__WC_FN void scatter(const P &policy, In first, In last, Map map, Out out) {
    __wc_each(policy, last - first, __wc_scatter<Map, In, Out>{map, first, out});
}
__WC_BY_ITERATORS(scatter)

template <typename It, typename Stencil, typename Test, typename T>
__WC_BODY(__wc_replace, It it; Stencil stencil; Test test; T value;,
          if (__wc_mutable(test)(stencil[i])) it[i] = value)
template <typename P, typename It, typename Stencil, typename Test, typename T,
          __wc_if_policy<P> = 0>
__WC_FN void replace_if(const P &policy, It first, It last, Stencil stencil, Test test, T value) {
    __wc_replace<It, Stencil, Test, T> body{first, stencil, test, value};
    __wc_each(policy, last - first, body);
}
template <typename P, typename It, typename Test, typename T, __wc_if_policy<P> = 0>
__WC_FN void replace_if(const P &policy, It first, It last, Test test, T value) {
    thrust::replace_if(policy, first, last, first, test, value);
}
__WC_BY_ITERATORS(replace_if)
template <typename T> struct __wc_equals {
    T value;
    template <typename U> __WC_FN bool operator()(const U &other) const { return other == value; }
};
template <typename P, typename It, typename T, typename U, __wc_if_policy<P> = 0>
__WC_FN void replace(const P &policy, It first, It last, T from, U to) {
    thrust::replace_if(policy, first, last, __wc_equals<T>{from}, to);
}
__WC_BY_ITERATORS(replace)

// --- reductions
template <typename P, typename It, typename T, typename Op, __wc_if_policy<P> = 0>
__WC_FN T reduce(const P &policy, It first, It last, T init, Op op) {
    if constexpr (P::device) {
        return __wc_computed<T>([&](__wcp::Workspace &space, T *result) {
            __wcp::reduce<T>(space, first, result, last - first, op, init, policy.stream);
        });
    } else {
        for (; first != last; ++first) init = op(init, (T)*first);
        return init;
    }
}
template <typename P, typename It, typename T, __wc_if_policy<P> = 0>
__WC_FN T reduce(const P &policy, It first, It last, T init) {
    return thrust::reduce(policy, first, last, init, plus<T>());
}
template <typename P, typename It, __wc_if_policy<P> = 0>
__WC_FN __wc_value<It> reduce(const P &policy, It first, It last) {
    return thrust::reduce(policy, first, last, __wc_value<It>(0));
}
__WC_BY_ITERATORS(reduce)
template <typename P, typename It, typename F, typename T, typename Op, __wc_if_policy<P> = 0>
__WC_FN T transform_reduce(const P &policy, It first, It last, F f, T init, Op op) {
    typedef transform_iterator<F, It> Mapped;
    return thrust::reduce(policy, Mapped(first, f), Mapped(last, f), init, op);
}
__WC_BY_ITERATORS(transform_reduce)

template <typename F> struct __wc_of_pair {
    F f;
    template <typename Pair> __WC_FN auto operator()(const Pair &p) const {
        return __wc_mutable(f)(p.head, p.tail.head);
    }
};
template <typename P, typename A, typename B, typename T, typename Op, typename F,
          __wc_if_policy<P> = 0>
__WC_FN T inner_product(const P &policy, A first, A last, B other, T init, Op op, F f) {
    auto pairs = thrust::make_zip_iterator(first, other);
    return thrust::transform_reduce(policy, pairs, pairs + (last - first), __wc_of_pair<F>{f}, init,
                                    op);
}
template <typename P, typename A, typename B, typename T, __wc_if_policy<P> = 0>
__WC_FN T inner_product(const P &policy, A first, A last, B other, T init) {
    return thrust::inner_product(policy, first, last, other, init, plus<T>(), multiplies<T>());
}
__WC_BY_ITERATORS(inner_product)

template <typename Test> struct __wc_one_if {
    Test test;
    template <typename T> __WC_FN ptrdiff_t operator()(const T &value) const {
        return __wc_mutable(test)(value) ? 1 : 0;
    }
};
template <typename P, typename It, typename Test, __wc_if_policy<P> = 0>
__WC_FN ptrdiff_t count_if(const P &policy, It first, It last, Test test) {
    return thrust::transform_reduce(policy, first, last, __wc_one_if<Test>{test}, (ptrdiff_t)0,
                                    plus<ptrdiff_t>());
}
__WC_BY_ITERATORS(count_if)
template <typename P, typename It, typename T, __wc_if_policy<P> = 0>
__WC_FN ptrdiff_t count(const P &policy, It first, It last, T value) {
    return thrust::count_if(policy, first, last, __wc_equals<T>{value});
}
__WC_BY_ITERATORS(count)
template <typename P, typename It, typename Test, __wc_if_policy<P> = 0>
__WC_FN bool any_of(const P &policy, It first, It last, Test test) {
    return thrust::count_if(policy, first, last, test) != 0;
}
__WC_BY_ITERATORS(any_of)
template <typename P, typename It, typename Test, __wc_if_policy<P> = 0>
__WC_FN bool none_of(const P &policy, It first, It last, Test test) {
    return !thrust::any_of(policy, first, last, test);
}
__WC_BY_ITERATORS(none_of)
template <typename P, typename It, typename Test, __wc_if_policy<P> = 0>
__WC_FN bool all_of(const P &policy, It first, It last, Test test) {
    return thrust::none_of(policy, first, last, thrust::not_fn(test));
}
__WC_BY_ITERATORS(all_of)
template <typename P, typename A, typename B, __wc_if_policy<P> = 0>
__WC_FN bool equal(const P &policy, A first, A last, B other) {
    return thrust::inner_product(policy, first, last, other, (ptrdiff_t)0, plus<ptrdiff_t>(),
                                 not_equal_to<>()) == 0;
}
__WC_BY_ITERATORS(equal)

// The index of the first element that no other is less than (or, found(a, b), better than).
template <typename It, typename Better> struct __wc_better {
    It it;
    Better better;
    __WC_FN ptrdiff_t operator()(ptrdiff_t a, ptrdiff_t b) const {
        if (__wc_mutable(better)(it[b], it[a])) return b;
        return b < a && !__wc_mutable(better)(it[a], it[b]) ? b : a;
    }
};
template <typename P, typename It, typename Less, __wc_if_policy<P> = 0>
__WC_FN It min_element(const P &policy, It first, It last, Less less) {
    if (first == last) return last;
    counting_iterator<ptrdiff_t> indices(0);
    return first + thrust::reduce(policy, indices, indices + (last - first), (ptrdiff_t)0,
                                  __wc_better<It, Less>{first, less});
}
template <typename P, typename It, __wc_if_policy<P> = 0>
__WC_FN It min_element(const P &policy, It first, It last) {
    return thrust::min_element(policy, first, last, less<>());
}
__WC_BY_ITERATORS(min_element)
template <typename Less> struct __wc_swapped {
    Less less;
    template <typename A, typename B> __WC_FN bool operator()(const A &a, const B &b) const {
        return __wc_mutable(less)(b, a);
    }
};
template <typename P, typename It, typename Less, __wc_if_policy<P> = 0>
__WC_FN It max_element(const P &policy, It first, It last, Less less) {
    return thrust::min_element(policy, first, last, __wc_swapped<Less>{less});
}
template <typename P, typename It, __wc_if_policy<P> = 0>
__WC_FN It max_element(const P &policy, It first, It last) {
    return thrust::max_element(policy, first, last, less<>());
}
__WC_BY_ITERATORS(max_element)

}  // namespace thrust
