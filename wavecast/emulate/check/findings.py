"""Records of the log as reports: instructions, source lines, lanes and a sentence each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from wavecast.compile.array_accesses import UNLIMITED
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.gpus.order import CheckedLaunch
from wavecast.emulate.check.lanes import beyond_wave
from wavecast.emulate.check.lds.unwritten import loads_lds
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.check.numbers.narrowing import is_mark
from wavecast.emulate.check.pointers.owners import Owners
from wavecast.emulate.check.registers.unwritten_loads import unwritten_load
from wavecast.emulate.check.shadow import READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE
from wavecast.emulate.program_lines import caller_name, program_location
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import AddressInterval, LaunchTensor, element_at, outside
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

_BETWEEN = frozenset({Kind.WORKGROUP_RACE, Kind.SAME_VALUE})
_OF_GLOBAL = frozenset({*_BETWEEN, Kind.GLOBAL_RACE, Kind.UNINITIALISED_GLOBAL, Kind.OUT_OF_BOUNDS})

_OF_LANES = frozenset({Kind.LANE_RACE, Kind.LOST_UPDATE})
_LARGEST_LDS = 1 << 20
"""Bytes: below it an address is an offset in LDS."""

_SENTENCES = {
    Kind.EXITED_WAVE: "waits for waves of the workgroup of which some have ended; let every wave "
    "reach the barrier, and mask the work instead",
    Kind.INTEGER_DIVISION_BY_ZERO: "belongs to a division of integers, and the divisor is 0 in "
    "these lanes",
    Kind.INACTIVE_LANE: "reads registers of lanes that are not active here, and uses what it "
    "gets; exchange values outside the branch",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """What the addresses of instructions come from, by index: `arguments`, and the bytes of
    `arrays` in LDS or in scratch."""

    arguments: Mapping[int, tuple[str, ...]]
    arrays: Mapping[int, tuple[AddressInterval, ...]]


@dataclass(frozen=True, slots=True)
class LaunchFindings:
    """The records of one launch as reports. `known` is what addresses come from. Of several GPUs,
    `checked` is the launch among all, and `others` finds the one with a number. `numbers` says what
    is wrong with values, "" where their kind does."""

    kernel: Kernel
    launch: Launch
    owners: Owners
    known: Sources
    checked: CheckedLaunch | None = None
    others: Callable[[int], CheckedLaunch] | None = None
    memory: Callable[[int], str] | None = None
    numbers: Callable[[CheckRecord], str] | None = None

    def reports(
        self, records: Sequence[CheckRecord], missing: Mapping[tuple[int, int, int], str]
    ) -> list[Report]:
        """The reports by instruction. `missing` says what would order two instructions, the second
        one of a launch."""
        return [self._report(record, missing) for record in records]

    def _report(self, record: CheckRecord, missing: Mapping[tuple[int, int, int], str]) -> Report:
        program = self.kernel.program
        instruction = program.instructions[record.instruction]
        across = self._across(record)
        theirs = program if across is None else across.side.program
        other = theirs.instructions[record.other - 1] if record.other else None
        kind = record.kind
        if kind is Kind.UNINITIALISED_REGISTER:
            loaded = unwritten_load(self.kernel, record.instruction, record.detail)
            if loaded is not None:
                other = program.instructions[loaded]
                lds = loads_lds(other.decoded)
                kind = Kind.UNINITIALISED_LDS if lds else Kind.UNINITIALISED_PRIVATE
        who = _who(self.launch, kind, record.author) if kind in _RACES else ""
        if across is not None:
            who = _who(across.launch, kind, record.author, across.first)
            who += f" of GPU {across.gpu} ({caller_name(across.launch)})"
        message = _message(instruction, who, self.owners, self.known, replace(record, kind=kind))
        if record.kind is Kind.UNINITIALISED_REGISTER and kind is Kind.UNINITIALISED_LDS:
            message = "uses what was loaded from LDS that no wave has written"
        if self.numbers is not None:
            message = self.numbers(record) or message
        if record.kind in _OF_GLOBAL and self.memory is not None:
            message += self.memory(record.address)
        if record.kind is Kind.WORKGROUP_RACE and other is not None:
            lack = missing.get((instruction.index, other.index, record.launch))
            message += f": {lack}" if lack else ""
        if across is not None and kind is Kind.WORKGROUP_RACE:
            mine = self.checked.gpu if self.checked is not None else across.gpu
            kind = Kind.GPU_RACE if across.gpu != mine else Kind.LAUNCH_RACE
        lanes = tuple(lane for lane in range(64) if record.lanes >> lane & 1)
        report = Report(
            kind=kind,
            kernel=program.name,
            target=program.target,
            message=message,
            instruction=instruction.index,
            text=_text(instruction),
            location=instruction.location,
            workgroup=self.launch.workgroup(record.workgroup),
            wave=record.wave,
            lanes=lanes,
            addresses=(record.address,),
            other=other.index if other is not None else None,
            other_text=other.decoded.text if other is not None else "",
            other_location=other.location if other is not None else None,
            count=record.count,
            gpu=self.checked.gpu if self.checked is not None else None,
        )
        if across is None:
            return report
        group = record.author - 1 - across.first
        other_location = program_location(report.other_location, across.launch)
        if other_location is not report.other_location:
            report = replace(report, other_text=caller_name(across.launch))
        return replace(
            report,
            other_location=other_location,
            other_kernel=across.side.program.name,
            other_gpu=across.gpu,
            other_workgroup=across.launch.workgroup(group) if record.author else None,
        )

    def _across(self, record: CheckRecord) -> CheckedLaunch | None:
        """The launch of the other side, None if it is this one."""
        if self.others is None or self.checked is None or record.kind not in _BETWEEN:
            return None
        return None if record.launch == self.checked.number else self.others(record.launch)


def _text(instruction: Instruction) -> str:
    """The instruction; for a mark of the headers what it stands for."""
    if beyond_wave.is_mark(instruction.decoded):
        return "the shuffle"
    if is_mark(instruction.decoded):
        return "the conversion"
    return instruction.decoded.text


def _message(
    instruction: Instruction,
    who: str,
    owners: Owners,
    sources: Sources,
    record: CheckRecord,
) -> str:
    kind, tensors = record.kind, owners.tensors
    if kind in _RACES:
        what = _ORDERS[record.detail & 0xFF].format(who=who)
        if kind is Kind.SAME_VALUE:
            what = f"stores the value that {who} stored"
        return f"{what} {_where(kind, tensors, record.address)}"
    if kind is Kind.LANE_RACE:
        where = _where(kind, tensors, record.address)
        return f"stores another value than lane {record.detail} of the wave {where}"
    if kind is Kind.LOST_UPDATE:
        return (
            f"updates {_where(kind, tensors, record.address).removeprefix('at ')}, which lane "
            f"{record.detail} of the wave updates too: both have loaded the old value, and one of "
            "the updates is lost; use an atomic operation, or one lane"
        )
    if kind is Kind.UNINITIALISED_LDS:
        return f"reads LDS byte {record.address:#x}, which no wave has written"
    if kind is Kind.UNINITIALISED_GLOBAL:
        return f"reads memory never written {_where(kind, tensors, record.address)}"
    if kind is Kind.OUT_OF_BOUNDS:
        arrays = sources.arrays.get(record.instruction)
        if arrays is not None:
            return _outside_arrays(instruction, arrays, record.address)
        names = sources.arguments.get(record.instruction, ())
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
    if kind is Kind.BEYOND_WAVE:
        return beyond_wave.message(instruction, record.detail)
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


def _who(launch: Launch, kind: Kind, number: int, first: int = 0) -> str:
    """The other side: a wave or a workgroup, counted from 1 (workgroups from `first` + 1); 0 means
    several."""
    if number == 0:
        return f"other {_RACES[kind]}s"
    if _RACES[kind] == "workgroup":
        return f"workgroup {launch.workgroup(number - 1 - first)}"
    return f"wave {number - 1}"


def _where(kind: Kind, tensors: Sequence[LaunchTensor], address: int) -> str:
    if kind is Kind.LDS_RACE or (kind in _OF_LANES and address < _LARGEST_LDS):
        return f"at LDS byte {address:#x}"
    return f"at {element_at(tensors, address)}"


__all__ = ["LaunchFindings", "Sources"]
