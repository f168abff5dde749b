"""What vLLM's entry points call.

Both do nothing unless the environment has `WAVECAST_VLLM`: a GPU to emulate on this machine's CPU
(`gfx942`, `mi300x`), or `local` for the GPU that vLLM itself has found.
"""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "WAVECAST_VLLM"
LOCAL: Final = "local"
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_PLATFORM: Final = "wavecast.frameworks.vllm.platform.WavecastPlatform"


def requested_gpu() -> str:
    """The GPU that the environment asks for: a name, `local`, or "" for none."""
    return os.environ.get(VARIABLE, "")


def platform() -> str | None:
    """The class of the platform, for `vllm.platform_plugins`; None where no GPU is emulated. Raises
    UnknownName for an unknown GPU, UsageError for another version of vLLM.

    An emulated GPU runs vLLM's own Triton kernels, too. vLLM has them without a driver of Triton
    only where the environment says that this process sees no GPU, which is so."""
    if requested_gpu() in ("", LOCAL):
        return None
    from wavecast import arch
    from wavecast.frameworks.vllm import versions

    versions.check()
    arch.load(requested_gpu())
    os.environ[_VISIBLE] = ""
    return _PLATFORM


def register() -> None:
    """Register layers, attention and experts, for `vllm.general_plugins`. vLLM calls it once or
    more in each of its processes. Raises UsageError for another version of vLLM."""
    if not requested_gpu():
        return
    from wavecast.frameworks.vllm import versions

    versions.check()
    from wavecast.frameworks.vllm import registration

    registration.register(local=requested_gpu() == LOCAL)


__all__ = ["LOCAL", "VARIABLE", "platform", "register", "requested_gpu"]
