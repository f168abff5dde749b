"""Integer division by a run-time value inside a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wavecast.compile.ttgir import Operation, tensors
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.specialise import with_constants
from wavecast.rules.triton_slice import FunctionArgument, TritonSlices, uses
from wavecast.rules.triton_stages import module, module_slices, stage
from wavecast.rules.wording import count, join_names, lines

NAME = "division-in-loop"

_DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")


def _check(subject: RuleInput) -> Iterator[Finding]:
    ir_module, sliced = module(subject, "ttgir"), module_slices(subject, "ttgir")
    if ir_module is None or sliced is None:
        return
    divisions = [
        operation
        for operation in ir_module.operations_named(*_DIVISIONS)
        if ir_module.loop_of(operation) is not None
        and tensors(operation.types)
        and _by_runtime_value(sliced, operation)
    ]
    if not divisions:
        return
    divisors = sliced.of(value for operation in divisions for value in uses(operation)[1:2])
    names = join_names(arg.name for arg in divisors) or "a run-time value"
    advice = (
        f"Make {names} a tl.constexpr (a constant divisor becomes a multiply), or step quotient "
        "and remainder with the loop instead of dividing again."
    )
    yield Finding(
        rule=NAME,
        severity="note",
        message=f"{count(len(divisions), 'integer division')} by {names} in a loop",
        evidence=f"at {lines(operation.location for operation in divisions)}, per element of a "
        "tile; GPUs have no integer divider: each becomes dozens of "
        "vector instructions, more for 64 bits",
        advice=advice,
        location=divisions[0].location,
        locations=tuple(item.location for item in divisions if item.location is not None),
        fixes=_fixes(subject, advice, divisors),
    )


def _fixes(
    subject: RuleInput, advice: str, divisors: Sequence[FunctionArgument]
) -> tuple[Fix, ...]:
    """The kernel with the divisors as constants, where the launch knows them."""
    values = subject.launch.scalars if subject.launch is not None else {}
    divisor_values = {arg.name: values.get(arg.name) for arg in divisors if not arg.is_pointer}
    if not divisor_values or not all(isinstance(value, int) for value in divisor_values.values()):
        return ()
    numbers = {name: int(value or 0) for name, value in divisor_values.items()}
    return (Fix(advice, Recompiled(with_constants(stage(subject, "ttir"), numbers))),)


def _by_runtime_value(sliced: TritonSlices, division: Operation) -> bool:
    """Whether the divisor depends on a kernel argument or a load, not on constants alone."""
    divisor = uses(division)[1:2]
    return bool(sliced.of(divisor)) or any(
        operation.name == "tt.load" for operation in sliced.operations(divisor)
    )


RULE = Rule(
    name=NAME,
    severity="note",
    title="Integer division in a loop",
    explanation="""\
Integer division and remainder are software on every GPU: a reciprocal, multiplies and
corrections, dozens of instructions. On a whole tile in every iteration they can cost more than
the loads whose addresses they compute.

Fires for a division of a tile inside a loop whose divisor is not a compile-time constant.""",
    check=_check,
)
