"""Launches the Triton kernels that Liger's benchmark measures, for a capture of them.

`python -m calibration.liger_kernels SOURCES KERNEL MODE SIZE …`, run by `calibration.nvidia` with
wavecast as the device. SOURCES is an unpacked wheel of the version that was measured. Tensors are
not filled, except for labels and indices, on which addresses depend.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch

DEVICE: Final = "cuda"
SEED: Final = 0


def cross_entropy(mode: str, size: int) -> None:
    """Rows of B × T = 16384 logits in fp32; the kernel leaves the gradient in place."""
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    del mode
    logits = torch.empty(16384, size, device=DEVICE)
    labels = torch.randint(size, (16384,), device=DEVICE)
    LigerCrossEntropyFunction.apply(logits, labels, -100)


def embedding(mode: str, size: int, tokens: int = 16384, width: int = 768) -> None:
    """`size` rows of `width` fp32, looked up by 16384 tokens."""
    from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

    table = torch.empty(size, width, device=DEVICE, requires_grad=mode != "forward")
    indices = torch.randint(size, (tokens,), device=DEVICE)
    found = LigerEmbeddingFunction.apply(table, indices)
    if mode != "forward":
        found.backward(torch.empty_like(found))


def wide_embedding(mode: str, size: int) -> None:
    """The same with rows of 4096."""
    embedding(mode, size, width=4096)


def add_rms_norm(mode: str, size: int) -> None:
    """2048 rows of `size` fp32: residual, norm."""
    from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction

    rows = [torch.empty(2048, size, device=DEVICE, requires_grad=mode != "forward") for _ in "xr"]
    weight = torch.empty(size, device=DEVICE, requires_grad=mode != "forward")
    found, total = LigerFusedAddRMSNormFunction.apply(*rows, weight, 1e-6, 0.0, "llama", False)
    if mode != "forward":
        torch.autograd.backward((found, total), (torch.empty_like(found), torch.empty_like(total)))


def rms_norm(mode: str, size: int) -> None:
    """2048 rows of `size` fp32: norm alone."""
    import torch.distributed.tensor  # Liger names it without importing it
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    rows = torch.empty(2048, size, device=DEVICE, requires_grad=mode != "forward")
    weight = torch.empty(size, device=DEVICE, requires_grad=mode != "forward")
    found = LigerRMSNormFunction.apply(rows, weight, 1e-6, 0.0, "llama", False)
    if mode != "forward":
        found.backward(torch.empty_like(found))


KERNELS: Final[Mapping[str, Callable[[str, int], None]]] = {
    "cross_entropy": cross_entropy,
    "embedding": embedding,
    "wide_embedding": wide_embedding,
    "add_rms_norm": add_rms_norm,
    "rms_norm": rms_norm,
}


def main(arguments: Sequence[str]) -> None:
    """Launch one kernel at its sizes."""
    sources, kernel, mode, *sizes = arguments
    sys.path.insert(0, sources)
    torch.manual_seed(SEED)
    for size in sizes:
        KERNELS[kernel](mode, int(size))


if __name__ == "__main__":
    main(sys.argv[1:])
