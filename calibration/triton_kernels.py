"""The Triton kernel of `calibration.triton_gemm`."""

import triton
import triton.language as tl


@triton.jit
def persistent_product(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr, DIES: tl.constexpr, PER_DIE: tl.constexpr,
):  # fmt: skip
    """C = A·B of row-major matrices; the programs of a die share `PER_DIE` tiles that follow one
    another, in groups of `GROUP` rows of tiles."""
    die, first = tl.program_id(0) % DIES, tl.program_id(0) // DIES
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    depth, steps = tl.arange(0, BLOCK_K), tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 1)
    tl.assume(stride_a > 0)
    tl.assume(stride_b > 0)
    tl.assume(stride_c > 0)
    for number in range(first, PER_DIE, PROGRAMS // DIES):
        tile = die * PER_DIE + number
        group = tile // (GROUP * tiles_n)
        height = min(tiles_m - group * GROUP, GROUP)
        tile_m = group * GROUP + tile % (GROUP * tiles_n) % height
        tile_n = tile % (GROUP * tiles_n) // height
        tl.assume(tile_m >= 0)
        tl.assume(tile_n >= 0)
        rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
        columns = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
        rows = tl.max_contiguous(tl.multiple_of(rows, BLOCK_M), BLOCK_M)
        columns = tl.max_contiguous(tl.multiple_of(columns, BLOCK_N), BLOCK_N)
        x = a + rows[:, None] * stride_a + depth[None, :]
        y = b + depth[:, None] * stride_b + columns[None, :]
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for _ in range(steps):
            left = tl.load(tl.multiple_of(x, (1, 16)))
            right = tl.load(tl.multiple_of(y, (1, 16)))
            total += tl.dot(left, right)
            x += BLOCK_K
            y += BLOCK_K * stride_b
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.bfloat16), mask=mask)
