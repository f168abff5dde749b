"""TileLang: its compiler asks PyTorch for the target, ROCm's folder for hipcc, and DLPack for
where tensors are."""

from __future__ import annotations

import os

from wavecast.compile import toolchain
from wavecast.compile.cache import default_root
from wavecast.compile.digest import digest
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


__all__ = ["prepare"]
