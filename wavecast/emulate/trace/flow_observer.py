"""What follows values through memory in a kernel's code."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.sites import call_observing
from wavecast.emulate.trace import flow_code, layout, memory_flow
from wavecast.emulate.trace.flow_code import SCALAR
from wavecast.emulate.trace.memory_flow import GLOBAL, LDS, SCRATCH, FlowPlan
from wavecast.emulate.trace.value_flow import access_dwords
from wavecast.emulate.values import I1, I8, I32, I64, PTR, VOID, context_word, element, load
from wavecast.isa.instruction import Instruction

_REGIONS_OF_MODE: Final = {
    "local": {LDS},
    "private": {SCRATCH},
    "flat": {LDS, SCRATCH, GLOBAL},
}


class FlowObserver(Observer):
    """Emits what marks stores and notes the marks of loads."""

    def __init__(self, plan: FlowPlan) -> None:
        self._plan = plan
        self._marks = {index: n + 1 for n, (index, dword) in enumerate(plan.stores) if not dword}
        self._loads = {index: n for n, (index, dword) in enumerate(plan.loads) if not dword}
        self._calls: dict[tuple[int, str], int] = defaultdict(int)

    def enter(self, emitter: WaveEmitter) -> None:
        """Marks of scratch end with a wave, those of LDS with a workgroup."""
        builder, context = emitter.builder, emitter.context
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            words = context_word(builder, context, layout.FLOW, PTR)
            if SCRATCH in self._plan.regions:
                first, size = flow_code.scratch_marks(builder, context, words, emitter.layout.lanes)
                _clear(emitter, first, size)
            if LDS in self._plan.regions:
                owner = element(builder, words, memory_flow.OWNER, I64)
                group = builder.add(context_word(builder, context, state.WORKGROUP), I64(1))
                other = builder.icmp_unsigned("!=", load(builder, owner, I64, 8), group)
                with builder.if_then(other):
                    builder.store(group, owner, align=8)
                    marks = load(
                        builder, element(builder, words, memory_flow.LDS_MARKS, I64), I64, 8
                    )
                    _clear(emitter, marks, context_word(builder, context, state.LDS_BYTES))

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        action = access.action if access.action in ("load", "store", "tolds") else "atomic"
        regions = _REGIONS_OF_MODE.get(access.mode, {GLOBAL})
        if action == "tolds":
            regions = regions | {LDS}
        if not regions & self._plan.regions:
            return
        first = self._first_dword(instruction, access)
        mark, number = self._marks.get(instruction.index, 0), self._loads.get(instruction.index, -1)
        if access.action == "arrive":  # a copy counts at a barrier; its data lie elsewhere
            mark, number = 0, -1
        self._call(
            emitter, access.mode, access.bytes, action, target, rows,
            number + first if number >= 0 else -1, mark + first if mark else 0,
        )  # fmt: skip

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        """An access of scalar memory, as lanes of a dword each."""
        memory = instruction.memory
        if memory is None or GLOBAL not in self._plan.regions:
            return
        action = memory.kind.value
        nothing = emitter.builder.inttoptr(I64(0), PTR)
        target = AccessTarget(SCALAR, nothing, base=address)
        active = ir.IntType(emitter.layout.lanes)((1 << max(1, size // 4)) - 1)
        self._call(
            emitter, SCALAR, min(size, 4), action, target, nothing,
            self._loads.get(instruction.index, -1), self._marks.get(instruction.index, 0), active,
        )  # fmt: skip

    def _first_dword(self, instruction: Instruction, access: MemoryAccess) -> int:
        """The first dword of the location that an access goes to: accesses of one with two
        locations come in turn."""
        if access.action == "arrive":
            return 0
        decoded = instruction.decoded
        offsets = decoded.opcode.memory_form.offsets
        calls = self._calls[instruction.index, access.mode]
        self._calls[instruction.index, access.mode] += 1
        return calls % offsets * (access_dwords(decoded) // offsets)

    @staticmethod
    def _call(
        emitter: WaveEmitter,
        mode: str,
        size: int,
        action: str,
        target: AccessTarget,
        rows: Any,
        number: int,
        mark: int,
        mask: Any = None,
    ) -> None:
        if action == "load" and number < 0:
            return
        request = MemoryAccess("flow", mode, emitter.layout.lanes, size, action)
        name = f"trace.flow.{mode}.{request.lanes}.{size}.{action}"
        numbers = I64(number & (1 << 64) - 1), I64(mark)
        call_observing(emitter, name, request, flow_code.build, target, rows, numbers, mask)


def _clear(emitter: WaveEmitter, first: Any, count: Any) -> None:
    """Clear marks (16 bits each) from a host address (i64) on."""
    name = "llvm.memset.p0.i64"
    function = emitter.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(VOID, [PTR, I8, I64, I1])
        function = ir.Function(emitter.module, kind, name)
    builder = emitter.builder
    size = builder.shl(count, I64(1))
    builder.call(function, [builder.inttoptr(first, PTR), I8(0), size, I1(0)])


__all__ = ["FlowObserver"]
