"""The log native code writes to: the first occurrence of each kind at each instruction, and counts.

Memory shared by the host threads of a launch, as 64-bit words: how many records there are, how many
fit, then the records; then one 64-bit count per instruction and kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.reports import KINDS, Kind
from wavecast.emulate.values import I64, PTR, context_word, element, load

# context words of check mode
RECORDS: Final = state.MODE
COUNTS: Final = state.MODE + 1
LDS_WRITES: Final = state.MODE + 2  # one 64-bit word per LDS dword
LDS_READS: Final = state.MODE + 3
PROGRESS: Final = state.MODE + 4  # of the workgroup's waves: see counters.py
SHADOWS: Final = state.MODE + 5  # pointers per known range: see records.py
LDS_ASIDE: Final = state.MODE + 6  # next to atomic operations: see lds_aside.py
CANARY: Final = state.MODE + 7  # 64-bit pattern of memory that was allocated and not written
ARRIVALS: Final = state.MODE + 8  # the barrier waves wait at: see memory.py
REGISTERS: Final = state.MODE + 9  # masks of undefined lanes: see registers.py
FIRST_GROUP: Final = state.MODE + 10  # added to numbers of workgroups in records
LAUNCH_BITS: Final = state.MODE + 11  # the number of the launch, where records have it
KNOWN_LAUNCHES: Final = state.MODE + 12  # a byte per launch, 1 where it ended before this one
NUMBER_MASKS: Final = state.MODE + 13  # special results by wave: see number_decisions.py
NUMBER_LISTS: Final = state.MODE + 14  # what stores and selections decide
NUMBER_VALUES: Final = state.MODE + 15  # how many values are too large: see overflows.py
CLOCKS: Final = state.MODE + 16  # what the waves of the workgroup have acquired: see clocks.py
ORDER_EVENT: Final = state.MODE + 17  # functions of launch_clocks.py
ORDER_QUERY: Final = state.MODE + 18
UPDATES: Final = state.MODE + 19  # addresses of loads that updates are made of: lost_updates.py
EQUALITIES: Final = state.MODE + 20  # values equal to what atomics returned: see arrivals.py
INACTIVE: Final = state.MODE + 21  # masks of lanes that read inactive ones: see inactive.py
EXITS: Final = state.MODE + 22  # waves that ended, and the last barrier: see exits.py
BOUNDS: Final = state.MODE + 23  # the memory every instruction may touch: see bounds.py
TAGS: Final = state.MODE + 24  # owners of addresses, by wave: see pointer_tags.py
OWNERS: Final = state.MODE + 25  # the memory of every owner: see owners.py
SCRATCH: Final = state.MODE + 26  # which bytes of scratch are written: see scratch_shadow.py
LDS_TAGS: Final = state.MODE + 27  # accesses of LDS since the last barrier: see lds/tags.py
LDS_PARTS: Final = state.MODE + 28  # stores of bytes of LDS that others hide: see lds/parts.py
LDS_LOADERS: Final = state.MODE + 29  # by dword and wave its last load: see named_barriers.py
assert LDS_LOADERS < state.TRACE

LAUNCH_SHIFT: Final = 40
"""Bits of a detail below the number of the other launch: the order of a race (`shadow.py`), and
from bit 8 on the other wave + 1 or workgroup + 1."""
_FIELDS: Final = 8
_CAPACITY: Final = 4096


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """An entry of the log. `lanes` is a mask; `other` an instruction + 1, or 0."""

    kind: Kind
    instruction: int
    workgroup: int
    wave: int
    lanes: int
    address: int
    other: int
    detail: int
    count: int

    @property
    def author(self) -> int:
        """The other side of a race: wave + 1 or workgroup + 1, 0 for several."""
        return self.detail >> 8 & (1 << LAUNCH_SHIFT - 8) - 1

    @property
    def launch(self) -> int:
        """The number of the other side's launch, 0 where launches are not compared."""
        return self.detail >> LAUNCH_SHIFT


class Log:
    """The memory of one launch's log."""

    def __init__(self, instructions: int) -> None:
        self.records = np.zeros(2 + _CAPACITY * _FIELDS, np.uint64)
        self.records[1] = _CAPACITY
        self.counts = np.zeros(max(instructions, 1) * KINDS, np.uint64)

    def attach(self, context: np.ndarray) -> None:
        """Put the log's addresses into a host thread's context."""
        context[RECORDS] = self.records.ctypes.data
        context[COUNTS] = self.counts.ctypes.data

    def read(self) -> list[CheckRecord]:
        """What was written, by instruction."""
        written = min(int(self.records[0]), _CAPACITY)
        rows = self.records[2 : 2 + written * _FIELDS].reshape(-1, _FIELDS).tolist()
        records = []
        for site, workgroup, wave, lanes, address, other, detail, _ in rows:
            instruction, kind = divmod(site, KINDS)
            count = int(self.counts[site])
            records.append(
                CheckRecord(
                    Kind(kind), instruction, workgroup, wave, lanes, address, other, detail, count
                )
            )
        return sorted(records, key=lambda record: (record.instruction, record.kind))


def log_function(module: ir.Module) -> ir.Function:
    """`void log(ptr context, i64 site, i64 lanes, i64 address, i64 other, i64 detail)`, where site
    is instruction * KINDS + kind."""
    declaration = module.globals.get("log")
    if declaration is not None:
        return declaration
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR] + [I64] * 5), "log")
    function.linkage = "internal"
    function.attributes.add("noinline")
    context, site, lanes, address, other, detail = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))

    word = partial(context_word, builder, context)
    counts = word(COUNTS, PTR)
    before = builder.atomic_rmw("add", element(builder, counts, site, I64), I64(1), "monotonic")
    with builder.if_then(builder.icmp_unsigned("==", before, I64(0))):
        records = word(RECORDS, PTR)
        number = builder.atomic_rmw("add", records, I64(1), "monotonic")
        capacity = load(builder, element(builder, records, 1, I64), I64, 8)
        with builder.if_then(builder.icmp_unsigned("<", number, capacity)):
            start = builder.add(builder.mul(number, I64(_FIELDS)), I64(2))
            values = [
                site, word(state.WORKGROUP), word(state.WAVE), lanes, address, other,
                detail, word(state.PHASE),
            ]  # fmt: skip
            for index, value in enumerate(values):
                slot = element(builder, records, builder.add(start, I64(index)), I64)
                builder.store(value, slot)
    builder.ret_void()
    return function


def emit(
    emitter: WaveEmitter,
    kind: Kind,
    instruction: int,
    *,
    lanes: Any,
    address: Any = None,
    other: Any = None,
    detail: Any = None,
) -> None:
    """Write to the log from a kernel's own code. `lanes` is a mask (i32 or i64); `other` an
    instruction + 1 (i64); `detail` any i64 the report's message is made of."""
    builder = emitter.builder
    wide = lanes if lanes.type == I64 else builder.zext(lanes, I64)
    arguments = [wide] + [I64(0) if value is None else value for value in (address, other, detail)]
    site = I64(instruction * KINDS + kind)
    builder.call(log_function(emitter.module), [emitter.context, site, *arguments])


__all__ = ["KINDS", "LAUNCH_SHIFT", "CheckRecord", "Log", "emit", "log_function"]
