"""`torch.vmap` of every operator against a loop: those that say how run in one call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.frameworks.torch.verify import difference  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SIZE = 2
ALL = [name for name in ops.names() if not ops.operator(name).mutates]
BATCHED = [name for name in ALL if ops.operator(name).batch]


class Calls(TorchDispatchMode):
    """Counts calls of one operator."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.count = 0
        self._overload = getattr(torch.ops.wavecast, name).default

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is self._overload
        return func(*args, **(kwargs or {}))


@contextmanager
def counted(name: str) -> Iterator[Calls]:
    with Calls(name) as calls:
        yield calls


def mapped(name: str, given: list[dict[str, Any]], along: tuple[str, ...]) -> tuple[Any, int]:
    """What vmap gives over the arguments `along`, and the number of calls."""
    call = getattr(torch.ops.wavecast, name)
    along = tuple(one for one in along if isinstance(given[0].get(one), torch.Tensor))
    stacked = tuple(torch.stack([each[one] for each in given]) for one in along)

    def one_of(*values: torch.Tensor) -> Any:
        return call(**{**given[0], **dict(zip(along, values, strict=True))})

    with counted(name) as calls:
        found = torch.vmap(one_of)(*stacked)
    return found, calls.count


def expected(name: str, given: list[dict[str, Any]], along: tuple[str, ...]) -> list[Any]:
    call = getattr(torch.ops.wavecast, name)
    each = [{**given[0], **{one: own[one] for one in along if one in own}} for own in given]
    found = [call(**own) for own in each]
    found = [(one,) if isinstance(one, torch.Tensor) else one for one in found]
    return [torch.stack(parts) for parts in zip(*found, strict=True)]


def compare(name: str, found: Any, right: list[Any]) -> None:
    found = (found,) if isinstance(found, torch.Tensor) else found
    assert len(found) == len(right)
    for got, wanted in zip(found, right, strict=True):
        assert got.dtype == wanted.dtype
        assert not difference(got, wanted, ops.operator(name).tolerance)


@pytest.mark.parametrize("name", BATCHED)
def test_one_call_for_the_batch(name: str) -> None:
    operator = ops.operator(name)
    assert operator.batch is not None
    one_call = []
    for sizes in (*operator.cases, *operator.thorough):
        if any(isinstance(value, int) and value > 4096 for value in sizes.values()):
            continue
        given = [operator.inputs(Make(seed), **sizes) for seed in range(SIZE)]
        found, calls = mapped(name, given, operator.batch.along)
        compare(name, found, expected(name, given, operator.batch.along))
        assert calls == (SIZE if operator.batch.unless(**given[0]) else 1)
        one_call.append(calls == 1)
    assert any(one_call)


@pytest.mark.parametrize("name", ALL)
def test_a_call_for_each(name: str) -> None:
    operator = ops.operator(name)
    given = [operator.inputs(Make(seed), **operator.cases[0]) for seed in range(SIZE)]
    tensors = {n: value for n, value in given[0].items() if isinstance(value, torch.Tensor)}
    same = [n for n, value in tensors.items() if value.shape == given[1][n].shape]
    along = tuple(n for n in same if tensors[n].is_floating_point()) or tuple(same)
    found, _ = mapped(name, given, along)
    compare(name, found, expected(name, given, along))


def test_batches_of_gradients() -> None:
    x, weight = torch.randn(2, 32, requires_grad=True), torch.rand(32, requires_grad=True)
    y = ops.silu_mul(ops.rms_norm(x, weight))
    slopes = torch.randn(3, *y.shape)
    found = torch.autograd.grad(y, (x, weight), slopes, True, is_grads_batched=True)
    each = [torch.autograd.grad(y, (x, weight), slope, True) for slope in slopes]
    for got, right in zip(found, zip(*each, strict=True), strict=True):
        torch.testing.assert_close(got, torch.stack(right))


def test_a_batch_runs_as_one_launch() -> None:
    x, up = torch.randn(3, 5, 32), torch.randn(5, 32)
    with wavecast.device("gfx942") as device:
        found = torch.vmap(ops.silu_mul, (1, None), 1)(x.movedim(0, 1), up)
    assert device.executed == 1
    torch.testing.assert_close(found, (torch.nn.functional.silu(x) * up).movedim(0, 1))
