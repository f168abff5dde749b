"""What can be seen in a kernel's code without running it, as reports for every wave."""

from __future__ import annotations

from wavecast.analyze.sync import Violation, hazards, missing_waits
from wavecast.arch import capabilities
from wavecast.emulate.reports import Kind, Report
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Control, OpcodeFlag
from wavecast.isa.program import Kernel
from wavecast.isa.registers import (
    AGPR_BASE,
    AGPRS,
    SGPR_BASE,
    SGPRS,
    VGPR_BASE,
    VGPRS,
    register_names,
    span,
)
from wavecast.isa.targets import isa_target


def static_reports(kernel: Kernel) -> list[Report]:
    """Missing waits and hazards, registers that are not allocated, code without an end. They hold
    on some path, whether or not a launch took it. Hazards are left out where they are not known
    (`docs/hardware.md`)."""
    program = kernel.program
    violations = [(Kind.MISSING_WAIT, violation) for violation in missing_waits(program)]
    if capabilities(isa_target(program.target)).hazards:
        violations += [(Kind.HAZARD, violation) for violation in hazards(program)]
    reports = [_report(kernel, kind, violation) for kind, violation in violations]
    return reports + _missing_end(kernel) + _unallocated_registers(kernel)


def _missing_end(kernel: Kernel) -> list[Report]:
    """The last instruction, where control can pass it."""
    program = kernel.program
    last = program.instructions[-1]
    ends = last.opcode.control in (Control.END, Control.BRANCH, Control.INDIRECT)
    block = next(b.index for b in program.blocks if b.stop == len(program.instructions))
    if ends or OpcodeFlag.TRAP in last.opcode.flags or block not in program.reverse_postorder:
        return []
    message = "is the last instruction and does not end the wave; put s_endpgm behind it"
    return [_plain_report(kernel, Kind.MISSING_END, last, message)]


def _unallocated_registers(kernel: Kernel) -> list[Report]:
    """The first instruction of each register class that uses one beyond those of the descriptor."""
    reports = [_unallocated_vectors(kernel), _unallocated_scalars(kernel)]
    return [report for report in reports if report is not None]


def _unallocated_vectors(kernel: Kernel) -> Report | None:
    directives = kernel.descriptor.directives
    total = directives.get("next_free_vgpr")
    if total is None:
        return None
    vgprs = directives.get("accum_offset", total)
    agprs = total - vgprs if "accum_offset" in directives else total
    allocated = span(VGPR_BASE, 0, vgprs) | span(AGPR_BASE, 0, max(agprs, 0))
    amount = f"{vgprs} VGPRs" + (f" and {agprs} AGPRs" if "accum_offset" in directives else "")
    return _beyond(kernel, (VGPRS | AGPRS) & ~allocated, amount, "vgpr")


def _unallocated_scalars(kernel: Kernel) -> Report | None:
    """Only where the descriptor allocates SGPRs; elsewhere every wave has all of them."""
    total = kernel.descriptor.directives.get("next_free_sgpr")
    if total is None or not capabilities(isa_target(kernel.program.target)).allocates_sgprs:
        return None
    return _beyond(kernel, SGPRS & ~span(SGPR_BASE, 0, total), f"{total} SGPRs", "sgpr")


def _beyond(kernel: Kernel, forbidden: int, amount: str, name: str) -> Report | None:
    """The first use of a register that is not allocated; `amount` are those that are."""
    program = kernel.program
    for block in program.reverse_postorder:
        for instruction in program.block_instructions(block):
            beyond = (instruction.decoded.reads | instruction.decoded.writes) & forbidden
            if beyond:
                (register, *_) = register_names(beyond & -beyond)
                message = (
                    f"uses {register}, and the descriptor allocates {amount}; "
                    f"raise .amdhsa_next_free_{name}"
                )
                return _plain_report(kernel, Kind.UNALLOCATED_REGISTER, instruction, message)
    return None


def _plain_report(kernel: Kernel, kind: Kind, instruction: Instruction, message: str) -> Report:
    program = kernel.program
    return Report(
        kind=kind,
        kernel=program.name,
        target=program.target,
        message=message,
        instruction=instruction.index,
        text=instruction.decoded.text,
        location=instruction.location,
    )


def _report(kernel: Kernel, kind: Kind, violation: Violation) -> Report:
    program = kernel.program
    instruction = program.instructions[violation.instruction]
    cause = program.instructions[violation.cause]
    explanation = violation.explanation.removeprefix(f"`{instruction.decoded.text}`")
    return Report(
        kind=kind,
        kernel=program.name,
        target=program.target,
        message=f"{explanation.strip()}; put {violation.remedy} before it",
        instruction=instruction.index,
        text=instruction.decoded.text,
        location=instruction.location,
        other=cause.index,
        other_text=cause.decoded.text,
        other_location=cause.location,
    )


__all__ = ["static_reports"]
