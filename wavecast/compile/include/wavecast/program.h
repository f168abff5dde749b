// What device code asks of the runtime of a whole program: printing, a heap, grid-wide barriers.
// The runtime finds the variables by their names (wavecast/runtimes/hip_host).
#pragma once

#include <hip/hip_runtime_api.h>
#include <assert.h>
#include <cmath>
#include <stdlib.h>
#include <string.h>

#define __WC_FN static __device__ __wc_inline

typedef unsigned long long __wc_word;

// A template, so that only code that uses a variable has it.
template <int> struct __wc_state {
    static __device__ __wc_word *output __asm__("__wc_output");
    static __device__ __wc_word *heap __asm__("__wc_heap");
    static __device__ unsigned arrivals __asm__("__wc_grid_arrivals");
};
template <int N> __device__ __wc_word *__wc_state<N>::output;
template <int N> __device__ __wc_word *__wc_state<N>::heap;
template <int N> __device__ unsigned __wc_state<N>::arrivals;

__WC_FN __wc_word __wc_added(__wc_word *counter, __wc_word value) {
    return __hip_atomic_fetch_add(counter, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// --- printing: a record is the number of its words, the format, and a word per argument
__WC_FN __wc_word __wc_as_word(double value) { return __builtin_bit_cast(__wc_word, value); }
__WC_FN __wc_word __wc_as_word(float value) { return __wc_as_word((double)value); }
template <typename T> __WC_FN __wc_word __wc_as_word(T *value) { return (__wc_word)value; }
template <typename T> __WC_FN __wc_word __wc_as_word(T value) {
    return (__wc_word)(long long)value;
}

static __device__ __attribute__((noinline)) int __wc_print(const __wc_word *words,
                                                           unsigned count) {
    __wc_word *output = __wc_state<0>::output;
    __wc_word first = __wc_added(output, count + 1);
    if (first + count + 1 > output[1]) return -1;
    output[2 + first] = count;
    for (unsigned index = 0; index < count; ++index) output[3 + first + index] = words[index];
    return 0;
}
template <typename... Arguments> __WC_FN int printf(const char *format, Arguments... arguments) {
    __wc_word words[] = {(__wc_word)format, __wc_as_word(arguments)...};
    return __wc_print(words, 1 + sizeof...(arguments));
}
template <typename T>
static __device__ __attribute__((noinline)) void __wc_assert_fail(const char *text,
                                                                  const char *file, T line,
                                                                  const char *function) {
    printf("%s:%u: %s: Device-side assertion `%s' failed.\n", file, (unsigned)line, function, text);
    __builtin_trap();
}
__WC_FN void __assert_fail(const char *text, const char *file, unsigned line,
                           const char *function) {
    __wc_assert_fail(text, file, line, function);
}
__WC_FN void __assert_fail(const char *text, const char *file, int line, const char *function) {
    __wc_assert_fail(text, file, line, function);
}

// --- the heap: memory is taken from its start, and never given back
__WC_FN void *malloc(size_t bytes) {
    __wc_word *heap = __wc_state<0>::heap;
    __wc_word size = (bytes + 15) / 16 * 16, first = __wc_added(heap, size);
    return first + size > heap[1] ? nullptr : (char *)heap + 64 + first;
}
__WC_FN void free(void *) {}

// --- barriers of a grid whose workgroups all run at once; the runtime clears the counter
__WC_FN void __wc_grid_barrier(unsigned workgroups, bool first_thread) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    __builtin_amdgcn_s_barrier();
    if (first_thread) {
        unsigned *arrivals = &__wc_state<0>::arrivals;
        unsigned before = __hip_atomic_fetch_add(arrivals, 1u, __ATOMIC_ACQ_REL,
                                                 __HIP_MEMORY_SCOPE_AGENT);
        unsigned target = (before / workgroups + 1) * workgroups;
        while (__hip_atomic_load(arrivals, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < target)
            __builtin_amdgcn_s_sleep(2);
    }
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}

#undef __WC_FN
