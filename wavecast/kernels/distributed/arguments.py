"""What operators over ranks take: checks before a launch, which their fakes share.

Functions raise ArgumentError for tensors that an operator cannot take, and give the sizes of its
results. Values of tensors are not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.kernels.attention.attention import BACKWARD_TENSORS, TENSORS
from wavecast.kernels.attention.call import AttentionOptions, Call
from wavecast.kernels.checks import FLOATS, dtype_in, require, shape_is
from wavecast.kernels.distributed.group import RankLayout
from wavecast.perfmodel.ops.collectives.own_products import launch_length

INDICES: Final = (torch.int64, torch.int32)
_OPTIONS: Final = ("sinks", "alibi", "mask", "dlse")
"""Tensors of attention that attention over ranks does not take."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Where the rows of dispatched tokens come from and went: `sources`[n, 3] and
    `positions`[tokens, choices, 2], int64, as `Dispatched` has them."""

    sources: Tensor
    positions: Tensor

    def check(self, name: str, layout: RankLayout) -> None:
        """Raises ArgumentError."""
        for label, x, shape in (
            ("sources", self.sources, (-1, 3)),
            ("positions", self.positions, (-1, -1, 2)),
        ):
            dtype_in(name, label, x, (torch.int64,))
            shape_is(name, label, x, shape)
            layout.accepts(name, x, label, empty=True)


def reduced_scattered_product(x: Tensor, weight: Tensor, layout: RankLayout) -> tuple[int, int]:
    """The shape of the result of `matmul_reduce_scatter`."""
    name = "matmul_reduce_scatter"
    rows, columns = _product(name, x, weight, layout)
    divided = rows % layout.world == 0
    require(divided, name, f"x has {rows} rows: {layout.world} ranks do not divide")
    reduced_columns(name, x, layout, 2)
    return rows // layout.world, columns


def reduced_product(x: Tensor, weight: Tensor, layout: RankLayout) -> tuple[int, int]:
    """The shape of the result of `matmul_all_reduce`, whose shots are not known: two need more of
    the buffer."""
    name = "matmul_all_reduce"
    shape = _product(name, x, weight, layout)
    reduced_columns(name, x, layout, 2)
    return shape


def gathered_product(x: Tensor, weight: Tensor, layout: RankLayout) -> tuple[int, int]:
    """The shape of the result of `all_gather_matmul`."""
    name = "all_gather_matmul"
    rows, columns = _product(name, x, weight, layout)
    gathered_rows(name, x, layout)
    return layout.world * rows, columns


def reduced_columns(name: str, x: Tensor, layout: RankLayout, shots: int) -> int:
    """The columns of a result that a launch reduces."""
    rows, k = x.shape
    most = launch_length(name, rows, k, layout.world, shots, x.element_size(), layout.half)
    require(most > 0, name, f"x has {rows} rows, too many for a buffer of the group")
    return most


def gathered_rows(name: str, x: Tensor, layout: RankLayout) -> int:
    """The rows of x that a launch gathers."""
    rows, k = x.shape
    most = launch_length(name, rows, k, layout.world, 2, x.element_size(), layout.half)
    require(most > 0, name, f"a row has {k} elements; {layout.world} are more than a buffer has")
    return most


def _product(name: str, x: Tensor, weight: Tensor, layout: RankLayout) -> tuple[int, int]:
    """Rows of x and of the weight."""
    dtype_in(name, "x", x, FLOATS)
    dtype_in(name, "weight", weight, (x.dtype,))
    shape = "x".join(map(str, x.shape)) or "a scalar"
    require(x.dim() == 2, name, f"x is {shape}, not a matrix")
    fits = weight.dim() == 2 and weight.shape[1] == x.shape[1]
    weight_shape = "x".join(map(str, weight.shape)) or "a scalar"
    require(fits, name, f"x is {shape} and weight {weight_shape}: the last dimensions must agree")
    layout.accepts(name, x)
    layout.accepts(name, weight, "weight")
    return x.shape[0], weight.shape[0]


def divided_attention(
    name: str, q: Tensor, k: Tensor, v: Tensor, layout: RankLayout, scale: float | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of `out` and `lse` of attention over ranks."""
    tensors: dict[str, Any] = {"q": q, "k": k, "v": v}
    for label, x in tensors.items():
        require(x.dim() == 4, name, f"{label} has {x.dim()} dimensions, not 4")
    lengths = q.shape[1], k.shape[1], v.shape[1]
    for length in lengths[1:]:
        alike = length == lengths[0]
        require(alike, name, f"q, k, v have {lengths} tokens: ranks divide them alike")
    TENSORS.check(name, tensors | dict.fromkeys(_OPTIONS))
    for label, x in tensors.items():
        require(x.numel() > 0, name, f"{label} is empty")
        layout.is_of_rank(name, x, label)
    call = Call(name, q, k, v, AttentionOptions(scale=scale))
    call.check()
    return call.out_shape, call.lse_shape


def divided_attention_backward(
    name: str, dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
    layout: RankLayout, scale: float | None,
) -> None:  # fmt: skip
    """Whether the gradients of attention over ranks can be computed of these."""
    divided_attention(name, q, k, v, layout, scale)
    tensors: dict[str, Any] = {"q": q, "k": k, "v": v, "dout": dout, "out": out, "lse": lse}
    BACKWARD_TENSORS.check(name, tensors | dict.fromkeys(_OPTIONS))
    for label in ("dout", "out", "lse"):
        layout.is_of_rank(name, tensors[label], label)


def dispatched_tokens(x: Tensor, choices: Tensor, experts: int, layout: RankLayout) -> int:
    """The experts of a rank, of an `expert_dispatch`."""
    name = "expert_dispatch"
    dtype_in(name, "x", x, FLOATS)
    dtype_in(name, "choices", choices, INDICES)
    require(x.dim() == 2 and choices.dim() == 2, name, "x and choices are not matrices")
    shape_is(name, "choices", choices, (x.shape[0], choices.shape[1]))
    columns, topk = x.shape[1], choices.shape[1]
    require(columns > 0 and topk > 0, name, "x or choices have no columns")
    world = layout.world
    divided = experts > 0 and experts % world == 0
    require(divided, name, f"{world} ranks do not divide {experts} experts")
    layout.accepts(name, x, empty=True)
    return experts // world


def sent_rows(x: Tensor, routes: Routes, layout: RankLayout) -> tuple[int, int]:
    """The shape of the result of `expert_rows`."""
    name = "expert_rows"
    dtype_in(name, "x", x, FLOATS)
    require(x.dim() == 2 and x.shape[1] > 0, name, "x is not a matrix with columns")
    routes.check(name, layout)
    shape_is(name, "x", x, (routes.positions.shape[0], x.shape[1]))
    layout.accepts(name, x, empty=True)
    return routes.sources.shape[0], x.shape[1]


def combined_tokens(
    y: Tensor, weights: Tensor, routes: Routes, layout: RankLayout
) -> tuple[int, int]:
    """The shape of the result of `expert_combine`."""
    name = "expert_combine"
    dtype_in(name, "y", y, FLOATS)
    dtype_in(name, "weights", weights, FLOATS)
    routes.check(name, layout)
    rows, topk = routes.positions.shape[:2]
    shape_is(name, "weights", weights, (rows, topk))
    layout.is_of_rank(name, weights, "weights")
    require(y.dim() == 2 and y.shape[1] > 0, name, "y is not a matrix with columns")
    shape_is(name, "y", y, (routes.sources.shape[0], y.shape[1]))
    layout.accepts(name, y, "y", empty=True)
    return rows, y.shape[1]


def route_extent(name: str, extent: Any) -> tuple[int, int]:
    """(`longest`, `most`) of a tensor of the host; its values are read. Raises ArgumentError."""
    check_extent(name, extent)
    longest, most = extent.tolist()
    return longest, most


def check_extent(name: str, extent: Tensor) -> None:
    """The two numbers that `expert_dispatch` gives for routes. Raises ArgumentError."""
    dtype_in(name, "extent", extent, (torch.int64,))
    shape_is(name, "extent", extent, (2,))


__all__ = [
    "Routes",
    "check_extent",
    "combined_tokens",
    "dispatched_tokens",
    "divided_attention",
    "divided_attention_backward",
    "gathered_product",
    "gathered_rows",
    "reduced_columns",
    "reduced_product",
    "reduced_scattered_product",
    "route_extent",
    "sent_rows",
]
