"""What SGLang's entry points call.

Both do nothing unless the environment has `WAVECAST_SGLANG`: a GPU to emulate on this machine's CPU
(`gfx942`, `mi300x`), or `local` for the GPU that SGLang itself has found.
"""

from __future__ import annotations

from typing import Final

from wavecast.frameworks.sglang.environment import LOCAL, requested_gpu

_PLATFORM: Final = "wavecast.frameworks.sglang.platform.SglangPlatform"


def platform() -> str | None:
    """The class of the platform, for `sglang.srt.platforms`; None where no GPU is emulated. Raises
    UnknownName for an unknown GPU, UsageError for another version of SGLang."""
    if requested_gpu() in ("", LOCAL):
        return None
    from wavecast import arch
    from wavecast.frameworks.sglang import versions

    versions.check()
    arch.load(requested_gpu())
    return _PLATFORM


def register() -> None:
    """Register the attention backend and the sampler, and have steps of models run on the emulated
    GPU, or layers on the GPU there is, for `sglang.srt.plugins`. SGLang calls it in each of its
    processes. Raises UsageError for another version of SGLang."""
    if not requested_gpu():
        return
    from wavecast.frameworks.sglang import versions

    versions.check()
    from wavecast.frameworks.sglang import registration

    registration.register(local=requested_gpu() == LOCAL)


__all__ = ["platform", "register"]
