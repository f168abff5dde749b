"""Tables of configurations that vLLM and SGLang read for their own Triton kernels, by prediction.

A table is a JSON file: for each number of tokens the block sizes, warps and stages of a kernel.
Engines measure them on the GPU; here they are predicted from the machine code of vLLM's kernels,
with no GPU. SGLang's kernels come from vLLM's and take the same settings.
"""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from wavecast import arch
from wavecast.arch import Device
from wavecast.errors import InputError, UnknownName, UsageError
from wavecast.files import write_text
from wavecast.frameworks.vllm import versions
from wavecast.frameworks.vllm.plugin import VARIABLE, requested_gpu
from wavecast.runtimes.triton.device import device

Config = dict[str, int]
"""Settings of a kernel by the engine's names."""
Space = Mapping[str, Sequence[int]]
"""Values to try, by setting."""
BATCHES: Final = (1, 4, 16, 64, 256, 1024, 4096)
"""Numbers of tokens that a table has by default; engines take the nearest."""
BLOCK: Final = 128
"""Rows and columns of weights that share a scale in block-scaled fp8."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Where an engine looks for tables: `folder` below the one that a user names, with the version
    of Triton as `{triton}`; `block` is how names write the block of scales."""

    folder: str
    block: str


ENGINES: Final[Mapping[str, TableFiles]] = {
    # get_config_file_name of vLLM 0.33, in VLLM_TUNED_CONFIG_FOLDER
    "vllm": TableFiles("", "[128,128]"),
    # get_config_file_name and get_moe_configs of SGLang 0.5.23, in SGLANG_MOE_CONFIG_DIR
    "sglang": TableFiles("configs/triton_{triton}", "[128, 128]"),
}
"""By the engine's name."""


def label(gpu: str) -> str:
    """The name of a GPU in names of files. Raises UnknownName."""
    return arch.load(gpu).name.replace(" ", "_")


def suffix(engine: str, dtype: str, *, block: bool) -> str:
    """The end of a file's name: dtype, block of scales. Raises UnknownName for an engine."""
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    name = f",dtype={dtype}" if dtype else ""
    return name + (f",block_shape={ENGINES[engine].block}" if block else "") + ".json"


def store(folder: Path, engine: str, name: str, table: Mapping[int, Config]) -> Path:
    """Write a table where the engine looks for it. Raises InputError."""
    import triton

    release = triton.__version__.replace(".", "_")
    path = folder / ENGINES[engine].folder.format(triton=release) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path.parent}: {error.strerror}") from None
    text = json.dumps({str(tokens): config for tokens, config in table.items()}, indent=4)
    write_text(path, text + "\n")
    return path


def configurations(space: Space) -> Iterator[Config]:
    """All combinations of values."""
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))


def fastest(gpu: str, launches: Iterable[tuple[Config, Callable[[], None]]], what: str) -> Config:
    """The configuration whose launches take the least predicted time on a GPU. Raises UsageError
    where none has a time."""
    import triton

    best, least = None, math.inf
    with device(gpu, pytorch=False):
        for config, launch in launches:
            milliseconds: Any = triton.testing.do_bench(launch)
            if milliseconds < least:
                best, least = config, milliseconds
    if best is None:
        raise UsageError(f"no configuration of {what} has a predicted time on {gpu}")
    return best


def fp8_dtype(gpu: Device) -> torch.dtype:
    """e4m3 as the matrix instructions of a GPU take it."""
    return torch.float8_e4m3fnuz if gpu.capabilities.fp8_fnuz else torch.float8_e4m3fn


def triton_kernels() -> None:
    """Check that vLLM's Triton kernels can be imported. Raises MissingTool and UsageError as
    `versions.check`, UsageError where vLLM has been imported without Triton."""
    versions.check()
    if requested_gpu():
        raise UsageError(f"{VARIABLE} is set: vLLM has no Triton there", hint=f"unset {VARIABLE}")
    # vLLM imports Triton where it finds a GPU, or where GPUs are hidden
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    from vllm.triton_utils import HAS_TRITON

    if not HAS_TRITON:
        raise UsageError(
            "vLLM was imported without Triton", hint="set CUDA_VISIBLE_DEVICES= before it"
        )


__all__ = [
    "BATCHES",
    "BLOCK",
    "ENGINES",
    "Config",
    "Space",
    "TableFiles",
    "configurations",
    "fastest",
    "fp8_dtype",
    "label",
    "store",
    "suffix",
    "triton_kernels",
]
