"""Which modules of Python need HIP's runtime, and what each needs before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {
    "flydsl": "wavecast.runtimes.languages.flydsl:prepare",
    "tilelang.env": "wavecast.runtimes.languages.tilelang:prepare",
    "tilelang.profiler.bench": "wavecast.runtimes.languages.tilelang:prepare_timers",
}
"""Module -> the function that is called with the target once a program has imported it."""

Prepare = Callable[[str], None]

__all__ = ["LANGUAGES", "Prepare"]
