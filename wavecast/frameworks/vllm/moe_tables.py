"""Tables of block sizes for the Triton kernels of experts of vLLM and SGLang, by prediction."""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from wavecast import arch
from wavecast.frameworks.vllm import tables
from wavecast.frameworks.vllm.tables import BLOCK, Config, Space, fastest, label, triton_kernels

SPACE: Final[Space] = {
    "BLOCK_SIZE_M": (16, 32, 64, 128),
    "BLOCK_SIZE_N": (32, 64, 128),
    "BLOCK_SIZE_K": (64, 128),
    "GROUP_SIZE_M": (1, 8),
    "num_warps": (4, 8),
    "num_stages": (2,),
    "waves_per_eu": (0,),
}
"""Values of the settings that are tried by default, as vLLM names them."""


@dataclass(frozen=True, slots=True)
class ExpertFormat:
    """`dtype` is the name of a format in files, "" where they have none; `weights` and
    `activations` are fp8, int8 or bf16; `scaled` by tensor, channel or block."""

    dtype: str
    weights: str
    activations: str
    scaled: str

    @property
    def flag(self) -> str:
        """The argument of vLLM's launch that says so; "" for none."""
        return f"use_{self.dtype}" if self.dtype else ""


FORMATS: Final[Mapping[str, ExpertFormat]] = {
    "bf16": ExpertFormat("", "bf16", "bf16", ""),
    "fp8": ExpertFormat("fp8_w8a8", "fp8", "fp8", "tensor"),
    "fp8_block": ExpertFormat("fp8_w8a8", "fp8", "fp8", "block"),
    "int8": ExpertFormat("int8_w8a16", "int8", "bf16", "channel"),
}
"""Formats of experts that vLLM has tables for, by the name that `--dtype` takes."""
_FLAGS: Final = ("use_fp8_w8a8", "use_int8_w8a8", "use_int8_w8a16", "use_int4_w4a16")


@dataclass(frozen=True, slots=True)
class ExpertLayerSizes:
    """A layer of experts: their number, the columns `hidden` of the model and `inter` of an expert,
    the experts of each token, and the format, a key of `FORMATS`."""

    experts: int
    inter: int
    hidden: int
    top_k: int
    format: str = "bf16"


def file_name(sizes: ExpertLayerSizes, gpu: str, engine: str = "vllm") -> str:
    """The name that an engine (a key of `tables.ENGINES`) looks for on a GPU. Raises
    UnknownName."""
    form = FORMATS[sizes.format]
    return f"E={sizes.experts},N={sizes.inter},device_name={label(gpu)}" + tables.suffix(
        engine, form.dtype, block=form.scaled == "block"
    )


def write(
    folder: Path, sizes: ExpertLayerSizes, gpu: str, batches: Sequence[int] = tables.BATCHES,
    space: Space = SPACE, engine: str = "vllm",
) -> Path:  # fmt: skip
    """Predict a table for a GPU and write it to `folder` where the engine looks for it. Raises as
    `best`, InputError for a folder that cannot be written."""
    table = {tokens: best(sizes, gpu, tokens, space) for tokens in batches}
    return tables.store(folder, engine, file_name(sizes, gpu, engine), table)


def best(sizes: ExpertLayerSizes, gpu: str, tokens: int, space: Space = SPACE) -> Config:
    """The configuration of `space` whose two products take the least predicted time for `tokens`
    tokens that are spread over the experts at random. Raises UsageError where none has a time, and
    MissingTool and UsageError as `versions.check`."""
    products = _Products(sizes, gpu, tokens)
    return fastest(gpu, products.launches(space), "vLLM's kernel of experts")


class _Products:
    """Both products of a layer, launched with any configuration."""

    def __init__(self, sizes: ExpertLayerSizes, gpu: str, tokens: int) -> None:
        triton_kernels()
        self.sizes, self.form, self.tokens = sizes, FORMATS[sizes.format], tokens
        self.dtypes = {
            "bf16": torch.bfloat16, "int8": torch.int8,
            "fp8": tables.fp8_dtype(arch.load(gpu)),
        }  # fmt: skip
        draw = torch.Generator().manual_seed(0)
        scores = torch.rand((tokens, sizes.experts), generator=draw)
        self.chosen = scores.topk(sizes.top_k, dim=-1).indices
        self.weights = torch.ones((tokens, sizes.top_k))

    def launches(self, space: Space) -> Iterator[tuple[Config, Callable[[], None]]]:
        """Configurations and what launches both products with each. Blocks of many more rows than
        an expert has are left out."""
        sizes = self.sizes
        rows = self.tokens * sizes.top_k
        first = self._operands(self.tokens, 2 * sizes.inter, sizes.hidden)
        second = self._operands(rows, sizes.hidden, sizes.inter)
        per_expert = math.ceil(rows / sizes.experts)
        most = max(16, 4 << (per_expert - 1).bit_length())
        for config in tables.configurations(space):
            if config["BLOCK_SIZE_M"] > most:
                continue
            blocks = align_block_size(self.chosen, config["BLOCK_SIZE_M"], sizes.experts)

            def both(config: Config = config, blocks: Any = blocks) -> None:
                self._launch(first, blocks, False, sizes.top_k, config)
                self._launch(second, blocks, True, 1, config)

            yield config, both

    def _operands(self, rows: int, columns: int, depth: int) -> tuple[Tensor | None, ...]:
        """A, B, C and the scales of A and B."""
        sizes, form = self.sizes, self.form
        a = torch.zeros((rows, depth), dtype=self.dtypes[form.activations])
        b = torch.zeros((sizes.experts, columns, depth), dtype=self.dtypes[form.weights])
        c = torch.zeros((self.tokens, sizes.top_k, columns), dtype=torch.bfloat16)
        groups, squares = -(-depth // BLOCK), -(-columns // BLOCK)
        shapes: dict[str, tuple[tuple[int, ...] | None, tuple[int, ...] | None]] = {
            "": (None, None),
            "tensor": ((1,), (sizes.experts,)),
            "channel": (None, (sizes.experts, columns)),
            "block": ((rows, groups), (sizes.experts, squares, groups)),
        }
        scales = (None if shape is None else torch.ones(shape) for shape in shapes[form.scaled])
        return a, b, c, *scales

    def _launch(
        self, operands: Sequence[Any], blocks: Sequence[Tensor], weighted: bool, top_k: int,
        config: Config,
    ) -> None:  # fmt: skip
        import triton.language as tl
        from vllm.model_executor.layers.fused_moe import fused_moe

        flags = {name: name == self.form.flag for name in _FLAGS}
        fused_moe.invoke_fused_moe_triton_kernel(
            *operands, self.weights, *blocks, weighted, top_k, dict(config),
            compute_type=tl.bfloat16, per_channel_quant=False,
            block_shape=[BLOCK, BLOCK] if self.form.scaled == "block" else None, **flags,
        )  # fmt: skip


def align_block_size(indices: Tensor, block: int, experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """What vLLM's `moe_align_block_size` returns for the experts [tokens, top_k] of tokens: rows in
    the order of their experts, each expert's padded to blocks with the number of rows; the expert
    of each block; the number of padded rows."""
    flat = indices.flatten()
    order = torch.argsort(flat, stable=True)
    counts = torch.bincount(flat, minlength=experts)
    blocks = (counts + block - 1) // block
    rows = torch.full((int(blocks.sum()) * block,), flat.numel(), dtype=torch.int32)
    first = (blocks.cumsum(0) - blocks) * block
    before = counts.cumsum(0) - counts
    owner = flat[order]
    rows[first[owner] + torch.arange(flat.numel()) - before[owner]] = order.to(torch.int32)
    owners = torch.repeat_interleave(torch.arange(experts), blocks).to(torch.int32)
    return rows, owners, torch.tensor([rows.numel()], dtype=torch.int32)


__all__ = ["FORMATS", "SPACE", "ExpertFormat", "ExpertLayerSizes", "align_block_size", "best",
"file_name",
           "write"]  # fmt: skip
