"""FlyDSL: its compiler asks for the target by variables, and links with ROCm's linker."""

from __future__ import annotations

import os

from wavecast.runtimes.languages.rocm_folder import use_rocm_folder


def prepare(target: str) -> None:
    """Let FlyDSL compile for a target. Source: `flydsl/runtime/device.py`, FlyDSL 0.5.0; its
    kernels ask `ARCH`, too."""
    use_rocm_folder(target)
    os.environ["FLYDSL_GPU_ARCH"] = os.environ["ARCH"] = target
    os.environ.setdefault("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")  # source lines


__all__ = ["prepare"]
