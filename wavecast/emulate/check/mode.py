"""Check mode: observers for the code, and a watch with shadow memory for each launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.clocks import records
from wavecast.emulate.check.code import CodeFacts, atomicity_of
from wavecast.emulate.check.counters import Counters
from wavecast.emulate.check.gpus.order import GpuOrder
from wavecast.emulate.check.lanes.beyond_wave import BeyondWaveChecks
from wavecast.emulate.check.lanes.lane_halves import UpperLaneChecks
from wavecast.emulate.check.memory import MemoryChecks
from wavecast.emulate.check.named_barriers import NamedBarrierOrder, has_named_barriers
from wavecast.emulate.check.numbers.divisions import DivisionChecks
from wavecast.emulate.check.numbers.special import SpecialNumbers
from wavecast.emulate.check.pointers.alignment import AlignmentChecks
from wavecast.emulate.check.pointers.pointer_tags import PointerTags
from wavecast.emulate.check.pointers.provenance import provenance
from wavecast.emulate.check.pointers.reach import ReachChecks
from wavecast.emulate.check.registers.inactive import ExchangeChecks, exchanges
from wavecast.emulate.check.registers.undefined import RegisterChecks
from wavecast.emulate.check.scratch_shadow import ScratchChecks
from wavecast.emulate.check.session import CheckSession
from wavecast.emulate.check.updates.arrivals import ArrivalChecks, arrivals
from wavecast.emulate.check.updates.lost_updates import LostUpdates
from wavecast.emulate.check.watch import CheckWatch
from wavecast.emulate.check.workgroups.exits import ExitChecks
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.observer import Observer, Observers
from wavecast.emulate.reports import Report
from wavecast.emulate.written_bytes import WrittenBytes
from wavecast.isa.program import Kernel

_LONGEST = 1 << 16
"""Instructions a record's field can name."""


class CheckMode:
    """Finds races, missing waits, uninitialised reads and misused barriers. The arguments are those
    of `CheckSession`."""

    def __init__(
        self,
        report: Callable[[list[Report]], None],
        canary: int = 0,
        *,
        numbers: bool = False,
        written: WrittenBytes | None = None,
        gpus: GpuOrder | None = None,
        device: Device | None = None,
    ) -> None:
        self.session = CheckSession(report, canary, numbers, written, gpus, device)
        self._codes: dict[str, CodeFacts] = {}

    def key(self, target: str) -> str:
        del target
        gpus, numbers = self.session.gpus, self.session.numbers
        several = f"+gpus{gpus.count}" if gpus is not None else ""
        return f"check{several}{'+numbers' if numbers else ''}"

    def observer(self, kernel: Kernel) -> Observer:
        """Raises Unsupported for a program too long for the records."""
        if len(kernel.program.instructions) >= _LONGEST:
            raise Unsupported(f"{kernel.name}: checks of more than {_LONGEST} instructions")
        counters, gpus = Counters(kernel), self.session.gpus
        atomicity = atomicity_of(kernel.program, several_gpus=gpus is not None)
        memory = MemoryChecks(counters, atomicity, gpus.count - 1 if gpus is not None else 0)
        origins = provenance(kernel)
        checks: tuple[Observer, ...] = (
            counters, ReachChecks(origins.accesses), memory, RegisterChecks(kernel),
            ExitChecks(), DivisionChecks(kernel.program),
            BeyondWaveChecks(kernel.program), AlignmentChecks(), ScratchChecks(kernel),
            UpperLaneChecks(kernel), LostUpdates(kernel.program),
        )  # fmt: skip
        if has_named_barriers(kernel.program):
            checks = (*checks, NamedBarrierOrder(counters))
        if exchanges(kernel.program):
            checks = (*checks, ExchangeChecks(kernel))
        if origins.accesses:
            checks = (*checks, PointerTags(kernel, origins))
        if gpus is None and (compared := arrivals(kernel.program)):
            checks = (*checks, ArrivalChecks(compared))
        if self.session.numbers:
            checks = (*checks, *SpecialNumbers.of(kernel.program).observers())
        return Observers(checks)

    def watch(
        self,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
        host_calls: tuple[int, int] | None = None,
    ) -> CheckWatch:
        """Raises Unsupported for more workgroups than records can name."""
        groups = math.prod(launch.grid)
        if groups > records.MOST_GROUPS:
            raise Unsupported(f"{native.kernel.name}: checks of {groups} workgroups")
        code = self._codes.get(launch.code.digest)
        if code is None:
            several = self.session.gpus is not None
            code = CodeFacts(native.kernel, launch.code, several_gpus=several)
            self._codes[launch.code.digest] = code
        return CheckWatch(self.session, code, native, launch, ranges, host_calls)


__all__ = ["CheckMode"]
