"""Tables of block sizes for the block-scaled fp8 products of vLLM and SGLang, by prediction."""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from wavecast import arch
from wavecast.frameworks.vllm import tables
from wavecast.frameworks.vllm.tables import BLOCK, Config, Space, fastest, label, triton_kernels

SPACE: Final[Space] = {
    "BLOCK_SIZE_M": (16, 32, 64, 128),
    "BLOCK_SIZE_N": (32, 64, 128),
    "BLOCK_SIZE_K": (64, 128),
    "GROUP_SIZE_M": (1, 16),
    "num_warps": (4, 8),
    "num_stages": (2,),
}
"""Values of the settings that are tried by default, as vLLM names them."""


@dataclass(frozen=True, slots=True)
class ProductSizes:
    """Weights [columns, depth] of a linear layer."""

    columns: int
    depth: int


def file_name(sizes: ProductSizes, gpu: str, engine: str = "vllm") -> str:
    """The name that an engine (a key of `tables.ENGINES`) looks for on a GPU. Raises
    UnknownName."""
    return f"N={sizes.columns},K={sizes.depth},device_name={label(gpu)}" + tables.suffix(
        engine, "fp8_w8a8", block=True
    )


def write(
    folder: Path, sizes: ProductSizes, gpu: str, batches: Sequence[int] = tables.BATCHES,
    space: Space = SPACE, engine: str = "vllm",
) -> Path:  # fmt: skip
    """Predict a table for a GPU and write it to `folder`. Raises as `best`, InputError for a folder
    that cannot be written."""
    table = {tokens: best(sizes, gpu, tokens, space) for tokens in batches}
    return tables.store(folder, engine, file_name(sizes, gpu, engine), table)


def best(sizes: ProductSizes, gpu: str, tokens: int, space: Space = SPACE) -> Config:
    """The configuration of `space` with the least predicted time for `tokens` tokens. Raises
    UsageError where none has a time, and MissingTool and UsageError as `versions.check`."""
    triton_kernels()
    return fastest(gpu, _launches(sizes, gpu, tokens, space), "vLLM's block-scaled product")


def _launches(
    sizes: ProductSizes, gpu: str, tokens: int, space: Space
) -> Iterator[tuple[Config, Callable[[], None]]]:
    import triton
    from vllm.model_executor.layers.quantization.utils import fp8_utils

    dtype = tables.fp8_dtype(arch.load(gpu))
    columns, depth = sizes.columns, sizes.depth
    groups, squares = -(-depth // BLOCK), -(-columns // BLOCK)
    a = torch.zeros((tokens, depth), dtype=dtype)
    b = torch.zeros((columns, depth), dtype=dtype)
    c = torch.zeros((tokens, columns), dtype=torch.bfloat16)
    a_scale, b_scale = torch.ones((tokens, groups)), torch.ones((squares, groups))
    for config in tables.configurations(space):

        def product(config: Config = config) -> None:
            grid = (
                triton.cdiv(tokens, config["BLOCK_SIZE_M"])
                * triton.cdiv(columns, config["BLOCK_SIZE_N"]),
            )
            fp8_utils._w8a8_triton_block_scaled_mm[grid](
                a, b, c, a_scale, b_scale, tokens, columns, depth, BLOCK, BLOCK,
                *a.stride(), b.stride(1), b.stride(0), *c.stride(), *a_scale.stride(),
                b_scale.stride(1), b_scale.stride(0), **config,
            )  # fmt: skip

        yield config, product


__all__ = ["SPACE", "ProductSizes", "best", "file_name", "write"]
