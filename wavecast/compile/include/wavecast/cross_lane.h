// Shuffles, votes, and lane identity. A shuffle is ds_bpermute, as in ROCm.
#pragma once

#include <hip/hip_runtime_api.h>
#include <wavecast/checked.h>
#include <wavecast/index.h>

#define __WC_FN static __device__ __wc_inline

#ifdef WAVECAST_CUDA
typedef unsigned __wc_lanes;  // a set of lanes of a warp
#else
typedef unsigned long long __wc_lanes;
#endif

__WC_FN unsigned __wc_lane_of_wave() {
    unsigned below = __builtin_amdgcn_mbcnt_lo(-1, 0);
    return __wc_wave_size == 64 ? __builtin_amdgcn_mbcnt_hi(-1, below) : below;
}
// The lane of the wave that the warp begins at.
__WC_FN unsigned __wc_first_lane() {
    return __wc_wave_size == warpSize ? 0 : __wc_lane_of_wave() & ~(warpSize - 1);
}
// Of a set of lanes of the wave those of the warp.
__WC_FN __wc_lanes __wc_of_warp(unsigned long long lanes) {
    return (__wc_lanes)(lanes >> __wc_first_lane());
}
__WC_FN unsigned __lane_id() { return __wc_lane_of_wave() - __wc_first_lane(); }

// What a shuffle moves may be undefined in lanes that no other reads, as in ROCm's headers.
#define __WC_MOVED __attribute__((maybe_undef))

template <typename T> __WC_FN T __wc_from_lane(__WC_MOVED T value, int lane) {
    static_assert(sizeof(T) % 4 == 0 || sizeof(T) < 4, "shuffles move 1, 2, or 4n bytes");
    constexpr int words = sizeof(T) < 4 ? 1 : sizeof(T) / 4;
    int buffer[words] = {}, address = (lane + (int)__wc_first_lane()) << 2;
    __builtin_memcpy(buffer, &value, sizeof(T));
    for (int i = 0; i < words; ++i) buffer[i] = __builtin_amdgcn_ds_bpermute(address, buffer[i]);
    __builtin_memcpy(&value, buffer, sizeof(T));
    return value;
}
template <typename T> __WC_FN T __shfl(__WC_MOVED T value, int source, int width = warpSize) {
    int self = __lane_id();
    __wc_mark_lane(source, self);
    __wc_mark_beyond<0x57430203>(width, warpSize);
    return __wc_from_lane(value, (source & (width - 1)) + (self & ~(width - 1)));
}
template <typename T>
__WC_FN T __shfl_up(__WC_MOVED T value, unsigned delta, int width = warpSize) {
    int self = __lane_id(), lane = self - (int)delta;
    __wc_mark_beyond<0x57430201>(delta, warpSize - 1);
    __wc_mark_beyond<0x57430203>(width, warpSize);
    return __wc_from_lane(value, lane < (self & ~(width - 1)) ? self : lane);
}
template <typename T>
__WC_FN T __shfl_down(__WC_MOVED T value, unsigned delta, int width = warpSize) {
    int self = __lane_id(), lane = self + (int)delta;
    __wc_mark_beyond<0x57430201>(delta, warpSize - 1);
    __wc_mark_beyond<0x57430203>(width, warpSize);
    return __wc_from_lane(value, (self & (width - 1)) + (int)delta >= width ? self : lane);
}
template <typename T> __WC_FN T __shfl_xor(__WC_MOVED T value, int mask, int width = warpSize) {
    int self = __lane_id(), lane = self ^ mask;
    __wc_mark_beyond<0x57430202>(mask, warpSize - 1);
    __wc_mark_beyond<0x57430203>(width, warpSize);
    return __wc_from_lane(value, lane >= ((self + width) & ~(width - 1)) ? self : lane);
}
// The masked forms: every named lane must be active, so the mask needs no code.
template <typename M, typename T>
__WC_FN T __shfl_sync(M, __WC_MOVED T value, int source, int width = warpSize) {
    return __shfl(value, source, width);
}
template <typename M, typename T>
__WC_FN T __shfl_up_sync(M, __WC_MOVED T value, unsigned delta, int width = warpSize) {
    return __shfl_up(value, delta, width);
}
template <typename M, typename T>
__WC_FN T __shfl_down_sync(M, __WC_MOVED T value, unsigned delta, int width = warpSize) {
    return __shfl_down(value, delta, width);
}
template <typename M, typename T>
__WC_FN T __shfl_xor_sync(M, __WC_MOVED T value, int mask, int width = warpSize) {
    return __shfl_xor(value, mask, width);
}

__WC_FN __wc_lanes __ballot(int predicate) {
#if defined(__GFX9__) || defined(__GFX8__) || defined(WAVECAST_WAVE64)
    return __wc_of_warp(__builtin_amdgcn_ballot_w64(predicate != 0));
#else
    return __wc_wide_ballot(__builtin_amdgcn_ballot_w32(predicate != 0));
#endif
}
__WC_FN __wc_lanes __activemask() { return __ballot(1); }
__WC_FN int __any(int predicate) { return __ballot(predicate) != 0; }
__WC_FN int __all(int predicate) { return __ballot(predicate == 0) == 0; }
template <typename M> __WC_FN __wc_lanes __ballot_sync(M mask, int predicate) {
    return __ballot(predicate) & mask;
}
template <typename M> __WC_FN int __any_sync(M mask, int predicate) {
    return (__ballot(predicate) & mask) != 0;
}
template <typename M> __WC_FN int __all_sync(M mask, int predicate) {
    return (__ballot(predicate == 0) & mask) == 0;
}
// The lanes whose value is the same.
template <typename T> __WC_FN __wc_lanes __match_any(T value) {
    __wc_lanes same = 0;
    while (!same) {
        int first = __builtin_ctzll(__ballot(1));
        if (__wc_from_lane(value, first) == value) same = __ballot(1);
    }
    return same;
}
template <typename M, typename T> __WC_FN __wc_lanes __match_any_sync(M mask, T value) {
    return __match_any(value) & mask;
}
// All lanes if their value is the same, else none.
template <typename T> __WC_FN __wc_lanes __match_all(T value, int *same) {
    __wc_lanes lanes = __ballot(1);
    *same = __all(__wc_from_lane(value, __builtin_ctzll(lanes)) == value);
    return *same ? lanes : 0;
}
template <typename M, typename T>
__WC_FN __wc_lanes __match_all_sync(M mask, T value, int *same) {
    return __match_all(value, same) & mask;
}

template <typename T> __WC_FN T __hip_readfirstlane(T value) {
    static_assert(sizeof(T) % 4 == 0, "lanes are read in words");
    int words[sizeof(T) / 4];
    __builtin_memcpy(words, &value, sizeof(T));
    for (int &word : words) word = __builtin_amdgcn_readfirstlane(word);
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
}
#ifndef WAVECAST_CUDA
// Instructions that move between lanes, of whole waves. `index` is four times a lane.
__WC_FN unsigned long long __ballot64(int predicate) { return __ballot(predicate); }
__WC_FN unsigned __mbcnt_lo(unsigned mask, unsigned count) {
    return __builtin_amdgcn_mbcnt_lo(mask, count);
}
__WC_FN unsigned __mbcnt_hi(unsigned mask, unsigned count) {
    return __builtin_amdgcn_mbcnt_hi(mask, count);
}
// Of the active lanes this one, those below it and those above it.
__WC_FN unsigned long long __lanemask_eq() { return 1ull << __lane_id(); }
__WC_FN unsigned long long __lanemask_lt() { return (__lanemask_eq() - 1) & __ballot(1); }
__WC_FN unsigned long long __lanemask_gt() {
    return ~(__lanemask_eq() | (__lanemask_eq() - 1)) & __ballot(1);
}
#define __WC_MOVE(name, T)                                                                 \
    __WC_FN T __hip_ds_bpermute##name(int index, T value) {                                        \
        return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(index, __builtin_bit_cast(int, value)));                     \
    }                                                                                              \
    __WC_FN T __hip_ds_permute##name(int index, T value) {                                         \
        return __builtin_bit_cast(T, __builtin_amdgcn_ds_permute(index, __builtin_bit_cast(int, value)));                      \
    }                                                                                              \
    template <int pattern> __WC_FN T __hip_ds_swizzle##name##_N(T value) {                         \
        return __builtin_bit_cast(T, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, value), pattern));                    \
    }
__WC_MOVE(, unsigned)
__WC_MOVE(f, float)
#undef __WC_MOVE
template <int control, int rows, int banks, bool bound> __WC_FN int __hip_move_dpp_N(int value) {
    return __builtin_amdgcn_mov_dpp(value, control, rows, banks, bound);
}
#define __hip_ds_swizzle(value, pattern) __hip_ds_swizzle_N<(pattern)>((value))
#define __hip_ds_swizzlef(value, pattern) __hip_ds_swizzlef_N<(pattern)>((value))
#define __hip_move_dpp(value, control, rows, banks, bound)                                         \
    __hip_move_dpp_N<(control), (rows), (banks), (bound)>((value))
#endif

#undef __WC_MOVED
#undef __WC_FN
