"""Where messages name kernels of this package: at the line of the program that asks for them."""

from __future__ import annotations

from dataclasses import replace

from wavecast.compile.codeobject import Launch
from wavecast.emulate.reports import Report
from wavecast.isa.instruction import SourceLocation
from wavecast.launch.script_lines import is_own


def program_location(location: SourceLocation | None, launch: Launch) -> SourceLocation | None:
    """The line of an instruction of a launch. In a kernel of this package it is that of the program
    which asks for the launch, where that is known."""
    if location is None or not is_own(location.outermost.file):
        return location
    caller = launch.caller
    return location if caller is None or caller.line is None else SourceLocation(*caller.line)


def caller_name(launch: Launch) -> str:
    """What a launch is in messages: the call of the program that makes it, or its kernel."""
    return (launch.caller.call if launch.caller is not None else "") or launch.code.kernel


def at_program_lines(report: Report, launch: Launch) -> Report:
    """A report of a launch that names no line of this package where the program's is known. Its
    other side is of this launch where it names no other kernel."""
    location = program_location(report.location, launch)
    if location is not report.location and launch.caller is not None:
        report = replace(report, location=location, text=launch.caller.call or report.text)
    if report.other_kernel:
        return report
    other = program_location(report.other_location, launch)
    return report if other is report.other_location else replace(report, other_location=other)


__all__ = ["at_program_lines", "caller_name", "program_location"]
