"""Products and attention over ranks, and their gradients, against one device."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels.distributed import context, product_kernels, products  # noqa: E402
from wavecast.kernels.distributed.group import groups  # noqa: E402
from wavecast.perfmodel.ops.collectives.own_products import ProductPlan  # noqa: E402

pytestmark = pytest.mark.torch
SLOW = pytest.mark.thorough
WORLDS = [2, pytest.param(4, marks=SLOW), pytest.param(8, marks=SLOW)]

TARGETS = ("gfx90a", "gfx950", "gfx1100", "gfx1201", "gfx1250")


def _reference(causal: bool, q: Any, k: Any, v: Any) -> Any:
    """[B, S, H, D] on one device, in float64."""
    heads = q.shape[2] // k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(heads, 2), v))
    v = v.repeat_interleave(heads, 1)
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return found.transpose(1, 2)


def _close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    assert found.shape == wanted.shape
    assert (found.cpu().double() - wanted).abs().max() <= tolerance * (1 + wanted.abs().max())


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("function", [context.ring_attention, context.all_gather_attention])
def test_attention_of_a_divided_sequence(function: Any, causal: bool, world: int) -> None:
    torch.manual_seed(5)
    tokens = 11  # divides no block
    shapes = (1, world * tokens, 2, 16), (1, world * tokens, 1, 16), (1, world * tokens, 1, 16)
    wide = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    weights = torch.randn(shapes[0], dtype=torch.float64)
    node: Any
    whole = _reference(causal, *wide)
    (whole * weights).sum().backward()
    with wavecast.device("gfx942", count=world) as node:
        members = groups(world, half=1 << 14)

        def rank(number: int) -> Any:
            own = slice(number * tokens, (number + 1) * tokens)
            q, k, v = (x.detach()[:, own].float().to("cuda").requires_grad_() for x in wide)
            out, _ = function(q, k, v, members[number], causal)
            (out * weights[:, own].float().to("cuda")).sum().backward()
            return [x.cpu() for x in (out.detach(), q.grad, k.grad, v.grad)]

        results = node.ranks(rank)
    for index, wanted in enumerate((whole.detach(), *(x.grad for x in wide))):
        _close(torch.cat([one[index] for one in results], 1), wanted)


@pytest.mark.parametrize("world", WORLDS)
def test_gradients_of_fused_products(world: int) -> None:
    torch.manual_seed(6)
    x = [torch.randn(2 * world, 24, dtype=torch.float64) for _ in range(world)]
    node: Any
    weight = [torch.randn(40, 24, dtype=torch.float64) for _ in range(world)]

    def expected(name: str) -> list[Any]:
        ins = [
            (a.clone().requires_grad_(), b.clone().requires_grad_())
            for a, b in zip(x, weight, strict=True)
        ]
        if name == "all_gather_matmul":
            outs = [torch.cat([a for a, _ in ins]) @ b.T for _, b in ins]
        else:
            total = torch.stack([a @ b.T for a, b in ins]).sum(0)
            scattered = name == "matmul_reduce_scatter"
            outs = list(total.chunk(world)) if scattered else [total] * world
        losses = [(one * (r + 1) * one.detach().cos()).sum() for r, one in enumerate(outs)]
        torch.stack(losses).sum().backward()
        return [(one.detach(), a.grad, b.grad) for one, (a, b) in zip(outs, ins, strict=True)]

    with wavecast.device("gfx942", count=world) as node:
        members = groups(world, half=1 << 14)
        for name in products.__all__:

            def rank(number: int, name: str = name) -> Any:
                a, b = (y[number].float().to("cuda").requires_grad_() for y in (x, weight))
                out = getattr(products, name)(a, b, members[number])
                (out * (number + 1) * out.detach().cos()).sum().backward()
                return [y.cpu() for y in (out.detach(), a.grad, b.grad)]

            for found, wanted in zip(node.ranks(rank), expected(name), strict=True):
                for one, other in zip(found, wanted, strict=True):
                    _close(one, other, 1e-4)


def small_plans(monkeypatch: pytest.MonkeyPatch, team: int = 1) -> None:
    """Plans with small tiles, whose programs are translated in a fraction of the time."""
    gathered = ProductPlan(rows=16, columns=32, depth=32, workers=2, copies=3, pieces=4)
    reduced = ProductPlan(rows=16, columns=32, depth=32, workers=2)
    if team > 1:
        reduced = replace(reduced, workers=2 * team + 1, team=team)
    monkeypatch.setattr(products, "gather_plan", lambda *_: gathered)
    monkeypatch.setattr(products, "reduce_plan", lambda *_: reduced)


@pytest.mark.parametrize("world", [2, pytest.param(4, marks=SLOW)])
@pytest.mark.parametrize("together", [False, True])
def test_programs_with_several_tiles_and_pieces(
    world: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four pieces of a chunk and three chunks for three programs that copy, ranks with different
    weights; tiles to be added up in several waves, of parts the last of which is not full, by one
    workgroup or, together, by one for each part."""
    small_plans(monkeypatch, world if together else 1)
    torch.manual_seed(7)
    x = [torch.randn(41, 70, dtype=torch.float16) for _ in range(world)]
    weight = [torch.randn(130 + r, 70, dtype=torch.float16) for r in range(world)]
    node: Any
    with wavecast.device("gfx942", count=world, check=True) as node:
        members = groups(world, half=1 << 16)

        def rank(number: int) -> Any:
            own, w, group = x[number].to("cuda"), weight[number].to("cuda"), members[number]
            outs = [products.all_gather_matmul(own, w, group)]
            shots = (2,) if together else (1, 2)
            outs += [products.matmul_all_reduce(own, w[:130], group, count) for count in shots]
            return [one.cpu() for one in outs]

        results = node.ranks(rank)
    whole = torch.cat(x).double()
    total = sum(a.double() @ b[:130].double().T for a, b in zip(x, weight, strict=True))
    for number, (everything, *sums) in enumerate(results):
        _close(everything, whole @ weight[number].double().T, 2e-3)
        for one in sums:
            _close(one, total, 4e-3)


@SLOW
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_the_largest_tile_spills_no_vector_registers(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ProductPlan(rows=256, columns=128, depth=64, workers=2, copies=2, pieces=2)
    monkeypatch.setattr(products, "gather_plan", lambda *_: plan)
    monkeypatch.setattr(products, "reduce_plan", lambda *_: replace(plan, copies=0))
    kernels = (product_kernels.gather_product_kernel, product_kernels.product_reduce_kernel)
    before = {text for kernel in kernels for text in _assembly(kernel)}
    node: Any
    with wavecast.device(target, count=8) as node:
        members = groups(8, half=1 << 16)

        def rank(number: int) -> None:
            x, weight = (torch.ones(m, 128, dtype=torch.bfloat16).to("cuda") for m in (16, 64))
            products.all_gather_matmul(x, weight, members[number])
            products.matmul_reduce_scatter(x, weight, members[number])
            products.matmul_all_reduce(x, weight, members[number], 2)
            torch.cuda.synchronize()

        node.ranks(rank)
    compiled = {text for kernel in kernels for text in _assembly(kernel)} - before
    assert len(compiled) == 3
    assert all(re.search(r"\.vgpr_spill_count: +0\b", text) for text in compiled)


def _assembly(kernel: Any) -> list[str]:
    """The text of every specialisation that is compiled."""
    caches = kernel.device_caches.values()
    return [compiled.asm["amdgcn"] for cache in caches for compiled in cache[0].values()]


def test_wrong_arguments_end_every_rank_with_one_line() -> None:
    node: Any
    with wavecast.device("gfx942", count=2) as node:
        pair = groups(2, half=1 << 14)

        def rank(number: int) -> Any:
            x = torch.ones(3 + number, 8, device="cuda")
            return products.matmul_all_reduce(x, torch.ones(8, 8, device="cuda"), pair[number], 2)

        with pytest.raises(ArgumentError, match=r"rank \d calls matmul_all_reduce of"):
            node.ranks(rank)


@pytest.mark.parametrize(
    ("target", "world", "small"),
    [
        ("gfx942", 2, True),
        *(pytest.param("gfx942", world, False, marks=SLOW) for world in (2, 4, 8)),
        *(pytest.param(target, 2, False, marks=SLOW) for target in TARGETS),
    ],
)
def test_nothing_is_found_in_products_and_attention(
    target: str, world: int, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        small_plans(monkeypatch)
    node: Any
    found: list[Any] = []
    with wavecast.device(target, count=world, check=True) as node:
        members = groups(world, half=1 << 14)

        def rank(number: int) -> None:
            group = members[number]
            sizes = {"dtype": torch.float16, "device": "cuda"}
            x, weight = (torch.ones(m, 70, **sizes) for m in (66 * world, 130))
            products.matmul_reduce_scatter(x, weight, group)
            for shots in (1, 2):
                products.matmul_all_reduce(x[:67], weight, group, shots)
            products.all_gather_matmul(x[:67], weight, group)
            q = torch.ones(1, 5, 1, 16, device="cuda")
            context.ring_attention(q, q, q, group, causal=True)
            torch.cuda.synchronize()
            found.append(number)

        node.ranks(rank)
    assert len(found) == world


def test_the_module_is_imported_by_its_name() -> None:
    module = importlib.import_module("wavecast.ops.distributed")
    assert module.ring_attention is context.ring_attention
