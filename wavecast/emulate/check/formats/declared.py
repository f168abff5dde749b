"""Tensors of 8-bit floats whose format is not that of the instructions.

Targets read fp8 and bf8 in one variant, OCP or FNUZ. A launch whose tensors of such a dtype all
have the other variant passes the wrong bytes to the instructions that take fp8 or bf8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wavecast.arch import capabilities
from wavecast.dtypes import Dtype, Variant, is_dtype, lookup
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import LaunchTensor
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import OperandAccess
from wavecast.isa.program import Program
from wavecast.isa.targets import isa_target


def format_reports(program: Program, tensors: Sequence[LaunchTensor]) -> list[Report]:
    """The first instruction that takes each format, where no tensor has the target's variant."""
    pairs = [(tensor, lookup(tensor.dtype)) for tensor in tensors if is_dtype(tensor.dtype)]
    small = [(tensor, dtype) for tensor, dtype in pairs if dtype.variant is not None]
    if not small:
        return []
    fnuz = capabilities(isa_target(program.target)).fp8_fnuz
    variant = Variant.FNUZ if fnuz else Variant.OCP
    reports: dict[str, Report] = {}
    for instruction in program.instructions:
        for name in _formats(instruction):
            same = [(t, d) for t, d in small if d.generic == name]
            if name in reports or not same or any(d.variant is variant for _, d in same):
                continue
            reports[name] = _report(program, instruction, *same[0], variant)
    return list(reports.values())


def _formats(instruction: Instruction) -> Iterator[str]:
    """The 8-bit formats an instruction reads: `fp8`, `bf8`."""
    decoded = instruction.decoded
    # a conversion to an 8-bit format keeps the other half of its result, which it does not read
    types = [role.type for role in decoded.roles if role.access is OperandAccess.READ]
    if decoded.opcode.matrix is not None:
        types += [decoded.opcode.matrix.a_type, decoded.opcode.matrix.b_type]
    for name in types:
        element = name.partition("x")[0]
        if element in ("fp8", "bf8"):
            yield element


def _report(
    program: Program, instruction: Instruction, tensor: LaunchTensor, dtype: Dtype, variant: Variant
) -> Report:
    variant_name = dtype.in_variant(variant).name
    return Report(
        kind=Kind.FP8_FORMAT,
        kernel=program.name,
        target=program.target,
        message=(
            f"reads {variant_name}, and {tensor.name} is a tensor of {dtype.name}: values differ "
            "by a "
            f"factor of two; convert the tensor to {variant_name}"
        ),
        instruction=instruction.index,
        text=instruction.decoded.text,
        location=instruction.location,
    )


__all__ = ["format_reports"]
