// Lanes that waves of 32 do not have, each with the kernel that asks for the size of the wave.
#include <hip/hip_runtime.h>

#define KERNEL extern "C" __global__ void
#define ARGUMENTS (const float *x, float *out, int n)
#define BITS(value) __builtin_bit_cast(int, value)

KERNEL broadcast_wrong ARGUMENTS {
    out[threadIdx.x] = __shfl(x[threadIdx.x], 40); // PLANTED
}
KERNEL broadcast_right ARGUMENTS {
    out[threadIdx.x] = __shfl(x[threadIdx.x], warpSize - 1);
}
KERNEL down_wrong ARGUMENTS {
    float value = x[threadIdx.x];
    for (int d = 32; d > 0; d >>= 1)
        value += __shfl_down(value, d); // PLANTED
    out[threadIdx.x] = value;
}
KERNEL down_right ARGUMENTS {
    float value = x[threadIdx.x];
    for (int d = warpSize / 2; d > 0; d >>= 1)
        value += __shfl_down(value, d);
    out[threadIdx.x] = value;
}
KERNEL scan_wrong ARGUMENTS {
    float value = x[threadIdx.x];
    for (int d = 1; d < 64; d <<= 1) {
        float below = __shfl_up(value, d); // PLANTED
        if (threadIdx.x % 64 >= d) value += below;
    }
    out[threadIdx.x] = value;
}
KERNEL scan_right ARGUMENTS {
    float value = x[threadIdx.x];
    for (int d = 1; d < warpSize; d <<= 1) {
        float below = __shfl_up(value, d);
        if (threadIdx.x % warpSize >= d) value += below;
    }
    out[threadIdx.x] = value;
}
KERNEL computed_wrong ARGUMENTS {
    float value = x[threadIdx.x];
    for (int d = n * 8; d > 0; d >>= 1)
        value += __shfl_xor(value, d); // PLANTED
    out[threadIdx.x] = value;
}
KERNEL computed_right ARGUMENTS {
    float value = x[threadIdx.x];
    for (int d = n * 2; d > 0; d >>= 1)
        value += __shfl_xor(value, d);
    out[threadIdx.x] = value;
}
KERNEL width_wrong ARGUMENTS {
    out[threadIdx.x] = __shfl(x[threadIdx.x], 3, 64); // PLANTED
}
KERNEL width_right ARGUMENTS {
    out[threadIdx.x] = __shfl(x[threadIdx.x], 3, 16) + __shfl(x[threadIdx.x], 20, 16);
}
KERNEL halves_wrong ARGUMENTS {
    int lane = threadIdx.x % 64;
    out[threadIdx.x] = __shfl(x[threadIdx.x], lane ^ 32); // PLANTED
}
KERNEL around_right ARGUMENTS {
    float value = x[threadIdx.x];
    out[threadIdx.x] = __shfl(value, threadIdx.x + 1) + __shfl(value, (int)threadIdx.x - 1);
}
KERNEL fetched_wrong ARGUMENTS {
    int lane = threadIdx.x % 64, value = BITS(x[threadIdx.x]);
    out[threadIdx.x] = __builtin_amdgcn_ds_bpermute((63 - lane) * 4, value); // PLANTED
}
KERNEL fetched_right ARGUMENTS {
    int lane = threadIdx.x, value = BITS(x[threadIdx.x]);
    out[threadIdx.x] = __builtin_amdgcn_ds_bpermute((lane + 1) * 4, value);
}
KERNEL read_wrong ARGUMENTS {
    int value = BITS(x[threadIdx.x]);
    out[threadIdx.x] = __builtin_amdgcn_readlane(value, n * 5); // PLANTED
}
KERNEL read_right ARGUMENTS {
    int value = BITS(x[threadIdx.x]);
    out[threadIdx.x] = __builtin_amdgcn_readlane(value, n);
}
KERNEL read_constant_wrong ARGUMENTS {
    out[threadIdx.x] = __builtin_amdgcn_readlane(BITS(x[threadIdx.x]), 40); // PLANTED
}
KERNEL read_constant_right ARGUMENTS {
    int value = BITS(x[threadIdx.x]);
    out[threadIdx.x] = __builtin_amdgcn_readlane(value, 31) + __builtin_amdgcn_readlane(value, warpSize - 1);
}
KERNEL all_wrong ARGUMENTS {
    if (__ballot(x[threadIdx.x] >= 0) == ~0ull) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL count_of_all_wrong ARGUMENTS {
    if (__popcll(__ballot(x[threadIdx.x] >= 0)) == 64) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL pattern_wrong ARGUMENTS {
    if (__ballot(threadIdx.x & 16) == 0xffff0000ffff0000ull) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL all_right ARGUMENTS {
    unsigned long long every = warpSize == 64 ? ~0ull : 0xffffffffull, lanes = __ballot(x[threadIdx.x] >= 0);
    out[threadIdx.x] = (lanes == every) + (lanes == __ballot(1)) + (__popcll(lanes) == warpSize);
}
KERNEL bit_wrong ARGUMENTS {
    unsigned long long lanes = __ballot(x[threadIdx.x] > 5);
    if (lanes & 1ull << 50) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL shifted_wrong ARGUMENTS {
    unsigned long long lanes = __ballot(x[threadIdx.x] > 5);
    out[threadIdx.x] = lanes >> 40 & 1; // PLANTED
}
KERNEL votes_right ARGUMENTS {
    unsigned long long lanes = __ballot(x[threadIdx.x] > 5), below = (1ull << threadIdx.x % warpSize) - 1;
    unsigned upper = lanes >> 32;
    out[threadIdx.x] = __popcll(lanes & below) + __popc(upper) + (lanes >> 4 & 1) + (lanes == 0);
}
typedef unsigned long long u64;
#define VOTES __ballot(x[threadIdx.x] > 5)
#define LANE (threadIdx.x % warpSize)
KERNEL vote_of_lane_wrong ARGUMENTS {
    u64 votes = VOTES;
    out[threadIdx.x] = votes >> (threadIdx.x & 63) & 1; // PLANTED
}
KERNEL vote_of_lane_right ARGUMENTS {
    u64 votes = VOTES;
    out[threadIdx.x] = (votes >> LANE & 1) + __popcll(votes >> (LANE + 1)) + ((votes & 1ull << LANE) != 0);
}
KERNEL rank_wrong ARGUMENTS {
    u64 votes = VOTES;
    out[threadIdx.x] = __popcll(votes & (1ull << (threadIdx.x & 63)) - 1); // PLANTED
}
KERNEL rank_right ARGUMENTS {
    u64 votes = VOTES, above = ~0ull << LANE;
    out[threadIdx.x] = __popcll(votes & (1ull << LANE) - 1) + __popcll(votes & above) + __popcll(votes & (2ull << LANE) - 1);
}
KERNEL leader_wrong ARGUMENTS {
    u64 votes = VOTES;
    if (votes && __ffsll(votes) - 1 == (threadIdx.x & 63)) // PLANTED
        out[threadIdx.x / 64] = 1;
}
KERNEL leader_right ARGUMENTS {
    u64 votes = VOTES;
    for (; votes; votes &= votes - 1) {
        int first = __ffsll(votes) - 1;
        if (LANE == first) out[threadIdx.x] = __popcll(votes & ~(1ull << first));
    }
}
KERNEL upper_wrong ARGUMENTS {
    u64 votes = VOTES;
    out[threadIdx.x] = __popc(votes >> 32); // PLANTED
}
KERNEL last_vote_wrong ARGUMENTS {
    if ((long long)VOTES < 0) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL halves_of_votes_right ARGUMENTS {
    u64 votes = VOTES;
    out[threadIdx.x] = __popc(votes >> 32) + __popc(votes) + (unsigned)(votes ^ votes >> 32);
}
KERNEL count_wrong ARGUMENTS {
    if (__popcll(VOTES) > 40) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL others_wrong ARGUMENTS {
    out[threadIdx.x] = 64 - __popcll(VOTES); // PLANTED
}
KERNEL count_right ARGUMENTS {
    int count = __popcll(VOTES);
    out[threadIdx.x] = (2 * count > warpSize) + warpSize - count + count * 40 + 48;
}
KERNEL patterns_right ARGUMENTS {
    u64 votes = VOTES;
    out[threadIdx.x] = __popcll(votes & 0x1111111111111111ull << (LANE & 3)) + (votes >> LANE / 16 * 16 & 0xffff);
}
KERNEL builtin_wrong ARGUMENTS {
    if (__builtin_amdgcn_ballot_w64(x[threadIdx.x] > 5) & 1ull << 45) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL exec_wrong ARGUMENTS {
    if (__builtin_amdgcn_read_exec() == ~0ull) // PLANTED
        out[threadIdx.x] = 1;
}
KERNEL builtin_right ARGUMENTS {
    u64 votes = __builtin_amdgcn_ballot_w64(x[threadIdx.x] > 5);
    out[threadIdx.x] = __popcll(votes) + (votes == __builtin_amdgcn_read_exec());
}
KERNEL last_lane_wrong ARGUMENTS {
    if (__lane_id() == 63) // PLANTED
        out[threadIdx.x / 64] = x[threadIdx.x];
}
KERNEL last_lane_right ARGUMENTS {
    if (__lane_id() == warpSize - 1 || __lane_id() < 32)
        out[threadIdx.x] = x[threadIdx.x];
}
KERNEL written_wrong ARGUMENTS {
    int value = BITS(x[threadIdx.x]);
    asm volatile("v_writelane_b32 %0, %1, 40" : "+v"(value) : "s"(n)); // PLANTED
    out[threadIdx.x] = value;
}
KERNEL written_right ARGUMENTS {
    int value = BITS(x[threadIdx.x]);
    asm volatile("v_writelane_b32 %0, %1, 20" : "+v"(value) : "s"(n));
    out[threadIdx.x] = value;
}
KERNEL exchanged_wrong ARGUMENTS {
    int value = BITS(x[threadIdx.x]);
#ifdef __GFX9__
    out[threadIdx.x] = value;
#else
    out[threadIdx.x] = __builtin_amdgcn_permlane64(value); // PLANTED
#endif
}
