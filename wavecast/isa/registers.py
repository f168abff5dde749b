"""The register file as bit positions, so that sets of registers are plain Python integers.

Every 32-bit register of every class has one bit. A set of registers (what an instruction reads,
what is live) is an `int`; union, difference and size are `|`, `& ~` and `bit_count()`.
"""

from __future__ import annotations

from typing import Final

VGPR_BASE: Final = 0
VGPR_COUNT: Final = 1024
AGPR_BASE: Final = VGPR_BASE + VGPR_COUNT
AGPR_COUNT: Final = 256
SGPR_BASE: Final = AGPR_BASE + AGPR_COUNT
SGPR_COUNT: Final = 106
TTMP_BASE: Final = SGPR_BASE + SGPR_COUNT
TTMP_COUNT: Final = 16
SPECIAL_BASE: Final = TTMP_BASE + TTMP_COUNT

SPECIAL_REGISTERS: Final[dict[str, tuple[int, int]]] = {}
"""name -> (first bit, number of 32-bit registers); pairs share bits with their halves."""


def _define_special() -> None:
    position = SPECIAL_BASE
    for pair in ("vcc", "exec", "flat_scratch", "xnack_mask"):
        SPECIAL_REGISTERS[pair] = (position, 2)
        SPECIAL_REGISTERS[f"{pair}_lo"] = (position, 1)
        SPECIAL_REGISTERS[f"{pair}_hi"] = (position + 1, 1)
        position += 2
    for single in ("m0", "scc", "mode"):
        SPECIAL_REGISTERS[single] = (position, 1)
        position += 1


_define_special()

REGISTERS: Final = max(first + count for first, count in SPECIAL_REGISTERS.values())
"""How many 32-bit registers there are: the bits of the largest set."""


def span(base: int, first: int, count: int) -> int:
    """The set of `count` registers of the class at `base`, from register `first` on."""
    return ((1 << count) - 1) << (base + first)


VGPRS: Final = span(VGPR_BASE, 0, VGPR_COUNT)
AGPRS: Final = span(AGPR_BASE, 0, AGPR_COUNT)
SGPRS: Final = span(SGPR_BASE, 0, SGPR_COUNT)


def special(name: str) -> int:
    """The set of bits of a special register such as `vcc` or `exec_lo`."""
    first, count = SPECIAL_REGISTERS[name]
    return ((1 << count) - 1) << first


SCC: Final = special("scc")
VCC: Final = special("vcc")
EXEC: Final = special("exec")
M0: Final = special("m0")


def register_names(bits: int) -> list[str]:
    """The registers in a set, in order: `['v0', 'v1', 'a3', 's4', 'vcc_lo']`."""
    names = []
    while bits:
        low = (bits & -bits).bit_length() - 1
        bits &= bits - 1
        names.append(_name(low))
    return names


def _name(position: int) -> str:
    for base, count, prefix in (
        (VGPR_BASE, VGPR_COUNT, "v"),
        (AGPR_BASE, AGPR_COUNT, "a"),
        (SGPR_BASE, SGPR_COUNT, "s"),
        (TTMP_BASE, TTMP_COUNT, "ttmp"),
    ):
        if base <= position < base + count:
            return f"{prefix}{position - base}"
    for name, (first, count) in SPECIAL_REGISTERS.items():
        if first == position and count == 1:
            return name
    raise ValueError(f"no register at bit {position}")
