"""TileLang: its compiler asks PyTorch for the target, ROCm's folder for hipcc, and DLPack for
where tensors are."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from wavecast.compile import toolchain
from wavecast.compile.cache import default_root
from wavecast.compile.digest import digest
from wavecast.launch import gpu
from wavecast.runtimes.languages.dlpack import ATTRIBUTE, exchange_on_gpu
from wavecast.runtimes.languages.rocm_folder import use_rocm_folder


def prepare(target: str) -> None:
    """Let TileLang compile for a target and run on PyTorch's tensors. Source: `tilelang/env.py`,
    `contrib/rocm.py`, TileLang 0.1.15.

    Its cache of kernels has a folder per compiler, of whose headers its keys know nothing.
    """
    import torch

    use_rocm_folder(target)
    tools = toolchain.find(target)
    compiler = (tools.name, toolchain.version(tools.compiler), toolchain.headers_digest())
    folder = default_root() / "tilelang" / digest(compiler)[:16]
    os.environ.setdefault("TILELANG_CACHE_DIR", str(folder))
    if hasattr(torch.Tensor, ATTRIBUTE):
        setattr(torch.Tensor, ATTRIBUTE, exchange_on_gpu())


def prepare_timers(target: str) -> None:
    """Make TileLang's timers those of `triton.testing`, which give predictions, while a GPU is
    emulated; but for `backend="wall"`, which is the time of the host."""
    del target
    bench: Any = sys.modules["tilelang.profiler.bench"]
    bench._do_bench_impl = _timer(bench._do_bench_impl)


def _timer(original: Callable[..., Any]) -> Callable[..., Any]:
    import triton.testing as testing

    @functools.wraps(original)
    def measure(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        if gpu.emulated is None:
            return original(fn, *args, **kwargs)
        quantiles, mode = kwargs.get("quantiles"), kwargs.get("return_mode", "mean")
        return testing.do_bench(fn, quantiles=quantiles, return_mode=mode)

    return measure


__all__ = ["prepare", "prepare_timers"]
