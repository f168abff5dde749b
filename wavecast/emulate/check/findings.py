"""Records of the log as reports: instructions, source lines, lanes and a sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wavecast.compile.array_accesses import UNLIMITED
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.check.owners import Owners
from wavecast.emulate.check.private_loads import private_load
from wavecast.emulate.check.report import Kind, Report
from wavecast.emulate.check.shadow import READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE
from wavecast.emulate.check.tensors import AddressInterval, LaunchTensor, element_at, outside
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Space
from wavecast.isa.program import Kernel
from wavecast.isa.registers import register_names

_ORDERS = {
    READ_AFTER_WRITE: "reads what {who} wrote",
    WRITE_AFTER_WRITE: "overwrites what {who} wrote",
    WRITE_AFTER_READ: "overwrites what {who} read",
}
_RACES = {
    Kind.LDS_RACE: "wave",
    Kind.GLOBAL_RACE: "wave",
    Kind.WORKGROUP_RACE: "workgroup",
    Kind.REPLICATED_READ: "wave",
    Kind.SAME_VALUE: "workgroup",
}

_LARGEST_LDS = 1 << 20
"""Bytes: below it an address is an offset in LDS."""

_SENTENCES = {
    Kind.EXITED_WAVE: "waits for waves of the workgroup of which some have ended; let every wave "
    "reach the barrier, and mask the work instead",
    Kind.INTEGER_DIVISION_BY_ZERO: "belongs to a division of integers, and the divisor is 0 in "
    "these lanes",
    Kind.INACTIVE_LANE: "reads registers of lanes that are not active here; exchange values "
    "outside the branch",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """What the addresses of instructions come from, by index: `arguments`, and the bytes of
    `arrays` in LDS or in scratch."""

    arguments: Mapping[int, tuple[str, ...]]
    arrays: Mapping[int, tuple[AddressInterval, ...]]


def reports(
    kernel: Kernel,
    launch: Launch,
    owners: Owners,
    known: Sources,
    records: Sequence[CheckRecord],
    missing: Mapping[tuple[int, int], str],
) -> list[Report]:
    """The reports of one launch, by instruction. `known` is what addresses come from;
    `missing` says for two instructions what would order them."""
    return [_report(kernel, launch, owners, known, record, missing) for record in records]


def _report(
    kernel: Kernel,
    launch: Launch,
    owners: Owners,
    known: Sources,
    record: CheckRecord,
    missing: Mapping[tuple[int, int], str],
) -> Report:
    program = kernel.program
    instruction = program.instructions[record.instruction]
    other = program.instructions[record.other - 1] if record.other else None
    kind = record.kind
    if kind is Kind.UNINITIALISED_REGISTER:
        loaded = private_load(kernel, record.instruction, record.detail)
        if loaded is not None:
            kind, other = Kind.UNINITIALISED_PRIVATE, program.instructions[loaded]
    message = _message(instruction, launch, owners, known, replace(record, kind=kind))
    if record.kind is Kind.WORKGROUP_RACE and other is not None:
        lack = missing.get((instruction.index, other.index))
        message += f": {lack}" if lack else ""
    lanes = tuple(lane for lane in range(64) if record.lanes >> lane & 1)
    return Report(
        kind=kind,
        kernel=program.name,
        target=program.target,
        message=message,
        instruction=instruction.index,
        text=instruction.decoded.text,
        location=instruction.location,
        workgroup=launch.workgroup(record.workgroup),
        wave=record.wave,
        lanes=lanes,
        addresses=(record.address,),
        other=other.index if other is not None else None,
        other_text=other.decoded.text if other is not None else "",
        other_location=other.location if other is not None else None,
        count=record.count,
    )


def _message(
    instruction: Instruction,
    launch: Launch,
    owners: Owners,
    known: Sources,
    record: CheckRecord,
) -> str:
    kind, tensors = record.kind, owners.tensors
    if kind in _RACES:
        who = _who(launch, kind, record.detail >> 8)
        what = _ORDERS[record.detail & 0xFF].format(who=who)
        if kind is Kind.SAME_VALUE:
            what = f"stores the value that {who} stored"
        return f"{what} {_where(kind, tensors, record.address)}"
    if kind is Kind.LANE_RACE:
        where = _where(kind, tensors, record.address)
        return f"stores another value than lane {record.detail} of the wave {where}"
    if kind is Kind.UNINITIALISED_LDS:
        return f"reads LDS byte {record.address:#x}, which no wave has written"
    if kind is Kind.UNINITIALISED_GLOBAL:
        return f"reads memory never written {_where(kind, tensors, record.address)}"
    if kind is Kind.OUT_OF_BOUNDS:
        arrays = known.arrays.get(record.instruction)
        if arrays is not None:
            return _outside_arrays(instruction, arrays, record.address)
        names = known.arguments.get(record.instruction, ())
        mine = [tensor for tensor in tensors if tensor.name in names]
        return outside(
            tensors, [owners.of(record.detail)] if record.detail else mine, record.address
        )
    if kind is Kind.MISSING_WAIT:
        return (
            f"touches LDS byte {record.address:#x} while the load to LDS that fills it may be "
            "outstanding; wait for it first"
        )
    if kind is Kind.MISALIGNED:
        where = element_at(tensors, record.address)
        return (
            f"is a scalar access at {where}, {record.address % 4} bytes beyond a multiple of 4; "
            "the hardware takes the dword before it: align the pointer"
        )
    if kind is Kind.OUT_OF_LDS:
        return f"touches LDS byte {record.address:#x} beyond what the workgroup has"
    if kind is Kind.DIVERGENT_BARRIER:
        return "waits here while another wave of the workgroup waits elsewhere"
    if kind is Kind.PARTIAL_BARRIER:
        return "is reached with lanes of the wave masked off"
    if kind is Kind.UNINITIALISED_REGISTER:
        (register,) = register_names(1 << record.detail)
        return f"uses {register}, which nothing has written in these lanes"
    if kind is Kind.UNINITIALISED_PRIVATE:
        return "uses what was loaded from private memory that nothing has written in these lanes"
    if kind in _SENTENCES:
        return _SENTENCES[kind]
    if kind is Kind.NOT_A_NUMBER:
        return "makes a NaN out of numbers"
    if kind is Kind.INFINITY:
        return "makes an infinity out of finite numbers"
    return kind.rule.replace("-", " ")


def _outside_arrays(
    instruction: Instruction, arrays: Sequence[AddressInterval], address: int
) -> str:
    memory = instruction.memory
    where = "LDS" if memory is not None and memory.space is Space.LDS else "private"
    if address >= UNLIMITED:
        address -= 1 << 32
    ranges = " and ".join(
        f"bytes {first:#x} to {end - 1:#x}" if end < UNLIMITED else f"bytes from {first:#x} on"
        for first, end in arrays
    )
    which = "array" if len(arrays) == 1 else "arrays"
    return (
        f"touches {where} byte {address:#x}, outside the {which} that its address is made from "
        f"({ranges}); keep the index in bounds"
    )


def _who(launch: Launch, kind: Kind, number: int) -> str:
    """The other side: a wave or a workgroup, counted from 1; 0 stands for several."""
    if number == 0:
        return f"other {_RACES[kind]}s"
    if _RACES[kind] == "workgroup":
        return f"workgroup {launch.workgroup(number - 1)}"
    return f"wave {number - 1}"


def _where(kind: Kind, tensors: Sequence[LaunchTensor], address: int) -> str:
    if kind is Kind.LDS_RACE or (kind is Kind.LANE_RACE and address < _LARGEST_LDS):
        return f"at LDS byte {address:#x}"
    return f"at {element_at(tensors, address)}"


__all__ = ["reports"]
