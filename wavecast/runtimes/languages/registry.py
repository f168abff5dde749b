"""Which modules of Python need HIP's runtime, and what each needs before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {
    "flydsl": "wavecast.runtimes.languages.flydsl:prepare",
    "flydsl.compiler.kernel_function": "wavecast.runtimes.languages.flydsl:watch_kernels",
}
"""Module -> the function that is called with the target once a program has imported it."""

TIMERS: Final[Mapping[str, str]] = {"flydsl.autotune": "do_bench"}
"""Module -> its function that measures a function as `triton.testing.do_bench` does."""

Prepare = Callable[[str], None]

__all__ = ["LANGUAGES", "TIMERS", "Prepare"]
