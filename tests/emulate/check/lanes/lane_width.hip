// Code for 32 lanes: the line with the mistake has its kind. Kernels `right_…` are meant as they are.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

#define KERNEL extern "C" __global__ void
#define ARGUMENTS const int *in, int *out

namespace cg = cooperative_groups;

KERNEL votes_in_int(ARGUMENTS) {
    bool keep = in[threadIdx.x] > 0;
    int votes = __ballot(keep);  // VOTES
    int lane = threadIdx.x % warpSize;
    int before = __popc(votes & ((1u << (lane & 31)) - 1));
    if (keep) atomicAdd(&out[before], 1);
}

KERNEL votes_counted(ARGUMENTS) {
    int count = __popc(__ballot(in[threadIdx.x] > 3));  // VOTES
    if (threadIdx.x == 0) *out = count;
}

KERNEL votes_of_active_lanes(ARGUMENTS) {
    if (in[threadIdx.x] < 0) return;
    unsigned mask = __activemask();  // VOTES
    int lane = threadIdx.x & 63;
    if (lane == __ffs(mask) - 1) atomicAdd(out, __popc(mask));
}

KERNEL votes_under_a_mask_of_32(ARGUMENTS) {
    out[threadIdx.x] = __any_sync(0xffffffff, in[threadIdx.x] > 0);  // VOTES
}

KERNEL votes_below_a_lane_of_a_group(ARGUMENTS) {
    int lane = threadIdx.x & 31;
    unsigned long long votes = __ballot(in[threadIdx.x] > 0);  // VOTES
    out[threadIdx.x] = __popcll(votes & ((1ull << lane) - 1));
}

KERNEL votes_of_a_loop(ARGUMENTS) {
    int count = 0;
    for (int i = 0; i < 4; ++i) {
        count += __popc(__ballot(in[i * 64 + threadIdx.x] > i));  // VOTES
    }
    if (threadIdx.x == 0) *out = count;
}

KERNEL all_of_32(ARGUMENTS) {
    if (__ballot(in[threadIdx.x] > -99) == 0xffffffffu) out[threadIdx.x] = 1;  // ALL_VOTES
}

KERNEL votes_of_both_groups(ARGUMENTS) {
    int lane = threadIdx.x & 31;
    int count = __popcll(__ballot(in[threadIdx.x] > 0));  // GROUP_VOTES
    if (lane == 0) out[threadIdx.x / 32] = count;
}

KERNEL any_of_both_groups(ARGUMENTS) {
    int any = __any(in[threadIdx.x] > 18);  // GROUP_VOTES
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = any;
}

KERNEL mask_of_32(ARGUMENTS) {
    int x = in[threadIdx.x];
    for (int offset = warpSize / 2; offset; offset >>= 1) {
        x += __shfl_down_sync(0xffffffff, x, offset);  // MASK
    }
    if (threadIdx.x % warpSize == 0) atomicAdd(out, x);
}

KERNEL lanes_below(ARGUMENTS) {
    int lane = threadIdx.x % warpSize;
    unsigned below = (1u << lane) - 1;  // SHIFT
    out[threadIdx.x] = below;
}

KERNEL bit_of_a_thread(ARGUMENTS) {
    out[threadIdx.x] = in[0] >> threadIdx.x & 1;  // SHIFT
}

__device__ int sum_of_32(int x) {
    for (int offset = 16; offset; offset >>= 1) {
        x += __shfl_down(x, offset);  // REDUCTION
    }
    return x;
}

KERNEL sum_in_a_function(ARGUMENTS) {
    int x = sum_of_32(in[threadIdx.x]);
    if (threadIdx.x % warpSize == 0) atomicAdd(out, x);
}

KERNEL largest_in_a_loop(ARGUMENTS) {
    int x = in[threadIdx.x];
#pragma unroll 1
    for (int mask = 1; mask < 32; mask <<= 1) {
        x = max(x, __shfl_xor(x, mask));  // REDUCTION
    }
    if (threadIdx.x == 0) *out = x;
}

KERNEL sum_of_doubles(ARGUMENTS) {
    double x = in[threadIdx.x];
    for (int offset = 16; offset; offset /= 2) {
        x += __shfl_down(x, offset);  // REDUCTION
    }
    if (threadIdx.x == 0) *out = x;
}

KERNEL sum_of_a_row(ARGUMENTS) {
    int x = in[threadIdx.x / 64 * 100 + threadIdx.x % 64];
    for (int mask = 16; mask; mask >>= 1) {
        x += __shfl_xor(x, mask);  // ROW
    }
    out[threadIdx.x] = x;
}

KERNEL scan_of_a_wave(ARGUMENTS) {
    int lane = threadIdx.x % warpSize;
    int x = in[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up(x, step);  // WINDOW
        if (lane >= step) x += before;
    }
    out[threadIdx.x] = x;
}

KERNEL total_of_a_scan(ARGUMENTS) {
    int lane = threadIdx.x % warpSize;
    int x = in[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up(x, step);  // WINDOW
        if (lane >= step) x += before;
    }
    out[threadIdx.x] = x;
    int total = __shfl(x, 31);
    if (lane % 32 == 0) out[128 + threadIdx.x / 32] = total;
}

KERNEL neighbour_in_a_group(ARGUMENTS) {
    int lane = threadIdx.x & 31;
    out[threadIdx.x] = __shfl(in[threadIdx.x], (lane + 1) & 31);  // OTHER_HALF
}

KERNEL total_of_a_group(ARGUMENTS) {
    int lane = threadIdx.x & 31;
    int x = in[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up(x, step);
        if (lane >= step) x += before;
    }
    int total = __shfl(x, 31);  // OTHER_HALF
    out[threadIdx.x] = total - x;
}

KERNEL votes_after_any(ARGUMENTS) {
    bool keep = in[threadIdx.x] > 0;
    if (!__any(keep)) return;
    unsigned votes = __ballot(keep);  // VOTES
    out[threadIdx.x] = __popc(votes);
}

KERNEL votes_before_any(ARGUMENTS) {
    bool keep = in[threadIdx.x] > 0;
    unsigned votes = __ballot(keep);  // VOTES
    out[threadIdx.x] = __any(keep) ? __popc(votes) : -1;
}

KERNEL largest_and_its_index(ARGUMENTS) {
    int x = in[threadIdx.x], index = threadIdx.x;
    for (int offset = 16; offset; offset >>= 1) {
        int other = __shfl_down(x, offset);  // REDUCTION
        int at = __shfl_down(index, offset);
        if (other > x || (other == x && at < index)) {
            x = other;
            index = at;
        }
    }
    if (threadIdx.x % warpSize == 0) out[threadIdx.x / warpSize] = index;
}

KERNEL value_of_a_leader(ARGUMENTS) {
    int lane = threadIdx.x % 32, x = 0;
    if (lane == 0) x = in[threadIdx.x / 32] + 9;
    x = __shfl(x, 0);  // LEADER
    out[threadIdx.x] = x + lane;
}

KERNEL places_of_a_leader(ARGUMENTS) {
    int lane = threadIdx.x & 31, first;
    if (lane == 0) first = atomicAdd(out, 32);
    first = __builtin_amdgcn_readfirstlane(first);  // LEADER
    out[64 + ((first + lane) & 511)] = 1;
}

KERNEL row_of_a_leader(ARGUMENTS) {
    int lane = threadIdx.x & 31;
    for (int k = threadIdx.x / 32; k < 8; k += blockDim.x / 32) {
        int row;
        if (lane == 0) row = in[k] & 1;
        row = __shfl(row, 0);  // LEADER
        out[k * 64 + row * 32 + lane] = k;
    }
}

KERNEL right_votes(ARGUMENTS) {
    unsigned long long votes = __ballot(in[threadIdx.x] > 0);
    int lane = threadIdx.x % warpSize;
    out[threadIdx.x] = __popcll(votes & ((1ull << lane) - 1));
}

KERNEL right_halves(ARGUMENTS) {
    unsigned lower = __ballot(in[threadIdx.x] > 0);
    unsigned upper = (unsigned long long)__ballot(in[threadIdx.x] > 0) >> (warpSize - 32);
    int lane = threadIdx.x % 64;
    unsigned mine = lane < 32 ? lower : upper;
    out[threadIdx.x] = __popc(mine & ((1u << (lane & 31)) - 1));
}

KERNEL right_votes_of_32(ARGUMENTS) {
    int lane = threadIdx.x % warpSize;
    unsigned votes = __ballot(lane < 32 && in[threadIdx.x] > 0);
    if (lane == 0) out[threadIdx.x / warpSize] = votes;
    if (threadIdx.x < 32) out[8 + threadIdx.x] = __popc(__ballot(in[threadIdx.x] > 1));
}

KERNEL right_votes_of_a_group(ARGUMENTS) {
    int lane = threadIdx.x % warpSize;
    unsigned votes = (unsigned long long)__ballot(in[threadIdx.x] > 0) >> (lane & 32);
    out[threadIdx.x] = votes;
}

KERNEL right_shift(ARGUMENTS) {
    int lane = threadIdx.x & 63;
    unsigned below = lane < 32 ? (1u << lane) - 1 : 0xffffffffu;
    out[threadIdx.x] = below + (1u << (threadIdx.x & 31));
}

KERNEL right_sum(ARGUMENTS) {
    int x = in[threadIdx.x];
    for (int offset = warpSize / 2; offset; offset >>= 1) x += __shfl_down(x, offset);
    if (threadIdx.x % warpSize == 0) atomicAdd(out, x);
}

KERNEL right_mask(ARGUMENTS) {
    int x = in[threadIdx.x];
    x += __shfl_xor_sync(0xffffffffffffffffull, x, 1);
    out[threadIdx.x] = x;
}

KERNEL right_sums_of_groups(ARGUMENTS) {
    int x = sum_of_32(in[threadIdx.x]);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = x;
}

KERNEL right_sum_of_both(ARGUMENTS) {
    int x = sum_of_32(in[threadIdx.x]);
    x = __shfl(x, 0) + (warpSize == 64 ? __shfl(x, 32) : 0);
    out[threadIdx.x] = x;
}

KERNEL right_width(ARGUMENTS) {
    int x = in[threadIdx.x];
    for (int mask = 16; mask; mask >>= 1) x += __shfl_xor(x, mask, 32);
    out[threadIdx.x] = __shfl(x, threadIdx.x + 1, 32);
}

KERNEL right_tile(ARGUMENTS) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int x = in[threadIdx.x];
    for (int mask = 16; mask; mask >>= 1) x += tile.shfl_xor(x, mask);
    out[threadIdx.x] = x + tile.shfl(x, 31) + tile.ballot(x > 1);
}

KERNEL right_scan(ARGUMENTS) {
    int lane = threadIdx.x % 64;
    int x = in[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up(x, step, 32);
        if ((lane & 31) >= step) x += before;
    }
    int lower = __shfl(x, 31);
    if (lane >= 32) x += lower;
    out[threadIdx.x] = x;
}

KERNEL right_scan_of_64(ARGUMENTS) {
    int lane = threadIdx.x % 64;
    int x = in[threadIdx.x];
    for (int step = 1; step < 64; step *= 2) {
        int before = __shfl_up(x, step);
        if (lane >= step) x += before;
    }
    out[threadIdx.x] = x - __shfl(x, 31) + __shfl(x, 63);
}

KERNEL right_second_step(ARGUMENTS) {
    __shared__ int parts[32];
    if (threadIdx.x < 32) parts[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    int x = threadIdx.x < blockDim.x / warpSize ? parts[threadIdx.x] : 0;
    for (int offset = 16; offset; offset >>= 1) x += __shfl_down(x, offset);
    if (threadIdx.x == 0) *out = x;
}

KERNEL right_rows_of_16(ARGUMENTS) {
    int x = in[threadIdx.x];
    for (int mask = 8; mask; mask >>= 1) x += __shfl_xor(x, mask);
    if (threadIdx.x % 16 == 0) out[threadIdx.x / 16] = x;
}

KERNEL right_lower_half_for_all(ARGUMENTS) {
    int lane = threadIdx.x & 63;
    int scale = in[lane & 31];
    out[threadIdx.x] = __shfl(scale, (lane + 5) & 31);
}

KERNEL right_votes_and_any(ARGUMENTS) {
    bool keep = in[threadIdx.x] > 0;
    if (!__any(keep)) return;
    unsigned long long votes = __ballot(keep);
    unsigned lower = votes, upper = votes >> 32;
    out[threadIdx.x] = __popcll(votes) + __popc(lower) - __popc(upper);
}

KERNEL right_index_of_a_wave(ARGUMENTS) {
    int x = in[threadIdx.x], index = threadIdx.x;
    for (int offset = 32; offset; offset >>= 1) {
        int other = __shfl_down(x, offset), at = __shfl_down(index, offset);
        if (other > x || (other == x && at < index)) {
            x = other;
            index = at;
        }
    }
    if (threadIdx.x % warpSize == 0) out[threadIdx.x / warpSize] = index;
}

KERNEL right_index_of_a_group(ARGUMENTS) {
    int x = in[threadIdx.x], index = threadIdx.x;
    for (int offset = 16; offset; offset >>= 1) {
        int other = __shfl_xor(x, offset, 32), at = __shfl_xor(index, offset, 32);
        if (other > x || (other == x && at < index)) {
            x = other;
            index = at;
        }
    }
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = index;
}

KERNEL right_value_of_a_leader(ARGUMENTS) {
    int lane = threadIdx.x % 32, x = 0, wide = 0;
    if (lane == 0) x = in[threadIdx.x / 32];
    if (threadIdx.x % 64 == 0) wide = in[threadIdx.x / 64];
    out[threadIdx.x] = __shfl(x, 0, 32) + __shfl(wide, 0) + __shfl(x, threadIdx.x & 32);
}

KERNEL right_leader_with_one_value(ARGUMENTS) {
    int x = 0;
    for (int k = blockIdx.x; k < 8; k += gridDim.x) {
        int y;
        if (threadIdx.x % 32 == 0) y = in[k];
        x += __shfl(y, 0) + __builtin_amdgcn_readfirstlane(y);
    }
    out[threadIdx.x] = x;
}

KERNEL right_two_leaders(ARGUMENTS) {
    int x = 0;
    if (threadIdx.x % 32 == 0) x = in[threadIdx.x];
    out[threadIdx.x] = __shfl(x, 0) - __shfl(x, 32);
}

KERNEL right_places_of_a_wave(ARGUMENTS) {
    int lane = threadIdx.x & 63, first;
    if (lane == 0) first = atomicAdd(out, 64);
    first = __shfl(first, 0);
    out[64 + ((first + lane) & 511)] = 1;
}

KERNEL right_largest_of_two_copies(ARGUMENTS) {
    unsigned short largest = in[threadIdx.x];
    for (int distance = 32; distance > 0; distance /= 2) {
        unsigned other = __shfl_down(largest * 65537u, distance);
        largest = max((int)largest, (int)(unsigned short)other);
    }
    largest = __shfl((int)largest, 0);
    out[threadIdx.x] = largest;
}

KERNEL largest_of_two_copies(ARGUMENTS) {
    unsigned short largest = in[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2) {
        unsigned other = __shfl_down(largest * 65537u, distance);
        largest = max((int)largest, (int)(unsigned short)other);
    }
    largest = __shfl((int)largest, 0);  // OTHER_HALF
    out[threadIdx.x] = largest;
}
