// Bit operations, reinterpretation, and rounding conversions.
#pragma once

#include <hip/hip_runtime_api.h>

#define __WC_FN static __device__ __wc_inline

__WC_FN int __popc(unsigned x) { return __builtin_popcount(x); }
__WC_FN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__WC_FN int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
__WC_FN int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
__WC_FN int __ffs(int x) { return __builtin_ffs(x); }
__WC_FN int __ffsll(long long x) { return __builtin_ffsll(x); }
__WC_FN int __ffsll(unsigned long long x) { return __builtin_ffsll((long long)x); }
__WC_FN unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
__WC_FN unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__WC_FN unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    unsigned bytes = (selector & 7) | (selector & 0x70) << 4 | (selector & 0x700) << 8 |
                     (selector & 0x7000) << 12;
    return __builtin_amdgcn_perm(b, a, bytes);
}
__WC_FN int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
__WC_FN unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
__WC_FN int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
__WC_FN unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)(((unsigned long long)a * b) >> 32);
}
__WC_FN long long __mul64hi(long long a, long long b) {
    return (long long)(((__int128)a * b) >> 64);
}
__WC_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
__WC_FN unsigned __sad(int a, int b, unsigned c) {
    return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
__WC_FN unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
__WC_FN int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
__WC_FN int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
__WC_FN unsigned __uhadd(unsigned a, unsigned b) { return ((unsigned long long)a + b) >> 1; }
__WC_FN unsigned __urhadd(unsigned a, unsigned b) { return ((unsigned long long)a + b + 1) >> 1; }
__WC_FN unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((((unsigned long long)high << 32) | low) << (shift & 31)) >> 32);
}
__WC_FN unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return __builtin_amdgcn_alignbit(high, low, shift);
}
__WC_FN unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
__WC_FN unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
// Bits of `width` from `offset` on, both modulo the size of the number.
#define __WC_BITS(suffix, T, size)                                                                 \
    __WC_FN T __wc_low_bits_##suffix(unsigned width) { return ((T)1 << (width & (size - 1))) - 1; } \
    __WC_FN T __bitextract_##suffix(T x, unsigned offset, unsigned width) {                        \
        return (x >> (offset & (size - 1))) & __wc_low_bits_##suffix(width);                       \
    }                                                                                              \
    __WC_FN T __bitinsert_##suffix(T x, T bits, unsigned offset, unsigned width) {                 \
        T mask = __wc_low_bits_##suffix(width);                                                    \
        offset &= size - 1;                                                                        \
        return (x & ~(mask << offset)) | (bits & mask) << offset;                                  \
    }
__WC_BITS(u32, unsigned, 32)
__WC_BITS(u64, unsigned long long, 64)
#undef __WC_BITS
__WC_FN unsigned __lastbit_u32_u64(unsigned long long x) {
    return x ? (unsigned)__builtin_ctzll(x) : ~0u;
}
// The place of the set bit number |offset|, counted from `base` on upwards, with a negative offset
// downwards; with 0 whether `base` is set. -1 for none.
__WC_FN int __wc_find_set_bit(unsigned long long mask, int bits, unsigned base, int offset) {
    if (offset == 0) return mask >> base & 1 ? (int)base : -1;
    int step = offset < 0 ? -1 : 1, left = offset * step;
    for (int bit = (int)base; bit >= 0 && bit < bits; bit += step)
        if (mask >> bit & 1 && --left == 0) return bit;
    return -1;
}
__WC_FN int __fns64(unsigned long long mask, unsigned base, int offset) {
    return __wc_find_set_bit(mask, 64, base, offset);
}
__WC_FN int __fns32(unsigned mask, unsigned base, int offset) {
    return __wc_find_set_bit(mask, 32, base, offset);
}
__WC_FN int __fns(unsigned mask, unsigned base, int offset) { return __fns32(mask, base, offset); }
__WC_FN int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += (int)(signed char)(a >> i) * (int)(signed char)(b >> i);
    return c;
}

__WC_FN int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__WC_FN unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
__WC_FN float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__WC_FN float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
__WC_FN long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
__WC_FN double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
__WC_FN int __double2loint(double x) { return (int)__builtin_bit_cast(unsigned long long, x); }
__WC_FN int __double2hiint(double x) {
    return (int)(__builtin_bit_cast(unsigned long long, x) >> 32);
}
__WC_FN double __hiloint2double(int high, int low) {
    return __builtin_bit_cast(double, ((unsigned long long)(unsigned)high << 32) | (unsigned)low);
}

// Floats to integers, rounded to nearest, towards zero, down and up.
#define __WC_TO_INTEGER(to, type, from, source, suffix)                                            \
    __WC_FN type __##from##2##to##_rn(source x) { return (type)__builtin_rint##suffix(x); }        \
    __WC_FN type __##from##2##to##_rz(source x) { return (type)x; }                                \
    __WC_FN type __##from##2##to##_rd(source x) { return (type)__builtin_floor##suffix(x); }       \
    __WC_FN type __##from##2##to##_ru(source x) { return (type)__builtin_ceil##suffix(x); }
#define __WC_TO_INTEGERS(to, type)                                                                 \
    __WC_TO_INTEGER(to, type, float, float, f)                                                     \
    __WC_TO_INTEGER(to, type, double, double, )
__WC_TO_INTEGERS(int, int)
__WC_TO_INTEGERS(uint, unsigned)
__WC_TO_INTEGERS(ll, long long)
__WC_TO_INTEGERS(ull, unsigned long long)
#undef __WC_TO_INTEGERS
#undef __WC_TO_INTEGER
__WC_FN float __int2float_rn(int x) { return (float)x; }
__WC_FN float __uint2float_rn(unsigned x) { return (float)x; }
__WC_FN float __ll2float_rn(long long x) { return (float)x; }
__WC_FN float __ull2float_rn(unsigned long long x) { return (float)x; }
__WC_FN double __int2double_rn(int x) { return (double)x; }
__WC_FN double __uint2double_rn(unsigned x) { return (double)x; }
__WC_FN double __ll2double_rn(long long x) { return (double)x; }
__WC_FN double __ull2double_rn(unsigned long long x) { return (double)x; }
__WC_FN float __double2float_rn(double x) { return (float)x; }

// As in HIP, these are there for the host too.
#define __WC_HD static __host__ __device__ __wc_inline
__WC_HD int min(int a, int b) { return a < b ? a : b; }
__WC_HD int max(int a, int b) { return a > b ? a : b; }
__WC_HD unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
__WC_HD unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
__WC_HD unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
__WC_HD unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
__WC_HD unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
__WC_HD unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
__WC_HD long min(long a, long b) { return a < b ? a : b; }
__WC_HD long max(long a, long b) { return a > b ? a : b; }
__WC_HD unsigned long min(unsigned long a, unsigned long b) { return a < b ? a : b; }
__WC_HD unsigned long max(unsigned long a, unsigned long b) { return a > b ? a : b; }
__WC_HD long long min(long long a, long long b) { return a < b ? a : b; }
__WC_HD long long max(long long a, long long b) { return a > b ? a : b; }
__WC_HD unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
__WC_HD unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
__WC_HD float min(float a, float b) { return __builtin_fminf(a, b); }
__WC_HD float max(float a, float b) { return __builtin_fmaxf(a, b); }
__WC_HD double min(double a, double b) { return __builtin_fmin(a, b); }
__WC_HD double max(double a, double b) { return __builtin_fmax(a, b); }
__WC_HD double min(float a, double b) { return __builtin_fmin(a, b); }
__WC_HD double min(double a, float b) { return __builtin_fmin(a, b); }
__WC_HD double max(float a, double b) { return __builtin_fmax(a, b); }
__WC_HD double max(double a, float b) { return __builtin_fmax(a, b); }
// As clang's headers for HIP: of halves, and of a float with another number, a double.
__WC_HD double min(_Float16 a, _Float16 b) { return __builtin_fmin(a, b); }
__WC_HD double max(_Float16 a, _Float16 b) { return __builtin_fmax(a, b); }
#undef __WC_HD
__WC_FN int abs(int x) { return x < 0 ? -x : x; }
__WC_FN long abs(long x) { return x < 0 ? -x : x; }
__WC_FN long labs(long x) { return x < 0 ? -x : x; }
__WC_FN long long abs(long long x) { return x < 0 ? -x : x; }
__WC_FN long long llabs(long long x) { return x < 0 ? -x : x; }

#undef __WC_FN
