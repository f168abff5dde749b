"""Operators against their float64 references, with the machine code of a target executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from wavecast.emulate.check.collected import Reports
from wavecast.integrations.triton import device
from wavecast.kernels import choice
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Sizes, Tolerance

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
    given = operator.inputs(Make(seed), **sizes)
    expected = results(operator.reference, widened(operator, given), operator.mutates)
    reports = Reports()
    if arch is None:
        given = {name: _moved(value, "cuda") for name, value in given.items()}
        with choice.watched() as decisions:
            got = results(operator.call, given, operator.mutates)
        got = {name: tensor.cpu() for name, tensor in got.items()}
    else:
        with device(arch, check=reports if check else False), choice.watched() as decisions:
            got = results(operator.call, given, operator.mutates)
    problems = compared(operator, got, expected, sizes)
    problems += [f"check: {report}" for report in reports.errors] if check else []
    error = None
    if operator.compare is None and list(got) == list(expected):
        errors = [excess(got[name], expected[name], operator.tolerance) for name in got]
        error = max(errors, default=0.0)
    target = arch or "local GPU"
    return VerifiedCall(operator.name, sizes, target, tuple(problems), tuple(decisions), error)


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(one, device) for one in value)
    return value


def results(call: Any, given: Mapping[str, Any], mutated: tuple[str, ...]) -> dict[str, Any]:
    """What a call returns and writes, by name: `result 0`, `argument x`."""
    returned = call(**given)
    if returned is None:
        returned = ()
    elif isinstance(returned, torch.Tensor):
        returned = (returned,)
    found = {f"result {index}": tensor for index, tensor in enumerate(returned)}
    for name in mutated:
        written = given[name]
        if isinstance(written, torch.Tensor):
            found[f"argument {name}"] = written
        else:
            found |= {f"argument {name}[{index}]": one for index, one in enumerate(written)}
    return found


def widened(operator: Operator, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with floating tensors as float64 (copies of all, so that nothing is shared)."""

    def wide(value: Any, keep: bool) -> Any:
        if isinstance(value, torch.Tensor):
            kept = keep or value.dtype not in FLOATING
            return value.clone() if kept else value.double()
        if isinstance(value, (list, tuple)):
            return type(value)(wide(one, keep) for one in value)
        return value

    return {name: wide(value, name in operator.exact) for name, value in given.items()}


def compared(
    operator: Operator, got: Mapping[str, Any], expected: Mapping[str, Any], sizes: Sizes
) -> list[str]:
    """What differs by more than the operator's tolerance, in words."""
    if operator.compare is not None:
        wrong = operator.compare(tuple(got.values()), tuple(expected.values()), sizes)
        return [wrong] if wrong else []
    if list(got) != list(expected):
        return [f"results are {', '.join(got)}, expected {', '.join(expected)}"]
    found = []
    for name, tensor in got.items():
        wrong = difference(tensor, expected[name], operator.tolerance)
        if wrong:
            found.append(f"{name}: {wrong}")
    return found


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
    right, found = expected.double(), got.double()
    odd = ~torch.isfinite(right)
    same = torch.where(right.isnan(), found.isnan(), found == right)
    if bool((odd & ~same).any()) or bool((~odd & ~torch.isfinite(found)).any()):
        return f"{int((torch.isfinite(found) == odd).sum())} values are not finite, or should be"
    right, found = right.masked_fill(odd, 0.0), found.masked_fill(odd, 0.0)
    allowed = _allowed(right, got.dtype, tolerance)
    error = (found - right).abs()
    beyond = error > allowed
    if not bool(beyond.any()):
        return None
    ratio = error / allowed.clamp_min(1e-300)
    worst = int(ratio.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), got.shape))
    return (
        f"{int(beyond.sum())} of {got.numel()} beyond tolerance, worst at {index}: "
        f"{float(found.flatten()[worst]):.6g}, expected {float(right.flatten()[worst]):.6g} "
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
    right, found = expected.double(), got.double()
    same = (right == found) | (right.isnan() & found.isnan())
    if bool((~same & ~(torch.isfinite(right) & torch.isfinite(found))).any()):
        return float("inf")
    right = right.masked_fill(~torch.isfinite(right), 0.0)
    allowed = _allowed(right, got.dtype, tolerance)
    error = (found - right).abs().masked_fill(same, 0.0) / allowed.clamp_min(1e-300)
    return float(error.max())


def _allowed(right: torch.Tensor, dtype: torch.dtype, tolerance: Tolerance) -> torch.Tensor:
    scale = right.abs() + right.square().mean().sqrt()
    return (tolerance.ulps * torch.finfo(dtype).eps + tolerance.accumulated) * scale


__all__ = ["VerifiedCall", "compared", "difference", "excess", "results", "verify", "widened"]
