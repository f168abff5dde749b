"""What can go wrong while code is translated or runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wavecast.errors import WavecastError
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program

if TYPE_CHECKING:
    from wavecast.emulate.reports import Report


class Unsupported(WavecastError):
    """An instruction, or a form of one, that cannot be executed yet."""

    placed = False
    """Whether the message names the instruction."""

    def at(self, program: Program, instruction: Instruction) -> Unsupported:
        """The same, naming kernel, instruction, and source line."""
        if self.placed:
            return self
        where = f" at {instruction.location}" if instruction.location else ""
        error = Unsupported(
            f"{program.name}: cannot execute {instruction.decoded.text!r}{where}: {self.message}"
        )
        error.placed = True
        return error


class ExecutionError(WavecastError):
    """A launch broke off: a wild address, an endless loop, a deadlock. What is wrong is the kernel,
    not how the command was used, so the exit code is that of a finding.

    `reports` is what the checks of a function of `wavecast.load` found before."""

    exit_code = 1
    reports: tuple[Report, ...] = ()


class Deadlock(ExecutionError):
    """All launches of a node wait: the message says where each of them does, so it is the same
    whichever GPU ends with it."""


class AddressFault(ExecutionError):
    """Instruction `instruction` of `kernel` (-1 and "" where that is not known) touches memory that
    the launch does not have. `report` is that as one of a check."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        kernel: str = "",
        instruction: int = -1,
        report: Report | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kernel, self.instruction, self.report = kernel, instruction, report


class ChecksFailed(WavecastError):
    """Checked launches ended, and something is wrong with their kernels: `reports` says what."""

    exit_code = 1

    def __init__(self, reports: Sequence[Report]) -> None:
        self.reports = tuple(reports)
        errors = [report for report in reports if report.severity == "error"]
        first = errors[0]
        where = f" at {first.location.outermost}" if first.location else ""
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        super().__init__(
            f"{first.kernel}: {first.kind.rule}{where}: {first.text!r} {first.message}{more}"
        )
