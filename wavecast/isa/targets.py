"""The AMD targets wavecast knows, and the named sets of them the opcode table uses.

A target is what LLVM calls a processor (`gfx942`). Processors that share an instruction set with a
listed one are mapped to it by `isa_target`: gfx1101 is parsed as gfx1100, gfx1200 as gfx1201,
gfx1031 as gfx1030.
"""

from __future__ import annotations

from wavecast.arch.processors import SAME_ISA, named_in_tables
from wavecast.errors import UnknownName, UsageError

TARGETS = (
    *("gfx908", "gfx90a", "gfx942", "gfx950"),
    *("gfx1030", "gfx1100", "gfx1151", "gfx1201", "gfx1250"),
)

_ALL = frozenset(TARGETS)
_GFX9 = frozenset({"gfx908", "gfx90a", "gfx942", "gfx950"})
_GFX10 = frozenset({"gfx1030"})
_GFX11 = frozenset({"gfx1100", "gfx1151"})
TARGET_SETS: dict[str, frozenset[str]] = {
    "all": _ALL,
    "gfx9": _GFX9,
    "gfx908-90a": frozenset({"gfx908", "gfx90a"}),
    "gfx90a+": _GFX9 - {"gfx908"},
    "gfx940+": frozenset({"gfx942", "gfx950"}),
    "gfx9-10": _GFX9 | _GFX10,
    "gfx9-11": _GFX9 | _GFX10 | _GFX11,
    "gfx10-11": _GFX10 | _GFX11,
    "gfx10-12.0": _GFX10 | _GFX11 | {"gfx1201"},
    "gfx10+": _ALL - _GFX9,
    "gfx11": _GFX11,
    "gfx11-12.0": _GFX11 | {"gfx1201"},
    "gfx11+": _ALL - _GFX9 - _GFX10,
    "gfx11.5+": frozenset({"gfx1151", "gfx1201", "gfx1250"}),
    "gfx12+": frozenset({"gfx1201", "gfx1250"}),
    **{name: frozenset({name}) for name in TARGETS},
}

_NOT_READ = frozenset(
    {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"}
    | {f"gfx{number}" for number in range(1010, 1014)}
)
"""Processors of the same vendor whose instruction sets have no rows in the table."""


def isa_target(processor: str) -> str:
    """The member of `TARGETS` whose instruction set `processor` uses.

    Feature suffixes (`gfx942:sramecc+:xnack-`) are dropped. Raises UsageError for a processor
    that is not supported, UnknownName for other names.
    """
    name = processor.split(":", 1)[0]
    name = named_in_tables(name)
    if name not in _ALL:
        if name in _NOT_READ:
            raise UsageError(
                f"code for {name} cannot be read: its instruction set is not supported",
                hint=f"supported: {', '.join(TARGETS)}",
            )
        raise UnknownName("AMD target", processor, (*TARGETS, *SAME_ISA))
    return name
