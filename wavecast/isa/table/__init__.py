"""The opcode table: one row per instruction, in the `.tbl` files beside this one.

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
  it is followed by `space kind bytes` in parentheses: `vmem_load(global load 16)`.
- **flops**: useful floating-point operations per lane; `-` for none.
- **names**: where the instruction exists and what it is called there, `targets[=mnemonic]`, space
  separated; a target set is one of `wavecast.isa.targets.TARGET_SETS`. Without `=mnemonic` it has
  the row's name. A trailing `!word` gives the row a control or role: `!branch`, `!wait`, `!hint`.

A row is named by the newest spelling. Where one mnemonic has rows of different shape (a buffer load
with and without `lds`, v_cmpx with and without a destination), all but one carry a suffix.

Matrix rows stand in `matrix.csv`, one per instruction and target.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib import resources
from types import MappingProxyType

from wavecast.errors import UnknownName
from wavecast.isa.opcode import (
    FORMS,
    Access,
    Control,
    MatrixShape,
    MemoryEffect,
    MemoryKind,
    Opcode,
    OperandKind,
    OperandRole,
    Role,
    Space,
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

_ACCESS = {"=": Access.WRITE, "+": Access.READ_WRITE, "~": Access.RETURN}
_KINDS = {kind.value: kind for kind in OperandKind}
_OPERAND = re.compile(r"(?P<access>[=+~]?)(?P<kind>[a-z]+)(?::(?P<type>\w+))?(?P<optional>\??)")
_COST = re.compile(r"(?P<cost>\w+)(?:\((?P<space>\w+) (?P<kind>\w+) (?P<bytes>\d+)\))?")
_TYPE = re.compile(r"(?P<base>[a-z]+)(?P<bits>\d+)(?:x(?P<count>\d+))?")
_IGNORES_EXEC = "!exec"
_CONTROLS = {control.value: control for control in Control if control.value}
_ROLES = {role.value: role for role in Role if role.value}


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
        access=_ACCESS.get(match["access"], Access.READ),
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


def _names(name: str, column: str) -> tuple[dict[str, str], Control, Role]:
    mnemonics: dict[str, str] = {}
    control, role = Control.NONE, Role.NONE
    for item in column.split():
        if item.startswith("!"):
            control = _CONTROLS.get(item[1:], control)
            role = _ROLES.get(item[1:], role)
            if item[1:] not in _CONTROLS and item[1:] not in _ROLES:
                raise TableError(f"{name}: unknown flag {item!r}")
            continue
        targets, _, mnemonic = item.partition("=")
        if targets not in TARGET_SETS:
            raise TableError(f"{name}: unknown target set {targets!r}")
        for target in TARGET_SETS[targets]:
            if target in mnemonics:
                raise TableError(f"{name}: {target} named twice")
            mnemonics[target] = mnemonic or name
    return mnemonics, control, role


def _row(form: str, line: str, where: str) -> Opcode:
    columns = [column.strip() for column in line.split("|")]
    if len(columns) != 6:
        raise TableError(f"{where}: expected 6 columns, found {len(columns)}")
    name, operands, implicit, cost, flops, names = columns
    reads, writes = _implicit(implicit)
    mnemonics, control, role = _names(name, names)
    match = _COST.fullmatch(cost)
    if match is None:
        raise TableError(f"{where}: bad cost {cost!r}")
    memory = None
    if match["space"]:
        memory = MemoryEffect(Space(match["space"]), MemoryKind(match["kind"]), int(match["bytes"]))
    opcode = Opcode(
        name=name,
        form=form,
        operands=tuple(_operand(item) for item in operands.split() if item != "-"),
        implicit_reads=reads,
        implicit_writes=writes,
        cost_class=match["cost"],
        flops=0.0 if flops == "-" else float(flops),
        mnemonics=MappingProxyType(mnemonics),
        memory=memory,
        control=control,
        role=role,
    )
    if opcode.is_vector and "exec" not in reads and _IGNORES_EXEC not in implicit.split():
        return replace(opcode, implicit_reads=(*opcode.implicit_reads, "exec"))
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
    found = [row for file in TABLE_FILES for row in _read_table(file)]
    found += _read_matrix()
    names = Counter(row.name for row in found)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise TableError(f"rows of the same name: {', '.join(repeated)}")
    return tuple(found)


@cache
def by_mnemonic(target: str) -> dict[str, tuple[Opcode, ...]]:
    """For one target: printed mnemonic without encoding suffix -> its rows.

    Most mnemonics have one row; a mnemonic with several (an atomic with and without address
    operands, say) is told apart by its number of operands.
    """
    name = isa_target(target)
    found: dict[str, tuple[Opcode, ...]] = {}
    for row in rows():
        mnemonic = row.mnemonics.get(name)
        if mnemonic is not None:
            found[mnemonic] = (*found.get(mnemonic, ()), row)
    return found


@cache
def older_names(target: str) -> dict[str, tuple[Opcode, ...]]:
    """Names earlier targets print for rows that `target` has under another name.

    Assemblers accept most of them (`ds_read_b32` on gfx1100), so hand-written code uses them.
    """
    name = isa_target(target)
    printed = by_mnemonic(target)
    found: dict[str, tuple[Opcode, ...]] = {}
    for row in rows():
        if name not in row.mnemonics:
            continue
        for earlier in TARGETS[: TARGETS.index(name)]:
            mnemonic = row.mnemonics.get(earlier, row.name)
            if mnemonic not in printed and row not in found.get(mnemonic, ()):
                found[mnemonic] = (*found.get(mnemonic, ()), row)
    return found


@cache
def opcode(name: str) -> Opcode:
    """The row called `name`. Raises UnknownName with the nearest rows."""
    for row in rows():
        if row.name == name:
            return row
    raise UnknownName("opcode", name, (row.name for row in rows()))


__all__ = ["TARGETS", "TableError", "by_mnemonic", "older_names", "opcode", "rows"]
