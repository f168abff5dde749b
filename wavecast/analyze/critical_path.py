"""The loop-carried dependency chain: the least cycles between two iterations of one wave.

Registers become ready some latency after their instruction has its operands; nothing else is
modelled. Run over an iteration again and again, the ready times of a register that depends on
itself grow by the length of its chain. The growth over two iterations, halved, covers chains that
alternate between two registers. Values carried through memory are not followed.
"""

from __future__ import annotations

from functools import lru_cache

from wavecast.analyze.charges import Charge
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import OperandAccess
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC

_WARM_UP = 1
_WINDOW = 2

Span = tuple[int, int]


class _Step:
    """One instruction as the chain sees it: register spans read and written, and latencies."""

    __slots__ = ("accumulators", "chained", "latency", "reads", "writes")

    def __init__(self, decoded: Decoded, charge: Charge) -> None:
        accumulators = _accumulators(decoded) if charge.chained_latency is not None else 0
        self.reads = _spans(decoded.reads & ~accumulators & ~EXEC)
        self.accumulators = _spans(accumulators)
        self.writes = _spans(decoded.writes)
        self.latency = charge.latency if charge.latency is not None else charge.cycles
        chained = charge.chained_latency
        self.chained = self.latency if chained is None else chained


def critical_path(program: Program, order: list[int], charges: list[Charge]) -> float:
    """Cycles per iteration of the longest chain through the loop blocks in `order`.

    `order` lists the blocks of the loop's own body in execution order; branches inside are taken
    as executed. `charges` holds one charge per instruction of the program. EXEC is left out as an
    operand: masks do not delay the lanes they keep.
    """
    steps = []
    cache: dict[Decoded, _Step] = {}
    for number in order:
        block = program.blocks[number]
        for index in range(block.start, block.stop):
            decoded = program.instructions[index].decoded
            if not decoded.writes:
                continue
            step = cache.get(decoded)
            if step is None:
                step = cache[decoded] = _Step(decoded, charges[index])
            steps.append(step)
    written = {span for step in steps for span in step.writes}
    if not written:
        return 0.0
    size = max(
        stop for step in steps for _, stop in (*step.reads, *step.accumulators, *step.writes)
    )
    ready, chained = [0.0] * size, [0.0] * size
    before: list[float] = []
    for iteration in range(_WARM_UP + _WINDOW):
        if iteration == _WARM_UP:
            before = list(ready)
        _iterate(steps, ready, chained)
    growth = max(ready[i] - before[i] for start, stop in written for i in range(start, stop))
    return round(growth / _WINDOW, 3)


def _iterate(steps: list[_Step], ready: list[float], chained: list[float]) -> None:
    for step in steps:
        start = 0.0
        for low, high in step.reads:
            time = ready[low] if high - low == 1 else max(ready[low:high])
            if time > start:
                start = time
        for low, high in step.accumulators:
            time = max(chained[low:high])
            if time > start:
                start = time
        for low, high in step.writes:
            count = high - low
            ready[low:high] = [start + step.latency] * count
            chained[low:high] = [start + step.chained] * count


def _accumulators(decoded: Decoded) -> int:
    """The registers of the C operand: the destination itself, or the fourth operand printed."""
    if decoded.roles and decoded.roles[0].access is OperandAccess.READ_WRITE:
        return decoded.operands[0].bits
    return decoded.operands[3].bits if len(decoded.operands) > 3 else 0


@lru_cache(maxsize=4096)
def _spans(registers: int) -> tuple[Span, ...]:
    """The runs of adjacent registers of a set, `[low, high)`."""
    runs = []
    while registers:
        low = (registers & -registers).bit_length() - 1
        rest = ~(registers >> low)
        count = (rest & -rest).bit_length() - 1
        runs.append((low, low + count))
        registers &= ~(((1 << count) - 1) << low)
    return tuple(runs)
