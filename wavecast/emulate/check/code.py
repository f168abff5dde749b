"""What checks need to know of a kernel's code, computed once per code object."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.source_accesses import SourceAccess
from wavecast.emulate.bounds import arrays_of, source_accesses, sources
from wavecast.emulate.check.clocks.atomicity import ProgramAtomicity, accesses
from wavecast.emulate.check.formats.uses import FormatUse, format_uses
from wavecast.emulate.check.intermediate import intermediate_reports
from wavecast.emulate.check.memory import partial_stores
from wavecast.emulate.check.named_barriers import has_named_barriers
from wavecast.emulate.check.numbers.special import SpecialNumbers
from wavecast.emulate.check.pointers.provenance import Provenance, provenance
from wavecast.emulate.check.static import static_reports
from wavecast.emulate.check.updates.arrivals import Arrival, arrivals
from wavecast.emulate.check.workgroups.residency import ResidentGroups, residency
from wavecast.emulate.reports import Report
from wavecast.emulate.tensors import AddressInterval
from wavecast.isa.program import Kernel, KernelDescriptor, Program
from wavecast.isa.scopes import is_system


class CodeFacts:
    """Facts of one kernel. With `several_gpus`, its launches run at once and are ordered, whatever
    the program does."""

    def __init__(self, kernel: Kernel, code: CodeObject, *, several_gpus: bool) -> None:
        self.kernel, self.code, self.several_gpus = kernel, code, several_gpus
        self._residency: dict[tuple[object, ...], ResidentGroups | None] = {}

    def residency(
        self, launch: Launch, descriptor: KernelDescriptor, device: Device | None
    ) -> ResidentGroups | None:
        """How many workgroups of a launch of this code a device holds at once."""
        key = launch.block, launch.dynamic_lds, None if device is None else device.id
        if key not in self._residency:
            self._residency[key] = residency(launch, descriptor, device)
        return self._residency[key]

    @cached_property
    def system_accesses(self) -> frozenset[int]:
        """The instructions of system scope."""
        program = self.kernel.program
        return frozenset(
            instruction.index
            for instruction in program.instructions
            if is_system(instruction.decoded, program.target)
        )

    @cached_property
    def partial_stores(self) -> frozenset[int]:
        """The stores of global memory that store parts of dwords."""
        return frozenset(partial_stores(self.kernel.program))

    @cached_property
    def sources(self) -> dict[int, tuple[str, ...]]:
        """The pointer arguments that addresses come from."""
        return sources(self.kernel, self.code)

    @cached_property
    def arrays(self) -> dict[int, tuple[AddressInterval, ...]]:
        """The arrays of LDS and scratch that addresses come from."""
        return arrays_of(self.kernel, self.code)

    @cached_property
    def source_accesses(self) -> dict[int, SourceAccess]:
        """What the source calls accesses."""
        return source_accesses(self.kernel, self.code)

    @cached_property
    def format_uses(self) -> list[FormatUse]:
        """The arguments that are read or stored as 8-bit floats."""
        return format_uses(self.kernel, self.code, self.sources)

    @cached_property
    def static(self) -> list[Report]:
        """What is wrong with the code itself: a report of every launch of it."""
        return static_reports(self.kernel) + intermediate_reports(self.code)

    @cached_property
    def accesses(self) -> ProgramAtomicity:
        """How atomic the program's accesses are."""
        return atomicity_of(self.kernel.program, several_gpus=self.several_gpus)

    @cached_property
    def arrivals(self) -> list[Arrival]:
        """The comparisons that find the last arrival; none with several GPUs."""
        return [] if self.several_gpus else arrivals(self.kernel.program)

    @cached_property
    def provenance(self) -> Provenance:
        """The accesses whose pointers are followed as the kernel runs."""
        return provenance(self.kernel)

    @cached_property
    def named_barriers(self) -> bool:
        """Whether the program has named barriers."""
        return has_named_barriers(self.kernel.program)

    @cached_property
    def special_numbers(self) -> SpecialNumbers:
        """The instructions whose NaNs and infinities are looked for."""
        return SpecialNumbers.of(self.kernel.program)


def atomicity_of(program: Program, *, several_gpus: bool) -> ProgramAtomicity:
    """How atomic accesses are: launches of several GPUs are ordered."""
    atomicity = accesses(program)
    return replace(atomicity, ordered=True) if several_gpus else atomicity


__all__ = ["CodeFacts", "atomicity_of"]
