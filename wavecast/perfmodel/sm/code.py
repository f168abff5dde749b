"""A SASS program as arrays: what each instruction asks of a streaming multiprocessor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.analyze.charges import Charge
from wavecast.analyze.sass.control import ControlBits
from wavecast.analyze.sass.operands import operation
from wavecast.analyze.sass.rates import SUB_PARTITIONS
from wavecast.analyze.sass.table import UNKNOWN_COST
from wavecast.errors import Unpredictable
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program

Array = np.ndarray[Any, Any]

(
    NO_UNIT,
    FMA,
    ALU,
    HALF,
    FP64,
    XU,
    MATRIX,
    WARPGROUP,
    TCGEN,
    LSU,
    UNIFORM,
    CONSTANT,
    TENSOR_LOAD,
) = range(13)
"""What an instruction occupies, as numbers: `SmCode.pipe`."""
PIPES: Final = 13
"""How many pipes there are."""
(
    PLAIN,
    LOAD,
    STORE,
    ATOMIC,
    SHARED,
    TO_SHARED,
    TMA,
    GROUP_END,
    BARRIER,
    ARRIVAL,
    PHASE_WAIT,
    COMMIT,
) = range(12)
"""What it does beyond its pipe: `SmCode.kind`."""
COUNTERS: Final = 8
"""Six scoreboards, then copies to shared memory (`COPIES`) and groups of `wgmma`."""
COPIES: Final = 6
GROUPS: Final = 7
_UNITS: Final = {"fma": FMA, "alu": ALU, "half": HALF, "fp64": FP64}
_CLASS_PIPES: Final = {
    "mma_sync": MATRIX,
    "wgmma": WARPGROUP,
    "tcgen05": TCGEN,
    "mufu": XU,
    "convert": XU,
    "uniform": UNIFORM,
    "shuffle": LSU,
    "redux": LSU,
    "lsu": LSU,
    "tma": LSU,
}
_DEPENDENCY_BARRIER: Final = re.compile(r"(SB|gsb)(\d+), 0x([0-9a-f]+)")
_GROUP_BARRIER: Final = re.compile(r"\bgsb0\b")
_CONSTANTS: Final = frozenset({"LDC", "LDCU", "S2R", "S2UR"})
"""Instructions of variable latency that read constants or special registers."""


@dataclass(frozen=True, slots=True, eq=False)
class SmCode:
    """Arrays over the instructions of a program, in clocks and bytes.

    `pipe` and `kind` are numbers (the constants of this module). `issue` is how long the pipe of a
    sub-partition is taken; of tcgen05, how long the tensor cores of the SM are. `stall` is the
    clocks to the warp's next issue. `waits` (bool[n, 6]) are scoreboards that must have fallen;
    `written` and `read` the counters that fall with the result and with the operands, -1 for none.
    `left` and `counter` are those of an instruction that waits until at most `left` operations of a
    counter are outstanding, -1 without. `slots` is 1 where a row of the streams belongs to each
    execution. `lds_bytes` is what a warp moves between shared memory and registers; `members` the
    warps that meet at a barrier (0: all) and `barrier` its number.
    """

    program: Program
    charges: tuple[Charge, ...]
    controls: tuple[ControlBits, ...]
    pipe: Array
    kind: Array
    issue: Array
    stall: Array
    waits: Array
    written: Array
    read: Array
    counter: Array
    left: Array
    slots: Array
    lds_bytes: Array
    members: Array
    barrier: Array

    @staticmethod
    def of(
        program: Program, charges: tuple[Charge, ...], controls: tuple[ControlBits, ...], warps: int
    ) -> SmCode:
        """The arrays of a program with the charges and control bits of its instructions, in
        workgroups of `warps` warps. Raises Unpredictable for opcodes without a known cost."""
        number = len(program.instructions)
        code = SmCode(
            program=program,
            charges=charges,
            controls=controls,
            **{name: np.zeros(number, np.int32) for name in _WHOLE},
            **{name: np.full(number, -1, np.int32) for name in _ABSENT},
            issue=np.zeros(number, np.float32),
            lds_bytes=np.zeros(number, np.float32),
            waits=np.zeros((number, 6), bool),
        )
        for instruction, charge, control in zip(
            program.instructions, charges, controls, strict=True
        ):
            _fill(code, instruction, charge, control, warps)
        return code


_WHOLE: Final = ("pipe", "kind", "stall", "slots", "members", "barrier")
_ABSENT: Final = ("written", "read", "counter", "left")


def _fill(
    code: SmCode, instruction: Instruction, charge: Charge, control: ControlBits, warps: int
) -> None:
    at, cost, name = instruction.index, instruction.opcode.cost_class, instruction.opcode.name
    if cost == UNKNOWN_COST:
        raise Unpredictable(f"SASS opcode {name} has no known cost")
    op = operation(instruction.decoded)
    pipe = _UNITS.get(charge.unit, _CLASS_PIPES.get(cost, NO_UNIT))
    if op.name in _CONSTANTS:
        pipe = CONSTANT
    if op.name in ("LDTM", "STTM"):
        pipe = TENSOR_LOAD
    code.pipe[at] = pipe
    code.issue[at] = charge.cycles * (warps / SUB_PARTITIONS if pipe == TCGEN else 1.0)
    code.stall[at] = max(1, control.stall)
    for scoreboard in control.waits:
        code.waits[at, scoreboard] = True
    code.written[at] = -1 if control.written is None else control.written
    code.read[at] = -1 if control.read is None else control.read
    code.kind[at] = _kind(instruction, op.name, op.modifiers)
    if code.kind[at] in (LOAD, STORE, ATOMIC, SHARED, TO_SHARED, TMA, ARRIVAL, PHASE_WAIT, COMMIT):
        code.slots[at] = int(op.name not in ("LDC", "ULDC", "LDCU", "SHFL", "REDUX"))
    code.lds_bytes[at] = charge.bytes_lds
    if code.kind[at] == TO_SHARED and code.written[at] < 0:
        code.written[at] = COPIES
    text = instruction.decoded.text
    if pipe == WARPGROUP and _GROUP_BARRIER.search(text):
        code.written[at] = GROUPS
    match = _DEPENDENCY_BARRIER.search(text)
    if name in ("DEPBAR", "WARPGROUP.DEPBAR") and match is not None:
        code.counter[at] = GROUPS if match[1] == "gsb" else int(match[2])
        code.left[at] = int(match[3], 16)
    if code.kind[at] == BARRIER:
        numbers = [operand.value for operand in op.reads if operand.value is not None]
        code.barrier[at] = numbers[0] & 15 if numbers else 0
        code.members[at] = numbers[1] // 32 if len(numbers) > 1 else 0


def _kind(instruction: Instruction, name: str, modifiers: tuple[str, ...]) -> int:
    memory = instruction.memory
    if name == "LDGDEPBAR":
        return GROUP_END
    if name == "BAR":
        return ARRIVAL if "ARV" in modifiers else BARRIER
    if name == "SYNCS":
        if "PHASECHK" in modifiers:
            return PHASE_WAIT
        return ARRIVAL if "ARRIVE" in modifiers else PLAIN
    if name == "UTCBAR":
        return COMMIT
    if memory is None:
        return PLAIN
    if memory.space is Space.LDS:
        return SHARED
    if instruction.opcode.cost_class == "tma":
        return TMA
    return _MEMORY_KINDS.get(memory.kind, LOAD)


_MEMORY_KINDS: Final = {
    MemoryKind.STORE: STORE,
    MemoryKind.ATOMIC: ATOMIC,
    MemoryKind.LOAD_TO_LDS: TO_SHARED,
    MemoryKind.STORE_FROM_LDS: STORE,
}

__all__ = ["COUNTERS", "PIPES", "SmCode"]
