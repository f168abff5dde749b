"""The ROCm release of a chip's time: `rocm.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from wavecast.compile.codeobject import CodeObject
from wavecast.isa.targets import isa_target

_CLANG: Final = re.compile(r"clang version (\d+)")


@dataclass(frozen=True, slots=True)
class RocmRelease:
    """A release (`6.4`), the major version of its clang, and where that is from."""

    release: str
    clang: int
    source: str


def release(target: str) -> RocmRelease:
    """The release that users of a target's chips have. Raises as `isa_target`."""
    return _releases()[isa_target(target)]


def difference(code: CodeObject) -> str:
    """One sentence where HIP code is from another clang than the release's, else ""."""
    clang = clang_of(code.compiler)
    if code.origin != "hip" or not clang:
        return ""
    rocm_release = release(code.target)
    if clang == rocm_release.clang:
        return ""
    return (
        f"compiled by clang {clang}; clang {rocm_release.clang} of ROCm {rocm_release.release}, "
        "the release for "
        f"{code.target}, schedules and waits differently"
    )


def clang_of(printed: str) -> int:
    """The major version in what a clang prints of itself, 0 where there is none."""
    match = _CLANG.search(printed)
    return int(match[1]) if match else 0


@cache
def _releases() -> dict[str, RocmRelease]:
    text = (resources.files("wavecast.compile") / "rocm.toml").read_text(encoding="utf-8")
    return {target: RocmRelease(**row) for target, row in tomllib.loads(text).items()}


__all__ = ["RocmRelease", "clang_of", "difference", "release"]
