"""The opcode table: one row per instruction, in the `.tbl` files of this folder.

A row has six columns separated by `|`; `#` starts a comment, `@form` lines set the form of the rows
that follow:

    name | operands | implicit | cost | flops | names

- **operands**: in printed order, separated by spaces, `[access]kind[:type]` with access `=`
  (written), `+` (read and written), `~` (written only when the old value is returned), nothing
  (read); a `?` at the end marks one that may be absent. Kinds are the codes of `OperandKind`. A
  type `f16x2` is two halves of one register, `f32x4` four registers.
- **implicit**: registers read (`<vcc`), written (`>scc`), or both (`<>m0`); `-` for none. EXEC is
  implied for vector, vector memory and LDS forms; `!exec` marks one that ignores it.
- **cost**: the cost class, looked up per chip in `wavecast/arch/costs`. For memory instructions
  it is followed by `space kind bytes` in parentheses, `vmem_load(global load 16)`, and by words for
  the fields of `MemoryForm`: the operation of an atomic (`add`, `cmpswap` …), how lanes exchange
  data (`permute` …), `two_offsets`, `stride64`, `transpose8`, `high`, `by_lane`, `formatted`,
  `block`, `comparand_first`, `sign_extended`.
- **flops**: useful floating-point operations per lane; `-` for none.
- **names**: where the instruction exists and what it is called there, `targets[=mnemonic]`, space
  separated; a target set is one of `wavecast.isa.targets.TARGET_SETS`. Without `=mnemonic` it has
  the row's name. A trailing `!word` gives the row a control (`!branch`), a role (`!hint`) or a flag
  of `OpcodeFlag` (`!trap`). A wait names the counters of its immediate with their bits:
  `!wait=loadcnt[13:8],dscnt[5:0]`; bits in parts come most significant first (`[15:14,3:0]`), `?`
  marks a counter that all ones does not wait for, and `!wait=all` waits for every counter.

A row is named by the newest spelling. Where one mnemonic has rows of different shape (a buffer load
with and without `lds`, v_cmpx with and without a destination), all but one carry a suffix.

Matrix rows are in `matrix.csv`, one per instruction and target.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from wavecast.errors import UnknownName
from wavecast.isa.opcode import (
    FORMS,
    PER_LANE_FORMS,
    Control,
    MatrixShape,
    MemoryEffect,
    MemoryForm,
    MemoryKind,
    Opcode,
    OpcodeFlag,
    OperandAccess,
    OperandKind,
    OperandRole,
    Role,
    Space,
    WaitField,
)
from wavecast.isa.registers import SPECIAL_REGISTERS
from wavecast.isa.targets import TARGET_SETS, TARGETS, isa_target

TABLE_FILES = (
    "scalar.tbl",
    "vector.tbl",
    "compare.tbl",
    "convert.tbl",
    "packed.tbl",
    "dual.tbl",
    "lds.tbl",
    "global.tbl",
    "buffer.tbl",
    "smem.tbl",
    "program.tbl",
)

_ACCESS = {"=": OperandAccess.WRITE, "+": OperandAccess.READ_WRITE, "~": OperandAccess.RETURN}
_KINDS = {kind.value: kind for kind in OperandKind}
_OPERAND = re.compile(r"(?P<access>[=+~]?)(?P<kind>[a-z]+)(?::(?P<type>\w+))?(?P<optional>\??)")
_COST = re.compile(
    r"(?P<cost>\w+)(?:\((?P<space>\w+) (?P<kind>\w+) (?P<bytes>\d+)(?P<form>(?: \w+)*)\))?"
)
_TYPE = re.compile(r"(?P<base>[a-z]+)(?P<bits>\d+)(?:x(?P<count>\d+))?")
_IGNORES_EXEC = "!exec"
_CONTROLS = {control.value: control for control in Control if control.value}
_ROLES = {role.value: role for role in Role if role.value}
_FLAGS = {flag.value: flag for flag in OpcodeFlag}
_WAITS = re.compile(r"(?P<counter>[a-z]+cnt)\[(?P<bits>[\d:,]+)\](?P<optional>\??)")
_BITS = re.compile(r"(?P<last>\d+):(?P<first>\d+)")
_OPERATIONS = frozenset(
    {"add", "sub", "rsub", "and", "or", "xor", "inc", "dec", "min", "max", "min_num", "max_num"}
    | {"pk_add", "sub_clamp", "cond_sub", "cmpswap", "swap", "mskor", "append", "consume", "arrive"}
)
_EXCHANGES = frozenset({"permute", "bpermute", "bpermute_fi", "swizzle"})
_FORM_WORDS: dict[str, tuple[str, object]] = {
    **{name: ("operation", name) for name in _OPERATIONS},
    **{name: ("exchange", name) for name in _EXCHANGES},
    **{f"transpose{bits}": ("transpose", bits) for bits in (4, 6, 8, 16)},
    "two_offsets": ("offsets", 2),
    "stride64": ("stride", 64),
    "high": ("high", True),
    "by_lane": ("by_lane", True),
    "formatted": ("formatted", True),
    "block": ("block", True),
    "comparand_first": ("comparand_first", True),
    "sign_extended": ("sign_extended", True),
}
"""Word of the cost column -> field of `MemoryForm` and its value."""
_ROLE_OF_FLAG = {
    OpcodeFlag.ARRIVE: Role.BARRIER,
    OpcodeFlag.AWAIT: Role.BARRIER,
    OpcodeFlag.LOAD_COUNTED: Role.CACHE,
    OpcodeFlag.STORE_COUNTED: Role.CACHE,
    OpcodeFlag.INVALIDATES: Role.CACHE,
    OpcodeFlag.WRITES_BACK: Role.CACHE,
    OpcodeFlag.WORKGROUP_SCOPE: Role.CACHE,
    OpcodeFlag.AGENT_SCOPE: Role.CACHE,
    OpcodeFlag.SYSTEM_SCOPE: Role.CACHE,
    OpcodeFlag.WAIT_ALU: Role.WAIT,
}
"""Flags that only rows of one role have."""
_WRITES_MODE = frozenset(
    {OpcodeFlag.SETREG, OpcodeFlag.ROUND_MODE, OpcodeFlag.DENORM_MODE, OpcodeFlag.VGPR_MSB}
    | {OpcodeFlag.INDEX_ON, OpcodeFlag.INDEX_OFF, OpcodeFlag.INDEX_MODE, OpcodeFlag.INDEX_VALUE}
)
_READS_M0 = frozenset({OpcodeFlag.M0_SOURCE, OpcodeFlag.M0_DEST, OpcodeFlag.M0_DEST_HIGH})


class TableError(AssertionError):
    """A table file breaks its own format: a bug in wavecast, found by its tests."""


def _type_dwords(text: str) -> int:
    match = _TYPE.fullmatch(text)
    if match is None:
        raise TableError(f"bad operand type {text!r}")
    bits = int(match["bits"]) * int(match["count"] or 1)
    return (bits + 31) // 32


@cache
def _operand(text: str) -> OperandRole:
    match = _OPERAND.fullmatch(text)
    if match is None or match["kind"] not in _KINDS:
        raise TableError(f"bad operand {text!r}")
    element = match["type"] or ""
    return OperandRole(
        kind=_KINDS[match["kind"]],
        access=_ACCESS.get(match["access"], OperandAccess.READ),
        type=element,
        dwords=_type_dwords(element) if element else 0,
        optional=bool(match["optional"]),
    )


def _implicit(column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reads: list[str] = []
    writes: list[str] = []
    for item in column.split():
        if item in ("-", _IGNORES_EXEC):
            continue
        name = item.lstrip("<>")
        if name not in SPECIAL_REGISTERS:
            raise TableError(f"unknown implicit register {item!r}")
        if "<" in item:
            reads.append(name)
        if ">" in item:
            writes.append(name)
    return tuple(reads), tuple(writes)


@dataclass(slots=True)
class _Names:
    """What the last column gives a row."""

    mnemonics: dict[str, str] = field(default_factory=dict)
    control: Control = Control.NONE
    role: Role = Role.NONE
    flags: set[OpcodeFlag] = field(default_factory=set)
    waits: tuple[WaitField, ...] = ()
    waits_for_all: bool = False


def _names(name: str, column: str) -> _Names:
    entry = _Names()
    for item in column.split():
        if item.startswith("!"):
            _mark(entry, name, item[1:])
            continue
        targets, _, mnemonic = item.partition("=")
        if targets not in TARGET_SETS:
            raise TableError(f"{name}: unknown target set {targets!r}")
        for target in TARGET_SETS[targets]:
            if target in entry.mnemonics:
                raise TableError(f"{name}: {target} named twice")
            entry.mnemonics[target] = mnemonic or name
    return entry


def _mark(entry: _Names, name: str, item: str) -> None:
    """Take in one `!word` of the last column."""
    word, _, fields = item.partition("=")
    if word in _CONTROLS:
        entry.control = _CONTROLS[word]
    elif word in _ROLES:
        entry.role = _ROLES[word]
    elif word in _FLAGS:
        entry.flags.add(_FLAGS[word])
    else:
        raise TableError(f"{name}: unknown flag {'!' + item!r}")
    if not fields:
        return
    if entry.role is not Role.WAIT:
        raise TableError(f"{name}: only a wait has counters: {'!' + item!r}")
    if fields == "all":
        entry.waits_for_all = True
        return
    matches = list(_WAITS.finditer(fields))
    if ",".join(match[0] for match in matches) != fields:
        raise TableError(f"{name}: bad counters {fields!r}")
    entry.waits = tuple(
        WaitField(match["counter"], _bits(name, match["bits"]), bool(match["optional"]))
        for match in matches
    )


def _bits(name: str, text: str) -> tuple[tuple[int, int], ...]:
    """The parts of a field as (first, width), the least significant first."""
    parts = []
    for item in reversed(text.split(",")):
        match = _BITS.fullmatch(item)
        if match is None or int(match["last"]) < int(match["first"]):
            raise TableError(f"{name}: bad bits {text!r}")
        parts.append((int(match["first"]), int(match["last"]) - int(match["first"]) + 1))
    return tuple(parts)


def _memory_form(where: str, words: str, kind: MemoryKind) -> MemoryForm:
    """The words behind the bytes of a memory row. Raises TableError for words its kind cannot
    have."""
    fields: dict[str, Any] = {}
    for word in words.split():
        if word not in _FORM_WORDS:
            raise TableError(f"{where}: unknown word {word!r} of a memory row")
        name, value = _FORM_WORDS[word]
        if name in fields:
            raise TableError(f"{where}: {name} given twice")
        fields[name] = value
    if "operation" in fields and kind is not MemoryKind.ATOMIC:
        raise TableError(f"{where}: {fields['operation']!r} is for atomics")
    if "exchange" in fields and kind is not MemoryKind.PERMUTE:
        raise TableError(f"{where}: {fields['exchange']!r} is for permutes")
    return MemoryForm(**fields)


def _check_flags(row: Opcode) -> None:
    """Flags agree with the other columns. Raises TableError."""
    for flag in row.flags:
        role = _ROLE_OF_FLAG.get(flag)
        if role is not None and row.role is not role:
            raise TableError(f"{row.name}: !{flag} needs !{role.value}")
        if flag in _WRITES_MODE and "mode" not in row.implicit_writes:
            raise TableError(f"{row.name}: !{flag} writes MODE")
        if flag in _READS_M0 and "m0" not in row.implicit_reads:
            raise TableError(f"{row.name}: !{flag} reads M0")


def _row(form: str, line: str, where: str) -> Opcode:
    columns = [column.strip() for column in line.split("|")]
    if len(columns) != 6:
        raise TableError(f"{where}: expected 6 columns, found {len(columns)}")
    name, operands, implicit, cost, flops, names = columns
    reads, writes = _implicit(implicit)
    last = _names(name, names)
    match = _COST.fullmatch(cost)
    if match is None:
        raise TableError(f"{where}: bad cost {cost!r}")
    memory, memory_form = None, MemoryForm()
    if match["space"]:
        memory = MemoryEffect(Space(match["space"]), MemoryKind(match["kind"]), int(match["bytes"]))
        memory_form = _memory_form(where, match["form"], memory.kind)
    if form in PER_LANE_FORMS and "exec" not in reads and _IGNORES_EXEC not in implicit.split():
        reads = (*reads, "exec")
    opcode = Opcode(
        name=name,
        form=form,
        operands=tuple(_operand(item) for item in operands.split() if item != "-"),
        implicit_reads=reads,
        implicit_writes=writes,
        cost_class=match["cost"],
        flops=0.0 if flops == "-" else float(flops),
        mnemonics=MappingProxyType(last.mnemonics),
        memory=memory,
        control=last.control,
        role=last.role,
        memory_form=memory_form,
        flags=frozenset(last.flags),
        waits=last.waits,
        waits_for_all=last.waits_for_all,
    )
    _check_flags(opcode)
    return opcode


def _read_table(file: str) -> list[Opcode]:
    text = (resources.files(__name__) / file).read_text(encoding="utf-8")
    form = ""
    rows = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if line.startswith("@"):
            form = line[1:].strip()
            if form not in FORMS:
                raise TableError(f"{file}:{number}: unknown form {form!r}")
            continue
        rows.append(_row(form, line, f"{file}:{number}"))
    return rows


def _read_matrix() -> list[Opcode]:
    """Rows of matrix.csv grouped into opcodes: one per instruction with its targets."""
    text = (resources.files(__name__) / "matrix.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    grouped: dict[tuple[str, str], list[dict[str, str]]] = {}
    for record in csv.DictReader(lines):
        grouped.setdefault((record["name"], record["operands"]), []).append(record)
    rows = []
    for (name, operands), records in grouped.items():
        first = records[0]
        mnemonics = {record["target"]: record["mnemonic"] for record in records}
        shape = MatrixShape(
            m=int(first["m"]),
            n=int(first["n"]),
            k=int(first["k"]),
            blocks=int(first["blocks"]),
            a_type=first["a_type"],
            b_type=first["b_type"],
            cd_type=first["cd_type"],
            sparse=first["sparse"] == "1",
            scaled=first["scaled"] == "1",
        )
        rows.append(
            Opcode(
                name=name,
                form=first["form"],
                operands=tuple(_operand(item) for item in operands.split()),
                implicit_reads=("exec",),
                implicit_writes=(),
                cost_class="matrix",
                flops=0.0,
                mnemonics=MappingProxyType(mnemonics),
                matrix=shape,
            )
        )
    return rows


@cache
def rows() -> tuple[Opcode, ...]:
    """Every row of the table. Raises TableError when a file breaks the format."""
    opcodes = [row for file in TABLE_FILES for row in _read_table(file)]
    opcodes += _read_matrix()
    names = Counter(row.name for row in opcodes)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise TableError(f"rows of the same name: {', '.join(repeated)}")
    return tuple(opcodes)


@cache
def by_mnemonic(target: str) -> dict[str, tuple[Opcode, ...]]:
    """For one target: printed mnemonic without encoding suffix -> its rows.

    Most mnemonics have one row; a mnemonic with several (an atomic with and without address
    operands, say) is told apart by its number of operands.
    """
    name = isa_target(target)
    opcodes: dict[str, tuple[Opcode, ...]] = {}
    for row in rows():
        mnemonic = row.mnemonics.get(name)
        if mnemonic is not None:
            opcodes[mnemonic] = (*opcodes.get(mnemonic, ()), row)
    return opcodes


@cache
def older_names(target: str) -> dict[str, tuple[Opcode, ...]]:
    """Names earlier targets print for rows that `target` has under another name.

    Assemblers accept most of them (`ds_read_b32` on gfx1100), so hand-written code uses them.
    """
    name = isa_target(target)
    printed = by_mnemonic(target)
    aliases: dict[str, tuple[Opcode, ...]] = {}
    for row in rows():
        if name not in row.mnemonics:
            continue
        for earlier in TARGETS[: TARGETS.index(name)]:
            mnemonic = row.mnemonics.get(earlier, row.name)
            if mnemonic not in printed and row not in aliases.get(mnemonic, ()):
                aliases[mnemonic] = (*aliases.get(mnemonic, ()), row)
    return aliases


@cache
def opcode(name: str) -> Opcode:
    """The row called `name`. Raises UnknownName with the nearest rows."""
    for row in rows():
        if row.name == name:
            return row
    raise UnknownName("opcode", name, (row.name for row in rows()))


__all__ = ["TARGETS", "TableError", "by_mnemonic", "older_names", "opcode", "rows"]
