"""A program as arrays: what each instruction asks of a compute unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from wavecast.analyze.charges import Charge, Charges
from wavecast.arch import Device
from wavecast.isa.counters import LIMITS, counter_set, events
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import Control, MemoryKind, OperandAccess, Role, Space
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC, REGISTERS
from wavecast.isa.waits import awaits, sets_priority, sleeps, wait_counters
from wavecast.perfmodel.streams import REQUEST

Array = np.ndarray[Any, Any]

CATEGORIES: Final = ("", "vector", "scalar", "lds", "vmem", "branch")
"""Issue categories; of each but the first a SIMD issues at most one instruction per slot."""
(NO_UNIT, VALU, MATRIX, TRANS, SALU, SMEM, LDS, VMEM, BRANCH, BARRIER, SIGNAL, PRIORITY, END) = (
    range(13)
)
"""What an instruction occupies, as numbers: `Code.pipe`."""
_PIPES: Final = {
    "valu": VALU,
    "matrix": MATRIX,
    "trans": TRANS,
    "salu": SALU,
    "smem": SMEM,
    "lds": LDS,
    "vmem": VMEM,
    "branch": BRANCH,
}
LOAD, STORE, ATOMIC, TO_LDS = range(4)
_KINDS: Final = {
    MemoryKind.LOAD: LOAD,
    MemoryKind.STORE: STORE,
    MemoryKind.ATOMIC: ATOMIC,
    MemoryKind.LOAD_TO_LDS: TO_LDS,
    MemoryKind.STORE_FROM_LDS: STORE,
    MemoryKind.PERMUTE: LOAD,
}
LINE: Final = 128.0
"""Bytes of a cache line where only their number matters."""
KEPT: Final = 32
"""Programs whose arrays are kept."""
COUNTERS: Final = 8
"""Wait counters of a wave that the simulator keeps."""
_NUMBERS: Final = {
    "vmcnt": 0,
    "loadcnt": 0,
    "vscnt": 1,
    "storecnt": 1,
    "lgkmcnt": 2,
    "dscnt": 2,
    "kmcnt": 3,
    "expcnt": 4,
    "asynccnt": 5,
    "tensorcnt": 6,
}


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Arrays over the instructions of a program, in clocks and bytes.

    `pipe`, `category` and `kind` are numbers (the constants of this module). `issue` is how long
    the pipe is taken, `latency` issue to result, `chained` the same for a matrix instruction that
    accumulates onto it, `idle` slots a no-op lets pass. Operands are spans of registers in one
    table each (`reads`, `accumulators`, `writes`: i32[n, 2]) with the first row of every
    instruction in `*_start`. `counters` (i8[n, 2]) are the wait counters an instruction counts in,
    -1 for none; `waits` (i8[n, COUNTERS]) what may be outstanding after it, -1 for any number.
    `slots` is how many requests a memory instruction makes, 0 for others; `lds_bytes` what a wave
    moves through the LDS port, `moved` what it moves between registers and the vector L1.
    `contiguous` (f32[n, REQUEST]) is the request of an execution whose lanes follow one another in
    memory (columns as in `streams`). `size` is the instruction's bytes.
    """

    program: Program
    charges: tuple[Charge, ...]
    pipe: Array
    category: Array
    kind: Array
    issue: Array
    latency: Array
    chained: Array
    idle: Array
    reads: Array
    reads_start: Array
    accumulators: Array
    accumulators_start: Array
    writes: Array
    writes_start: Array
    counters: Array
    waits: Array
    slots: Array
    lds_bytes: Array
    moved: Array
    contiguous: Array
    priority: Array
    size: Array
    limits: Array
    registers: int

    @staticmethod
    def of(program: Program, device: Device, wave_lanes: int) -> Code:
        """The arrays of a program for a device; those of the latest programs are kept. Raises
        MissingFact where no costs are known."""
        return _code(_Identity(program), device, wave_lanes)


class _Identity:
    """A program as a key: only the same object is equal."""

    __slots__ = ("program",)

    def __init__(self, program: Program) -> None:
        self.program = program

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.program is other.program


@lru_cache(maxsize=KEPT)
def _code(key: _Identity, device: Device, lanes: int) -> Code:
    program = key.program
    charges = Charges(device, lanes)
    instructions = program.instructions
    by_instruction = tuple(charges.of(i.decoded) for i in instructions)
    number = len(instructions)
    limits = np.full(COUNTERS, 63, np.int8)
    for name, limit in LIMITS[counter_set(program.target)].items():
        limits[_NUMBERS[name]] = limit
    operands = _operands(instructions, by_instruction)
    spans = [operands[name] for name in ("reads", "accumulators", "writes")]
    code = Code(
        program=program,
        charges=by_instruction,
        pipe=np.zeros(number, np.int8),
        category=np.zeros(number, np.int8),
        kind=np.zeros(number, np.int8),
        issue=np.zeros(number, np.float32),
        latency=np.zeros(number, np.float32),
        chained=np.zeros(number, np.float32),
        idle=np.zeros(number, np.float32),
        **operands,
        counters=np.full((number, 2), -1, np.int8),
        waits=np.full((number, COUNTERS), -1, np.int8),
        slots=np.zeros(number, np.int8),
        lds_bytes=np.zeros(number, np.float32),
        moved=np.zeros(number, np.float32),
        contiguous=np.zeros((number, REQUEST), np.float32),
        priority=np.zeros(number, np.int8),
        size=np.array([_size(i.decoded) for i in instructions], np.int8),
        limits=limits,
        registers=max((int(table.max()) for table in spans if len(table)), default=0) + 1,
    )
    for instruction, charge in zip(instructions, by_instruction, strict=True):
        _fill(code, instruction, charge, device, lanes)
    return code


def _fill(code: Code, instruction: Instruction, charge: Charge, device: Device, lanes: int) -> None:
    at, decoded, row = instruction.index, instruction.decoded, instruction.opcode
    code.pipe[at] = _pipe(instruction, charge)
    code.category[at] = CATEGORIES.index(charge.category)
    code.issue[at] = charge.cycles
    code.latency[at] = charge.cycles if charge.latency is None else charge.latency
    chained = charge.chained_latency
    code.chained[at] = code.latency[at] if chained is None else chained
    code.idle[at] = charge.idle + _sleep(instruction)
    memory = decoded.memory
    if memory is not None:
        code.kind[at] = _KINDS[memory.kind]
        shuffles = memory.kind is MemoryKind.PERMUTE
        code.slots[at] = 0 if shuffles else row.memory_form.offsets
        code.lds_bytes[at] = 4.0 * lanes if shuffles else charge.bytes_lds
        bytes_moved = code.moved[at] = charge.bytes_global
        if code.category[at] == CATEGORIES.index("lds"):
            code.contiguous[at, 4] = charge.shared_cycles or 0.0
        else:
            code.contiguous[at, :4] = bytes_moved / LINE, bytes_moved, bytes_moved, bytes_moved
        if memory.space is Space.SCALAR:
            code.issue[at] = device.cost(row.cost_class, lanes).issue_cycles
    for number, event in enumerate(events(decoded, code.program.target)):
        code.counters[at, number] = _NUMBERS[event.queue.counter]
    for name, value in wait_counters(instruction, code.program.target).items():
        if name in _NUMBERS:
            number = _NUMBERS[name]
            before = code.waits[at, number]
            code.waits[at, number] = value if before < 0 else min(before, value)
    if code.pipe[at] == PRIORITY:
        code.priority[at] = _immediate(instruction)


def _pipe(instruction: Instruction, charge: Charge) -> int:
    row = instruction.opcode
    if row.control is Control.END:
        return END
    if row.role is Role.BARRIER:
        if not awaits(row):
            return SIGNAL
        return BARRIER
    if sets_priority(row):
        return PRIORITY
    return _PIPES.get(charge.pipe, NO_UNIT)


def _sleep(instruction: Instruction) -> float:
    """Slots a wave sleeps: `s_sleep n` is about 64 n clocks (CDNA3 ISA, SOPP)."""
    return 16.0 * _immediate(instruction) if sleeps(instruction.opcode) else 0.0


def _immediate(instruction: Instruction) -> int:
    values = [o.value for o in instruction.operands if o.value is not None]
    return values[0] if values else 0


def _operands(
    instructions: tuple[Instruction, ...], charges: tuple[Charge, ...]
) -> dict[str, Array]:
    tables: dict[str, list[tuple[int, int]]] = {"reads": [], "accumulators": [], "writes": []}
    starts: dict[str, list[int]] = {name: [0] for name in tables}
    for instruction, charge in zip(instructions, charges, strict=True):
        decoded = instruction.decoded
        memory = decoded.memory is not None
        accumulated = _accumulators(decoded) if charge.chained_latency is not None else 0
        tables["reads"] += _spans(decoded.reads & ~accumulated & ~EXEC)
        tables["accumulators"] += _spans(accumulated)
        tables["writes"] += () if memory else _spans(decoded.writes & ~EXEC)
        for name, table in tables.items():
            starts[name].append(len(table))
    operands: dict[str, Array] = {}
    is_used = np.zeros(REGISTERS + 1, np.int32)
    for table in tables.values():
        for low, high in table:
            is_used[low:high] = 1
    index = np.concatenate([[0], np.cumsum(is_used)]).astype(np.int32)
    for name, table in tables.items():
        operands[name] = index[np.array(table, np.int32).reshape(-1, 2)]
        operands[f"{name}_start"] = np.array(starts[name], np.int32)
    return operands


def _accumulators(decoded: Decoded) -> int:
    """The registers of the C operand: the destination itself, or the fourth operand printed."""
    if decoded.roles and decoded.roles[0].access is OperandAccess.READ_WRITE:
        return decoded.operands[0].bits
    return decoded.operands[3].bits if len(decoded.operands) > 3 else 0


def _spans(registers: int) -> list[tuple[int, int]]:
    """The runs of adjacent registers of a set, `[low, high)`."""
    runs = []
    while registers:
        low = (registers & -registers).bit_length() - 1
        rest = ~(registers >> low)
        count = (rest & -rest).bit_length() - 1
        runs.append((low, low + count))
        registers &= ~(((1 << count) - 1) << low)
    return runs


_LONG: Final = frozenset(
    {"VOP3", "VOP3P", "MFMA", "WMMA", "MUBUF", "GLOBAL", "FLAT", "SCRATCH", "DS", "SMEM", "EXP"}
)


def _size(decoded: Decoded) -> int:
    """Bytes of the encoding: two dwords for the long formats, one for the others, and a literal."""
    long = decoded.opcode.form in _LONG or "e64" in decoded.encoding or decoded.second is not None
    literal = any(
        operand.kind is OperandClass.CONSTANT
        and operand.value is not None
        and not -16 <= operand.value <= 64
        for operand in decoded.operands
        if decoded.opcode.form not in ("SOPP", "SOPK") and not operand.text.startswith("off")
    )
    return 8 if long else 8 if literal else 4


__all__ = ["COUNTERS", "Code"]
