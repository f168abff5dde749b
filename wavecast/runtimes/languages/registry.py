"""Which modules of Python need HIP's runtime, and what each needs before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {
    "flydsl": "wavecast.runtimes.languages.flydsl:prepare",
    "tinygrad": "wavecast.runtimes.languages.tinygrad:prepare",
}
"""Module -> the function that is called with the target once a program has imported it."""

Prepare = Callable[[str], Callable[[], None] | None]
"""What it returns is called at the end."""

__all__ = ["LANGUAGES", "Prepare"]
