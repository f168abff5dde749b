"""Generic targets of LLVM: code that runs on each of several processors.

It uses what all of them have, so that it can be read as code of any. Source: LLVM, "User Guide for
AMDGPU Backend", Generic processor code object versioning.
"""

from __future__ import annotations

from typing import Final

MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": tuple(f"gfx{number}" for number in range(1030, 1037)),
    "gfx11-generic": (
        *("gfx1100", "gfx1101", "gfx1102", "gfx1103"),
        *("gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    ),
    "gfx12-generic": ("gfx1201", "gfx1200"),
    "gfx12-5-generic": ("gfx1250", "gfx1251"),
}
"""Generic target -> the processors it runs on, the usual one first."""


def processor_of(target: str, wanted: str = "") -> str:
    """The processor that code for `target` is read for: of a generic one `wanted` where that is a
    member, else the usual member; otherwise `target` itself."""
    members = MEMBERS.get(target.split(":", 1)[0])
    if members is None:
        return target
    name = wanted.split(":", 1)[0]
    return name if name in members else members[0]


__all__ = ["MEMBERS", "processor_of"]
