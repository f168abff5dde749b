"""vLLM's configuration tables for its own Triton kernel of experts, by prediction.

vLLM reads `E=…,N=…,device_name=….json`: for each number of tokens the block sizes, warps and stages
of `fused_moe_kernel`. They are measured on the GPU; here they are predicted, with no GPU.
"""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from wavecast import arch
from wavecast.errors import UsageError
from wavecast.integrations.triton.device import device
from wavecast.integrations.vllm import versions

SPACE: Final[Mapping[str, tuple[int, ...]]] = {
    "BLOCK_SIZE_M": (16, 32, 64, 128),
    "BLOCK_SIZE_N": (32, 64, 128),
    "BLOCK_SIZE_K": (64, 128),
    "GROUP_SIZE_M": (1, 8),
    "num_warps": (4, 8),
    "num_stages": (2,),
    "waves_per_eu": (0,),
}
"""Values of the settings that are tried by default, as vLLM names them."""
BATCHES: Final = (1, 4, 16, 64, 256, 1024, 4096)
"""Numbers of tokens that a table has by default; vLLM takes the nearest."""


@dataclass(frozen=True, slots=True)
class ExpertLayerSizes:
    """A layer of experts in bfloat16: their number, the columns `hidden` of the model and `inter`
    of an expert, and the experts of each token."""

    experts: int
    inter: int
    hidden: int
    top_k: int


def file_name(sizes: ExpertLayerSizes, gpu: str) -> str:
    """The name that vLLM looks for on a GPU. Raises UnknownName."""
    label = arch.load(gpu).name.replace(" ", "_")
    return f"E={sizes.experts},N={sizes.inter},device_name={label}.json"


def write(
    folder: Path, sizes: ExpertLayerSizes, gpu: str, batches: Sequence[int] = BATCHES,
    space: Mapping[str, Sequence[int]] = SPACE,
) -> Path:  # fmt: skip
    """Predict a table for a GPU and write it to `folder` under vLLM's name. Raises UsageError where
    no configuration has a time, and as `best`."""
    table = {str(tokens): best(sizes, gpu, tokens, space) for tokens in batches}
    path = folder / file_name(sizes, gpu)
    path.write_text(json.dumps(table, indent=4) + "\n", "utf-8")
    return path


def best(
    sizes: ExpertLayerSizes, gpu: str, tokens: int, space: Mapping[str, Sequence[int]] = SPACE
) -> dict[str, int]:
    """The configuration of `space` whose two products take the least predicted time for `tokens`
    tokens that are spread over the experts at random. Raises UsageError where none has a time, and
    MissingTool and UsageError as `versions.check`."""
    times = dict(_times(sizes, gpu, tokens, space))
    found = min(times, key=lambda one: times[one])
    if not math.isfinite(times[found]):
        raise UsageError(f"no configuration of vLLM's experts has a predicted time on {gpu}")
    return dict(found)


def _times(
    sizes: ExpertLayerSizes, gpu: str, tokens: int, space: Mapping[str, Sequence[int]]
) -> Iterator[tuple[tuple[tuple[str, int], ...], float]]:
    """Milliseconds by configuration. Blocks of many more rows than an expert has are left out."""
    launch = _kernel()
    import triton

    draw = torch.Generator().manual_seed(0)
    scores = torch.rand((tokens, sizes.experts), generator=draw)
    chosen = scores.topk(sizes.top_k, dim=-1).indices
    rows = tokens * sizes.top_k
    x = torch.zeros((tokens, sizes.hidden), dtype=torch.bfloat16)
    y = torch.zeros((rows, sizes.inter), dtype=torch.bfloat16)
    w1 = torch.zeros((sizes.experts, 2 * sizes.inter, sizes.hidden), dtype=torch.bfloat16)
    w2 = torch.zeros((sizes.experts, sizes.hidden, sizes.inter), dtype=torch.bfloat16)
    weights = torch.ones((tokens, sizes.top_k))
    outs = [torch.zeros((tokens, sizes.top_k, w.shape[1]), dtype=torch.bfloat16) for w in (w1, w2)]
    most = max(16, 4 * triton.next_power_of_2(math.ceil(rows / sizes.experts)))
    with device(gpu, pytorch=False):
        for values in itertools.product(*space.values()):
            config = dict(zip(space, values, strict=True))
            if config["BLOCK_SIZE_M"] > most:
                continue
            blocks = aligned(chosen, config["BLOCK_SIZE_M"], sizes.experts)

            def products(config: Any = config, blocks: Any = blocks) -> None:
                launch(x, w1, outs[0], weights, *blocks, False, sizes.top_k, config)
                launch(y, w2, outs[1], weights, *blocks, True, 1, config)

            milliseconds: Any = triton.testing.do_bench(products)
            yield tuple(config.items()), milliseconds


def aligned(chosen: Tensor, block: int, experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """What vLLM's `moe_align_block_size` returns for the experts [tokens, top_k] of tokens: rows in
    the order of their experts, each expert's padded to blocks with the number of rows; the expert
    of each block; the number of padded rows."""
    flat = chosen.flatten()
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


def _kernel() -> Any:
    """A launch of vLLM's kernel in bfloat16."""
    versions.check()
    # vLLM imports Triton where it finds a GPU, or where GPUs are hidden
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import triton.language as tl
    from vllm.model_executor.layers.fused_moe import fused_moe
    from vllm.triton_utils import HAS_TRITON

    if not HAS_TRITON:
        raise UsageError(
            "vLLM was imported without Triton", hint="set CUDA_VISIBLE_DEVICES= before it"
        )

    def launch(
        a: Tensor, b: Tensor, c: Tensor, weights: Tensor, rows: Tensor, owners: Tensor,
        padded: Tensor, weighted: bool, top_k: int, config: dict[str, int],
    ) -> None:  # fmt: skip
        fused_moe.invoke_fused_moe_triton_kernel(
            a, b, c, None, None, weights, rows, owners, padded, weighted, top_k, dict(config),
            compute_type=tl.bfloat16, use_fp8_w8a8=False, use_int8_w8a8=False,
            use_int8_w8a16=False, use_int4_w4a16=False, per_channel_quant=False,
        )  # fmt: skip

    return launch


__all__ = ["BATCHES", "SPACE", "ExpertLayerSizes", "aligned", "best", "file_name", "write"]
