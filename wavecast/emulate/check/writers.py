"""The instructions that write to some bytes of memory: an execution mode that notes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir

from wavecast.compile.codeobject import Launch
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.mode import LaunchWatch
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Kernel

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_FIRST: Final = state.MODE
_END: Final = state.MODE + 1
_COUNTS: Final = state.MODE + 2
_WRITING = (MemoryKind.STORE, MemoryKind.ATOMIC)
_OUTSIDE_GLOBAL = {"local", "private"}


class WriterMode:
    """Counts, per instruction, the lanes that write to host addresses `first` to before `end`."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.counts = np.zeros(0, np.uint64)

    def key(self, target: str) -> str:
        del target
        return "writers"

    def observer(self, kernel: Kernel) -> Observer:
        del kernel
        return _Writers()

    def watch(
        self,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
        host_calls: tuple[int, int] | None = None,
    ) -> WriterWatch:
        del launch, ranges, host_calls
        self.counts = np.zeros(native.instructions, np.uint64)
        return WriterWatch(self)


class WriterWatch(LaunchWatch):
    """The words of one launch's contexts."""

    def __init__(self, mode: WriterMode) -> None:
        self.mode = mode

    def attach(self, context: np.ndarray) -> None:
        context[_FIRST], context[_END] = self.mode.first, self.mode.end
        context[_COUNTS] = self.mode.counts.ctypes.data

    def close(self, *, failed: bool) -> None:
        """The counts stay with the mode."""
        del failed


class _Writers(Observer):
    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        memory = instruction.memory
        if target.mode in _OUTSIDE_GLOBAL or memory is None or memory.kind not in _WRITING:
            return
        request = MemoryAccess("writers", target.mode, access.lanes, access.bytes)
        name = f"check.writers.{request.mode}.{request.lanes}.{request.bytes}"

        def recipe(module: ir.Module) -> None:
            _build(Outlined(module, request, runtime.OUTLINED + name))

        builder = emitter.builder
        function = runtime.outline(emitter.module, name, function_type(request.lanes), recipe)
        index, nothing = (builder.inttoptr(I64(n), PTR) for n in (instruction.index, 0))
        builder.call(
            function,
            [
                emitter.context, rows, index, nothing, target.address, target.base, target.limit,
                target.offset, emitter.exec_mask(),
            ],
        )  # fmt: skip


def _build(out: Outlined) -> None:
    builder = out.builder
    first, end = (context_word(builder, out.context, word) for word in (_FIRST, _END))
    counts = context_word(builder, out.context, _COUNTS, PTR)
    slot = element(builder, counts, builder.ptrtoint(out.other, I64), I64)
    lanes = resolve(out)
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        below = builder.icmp_unsigned("<", address, end)
        above = builder.icmp_unsigned(">", builder.add(address, I64(out.access.bytes)), first)
        with builder.if_then(builder.and_(below, above), likely=False):
            builder.atomic_rmw("add", slot, I64(1), "monotonic")
    builder.ret(I32(0))


__all__ = ["WriterMode"]
