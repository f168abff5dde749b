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
template <int literal, typename T>
static __host__ __device__ __wc_inline void __wc_mark(T) {}
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
// A ballot of 32 lanes as one of 64. Lanes from 32 on, which a wave of 32 does not have, are 0, and
// marked; the instruction after the mark has the others, so that one can tell who uses which.
#if defined(__GFX12__)
#define __WC_WAIT "\n\ts_wait_alu 0\n\t"  // compilers do not look into this code for hazards
#else
#define __WC_WAIT ""
#endif
static __device__ __wc_inline unsigned long long __wc_wide_ballot(unsigned lanes) {
    unsigned upper = 0;
#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__)
    if constexpr (__wc_marks_lanes)
        asm(__WC_WAIT "s_mul_i32 %0, %2, 0 ; wavecast\n\ts_mov_b32 %1, %3" __WC_WAIT
            : "=&s"(upper), "=s"(lanes)
            : "n"(0x57430204), "s"(lanes));
#endif
    return (unsigned long long)upper << 32 | lanes;
}
#undef __WC_WAIT
#if defined(WAVECAST_CHECKED) && defined(__HIP_DEVICE_COMPILE__) && !defined(WAVECAST_CUDA)
#if !defined(__GFX9__) && !defined(__GFX8__) && !defined(WAVECAST_WAVE64)
static __device__ __wc_inline unsigned long long __wc_ballot_w64(bool predicate) {
    return __wc_wide_ballot(__builtin_amdgcn_ballot_w32(predicate));
}
#define __builtin_amdgcn_ballot_w64 __wc_ballot_w64
#define __builtin_amdgcn_read_exec() __wc_ballot_w64(true)
#endif
#endif
