"""Registers used while a memory operation that writes or still reads them may be outstanding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.sync.outstanding import OutstandingFlow, OutstandingState, OutstandingStep
from wavecast.analyze.sync.violation import Violation, list_registers
from wavecast.isa.collector import no_collections
from wavecast.isa.counters import Queue, counter_set
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import OperandAccess, OperandKind, OperandRole
from wavecast.isa.program import Program
from wavecast.isa.registers import register_names

# bound once: looking an enum member up costs ten times what comparing it does
_READ_WRITE = OperandAccess.READ_WRITE

_HALF_BYTES: Final = 2
_OWN_INSTRUCTION: Final = frozenset({"vscnt"})
"""Counters before gfx12 that `s_waitcnt` has no field for."""


@no_collections()
def missing_waits(program: Program) -> tuple[Violation, ...]:
    """Instructions that no wait keeps from running before an operation they depend on.

    Three kinds: a register is read before a load has written it, overwritten before a load has
    written it (the load would win), overwritten before an operation has read it. In program order;
    one per instruction and counter, for the operation that needs the strongest wait. Memory itself
    is not followed: whether LDS is read before a load to LDS has filled it depends on addresses.
    """
    flow = OutstandingFlow(program)
    if not flow.queues:
        return ()
    return tuple(
        violation
        for block in range(len(program.blocks))
        if flow.entries[block] is not None
        for violation in _Walk(flow, block).violations()
    )


@dataclass(frozen=True, slots=True)
class _Clash:
    """One outstanding operation and the registers an instruction must not use yet."""

    queue: Queue
    operation: int
    registers: int
    distance: int
    verb: str


class _Walk:
    """One pass through a block with its entry state."""

    def __init__(self, flow: OutstandingFlow, block: int) -> None:
        entry = flow.entries[block]
        assert entry is not None
        self.flow = flow
        self.block = flow.program.blocks[block]
        self.state = OutstandingState(entry)
        self.settled: dict[int, int] = {}
        """Operation -> registers of it already reported in this block."""
        self.written = self.read_late = 0

    def violations(self) -> Iterator[Violation]:
        """What the block uses too early."""
        instructions = self.flow.program.instructions
        steps = iter(self.flow.steps[self.block.index])
        step = next(steps, None)
        self._watch()
        for index in range(self.block.start, self.block.stop):
            decoded = instructions[index].decoded
            if decoded.reads & self.written or decoded.writes & (self.written | self.read_late):
                yield from self._report(instructions[index])
            if step is not None and step.index == index:
                self._take(step)
                step = next(steps, None)

    def _take(self, step: OutstandingStep) -> None:
        self.flow.apply(self.state, step)
        for _, event in step.issues:
            self.settled.pop(step.index, None)
            self.written |= event.writes
            self.read_late |= event.holds
        if step.waits:
            self._watch()

    def _watch(self) -> None:
        """Collect the registers outstanding operations write, and those they hold."""
        written = read_late = 0
        for scores, effects in zip(self.state.scores, self.flow.effects, strict=True):
            for operation in scores:
                event = effects[operation]
                written |= event.writes
                read_late |= event.holds
        self.written, self.read_late = written, read_late

    def _report(self, instruction: Instruction) -> Iterator[Violation]:
        clashes = [clash for clash in self._clashes(instruction.decoded) if clash.registers]
        for counter in dict.fromkeys(clash.queue.counter for clash in clashes):
            of_counter = [clash for clash in clashes if clash.queue.counter == counter]
            value = min(self._wait_limit(clash) for clash in of_counter)
            worst = min(of_counter, key=self._wait_limit)
            yield self._violation(instruction, worst, value)
        for clash in clashes:
            self.settled[clash.operation] = self.settled.get(clash.operation, 0) | clash.registers

    def _clashes(self, decoded: Decoded) -> Iterator[_Clash]:
        issue_queues = self.flow.queues_of(decoded)
        reads = issue_sources(decoded) if issue_queues else decoded.reads
        for number, scores in enumerate(self.state.scores):
            queue = self.flow.queues[number]
            overwrites = 0 if queue.writes_in_order and number in issue_queues else decoded.writes
            for operation, score in scores.items():
                event = self.flow.effects[number][operation]
                open_ = ~self.settled.get(operation, 0)
                distance = self.state.issued[number] - score
                if not queue.unordered and distance >= self.flow.limits[queue.counter]:
                    continue  # issue waits while a counter is full, so the oldest has completed
                read = reads & event.writes & open_
                written = overwrites & event.writes & open_ & ~read
                read_late = decoded.writes & event.holds & open_
                if read or written:
                    writer = self.flow.program.instructions[operation].decoded
                    registers = shared_registers(decoded, writer, read | written)
                    read, written = read & registers, written & registers
                if read:
                    yield _Clash(queue, operation, read, distance, "reads")
                if written:
                    yield _Clash(queue, operation, written, distance, "overwrites")
                if read_late:
                    yield _Clash(queue, operation, read_late, distance, "overwrites")

    def _wait_limit(self, clash: _Clash) -> int:
        """The largest value a wait on the counter may have."""
        if clash.queue.unordered:
            return 0
        return min(clash.distance, self.flow.limits[clash.queue.counter] - 1)

    def _violation(self, instruction: Instruction, clash: _Clash, value: int) -> Violation:
        program = self.flow.program
        names = tuple(register_names(clash.registers))
        writer = program.instructions[clash.operation].decoded
        remedy = wait_text(program.target, clash.queue.counter, value)
        access = "written" if clash.registers & writer.writes else "read"
        return Violation(
            instruction=instruction.index,
            registers=names,
            cause=clash.operation,
            counter=clash.queue.counter,
            value=value,
            remedy=remedy,
            statement=f"`{instruction.decoded.text}` {clash.verb} {list_registers(names)} before "
            f"`{writer.text}` is sure to have {access} {'it' if len(names) == 1 else 'them'}",
        )


def wait_text(target: str, counter: str, value: int) -> str:
    """The instruction that waits until `counter` is at most `value`."""
    if counter_set(target) == "separate":
        return f"s_wait_{counter} {value:#x}"
    if counter in _OWN_INSTRUCTION:
        return f"s_waitcnt_{counter} null, {value:#x}"
    return f"s_waitcnt {counter}({value})"


def issue_sources(decoded: Decoded) -> int:
    """What a memory instruction reads when it issues.

    A load into half a register leaves the other half alone, which the table states as a read of
    its destination; the data path merges it when the data arrive.
    """
    merged = others = 0
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is _READ_WRITE:
            merged |= operand.bits
        else:
            others |= operand.bits
    return decoded.reads & (~merged | (others & ~decoded.writes)) if merged else decoded.reads


def shared_registers(user: Decoded, writer: Decoded, registers: int) -> int:
    """`registers` without those of which the two use different 16-bit halves."""
    written = next(
        (_half(writer, *pair) for pair in _operands(writer) if pair[1].access is _READ_WRITE), ""
    )
    if not written:
        return registers
    apart = shared = 0
    for part in (user, user.second) if user.second is not None else (user,):
        for operand, role in _operands(part):
            if _half(part, operand, role) in ("", written):
                shared |= operand.bits
            else:
                apart |= operand.bits
    return registers & (shared | ~apart)


def _operands(decoded: Decoded) -> Iterator[tuple[Operand, OperandRole]]:
    return zip(decoded.operands, decoded.roles, strict=True)


def _half(decoded: Decoded, operand: Operand, role: OperandRole) -> str:
    """`l` or `h` where an operand is half a register: by its text, or by what a memory row moves
    (a load of 16 bits that does not merge extends them to the whole register)."""
    if decoded.memory is None or role.access is OperandAccess.WRITE:
        return operand.half
    if role.kind is not OperandKind.VECTOR or not 0 < decoded.memory.bytes <= _HALF_BYTES:
        return operand.half
    return "h" if decoded.opcode.memory_form.high else "l"


__all__ = ["issue_sources", "missing_waits", "shared_registers", "wait_text"]
