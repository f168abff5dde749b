"""CuPy for ROCm: hipRTC compiles its kernels, with headers of the folder that it asks for."""

from __future__ import annotations

import os

from wavecast.runtimes.languages.rocm_folder import ROOT, use_rocm_folder


def prepare(target: str) -> None:
    """Let CuPy compile for a target. Source: `cupy/_environment.py`, CuPy 14.2."""
    use_rocm_folder(target)
    os.environ.setdefault("ROCM_HOME", os.environ[ROOT])


__all__ = ["prepare"]
