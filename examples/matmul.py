"""Matrix product C = act(A @ B) in bf16, autotuned, with a leaky ReLU that can be fused in."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def configurations():
    tiles = [(128, 128, 64, 8, 2), (128, 64, 64, 4, 2), (64, 128, 64, 4, 2), (256, 128, 32, 8, 2)]
    return [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}, num_warps=warps, num_stages=s
        )
        for m, n, k, warps, s in tiles
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    LEAKY: tl.constexpr,
):
    # Programs that run together share rows of A: walk the grid in groups of GROUP tile rows.
    program = tl.program_id(0)
    rows = tl.cdiv(M, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    group = program // (GROUP * columns)
    first = group * GROUP
    height = min(rows - first, GROUP)
    tile_m = first + (program % (GROUP * columns)) % height
    tile_n = (program % (GROUP * columns)) // height

    offset_m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offset_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offset_k = tl.arange(0, BLOCK_K)
    a = a_ptr + (offset_m % M)[:, None] * stride_am + offset_k[None, :] * stride_ak
    b = b_ptr + offset_k[:, None] * stride_bk + (offset_n % N)[None, :] * stride_bn

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        a_tile = tl.load(a, mask=offset_k[None, :] < left, other=0.0)
        b_tile = tl.load(b, mask=offset_k[:, None] < left, other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk

    if LEAKY:
        total = tl.where(total > 0, total, 0.01 * total)
    c = c_ptr + offset_m[:, None] * stride_cm + offset_n[None, :] * stride_cn
    inside = (offset_m[:, None] < M) & (offset_n[None, :] < N)
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=inside)


def matmul(a, b, leaky=False):
    assert a.shape[1] == b.shape[0], "inner sizes differ"
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), LEAKY=leaky
    )  # fmt: skip
    return c


def main():
    torch.manual_seed(0)
    a = torch.randn((1000, 1024), device=DEVICE, dtype=torch.bfloat16)
    b = torch.randn((1024, 768), device=DEVICE, dtype=torch.bfloat16)
    c = matmul(a, b, leaky=True)
    expected = torch.nn.functional.leaky_relu(a @ b, 0.01)
    torch.testing.assert_close(c, expected, atol=1e-1, rtol=2e-2)
    print("matmul agrees with torch")


if __name__ == "__main__":
    main()
