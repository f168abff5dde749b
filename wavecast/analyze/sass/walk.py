"""Warps of some workgroups followed through SASS: their blocks and the addresses they access.

All warps are followed at once, as lanes with a program counter each; the lanes at the lowest
address execute first, so that branches meet again as compilers lay them out. Only what addresses,
guards and branches depend on is evaluated. What depends on data is unknown: an access with unknown
lanes is recorded without addresses, a guard that is unknown lets all lanes execute, a forward
branch is not taken, and a loop has no trip count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from wavecast.analyze.sass import tensor_copies
from wavecast.analyze.sass.evaluated import EVALUATED
from wavecast.analyze.sass.lanes import LANES, Lanes, Value, low
from wavecast.analyze.sass.launch_constants import LaunchConstants
from wavecast.analyze.sass.operands import ZERO, Register, SassOperation, operation
from wavecast.analyze.sass.shared_words import SharedWords
from wavecast.analyze.sass.slices import backward_slice
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.isa.opcode import Control, Space
from wavecast.isa.program import Program

Array = np.ndarray[Any, Any]

MOST_STEPS: Final = 40_000
"""Runs of instructions that are followed at most."""
RECORDED: Final = frozenset({Space.GLOBAL, Space.FLAT, Space.LDS})
"""The memory whose accesses are recorded; what a thread accesses of its stack and of constants is
known without its addresses."""
_JUMPS: Final = frozenset({Control.BRANCH, Control.CONDITIONAL, Control.CALL})
_OVER: Final = 1 << 30
"""The program counter of a lane that has ended."""


@dataclass(frozen=True, slots=True, eq=False)
class WarpAccess:
    """An execution of a memory instruction. `warps` (i64[w]) are those that execute it, `lanes`
    (bool[w, 32]) which of their lanes, `addresses` (u64[w, 32]) bytes, None where unknown; `step`
    is the number of the block execution it belongs to. `operands` (i64[w, n]) are those of TMA
    copies and of arrivals with bytes (`tensor_copies`)."""

    instruction: int
    step: int
    warps: Array
    lanes: Array
    addresses: Array | None
    operands: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WarpPaths:
    """What warps executed, as runs of instructions without a jump: run n has the instructions
    `[starts[n], stops[n])` (i64). `blocks` (i64[s]) are the runs in the order they were followed,
    `members` (bool[s, warps]) which warps executed each; `accesses` the memory instructions in
    order. `unknown` maps what depends on data (`addresses`, `branches`, `ends`, `guards`) to the
    source line of the first."""

    starts: Array
    stops: Array
    blocks: Array
    members: Array
    accesses: tuple[WarpAccess, ...]
    unknown: dict[str, SourceLocation | None]

    def of_warp(self, warp: int) -> Array:
        """The blocks (i64[n]) a warp executed, in order."""
        return self.blocks[self.members[:, warp]]


@dataclass(slots=True)
class _Record:
    blocks: list[int] = field(default_factory=list)
    members: list[Array] = field(default_factory=list)
    accesses: list[WarpAccess] = field(default_factory=list)
    unknown: dict[str, SourceLocation | None] = field(default_factory=dict)


def follow(program: Program, launch: Launch, workgroups: Array, warps: Array) -> WarpPaths:
    """Follow warps through a kernel: warp n is number `warps[n]` (i64) of the workgroup at
    `workgroups[n]` (i64[., 3]).

    Raises Unpredictable where a loop depends on data, the arguments are not known, or the warps
    run for longer than `MOST_STEPS` blocks.
    """
    return _Walk(program, launch, workgroups, warps).paths()


class _Walk:
    def __init__(self, program: Program, launch: Launch, workgroups: Array, warps: Array) -> None:
        self._program = program
        self._starts, self._stops = _runs(program)
        self._run_of = {int(start): number for number, start in enumerate(self._starts)}
        self._operations = [operation(i.decoded) for i in program.instructions]
        self._needed = backward_slice(program, self._operations)
        self._recorded = [
            op.name in ("SYNCS", "UTCBAR") or (i.memory is not None and i.memory.space in RECORDED)
            for i, op in zip(program.instructions, self._operations, strict=True)
        ]
        size = launch.block[0] * launch.block[1] * launch.block[2]
        whole = len(warps) % -(-size // LANES) == 0 and len(np.unique(warps)) == -(-size // LANES)
        groups = np.unique(workgroups, axis=0, return_inverse=True)[1].reshape(-1)
        self._shared = SharedWords(groups) if whole else None
        self._lanes = Lanes(LaunchConstants(launch, workgroups, warps), len(warps))
        self._next = np.zeros((len(warps), LANES), np.int64)
        threads = warps[:, None] * LANES + np.arange(LANES)
        self._next[threads >= size] = _OVER
        self._trace = _Record()

    def paths(self) -> WarpPaths:
        """Follow the warps to their ends."""
        trace = self._trace
        while True:
            at = int(self._next.min())
            if at == _OVER:
                break
            if len(trace.blocks) >= MOST_STEPS:
                raise Unpredictable(f"warps run for more than {MOST_STEPS} blocks of code")
            self._execute(self._run_of[at])
        return WarpPaths(
            self._starts,
            self._stops,
            np.array(trace.blocks, np.int64),
            np.array(trace.members).reshape(len(trace.blocks), -1),
            tuple(trace.accesses),
            trace.unknown,
        )

    def _execute(self, number: int) -> None:
        """One run of instructions, by the lanes that are at its start."""
        lanes = self._lanes
        start, stop = int(self._starts[number]), int(self._stops[number])
        here = self._next == start
        lanes.active = lanes.relevant = here
        lanes.all_active = bool((here | (self._next == _OVER)).all())
        self._trace.blocks.append(number)
        self._trace.members.append(here.any(axis=1))
        for instruction in self._program.instructions[start:stop]:
            at = instruction.index
            op = self._operations[at]
            if self._recorded[at]:
                self._access(instruction, op)
            if self._needed[at]:
                self._evaluate(op)
            control = instruction.opcode.control
            if op.name == "EXIT":
                self._end(op)
            elif control in _JUMPS:
                self._jump(instruction, op)
                return
            elif op.name in ("RET", "BRX", "BRXU", "JMX"):
                self._return(instruction, op)
                return
        self._next[lanes.active] = stop

    def _evaluate(self, op: SassOperation) -> None:
        """Execute an instruction; lanes its guard stops may have unknown operands."""
        lanes = self._lanes
        guard = lanes.guard(op)
        if guard is not None and op.guard is not None:
            lanes.relevant = lanes.active & guard
        self._compute(op)
        lanes.relevant = lanes.active

    def _compute(self, op: SassOperation) -> None:
        if op.name in ("LDG", "LD"):
            self._load(op)
            return
        if op.name in ("LDL", "STL"):
            self._stack(op)
            return
        if op.name in ("LDS", "STS"):
            self._exchange(op)
            return
        evaluate = EVALUATED.get(op.name)
        if evaluate is not None:
            evaluate(op, self._lanes)
            return
        guard = self._lanes.guard(op)
        for register in op.writes:
            self._lanes.put(register, None, guard)
            for following in range(1, _width(op)):
                more = Register(register.file, register.number + following)
                if register.number != ZERO and register.file in ("R", "UR"):
                    self._lanes.put(more, None, guard)

    def _load(self, op: SassOperation) -> None:
        """A load of what the launch carries: indices, labels, tables of blocks."""
        lanes, guard = self._lanes, self._lanes.guard(op)
        modifiers = op.modifiers
        width = 8 if "64" in modifiers else 2 if "U16" in modifiers or "S16" in modifiers else 4
        value: Value = None
        simple = not {"128", "U8", "S8", "256"} & set(modifiers)
        address = lanes.address(op.addresses[-1]) if op.addresses and simple else None
        if address is not None and guard is not None:
            lane_mask = np.broadcast_to(lanes.active & guard, lanes.active.shape)
            whole = np.broadcast_to(address, lane_mask.shape)
            if lane_mask.any():
                first = whole[lane_mask][0]
                safe = np.where(lane_mask, whole, first)
                value = lanes.constants.load_values(safe, width, sign="S16" in modifiers)
        if width == 8:
            lanes.put_pair(op.writes[0], value, guard)
            return
        for part in range(4 if "128" in modifiers else 1):
            register = Register(op.writes[0].file, op.writes[0].number + part)
            word = None if value is None or part else low(value)
            lanes.put(register, word, guard)

    def _stack(self, op: SassOperation) -> None:
        """Spilled registers: words of the stack are registers whose number is their address."""
        lanes, guard = self._lanes, self._lanes.guard(op)
        address = lanes.address(op.addresses[-1]) if op.addresses else None
        count = {"64": 2, "128": 4}.get(op.modifiers[-1] if op.modifiers else "", 1)
        base = int(address.flat[0]) if address is not None and address.size == 1 else None
        for part in range(count):
            slot = None if base is None else Register("stack", base + 4 * part)
            if op.name == "STL":
                source = op.reads[0].register
                if slot is not None and source is not None:
                    number = source.number + (part if source.number != ZERO else 0)
                    lanes.put(slot, lanes.register(Register("R", number)), guard)
            else:
                target = Register("R", op.writes[0].number + part)
                lanes.put(target, None if slot is None else lanes.register(slot), guard)

    def _exchange(self, op: SassOperation) -> None:
        """Words that warps of a workgroup pass through shared memory."""
        lanes, guard = self._lanes, self._lanes.guard(op)
        address = lanes.address(op.addresses[-1]) if op.addresses else None
        narrow = bool({"U8", "S8", "U16", "S16"} & set(op.modifiers))
        count = {"64": 2, "128": 4}.get(op.modifiers[-1] if op.modifiers else "", 1)
        active = lanes.active if guard is None else lanes.active & guard
        shared = self._shared
        if op.name == "STS":
            source = op.reads[0].register
            for part in range(count if shared is not None else 0):
                assert shared is not None
                number = ZERO if source is None else source.number
                number += part if number != ZERO else 0
                value = None if narrow else lanes.register(Register("R", number))
                shared.store(address, 4 * part, active, value)
            return
        for part in range(count):
            value = None
            if shared is not None and address is not None and not narrow:
                value = shared.load(address, 4 * part, active)
            lanes.put(Register("R", op.writes[0].number + part), value, guard)

    def _access(self, instruction: Instruction, op: SassOperation) -> None:
        lanes = self._lanes
        guard: Value = lanes.guard(op)
        if op.name == "LDGSTS" and guard is not None:  # its last predicate masks lanes too
            flags = [o for o in op.reads if o.register is not None and o.register.file == "P"]
            mask = lanes.predicate(flags[-1]) if flags else guard
            guard = None if mask is None else guard & mask
        if guard is None:
            self._note("guards", instruction)
        lane_mask = lanes.active if guard is None else lanes.active & guard
        warps = np.flatnonzero(lane_mask.any(axis=1))
        if not len(warps):
            return
        copies = tensor_copies.is_copy(op)
        target = op.addresses[-1] if op.addresses and not copies else None
        lanes.relevant = lane_mask
        address = lanes.address(target) if target is not None else None
        operands = tensor_copies.operands(op, lanes, warps, lane_mask[warps])
        lanes.relevant = lanes.active
        whole = None
        if address is not None:
            whole = np.broadcast_to(address, lane_mask.shape)[warps]
        elif target is not None and instruction.memory is not None:
            self._note("addresses", instruction)
        self._trace.accesses.append(
            WarpAccess(
                instruction.index,
                len(self._trace.blocks) - 1,
                warps,
                lane_mask[warps],
                whole,
                operands,
            )
        )

    def _end(self, op: SassOperation) -> None:
        lanes, guard = self._lanes, self._lanes.guard(op)
        if guard is None:
            self._note("ends", self._program.instructions[0])
            return
        over = lanes.active & guard
        self._next[over] = _OVER
        lanes.active = lanes.relevant = lanes.active & ~over
        lanes.all_active = bool((lanes.active | (self._next == _OVER)).all())

    def _jump(self, instruction: Instruction, op: SassOperation) -> None:
        """A branch: to its target where its guard and condition hold, else to the next block."""
        lanes = self._lanes
        target = self._target(instruction)
        condition = lanes.guard(op)
        for operand in op.reads:
            if operand.register is not None and operand.register.file in ("P", "UP"):
                flag = lanes.predicate(operand)
                condition = None if condition is None or flag is None else condition & flag
        if "DIV" in op.modifiers:  # warps whose lanes diverge; here they meet again
            condition = np.zeros((1, 1), bool)
        if condition is None:
            if target <= instruction.index:
                where = instruction.location
                line = f" at line {where.outermost.line}" if where else ""
                raise Unpredictable(f"the loop{line} depends on data")
            self._note("branches", instruction)
            condition = np.zeros((1, 1), bool)
        jumps = lanes.active & condition
        self._next[lanes.active] = instruction.index + 1
        self._next[jumps] = target

    def _return(self, instruction: Instruction, op: SassOperation) -> None:
        """A jump to an address in a register: the function's own addresses are known numbers."""
        lanes = self._lanes
        registers = [o.register for o in op.reads if o.register is not None]
        value = lanes.register(registers[0]) if registers else None
        if value is None:
            where = instruction.location
            line = f" at line {where.outermost.line}" if where else ""
            raise Unpredictable(f"the jump{line} goes to an address that depends on data")
        targets = np.broadcast_to(value, lanes.active.shape).astype(np.int64) // 16
        self._next[lanes.active] = targets[lanes.active]

    def _target(self, instruction: Instruction) -> int:
        label = instruction.operands[0].text if instruction.operands else ""
        for block in self._program.blocks:
            if block.label == label:
                return block.start
        if label.startswith("@"):
            return int(label[1:], 16) // 16
        raise Unpredictable(f"a branch to {label or 'an unknown address'}")

    def _note(self, what: str, instruction: Instruction) -> None:
        self._trace.unknown.setdefault(what, instruction.location)


def _runs(program: Program) -> tuple[Array, Array]:
    """The instructions between jumps and their targets: blocks, divided after calls."""
    starts = {block.start for block in program.blocks}
    starts |= {
        i.index + 1
        for i in program.instructions[:-1]
        if i.opcode.control is Control.CALL or i.opcode.name == "RET"
    }
    first = np.array(sorted(starts), np.int64)
    return first, np.append(first[1:], len(program.instructions))


def _width(op: SassOperation) -> int:
    """Registers a result takes, by the width an opcode prints."""
    for modifier in op.modifiers:
        if modifier in ("64", "WIDE", "F64"):
            return 2
        if modifier in ("128", "x4"):
            return 4
    return 1


__all__ = ["MOST_STEPS", "WarpAccess", "WarpPaths", "follow"]
