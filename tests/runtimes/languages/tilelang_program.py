# pyright: reportRedeclaration=false, reportInvalidTypeForm=false, reportCallIssue=false
"""A program of TileLang as users write them: a product of matrices."""

import sys

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def product(A, B, block: int):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        a = T.alloc_shared((block, 32), T.float16)
        b = T.alloc_shared((32, block), T.float16)
        c = T.alloc_fragment((block, block), T.float32)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(A[by * block, k * 32], a)
            T.copy(B[k * 32, bx * block], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * block, bx * block])
    return C


def main() -> None:
    torch.manual_seed(3)
    a = torch.randn(64, 96, device="cuda", dtype=torch.float16)
    b = torch.randn(96, 64, device="cuda", dtype=torch.float16)
    kernel = product.compile(M=64, N=64, K=96, block=32)
    torch.testing.assert_close(kernel(a, b), (a @ b).float(), rtol=1e-2, atol=1e-2)
    if "--time" in sys.argv:
        print("milliseconds", kernel.get_profiler().do_bench())


if __name__ == "__main__":
    main()
