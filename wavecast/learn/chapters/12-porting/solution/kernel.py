import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One program computes a tile of c = a bᵀ; b is [N, K]. GROUP rows of tiles are neighbours in
    the order of programs, so that those that run at once share tiles of a and b in L2."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    pid_m = group * GROUP + pid % (GROUP * columns) % height
    pid_n = pid % (GROUP * columns) // height
    # rows behind the end are computed from row 0 and not stored: no masks along M and N
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    left_at = a + (offs_m % M)[:, None] * K + offs_k[None, :]
    right_at = b + (offs_n % N)[None, :] * K + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(left_at, mask=offs_k[None, :] < K - start, other=0.0)
        right = tl.load(right_at, mask=offs_k[:, None] < K - start, other=0.0)
        acc = tl.dot(left, right, acc)
        left_at += BLOCK_K
        right_at += BLOCK_K
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c + offs_m[:, None] * N + offs_n[None, :], acc.to(c.dtype.element_ty), mask=mask)


CONFIGURATIONS = {
    # 304 compute units with 512 registers per lane and 64 KiB of LDS
    "gfx942": {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 32, "num_warps": 4, "num_stages": 2},
    # waves of 32 lanes: the same tile and number of waves need twice the registers per lane
    "gfx1100": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "num_warps": 8, "num_stages": 2},
    # 255 registers per thread; stages are copied to shared memory asynchronously
    "sm_90": {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3},
}


def matmul(a, b):
    (M, K), N = a.shape, b.shape[0]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    arch = triton.runtime.driver.active.get_current_target().arch
    config = CONFIGURATIONS[arch if isinstance(arch, str) else f"sm_{arch}"]
    grid = (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)
    matmul_kernel[grid](a, b, c, M, N, K, GROUP=4, **config)
    return c
