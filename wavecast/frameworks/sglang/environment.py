"""What the environment asks of the integration, and its name."""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "WAVECAST_SGLANG"
LOCAL: Final = "local"
"""The value of the variable for the GPU that SGLang finds."""
NAME: Final = "wavecast"
"""The name of the dispatch key, the attention backend and the sampler."""


def requested_gpu() -> str:
    """The GPU that the environment asks for: a name, `local`, or "" for none."""
    return os.environ.get(VARIABLE, "")


__all__ = ["LOCAL", "NAME", "VARIABLE", "requested_gpu"]
