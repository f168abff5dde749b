"""Operators against their float64 references, with the machine code of a target executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from wavecast.emulate.check.collected import Reports
from wavecast.kernels import choice
from wavecast.kernels.operator import Operator, Sizes, Tolerance
from wavecast.launch.inputs import Make
from wavecast.runtimes.triton import device

FLOATING = frozenset(
    {torch.float64, torch.float32, torch.float16, torch.bfloat16}
    | {torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz}
)


@dataclass(frozen=True, slots=True)
class VerifiedCall:
    """One call: `problems` in words (none: right), the configurations it ran in, and the largest
    `error` as a multiple of the tolerance (None for operators that compare results themselves)."""

    operator: str
    sizes: Sizes
    target: str
    problems: tuple[str, ...]
    decisions: tuple[choice.Decision, ...]
    error: float | None = None

    @property
    def right(self) -> bool:
        return not self.problems


def verify(
    operator: Operator, sizes: Sizes, arch: str | None, *, check: bool = False, seed: int = 0
) -> VerifiedCall:
    """Run an operator on an emulated device, or on the local GPU where `arch` is None, and compare
    with its reference in float64.

    With `check` emulated launches are watched for races, missing waits, uninitialised reads and
    more. Raises what the operator raises.
    """
    inputs = operator.inputs(Make(seed), **sizes)
    expected = results(operator.reference, to_float64(operator, inputs), operator.mutates)
    reports = Reports()
    if arch is None:
        inputs = {name: _to_device(value, "cuda") for name, value in inputs.items()}
        with choice.record_decisions() as decisions:
            got = results(operator.call, inputs, operator.mutates)
        got = {name: tensor.cpu() for name, tensor in got.items()}
    else:
        with (
            device(arch, check=reports if check else False),
            choice.record_decisions() as decisions,
        ):
            got = results(operator.call, inputs, operator.mutates)
    problems = compare_results(operator, got, expected, sizes)
    problems += [f"check: {report}" for report in reports.errors] if check else []
    error = None
    if operator.compare is None and list(got) == list(expected):
        errors = [excess(got[name], expected[name], operator.tolerance) for name in got]
        error = max(errors, default=0.0)
    target = arch or "local GPU"
    return VerifiedCall(operator.name, sizes, target, tuple(problems), tuple(decisions), error)


def _to_device(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(_to_device(element, device) for element in value)
    return value


def results(call: Any, arguments: Mapping[str, Any], mutated: tuple[str, ...]) -> dict[str, Any]:
    """What a call returns and writes, by name: `result 0`, `argument x`."""
    returned = call(**arguments)
    if returned is None:
        returned = ()
    elif isinstance(returned, torch.Tensor):
        returned = (returned,)
    tensors = {f"result {index}": tensor for index, tensor in enumerate(returned)}
    for name in mutated:
        written = arguments[name]
        if isinstance(written, torch.Tensor):
            tensors[f"argument {name}"] = written
        else:
            tensors |= {
                f"argument {name}[{index}]": element for index, element in enumerate(written)
            }
    return tensors


def to_float64(operator: Operator, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with floating tensors as float64 (copies of all, so that nothing is shared)."""

    def wide(value: Any, keep: bool) -> Any:
        if isinstance(value, torch.Tensor):
            is_exact = keep or value.dtype not in FLOATING
            return value.clone() if is_exact else value.double()
        if isinstance(value, (list, tuple)):
            return type(value)(wide(element, keep) for element in value)
        return value

    return {name: wide(value, name in operator.exact) for name, value in arguments.items()}


def compare_results(
    operator: Operator, got: Mapping[str, Any], expected: Mapping[str, Any], sizes: Sizes
) -> list[str]:
    """What differs by more than the operator's tolerance, in words."""
    if operator.compare is not None:
        wrong = operator.compare(tuple(got.values()), tuple(expected.values()), sizes)
        return [wrong] if wrong else []
    if list(got) != list(expected):
        return [f"results are {', '.join(got)}, expected {', '.join(expected)}"]
    problems = []
    for name, tensor in got.items():
        wrong = difference(tensor, expected[name], operator.tolerance)
        if wrong:
            problems.append(f"{name}: {wrong}")
    return problems


def difference(got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> str | None:
    """How a result differs from the expected one by more than the tolerance; None when it does
    not."""
    if tuple(got.shape) != tuple(expected.shape):
        return f"shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
    if not got.numel():
        return None
    if got.dtype not in FLOATING:
        wrong = int((got != expected.to(got.dtype)).sum())
        return f"{wrong} of {got.numel()} differ" if wrong else None
    right, actual = expected.double(), got.double()
    odd = ~torch.isfinite(right)
    same = torch.where(right.isnan(), actual.isnan(), actual == right)
    if bool((odd & ~same).any()) or bool((~odd & ~torch.isfinite(actual)).any()):
        return f"{int((torch.isfinite(actual) == odd).sum())} values are not finite, or should be"
    right, actual = right.masked_fill(odd, 0.0), actual.masked_fill(odd, 0.0)
    bound = _error_bound(right, got.dtype, tolerance)
    error = (actual - right).abs()
    beyond = error > bound
    if not bool(beyond.any()):
        return None
    ratio = error / bound.clamp_min(1e-300)
    worst = int(ratio.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), got.shape))
    return (
        f"{int(beyond.sum())} of {got.numel()} beyond tolerance, worst at {index}: "
        f"{float(actual.flatten()[worst]):.6g}, expected {float(right.flatten()[worst]):.6g} "
        f"({float(ratio.flatten()[worst]):.3g} times the tolerance)"
    )


def excess(got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> float:
    """The largest error as a multiple of the tolerance; infinite for other shapes, values that are
    not finite where they should be, and integers that differ."""
    if got.shape != expected.shape:
        return float("inf")
    if not got.numel():
        return 0.0
    if got.dtype not in FLOATING:
        return 0.0 if torch.equal(got, expected.to(got.dtype)) else float("inf")
    right, actual = expected.double(), got.double()
    same = (right == actual) | (right.isnan() & actual.isnan())
    if bool((~same & ~(torch.isfinite(right) & torch.isfinite(actual))).any()):
        return float("inf")
    right = right.masked_fill(~torch.isfinite(right), 0.0)
    bound = _error_bound(right, got.dtype, tolerance)
    error = (actual - right).abs().masked_fill(same, 0.0) / bound.clamp_min(1e-300)
    return float(error.max())


def _error_bound(right: torch.Tensor, dtype: torch.dtype, tolerance: Tolerance) -> torch.Tensor:
    scale = right.abs() + right.square().mean().sqrt()
    return (tolerance.ulps * torch.finfo(dtype).eps + tolerance.accumulated) * scale


__all__ = [
    "VerifiedCall",
    "compare_results",
    "difference",
    "excess",
    "results",
    "to_float64",
    "verify",
]
