"""The kernels of `lab_table.py`: `python lab_kernels.py NAME` launches one.

Those of the library are named by their operator; the others need the packages of their project.
Sizes are small enough for the emulator, and large enough to fill a GPU once.
"""

# The packages of other projects are not of the tests.
# pyright: reportMissingImports=false

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class TableKernel:
    """A row of the table. `launch` starts the kernels whose names match `kernels`."""

    name: str
    origin: str
    kernels: str
    launch: Callable[[], Any]


def _operator(name: str, sizes: str) -> None:
    """Call an operator of the library with inputs of its sizes (`m=5 dtype=float32`)."""
    from wavecast.frameworks.torch.library import function
    from wavecast.kernels import registry
    from wavecast.launch.inputs import Make

    pairs = (part.split("=") for part in sizes.split())
    values: dict[str, Any] = {
        key: int(value)
        if value.lstrip("-").isdigit()
        else value == "true"
        if value in ("true", "false")
        else value
        for key, value in pairs
    }
    given = registry.operators()[name].inputs(Make(device="cuda"), **values)
    function(name)(**given)


def _random(*shape: int, dtype: str = "bfloat16") -> Any:
    import torch

    return torch.randn(shape).to(getattr(torch, dtype)).to("cuda")


def _liger_rms_norm() -> None:
    import_module("liger_kernel.ops.rms_norm").rms_norm_forward(
        _random(2048, 4096), _random(4096), 1e-6, 0.0, "llama", True
    )


def _liger_cross_entropy() -> None:
    import torch

    loss = import_module("liger_kernel.ops.cross_entropy").LigerCrossEntropyFunction
    target = torch.randint(0, 32000, (512,)).to("cuda")
    loss.apply(_random(512, 32000), target, None)


def _fla_states() -> None:
    keys, values = _random(1, 1024, 8, 128), _random(1, 1024, 8, 128)
    import_module("fla.ops.common.chunk_h").chunk_fwd_h(keys, values, chunk_size=64)


def _fla_outputs() -> None:
    queries, keys, values = (_random(1, 1024, 8, 128) for _ in range(3))
    states = _random(1, 16, 8, 128, 128)
    outputs = import_module("fla.ops.common.chunk_o").chunk_fwd_o
    outputs(queries, keys, values, states, scale=0.1, chunk_size=64)


def _torchao_int8() -> None:
    import torch

    a, b = (torch.randint(-128, 128, (1024, 1024), dtype=torch.int8).to("cuda") for _ in range(2))
    scales = _random(1024), _random(1024)
    product = import_module("torchao.prototype.quantized_training.int8_mm").scaled_int8_mm_cuda
    product(a, b, *scales)


def _library(name: str, kernels: str, sizes: str) -> TableKernel:
    return TableKernel(name, "wavecast.ops", kernels, partial(_operator, name, sizes))


_MATMUL = "m=1024 n=1024 k=1024 dtype=bfloat16"
_ATTENTION = "b=1 s=1024 t=1024 hq=8 hkv=2 d=128 dtype=bfloat16 causal=true"
_EXPERTS = "tokens=256 experts=8 model=1024 inter=512 top_k=2 dtype=bfloat16"
_W4A16 = "m=64 n=4096 k=2048 dtype=bfloat16"
_DECODE = "kv_heads=2 head=128 dtype=bfloat16 block_size=16 sequences=16 heads=16 length=1024"
_CONVOLUTION = (
    "batch=2 channels=128 filters=128 size=28x28 kernel=3x3 stride=1x1 padding=1x1 dtype=float16"
)
_CONV1D = "batch=1 channels=1024 length=2048 taps=4 dtype=bfloat16 state=false"
_LOSS = "rows=512 size=1024 classes=4096 dtype=bfloat16"

KERNELS = {
    kernel.name: kernel
    for kernel in (
        _library("matmul", "matmul", _MATMUL),
        _library("attention", "", _ATTENTION),
        _library("moe_experts", "product", _EXPERTS),
        _library("matmul_w4a16", "", _W4A16),
        _library("paged_decode", "paged_decode", _DECODE),
        _library("cross_entropy", "", "rows=512 columns=32000 dtype=bfloat16"),
        _library("convolution", "", _CONVOLUTION),
        _library("linear_cross_entropy", "linear_cross_entropy_kernel", _LOSS),
        _library("rms_norm", "", "rows=2048 columns=4096 dtype=bfloat16"),
        _library("causal_conv1d", "", _CONV1D),
        TableKernel("liger rms_norm", "liger-kernel", "", _liger_rms_norm),
        TableKernel("liger cross_entropy", "liger-kernel", "cross_entropy", _liger_cross_entropy),
        TableKernel("fla chunk_fwd_h", "fla-core", "chunk_fwd_kernel_h", _fla_states),
        TableKernel("fla chunk_fwd_o", "fla-core", "chunk_fwd_kernel_o", _fla_outputs),
        TableKernel("torchao scaled_int8_mm", "torchao", "int8", _torchao_int8),
    )
}


if __name__ == "__main__":
    KERNELS[" ".join(sys.argv[1:])].launch()
