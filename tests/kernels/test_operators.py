"""Every operator of the library by its description alone: right on machine code, clean for PyTorch.

`make test` runs a case of each operator on one target: the first on a CDNA target, but of every
second operator with matrix instructions, which differ, the second case on an RDNA target. `make
test-all` runs each case on one target and the first case on every target. `python -m
tests.kernels.everything` runs all cases on all targets.
"""

from __future__ import annotations

import contextlib
import inspect
import zlib
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from wavecast import ops  # noqa: E402
from wavecast.frameworks.torch.verify import compare_results, results, to_float64, verify  # noqa: E402
from wavecast.kernels.operator import Operator  # noqa: E402
from wavecast.launch.inputs import FP8, Make  # noqa: E402
from wavecast.runtimes.triton import device  # noqa: E402

CDNA, RDNA = ("gfx90a", "gfx942", "gfx950"), frozenset({"gfx1100", "gfx1201"})
TARGETS = (*CDNA, *sorted(RDNA))
NEXT = "gfx1250"
"""Every operator runs its first case there too, in `make test-all`."""
SLOW_ON_RDNA = {
    "linear_cross_entropy_backward",
    "mla_prefill",
    "moe_experts_backward",
    "paged_attention",
}
"""Compiled there for seconds, with products that other operators have there in `make test`: these
run their second case on a CDNA target."""
pytestmark = pytest.mark.torch


def _launches() -> list[Any]:
    """(operator, number of the case, target): every case on one target in rotation, the first case
    on every target and on `NEXT`. All but one are `thorough`."""
    found = []
    for name in ops.names():
        operator, quick = ops.operator(name), QUICK[name]
        rotated = _rotated(operator)
        each = [(number, rotated[number % len(rotated)]) for number in range(len(operator.cases))]
        first = [(0, target) for target in (*rotated, NEXT)]
        for number, target in dict.fromkeys([quick, *each, *first]):
            marks = () if (number, target) == quick else pytest.mark.thorough
            found.append(pytest.param(name, number, target, marks=marks))
    return found


def _quick() -> dict[str, tuple[int, str]]:
    """The case and the target of every operator in `make test`."""
    found = {}
    products = 0
    for name in ops.names():
        operator = ops.operator(name)
        rotated = _rotated(operator)
        found[name] = (0, next((one for one in rotated if one in CDNA), rotated[0]))
        if _has_products(operator):
            products += 1
            if products % 2 == 0 and not RDNA.isdisjoint(rotated):
                last = min(1, len(operator.cases) - 1)
                family = CDNA if name in SLOW_ON_RDNA else RDNA
                found[name] = (last, next(one for one in rotated if one in family))
    return found


def _rotated(operator: Operator) -> list[str]:
    """The targets of an operator. A backward operator begins with the same as the operator it is
    the gradient of: the test of gradients compiles nothing that theirs compile."""
    targets = [one for one in TARGETS if one in (operator.targets or TARGETS)]
    start = zlib.crc32(operator.name.removesuffix("_backward").encode())
    return [targets[(start + step) % len(targets)] for step in range(len(targets))]


def _has_products(operator: Operator) -> bool:
    """Whether an operator uses matrix instructions."""
    flops = operator.work(**operator.cases[0]).flops or {}
    return not all(dtype.startswith("vector_") for dtype in flops)


QUICK = _quick()


@pytest.mark.parametrize(("name", "number", "target"), _launches())
def test_machine_code_agrees_with_the_float64_reference(
    name: str, number: int, target: str
) -> None:
    operator = ops.operator(name)
    verdict = verify(operator, operator.cases[number], target, check=number == 0)
    assert not verdict.problems, "\n".join(verdict.problems)
    assert all(decision.spills == 0 for decision in verdict.decisions)


@pytest.mark.parametrize("name", ops.names())
def test_the_reference_keeps_its_precision(name: str) -> None:
    operator = ops.operator(name)
    for sizes in operator.cases:
        given = operator.inputs(Make(1), **sizes)
        expected = results(operator.reference, to_float64(operator, given), operator.mutates)
        got = results(operator.reference, given, operator.mutates)
        assert not compare_results(operator, got, expected, sizes), operator.describe(sizes)


@pytest.mark.parametrize("name", ops.names())
def test_opcheck(name: str) -> None:
    operator = ops.operator(name)
    given = operator.inputs(Make(2), **operator.cases[0])
    overload = getattr(torch.ops.wavecast, name).default
    torch.library.opcheck(overload, (), given, test_utils=_opchecks(given))


def _opchecks(given: dict[str, object]) -> list[str]:
    """All of opcheck's tests; that of the schema compares results by arithmetic that PyTorch does
    not have for 8-bit floats on the CPU."""
    tests = ["test_schema", "test_autograd_registration", "test_faketensor"]
    tests.append("test_aot_dispatch_dynamic")
    tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
    return tests[1:] if any(tensor.dtype in FP8 for tensor in tensors) else tests


@pytest.mark.parametrize("name", [n for n in ops.names() if ops.operator(n).gradient])
def test_gradients_in_float64(name: str) -> None:
    """The gradient's references against finite differences."""
    operator = ops.operator(name)
    sizes = {**operator.cases[0], "dtype": "float64"}
    given = operator.inputs(Make(3), **sizes)
    floating = [
        name
        for name, value in given.items()
        if isinstance(value, torch.Tensor) and value.dtype == torch.float64
    ]
    small = {name: given[name].requires_grad_() for name in floating}

    def call(*values: torch.Tensor) -> object:
        named = {**given, **dict(zip(small, values, strict=True))}
        return getattr(torch.ops.wavecast, operator.name)(**named)

    assert torch.autograd.gradcheck(call, tuple(small.values()), fast_mode=True)


def _differentiated() -> list[Any]:
    """(operator, target): machine code without products; the references (None) of the others, whose
    machine code is `thorough`."""
    found = []
    for name in ops.names():
        operator = ops.operator(name)
        if operator.gradient is None:
            continue
        if _has_products(operator):
            found += [(name, None), pytest.param(name, "gfx942", marks=pytest.mark.thorough)]
        else:
            found.append((name, QUICK[name][1]))
    return found


@pytest.mark.parametrize(("name", "target"), _differentiated())
def test_gradients_with_the_fewest_arguments(name: str, target: str | None) -> None:
    """PyTorch passes on the arguments that were given alone; no result may be another's alias."""
    operator = ops.operator(name)
    parameters = inspect.signature(operator.call).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty]
    given = operator.inputs(Make(4), **{**operator.cases[0], **_FEWEST.get(name, {})})
    tensors = [given[one] for one in needed if isinstance(given.get(one), torch.Tensor)]
    floating = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
    with device(target) if target else contextlib.nullcontext():
        returned = getattr(torch.ops.wavecast, name)(*map(given.get, needed))
        returned = (returned,) if isinstance(returned, torch.Tensor) else returned
        torch.stack([one.float().sum() for one in returned if one.requires_grad]).sum().backward()
    assert floating[0].grad is not None


_FEWEST = {"conv2d": {"groups": 1}, "convolution": {"groups": 1}}
"""Sizes of calls that do without the arguments that may be left out."""


def test_a_name_there_is_not() -> None:
    with pytest.raises(AttributeError, match="no operator 'rms_nrm'"):
        ops.rms_nrm  # noqa: B018
