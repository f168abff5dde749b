// Marks that checked code has for the emulator: an instruction with a literal that compilers do not
// make, and one number of every lane. Nothing uses its result. `emulate/check` has the literals.
#pragma once

#include <wavecast/index.h>

#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__)
template <int literal, typename T> static __device__ __wc_inline void __wc_mark(T number) {
    static_assert(sizeof(T) == 4, "a register");
    int ignored;
    asm volatile("v_xor_b32 %0, %2, %1 ; wavecast" : "=v"(ignored) : "v"(number), "n"(literal));
}
#else
template <int literal, typename T> static __device__ __wc_inline void __wc_mark(T) {}
#endif

#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__) && !defined(WAVECAST_CUDA)
constexpr bool __wc_marks_lanes = warpSize == 32;  // code for waves of 64 lanes may run on it
#else
constexpr bool __wc_marks_lanes = false;
#endif

// Marks a lane that a shuffle reads and a wave of 32 lanes does not have. Lanes that all read one at
// the same distance go around the end of the wave, and mean that.
template <typename T> static __device__ __wc_inline void __wc_mark_lane(T lane, T self) {
    if constexpr (__wc_marks_lanes) {
        int distance = lane - self, first = __builtin_amdgcn_readfirstlane(distance);
        unsigned long long here = __builtin_amdgcn_ballot_w64(true);
        bool around = __builtin_amdgcn_ballot_w64(distance != first) == 0 && (here & (here - 1));
        around = around && first % warpSize != 0;
        if ((unsigned)lane >= warpSize && !around) __wc_mark<0x57430200>(lane);
    }
}
// Marks a distance, a mask or a width that a wave of 32 lanes does not have.
template <int literal> static __device__ __wc_inline void __wc_mark_beyond(int number, int most) {
    if constexpr (__wc_marks_lanes) {
        if ((unsigned)number > (unsigned)most) __wc_mark<literal>(number);
    }
}
// The compiler takes a constant lane modulo the wave; the emulator sees others.
template <typename T> static __device__ __wc_inline auto __wc_read_lane(T value, int lane) {
    if (__builtin_constant_p(lane)) __wc_mark_beyond<0x57430200>(lane, warpSize - 1);
#if defined(__HIP_DEVICE_COMPILE__)
    return __builtin_amdgcn_readlane(value, lane);
#else
    return value;
#endif
}
#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__) && !defined(WAVECAST_CUDA)
#define __builtin_amdgcn_readlane __wc_read_lane
#endif
// The lanes of a ballot from 32 on, which a wave of 32 lanes does not have: 0, and marked.
static __device__ __wc_inline unsigned long long __wc_upper_lanes() {
    unsigned lanes = 0;
#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__)
    if constexpr (__wc_marks_lanes)
        asm("s_mul_i32 %0, %1, 0 ; wavecast" : "=s"(lanes) : "n"(0x57430204));
#endif
    return (unsigned long long)lanes << 32;
}
