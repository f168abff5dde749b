"""`torch.ops.wavecast.<name>` of products and attention over ranks, by the name of a process group.

    y = torch.ops.wavecast.matmul_all_reduce(x, weight, group.group_name)

They have fakes and gradients, and the results of a product and PyTorch's functional collective.
Fakes refuse what the calls refuse, by the same checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.errors import UsageError
from wavecast.kernels.registry import collectives
from wavecast.runtimes.distributed.shared import shots_of
from wavecast.runtimes.torch_cpu.fake import in_compiled_graph

_c10d: Final[Any] = torch.distributed.distributed_c10d
_defined: Final[set[str]] = set()


def install() -> None:
    """Define the operators. Once per process."""
    if _defined:
        return
    own = collectives()
    _define("matmul_reduce_scatter", own.arguments.reduced_scattered_product)
    _define("matmul_all_reduce", own.arguments.reduced_product)
    _define("all_gather_matmul", own.arguments.gathered_product)
    for name in ("ring_attention", "all_gather_attention"):
        _define_attention(name)
    _define_experts()


def _define(name: str, result: Callable[[Tensor, Tensor, Any], tuple[int, int]]) -> None:
    """`name`(x, weight, group_name), whose result has the shape `result`."""
    _defined.add(name)
    call = getattr(collectives(), name)

    def run(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        def product(group: Any) -> Tensor:
            if name != "matmul_all_reduce":
                return call(x, weight, group)
            rows, columns = result(x, weight, group.layout)
            shots = shots_of(rows * columns * x.element_size(), group.world)
            return call(x, weight, group, shots)

        return _group(group_name).fused(name, product)

    def alone(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        return x.new_empty(result(x, weight, _layout(group_name)))

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
    checks = collectives().arguments

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

    def gradients_alone(
        dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, group_name: str,
        causal: bool = False, scale: float | None = None,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        del causal
        checks.divided_attention_backward(
            f"{name}_backward", dout, q, k, v, out, lse, _layout(group_name), scale
        )
        return tuple(x.new_empty(x.shape) for x in (q, k, v))

    gradient.register_fake(gradients_alone)

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

    def alone(
        q: Tensor, k: Tensor, v: Tensor, group_name: str, causal: bool = False,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        del causal
        out, lse = checks.divided_attention(name, q, k, v, _layout(group_name), scale)
        return q.new_empty(out), q.new_empty(lse, dtype=torch.float32)

    defined.register_fake(alone)
    defined.register_autograd(derive, setup_context=keep)


_ROUTES: Final = "Tensor sources, Tensor positions, Tensor extent, str group_name"


def _define_experts() -> None:
    """Tokens to their experts and back: `expert_dispatch` also gives what the others need of it, of
    which `extent`, on the host, is (`longest`, `most`)."""
    _defined.update(("expert_dispatch", "expert_rows", "expert_combine"))
    own = collectives()
    checks = own.arguments

    def routes(
        name: str, tokens: Tensor, sources: Tensor, positions: Tensor, extent: Tensor
    ) -> Any:
        longest, most = checks.route_extent(name, extent)
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
        def run(group: Any) -> Tensor:
            of = routes("expert_rows", x, sources, positions, extent)
            return own.expert_rows(x, of, group)

        return _group(group_name).fused("expert_rows", run)

    def combine(
        y: Tensor, weights: Tensor, sources: Tensor, positions: Tensor, extent: Tensor,
        group_name: str,
    ) -> Tensor:  # fmt: skip
        def run(group: Any) -> Tensor:
            of = routes("expert_combine", y, sources, positions, extent)
            return own.expert_combine(y, weights, of, group)

        return _group(group_name).fused("expert_combine", run)

    def rows_alone(
        x: Tensor, sources: Tensor, positions: Tensor, extent: Tensor, group_name: str
    ) -> Tensor:
        layout = _layout(group_name)
        checks.check_extent("expert_rows", extent)
        return x.new_empty(checks.sent_rows(x, checks.Routes(sources, positions), layout))

    def combine_alone(
        y: Tensor, weights: Tensor, sources: Tensor, positions: Tensor, extent: Tensor,
        group_name: str,
    ) -> Tensor:  # fmt: skip
        layout = _layout(group_name)
        checks.check_extent("expert_combine", extent)
        of = checks.Routes(sources, positions)
        return y.new_empty(checks.combined_tokens(y, weights, of, layout))

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
        rows_alone,
    )  # fmt: skip
    combiner = define(
        "expert_combine", combine, f"(Tensor y, Tensor weights, {_ROUTES}) -> Tensor",
        combine_alone,
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
    each = collectives().arguments.dispatched_tokens(x, choices, experts, _layout(group_name))
    count = torch.library.get_ctx().new_dynamic_size()
    return (
        x.new_empty(count, x.shape[1]),
        x.new_empty(each, dtype=torch.int64),
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


def _layout(name: str) -> Any:
    """What fakes check tensors of this rank against. Those in graphs of compilers say no device."""
    layout = _group(name).layout
    return replace(layout, gpu=None) if in_compiled_graph() else layout


__all__ = ["install"]
