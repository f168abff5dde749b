"""Fakes of operators over ranks give what the calls give, and refuse what the calls refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import torch.distributed as dist  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402

import wavecast  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402

pytestmark = pytest.mark.torch
WORLD = 2
Make = Callable[..., Any]


def _attention(name: str) -> Callable[..., Any]:
    """A call of `name` of q and k of these shapes, or with other changes."""

    def call(
        ops: Any, make: Make, group: str, q: Any = (2, 5, 4, 16), k: Any = (2, 5, 2, 16),
        v: Any = (2, 5, 2, 24), scale: float | None = None, change: Any = None,
    ) -> Any:  # fmt: skip
        tensors = [make(*shape) for shape in (q, k, v)]
        if change is not None:
            tensors = change(*tensors)
        return getattr(ops, name)(*tensors, group, False, scale)

    return call


def _backward(name: str) -> Callable[..., Any]:
    def call(
        ops: Any, make: Make, group: str, dout: Any = (2, 5, 4, 24), lse: Any = (2, 4, 5),
        q: Any = (2, 5, 4, 16),
    ) -> Any:  # fmt: skip
        out, sums = make(2, 5, 4, 24), make(*lse).float()
        tensors = make(*q), make(2, 5, 2, 16), make(2, 5, 2, 24)
        return getattr(ops, f"{name}_backward")(make(*dout), *tensors, out, sums, group)

    return call


def _product(name: str) -> Callable[..., Any]:
    def call(
        ops: Any, make: Make, group: str, x: Any = (6, 24), weight: Any = (5, 24),
        change: Any = None,
    ) -> Any:  # fmt: skip
        tensors = make(*x), make(*weight)
        return getattr(ops, name)(*(change(*tensors) if change else tensors), group)

    return call


def _dispatch(
    ops: Any, make: Make, group: str, x: Any = (3, 5), choices: Any = (3, 2), experts: int = 4,
    dtype: Any = torch.int64,
) -> Any:  # fmt: skip
    return ops.expert_dispatch(make(*x), make(*choices, dtype=dtype), experts, group)


def _combine(
    ops: Any, make: Make, group: str, columns: int = 5, weights: Any = (3, 2), change: Any = None
) -> Any:
    """Of tokens that the table of routes gives, all of the first rank."""
    sources, positions, extent = _routes(make)
    tensors = make(4, columns), make(*weights), sources, positions, extent
    return ops.expert_combine(*(change(*tensors) if change else tensors), group)


def _rows(ops: Any, make: Make, group: str, x: Any = (3, 5), change: Any = None) -> Any:
    tensors = make(*x), *_routes(make)
    return ops.expert_rows(*(change(*tensors) if change else tensors), group)


def _routes(make: Make) -> tuple[Any, Any, Any]:
    whole = {"dtype": torch.int64}
    return make(4, 3, **whole), make(3, 2, 2, **whole), torch.tensor([4, 3])


_ATTENTION = "ring_attention", "all_gather_attention"
_PRODUCTS = "matmul_reduce_scatter", "matmul_all_reduce", "all_gather_matmul"
REFUSED: dict[str, Callable[..., Any]] = {}


def _refused(name: str, call: Callable[..., Any], **arguments: Any) -> None:
    REFUSED[name] = lambda *where: call(*where, **arguments)


for _name in _PRODUCTS:
    _call = _product(_name)
    _refused(f"{_name}: depth", _call, weight=(5, 23))
    _refused(f"{_name}: dimensions", _call, x=(6, 2, 12))
    _refused(f"{_name}: no rows", _call, x=(0, 24))
    _refused(f"{_name}: no columns", _call, weight=(0, 24))
    _refused(f"{_name}: dtype", _call, change=lambda x, w: (x.double(), w.double()))
    _refused(f"{_name}: two dtypes", _call, change=lambda x, w: (x, w.half()))
    _refused(f"{_name}: x by columns", _call, change=lambda x, w: (x[:, ::2], w[:, :12]))
    _refused(f"{_name}: weight by columns", _call, change=lambda x, w: (x, w.new_zeros(24, 5).T))
_refused("matmul_reduce_scatter: rows", _product("matmul_reduce_scatter"), x=(7, 24))
_refused("matmul_reduce_scatter: buffer", _product("matmul_reduce_scatter"), x=(1 << 23, 1),
         weight=(1, 1))  # fmt: skip
_refused("all_gather_matmul: buffer", _product("all_gather_matmul"), x=(1, 1 << 23),
         weight=(1, 1 << 23))  # fmt: skip
for _name in _ATTENTION:
    _call = _attention(_name)
    _refused(f"{_name}: dimensions", _call, q=(5, 4, 16))
    _refused(f"{_name}: tokens", _call, q=(2, 4, 4, 16))
    _refused(f"{_name}: batch", _call, k=(1, 5, 2, 16))
    _refused(f"{_name}: heads of keys", _call, q=(2, 5, 3, 16))
    _refused(f"{_name}: heads of values", _call, v=(2, 5, 1, 24))
    _refused(f"{_name}: width", _call, k=(2, 5, 2, 8))
    _refused(f"{_name}: width of a head", _call, q=(1, 1, 1, 300), k=(1, 1, 1, 300), v=(1, 1, 1, 8))
    _refused(f"{_name}: no tokens", _call, q=(2, 0, 4, 16), k=(2, 0, 2, 16), v=(2, 0, 2, 24))
    _refused(f"{_name}: dtype", _call, change=lambda *all: [x.double() for x in all])
    _refused(f"{_name}: two dtypes", _call, change=lambda q, k, v: (q, k, v.half()))
    _refused(f"{_name}: scale", _call, scale=-1.0)
    _call = _backward(_name)
    _refused(f"{_name}_backward: width", _call, dout=(2, 5, 4, 16))
    _refused(f"{_name}_backward: sums", _call, lse=(2, 5, 4))
    _refused(f"{_name}_backward: tokens", _call, q=(2, 4, 4, 16))
_refused("expert_dispatch: choices", _dispatch, choices=(2, 2))
_refused("expert_dispatch: dimensions", _dispatch, choices=(3,))
_refused("expert_dispatch: experts", _dispatch, experts=3)
_refused("expert_dispatch: no experts", _dispatch, experts=0)
_refused("expert_dispatch: dtype", _dispatch, dtype=torch.float32)
_refused("expert_dispatch: no columns", _dispatch, x=(3, 0))
_refused("expert_rows: rows", _rows, x=(4, 5))
_refused("expert_rows: dtype", _rows, change=lambda x, *of: (x.double(), *of))
_refused("expert_rows: sources", _rows, change=lambda x, s, p, e: (x, s[:, :2], p, e))
_refused("expert_rows: extent", _rows, change=lambda x, s, p, e: (x, s, p, e[:1]))
_refused("expert_combine: weights", _combine, weights=(2, 2))
_refused("expert_combine: choices", _combine, weights=(3, 1))
_refused("expert_combine: no columns", _combine, columns=0)
_refused("expert_combine: dtype", _combine, change=lambda y, w, *of: (y, w.double(), *of))
_refused("expert_combine: rows", _combine, change=lambda y, *of: (y[:3], *of))
_refused("expert_combine: strides", _combine,
         change=lambda y, w, s, p, e: (y.repeat(1, 2)[:, ::2], w, s, p, e))  # fmt: skip
_refused("expert_combine: positions", _combine,
         change=lambda y, w, s, p, e: (y, w, s, p.int(), e))  # fmt: skip


@pytest.fixture(scope="module")
def node() -> Iterator[Any]:
    with wavecast.device("gfx942", count=WORLD) as hooks:
        yield hooks


def _ranks(node: Any, function: Callable[[str], Any]) -> list[Any]:
    """Call `function(group)` on every rank."""

    def rank(number: int) -> Any:
        torch.cuda.set_device(number)
        dist.init_process_group("wavecast")
        return function(dist.group.WORLD.group_name)  # pyright: ignore

    return node.ranks(rank)


def _make(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.zeros(*shape, device="cuda", dtype=dtype)


def _message(call: Callable[[], Any]) -> str:
    """What a call is refused with, "" if it is not."""
    try:
        call()
    except ArgumentError as error:
        return error.message
    return ""


def test_fakes_refuse_what_the_calls_refuse(node: Any) -> None:
    """By the same words; the call has those of the ranks in front."""
    differ: dict[str, tuple[str, str]] = {}

    def rank(group: str) -> None:
        where = torch.ops.wavecast, _make, group
        for name, call in REFUSED.items():
            refusal = _message(lambda call=call: call(*where))
            with FakeTensorMode():
                fake = _message(lambda call=call: call(*where))
            operator = name.split(":")[0]
            fits = fake.startswith(f"{operator}: ") and refusal.endswith(f": {fake}")
            if not fits:
                differ[name] = refusal, fake

    _ranks(node, rank)
    assert not differ


def test_tensors_of_another_gpu_are_refused(node: Any) -> None:
    ops: Any = torch.ops.wavecast

    def rank(group: str) -> None:
        here = torch.cuda.current_device()
        other = torch.zeros(6, 24, device=f"cuda:{1 - here}")
        own = torch.zeros(6, 24, device="cuda")
        text = rf"is on cuda:{1 - here}, rank {here} on cuda:{here}"
        for name in _PRODUCTS:
            for operands in ((other, own), (own, other)):
                assert text in _message(lambda n=name, o=operands: getattr(ops, n)(*o, group))

    _ranks(node, rank)


def _described(results: Any) -> list[tuple[Any, ...]]:
    tensors = results if isinstance(results, tuple | list) else [results]
    return [(tuple(x.shape), x.dtype, x.stride(), x.device) for x in tensors]


def test_fakes_give_what_the_calls_give(node: Any) -> None:
    """Shapes, dtypes, strides and GPUs; of attention also where tokens come after heads."""

    def half(*shape: int, dtype: Any = torch.bfloat16) -> Any:
        return _make(*shape, dtype=dtype)

    def swapped(*tensors: Any) -> list[Any]:
        return [x.new_zeros([x.shape[i] for i in (0, 2, 1, 3)]).transpose(1, 2) for x in tensors]

    def rank(group: str) -> None:
        where = torch.ops.wavecast, half, group
        calls = [_product(name) for name in _PRODUCTS]
        for name in _ATTENTION:
            attend = _attention(name)
            calls += [attend, lambda *a, f=attend: f(*a, change=swapped), _backward(name)]
        for call in calls:
            real = _described(call(*where))
            with FakeTensorMode():
                assert _described(call(*where)) == real

    _ranks(node, rank)


def test_fakes_of_experts_give_what_the_calls_give(node: Any) -> None:
    """But for the number of tokens, on which the choices decide."""
    ops: Any = torch.ops.wavecast

    def there_and_back(group: str) -> list[list[tuple[Any, ...]]]:
        x, choices = _make(3, 5), _make(3, 2, dtype=torch.int64)
        tokens, counts, *routes = ops.expert_dispatch(x, choices, 4, group)
        out = ops.expert_combine(tokens, _make(3, 2), *routes, group)
        rows = ops.expert_rows(x, *routes, group)
        *of_gpu, extent = routes
        assert extent.tolist() if not isinstance(extent, torch._subclasses.FakeTensor) else True
        return [_described([y])[0] for y in (tokens, counts, *of_gpu, out, rows)]

    def rank(group: str) -> None:
        real = there_and_back(group)
        with FakeTensorMode(shape_env=ShapeEnv()):
            fake = there_and_back(group)
        for number, (one, other) in enumerate(zip(real, fake, strict=True)):
            assert one[1:] == other[1:]
            dynamic = number in (0, 2, 5)
            assert one[0][int(dynamic) :] == other[0][int(dynamic) :]

    _ranks(node, rank)
