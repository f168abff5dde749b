"""The SASS opcode table: rows of `sass.tbl`, as `wavecast.isa.opcode.Opcode` values.

A row's `form` is the class an instruction counts under, its `cost_class` a key of `costs.toml`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from wavecast.analyze.dtypes import dtype_of
from wavecast.isa.opcode import (
    Control,
    MatrixShape,
    MemoryEffect,
    MemoryKind,
    Opcode,
    OpcodeFlag,
    Role,
    Space,
)

UNKNOWN_COST: Final = "unknown"

_ENDS = frozenset({"EXIT", "RET", "KILL"})
_CALLS = frozenset({"CALL"})
_JUMPS = frozenset({"BRA", "JMP"})
_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_ROLES = {"wait": Role.WAIT, "barrier": Role.BARRIER}


@cache
def rows() -> dict[str, Opcode]:
    """Every row by name. Raises AssertionError when the table breaks its own format."""
    opcodes: dict[str, Opcode] = {}
    group = ["", ""]
    text = (resources.files("wavecast.analyze.sass") / "sass.tbl").read_text(encoding="utf-8")
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if line.startswith("@"):
            group = line[1:].split()
            assert len(group) in (2, 3, 4), f"sass.tbl:{number}: bad group {line!r}"
            continue
        for item in line.split():
            name, _, flops = item.partition(":")
            assert name not in opcodes, f"sass.tbl:{number}: {name} twice"
            opcodes[name] = _row(name, group, float(flops or 0))
    return opcodes


def _row(name: str, group: list[str], flops: float) -> Opcode:
    memory = None
    if len(group) == 4:
        memory = MemoryEffect(Space(group[2]), MemoryKind(group[3]), 0)
    return Opcode(
        name=name,
        form=group[0],
        operands=(),
        implicit_reads=(),
        implicit_writes=(),
        cost_class="" if group[1] == "-" else group[1],
        flops=flops,
        mnemonics=MappingProxyType({}),
        memory=memory,
        role=_ROLES.get(group[0], Role.NONE),
        flags=frozenset(OpcodeFlag(flag) for flag in group[2:3] if len(group) == 3),
    )


@cache
def lookup(mnemonic: str) -> Opcode:
    """The row of a printed mnemonic such as `LDG.E.128`.

    The longest dotted prefix with a row wins. An unknown opcode gives a row of class `other`
    whose cost class is `UNKNOWN_COST`, so that a reader can list it by name.
    """
    opcodes = rows()
    prefix = mnemonic
    while prefix:
        if prefix in opcodes:
            return opcodes[prefix]
        prefix = prefix.rpartition(".")[0]
    return _row(mnemonic.partition(".")[0], ["other", UNKNOWN_COST], 0.0)


@cache
def opcode(mnemonic: str, predicated: bool) -> Opcode:
    """The row of a mnemonic with what depends on its modifiers and predicate filled in.

    Bytes per lane come from the width modifier, the matrix shape from the shape modifier, control
    from the name: a predicated branch falls through, a predicated EXIT ends only some lanes.
    """
    row = lookup(mnemonic)
    memory = row.memory
    if memory is not None:
        memory = MemoryEffect(memory.space, memory.kind, bytes_per_lane(mnemonic, row.cost_class))
    return Opcode(
        name=row.name,
        form=row.form,
        operands=(),
        implicit_reads=(),
        implicit_writes=(),
        cost_class=row.cost_class,
        flops=row.flops,
        mnemonics=row.mnemonics,
        memory=memory,
        control=_control(row.name, predicated),
        role=row.role,
        flags=row.flags,
        matrix=_shape(mnemonic) if row.form == "matrix" else None,
    )


def _control(name: str, predicated: bool) -> Control:
    if name in _ENDS:
        return Control.NONE if predicated else Control.END
    if name in _JUMPS:
        return Control.CONDITIONAL if predicated else Control.BRANCH
    if name in _INDIRECT:
        return Control.INDIRECT
    return Control.CALL if name in _CALLS else Control.NONE


_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "96": 12, "128": 16, "256": 32}
_WIDTHS |= {"F64": 8, "U64": 8, "S64": 8}
_PACKED = re.compile(r"B?F(?P<bits>16|32)x(?P<count>\d)")


def bytes_per_lane(mnemonic: str, cost_class: str) -> int:
    """Bytes one lane moves; 0 for bulk copies, whose size a descriptor holds."""
    name, *modifiers = mnemonic.split(".")
    if cost_class == "tma":
        return 0
    if name in ("LDSM", "STSM"):  # 8x8 matrices of 16-bit elements: 4 bytes per lane and matrix
        count = next((m for m in reversed(modifiers) if m in ("2", "4")), "1")
        return 4 * int(count)
    for modifier in modifiers:
        if modifier in _WIDTHS:
            return _WIDTHS[modifier]
        packed = _PACKED.fullmatch(modifier)
        if packed is not None:
            return int(packed["bits"]) // 8 * int(packed["count"])
    return 4


_OPERANDS = ("BF16", "TF32", "E4M3", "E5M2", "S8", "U8", "S4", "U4", "E2M3", "E3M2", "E2M1")
_ELEMENTS = {name: dtype_of(name) for name in _OPERANDS} | {"B1": "b1"}
"""Modifiers that name the type of A and B. `B1`, single bits, has no dtype."""
_DEFAULT_ELEMENT = {"H": "fp16", "D": "fp64", "I": "int8", "Q": "fp8", "B": "b1", "O": "fp4"}
_PACKED_SHAPES = {
    "884": (8, 8, 4),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "88128": (8, 8, 128),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256),
}


def _shape(mnemonic: str) -> MatrixShape | None:
    """The shape a matrix mnemonic prints (`16816`, `64x128x16`); None for tcgen05, which keeps
    its shape in a descriptor."""
    name, *modifiers = mnemonic.split(".")
    size = None
    for modifier in modifiers:
        if modifier in _PACKED_SHAPES:
            size = _PACKED_SHAPES[modifier]
        elif modifier.count("x") == 2:
            size = tuple(int(part) for part in modifier.split("x"))
    if size is None:
        return None
    element = next((_ELEMENTS[m] for m in modifiers if m in _ELEMENTS), _DEFAULT_ELEMENT[name[0]])
    m, n, k = size
    return MatrixShape(m, n, k, 1, element, element, "", sparse="SP" in modifiers)
