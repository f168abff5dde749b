"""Processors that share an instruction set: what is written for one target holds for the others.

Source: LLVM, "User Guide for AMDGPU Backend", Processors, and the features of each in AMDGPU.td.
"""

from __future__ import annotations

from typing import Final

SAME_ISA: Final[dict[str, str]] = {
    **dict.fromkeys(("gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), "gfx1030"),
    "gfx940": "gfx942",
    "gfx941": "gfx942",
    "gfx1101": "gfx1100",
    "gfx1102": "gfx1100",
    "gfx1103": "gfx1100",
    "gfx1150": "gfx1151",
    "gfx1152": "gfx1151",
    "gfx1153": "gfx1151",
    "gfx1200": "gfx1201",
}
"""Processor -> the one that tables name for its instruction set; others stand for themselves."""


def named_in_tables(target: str) -> str:
    """The target under which tables of instructions and of the model have `target`."""
    return SAME_ISA.get(target, target)


__all__ = ["SAME_ISA", "named_in_tables"]
