"""`torch.ops.wavecast.<name>` of products and attention over ranks, by the name of a process group.

    y = torch.ops.wavecast.matmul_all_reduce(x, weight, group.group_name)

They have fakes and gradients, and the results of a product and PyTorch's functional collective.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.errors import UsageError
from wavecast.kernels.registry import collectives

_c10d: Final[Any] = torch.distributed.distributed_c10d
_defined: Final[set[str]] = set()


def install() -> None:
    """Define the operators. Once per process."""
    if _defined:
        return
    _define("matmul_reduce_scatter", operator.floordiv)
    _define("matmul_all_reduce", lambda rows, _: rows)
    _define("all_gather_matmul", operator.mul)
    for name in ("ring_attention", "all_gather_attention"):
        _define_attention(name)
    _define_experts()


def _define(name: str, rows: Callable[[int, int], int]) -> None:
    _defined.add(name)
    call = getattr(collectives(), name)

    def run(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        return _group(group_name).fused(name, lambda group: call(x, weight, group))

    def alone(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        world = _c10d._get_group_size_by_name(group_name)
        return x.new_empty(rows(x.shape[0], world), weight.shape[0])

    defined = torch.library.custom_op(
        f"wavecast::{name}", run, mutates_args=(),
        schema="(Tensor x, Tensor weight, str group_name) -> Tensor",
    )  # fmt: skip
    defined.register_fake(alone)
    defined.register_autograd(_BACKWARD[name], setup_context=_keep)


def _define_attention(name: str) -> None:
    """`name`(q, k, v, group_name, causal=False, scale=None) -> (out, lse), and `name`_backward."""
    _defined.update((name, f"{name}_backward"))
    call, backward = (getattr(collectives(), each) for each in (name, f"{name}_backward"))
    options = "str group_name, bool causal=False, float? scale=None"

    def run(
        q: Tensor, k: Tensor, v: Tensor, group_name: str, causal: bool = False,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return _group(group_name).fused(name, lambda group: call(q, k, v, group, causal, scale))

    def run_backward(
        dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, group_name: str,
        causal: bool = False, scale: float | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        saved = (dout, q, k, v, out, lse)
        return _group(group_name).fused(
            f"{name}_backward", lambda group: backward(*saved, group, causal, scale)
        )

    gradient = torch.library.custom_op(
        f"wavecast::{name}_backward", run_backward, mutates_args=(),
        schema="(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
        f"{options}) -> (Tensor, Tensor, Tensor)",
    )  # fmt: skip
    gradient.register_fake(lambda *tensors, **_: tuple(x.new_empty(x.shape) for x in tensors[1:4]))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        q, k, v, *ctx.options = inputs
        out, lse = output
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.mark_non_differentiable(lse)

    def derive(ctx: Any, dout: Tensor, _: Tensor) -> Any:
        return *gradient(dout.contiguous(), *ctx.saved_tensors, *ctx.options), None, None, None

    defined = torch.library.custom_op(
        f"wavecast::{name}", run, mutates_args=(),
        schema=f"(Tensor q, Tensor k, Tensor v, {options}) -> (Tensor, Tensor)",
    )  # fmt: skip
    defined.register_fake(_attention_results)
    defined.register_autograd(derive, setup_context=keep)


def _attention_results(q: Tensor, k: Tensor, v: Tensor, *_: Any, **__: Any) -> Any:
    del k
    batch, tokens, heads = q.shape[:3]
    lse = q.new_empty((batch, heads, tokens), dtype=torch.float32)
    return q.new_empty((batch, tokens, heads, v.shape[3])), lse


_ROUTES: Final = "Tensor sources, Tensor positions, Tensor extent, str group_name"


def _define_experts() -> None:
    """Tokens to their experts and back: `expert_dispatch` also gives what the others need of it, of
    which `extent`, on the host, is (`longest`, `most`)."""
    _defined.update(("expert_dispatch", "expert_rows", "expert_combine"))
    own = collectives()

    def routes(tokens: Tensor, sources: Tensor, positions: Tensor, extent: Tensor) -> Any:
        longest, most = extent.tolist()
        counts = sources.new_empty(0)  # which nothing but the experts reads
        return own.Dispatched(tokens, counts, sources, positions, longest, most)

    def dispatch(x: Tensor, choices: Tensor, experts: int, group_name: str) -> Any:
        def run(group: Any) -> tuple[Tensor, ...]:
            sent = own.expert_dispatch(x, choices, experts, group)
            extent = torch.tensor([sent.longest, sent.most])
            return sent.tokens, sent.counts, sent.sources, sent.positions, extent

        return _group(group_name).fused("expert_dispatch", run)

    def rows(
        x: Tensor, sources: Tensor, positions: Tensor, extent: Tensor, group_name: str
    ) -> Tensor:
        of = routes(x, sources, positions, extent)
        return _group(group_name).fused("expert_rows", lambda group: own.expert_rows(x, of, group))

    def combine(
        y: Tensor, weights: Tensor, sources: Tensor, positions: Tensor, extent: Tensor,
        group_name: str,
    ) -> Tensor:  # fmt: skip
        of = routes(y, sources, positions, extent)
        return _group(group_name).fused(
            "expert_combine", lambda group: own.expert_combine(y, weights, of, group)
        )

    def define(name: str, run: Callable[..., Any], schema: str, alone: Callable[..., Any]) -> Any:
        operator = torch.library.custom_op(f"wavecast::{name}", run, mutates_args=(), schema=schema)
        operator.register_fake(alone)
        return operator

    dispatcher = define(
        "expert_dispatch", dispatch,
        "(Tensor x, Tensor choices, int experts, str group_name) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor)",
        _dispatch_results,
    )  # fmt: skip
    sender = define(
        "expert_rows", rows, f"(Tensor x, {_ROUTES}) -> Tensor",
        lambda x, sources, *_: x.new_empty(sources.shape[0], x.shape[1]),
    )  # fmt: skip
    combiner = define(
        "expert_combine", combine, f"(Tensor y, Tensor weights, {_ROUTES}) -> Tensor",
        lambda y, weights, *_: y.new_empty(weights.shape[0], y.shape[1]),
    )  # fmt: skip

    def keep_routes(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.name = inputs[3]
        ctx.save_for_backward(*output[2:])

    def derive_dispatch(ctx: Any, dtokens: Tensor, *_: Any) -> Any:
        positions = ctx.saved_tensors[1]
        ones = positions.new_ones(positions.shape[:2], dtype=torch.float32)
        dx = combiner(dtokens.contiguous(), ones, *ctx.saved_tensors, ctx.name)
        return dx, None, None, None

    def keep_operands(ctx: Any, inputs: Any, output: Any) -> None:
        del output
        *tensors, ctx.name = inputs
        ctx.save_for_backward(*tensors)

    def derive_combine(ctx: Any, dout: Tensor) -> Any:
        y, weights, *of = ctx.saved_tensors
        gradients = own.combine_gradients(
            dout, y, weights, of[0],
            lambda x: sender(x, *of, ctx.name), lambda y, w: combiner(y, w, *of, ctx.name),
        )  # fmt: skip
        return *gradients, None, None, None, None

    dispatcher.register_autograd(derive_dispatch, setup_context=keep_routes)
    combiner.register_autograd(derive_combine, setup_context=keep_operands)


def _dispatch_results(x: Tensor, choices: Tensor, experts: int, group_name: str) -> Any:
    """As many tokens as the choices of all ranks say, which only the call knows."""
    world = _c10d._get_group_size_by_name(group_name)
    count = torch.library.get_ctx().new_dynamic_size()
    return (
        x.new_empty(count, x.shape[1]),
        x.new_empty(experts // world, dtype=torch.int64),
        x.new_empty(count, 3, dtype=torch.int64),
        x.new_empty(*choices.shape, 2, dtype=torch.int64),
        torch.empty(2, device="cpu", dtype=torch.int64),
    )


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    del output
    x, weight, ctx.name = inputs
    ctx.save_for_backward(x, weight)


def _all_reduce_backward(ctx: Any, gradient: Tensor) -> Any:
    from torch.distributed import _functional_collectives as functional

    x, weight = ctx.saved_tensors
    total = functional.all_reduce(gradient.contiguous(), "sum", ctx.name)
    return total @ weight, total.T @ x, None


def _reduce_scatter_backward(ctx: Any, gradient: Tensor) -> Any:
    from torch.distributed import _functional_collectives as functional

    x, weight = ctx.saved_tensors
    gradient = gradient.contiguous()
    ops: Any = torch.ops.wavecast
    dx = ops.all_gather_matmul(gradient, weight.T.contiguous(), ctx.name)
    return dx, functional.all_gather_single(gradient, 0, ctx.name).T @ x, None


def _all_gather_backward(ctx: Any, gradient: Tensor) -> Any:
    from torch.distributed import _functional_collectives as functional

    x, weight = ctx.saved_tensors
    gradient = gradient.contiguous()
    ops: Any = torch.ops.wavecast
    dx = ops.matmul_reduce_scatter(gradient, weight.T.contiguous(), ctx.name)
    return dx, gradient.T @ functional.all_gather_single(x, 0, ctx.name), None


_BACKWARD: Final = {
    "matmul_reduce_scatter": _reduce_scatter_backward,
    "matmul_all_reduce": _all_reduce_backward,
    "all_gather_matmul": _all_gather_backward,
}


def _group(name: str) -> Any:
    """The emulated process group of a name. Raises UsageError for another one."""
    from wavecast.runtimes.distributed.process_group import EmulatedGroup

    group = _c10d._resolve_process_group(name)
    if not isinstance(group, EmulatedGroup):
        raise UsageError(
            f"group {name!r} is not of the backend 'wavecast'",
            hint="products over ranks need symmetric memory; use wavecast.device(…, count=N)",
        )
    return group


__all__ = ["install"]
