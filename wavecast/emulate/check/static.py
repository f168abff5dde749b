"""What can be seen in a kernel's code without running it, as reports for every wave."""

from __future__ import annotations

from wavecast.analyze.sync import Violation, hazards, missing_waits
from wavecast.emulate.check.report import Kind, Report
from wavecast.isa.program import Kernel


def static_reports(kernel: Kernel) -> list[Report]:
    """Missing waits and hazards. They hold on some path, whether or not a launch took it."""
    program = kernel.program
    found = [(Kind.MISSING_WAIT, violation) for violation in missing_waits(program)]
    found += [(Kind.HAZARD, violation) for violation in hazards(program)]
    return [_report(kernel, kind, violation) for kind, violation in found]


def _report(kernel: Kernel, kind: Kind, violation: Violation) -> Report:
    program = kernel.program
    instruction = program.instructions[violation.instruction]
    cause = program.instructions[violation.cause]
    return Report(
        kind=kind,
        kernel=program.name,
        target=program.target,
        message=f"{violation.explanation}; put {violation.remedy} before it",
        instruction=instruction.index,
        text=instruction.decoded.text,
        location=instruction.location,
        other=cause.index,
        other_text=cause.decoded.text,
        other_location=cause.location,
    )


__all__ = ["static_reports"]
