"""What is known of the registers at one location of a program."""

from __future__ import annotations

from dataclasses import dataclass, field

from wavecast.analyze.values.inputs import user_registers, work_item_registers
from wavecast.arch import capabilities
from wavecast.emulate.check.dataflow.flows import VECTORS, first_cell, scalars
from wavecast.emulate.check.dataflow.lane_sets import EVERY, unknown
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import KernelDescriptor
from wavecast.isa.registers import (
    EXEC,
    M0,
    SCC,
    SGPR_BASE,
    SGPRS,
    SPECIAL_BASE,
    TTMP_BASE,
    TTMP_COUNT,
    VCC,
    VGPR_BASE,
    span,
)
from wavecast.isa.targets import isa_target


def initially_defined(descriptor: KernelDescriptor, target: str) -> tuple[int, int]:
    """The vector and the scalar registers that hold something when a wave starts, as sets.

    Source: LLVM "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
    """
    position = user_registers(descriptor).end
    if not capabilities(isa_target(target)).workgroup_ids_in_ttmp:
        for axis in "xyz":
            directive = f"system_sgpr_workgroup_id_{axis}"
            position += descriptor.directives.get(directive, int(axis == "x"))
        for name in ("workgroup_info", "private_segment_wavefront_offset"):
            position += descriptor.directives.get(f"system_sgpr_{name}", 0)
        if descriptor.directives.get("enable_private_segment"):
            position += 1
    scalars_ = span(SGPR_BASE, 0, position - SGPR_BASE) | span(TTMP_BASE, 0, TTMP_COUNT)
    special = ~(VCC | SCC | M0) & ~((1 << SPECIAL_BASE) - 1) & ((1 << SPECIAL_BASE + 16) - 1)
    return span(VGPR_BASE, 0, work_item_registers(descriptor, target)), scalars_ | special


@dataclass(slots=True)
class Known:
    """What is known at one location of a program for waves of `wave` lanes.

    `execute` is EXEC; `lanes` the lanes of each cell that have been written, `base` those of cells
    that are not there; `masks` the lanes of the mask that starts at a scalar cell; `scalars` the
    scalar registers that are written (a set of registers); `constants` the values of some, by cell.
    """

    wave: int
    execute: int
    base: int
    lanes: dict[int, int]
    masks: dict[int, int]
    scalars: int
    constants: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Known:
        return Known(
            self.wave, self.execute, self.base, dict(self.lanes), dict(self.masks), self.scalars,
            dict(self.constants),
        )  # fmt: skip

    def at(self, cell: int) -> int:
        return self.lanes.get(cell, self.base)

    def idle(self) -> None:
        """EXEC is empty here: whatever holds for its lanes holds."""
        self.base |= self.execute
        for cell in self.lanes:
            self.lanes[cell] |= self.execute

    def define(self, registers: int) -> None:
        """Scalar registers are written."""
        if registers:
            self.scalars |= registers & ~VECTORS
            self.forget(registers)

    def forget(self, registers: int) -> None:
        """What scalar registers hold is not known any more."""
        for cell in scalars(registers & ~EXEC):
            self.constants.pop(cell, None)
            self.masks.pop(cell, None)
            if self.wave == 64:
                self.masks.pop(cell - 2, None)

    def mask(self, instruction: Instruction, registers: int) -> int | None:
        """The signature of the mask in scalar registers; None for a part of EXEC."""
        if registers & EXEC:
            return self.execute if registers.bit_count() == self.wave // 32 else None
        cell = first_cell(registers)
        if cell not in self.masks:
            self.masks[cell] = unknown("read", instruction.index, cell)
        return self.masks[cell]

    def define_everything(self) -> None:
        """Registers with computed numbers are written: any of them may be."""
        self.base = EVERY
        self.lanes.clear()
        self.scalars |= SGPRS
        self.constants.clear()
        self.masks.clear()


__all__ = ["Known", "initially_defined"]
