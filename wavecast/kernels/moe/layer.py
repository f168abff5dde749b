"""A whole mixture-of-experts layer from the operators of this family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def moe(
    hidden: torch.Tensor,
    router: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    top_k: int,
    *,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
    routing: Mapping[str, Any] | None = None,
) -> torch.Tensor:
    """Route every token and add up what its experts make of it, [..., model].

    `hidden` is [..., model] and `router` the weights of the router, [experts, model], whose logits
    are a product in the dtype of `hidden`; `routing` are further arguments of `moe_route`
    (`scoring`, `renormalise`, `bias`, `groups`, `top_groups`, `scale`). All others are those of
    `moe_experts`. Differentiable in `hidden`, `router`, `w1`, `w2`, `bias1` and `bias2`.

    This is a plain function, for a layer is nothing but its parts: `torch.ops.wavecast.moe_route`,
    `moe_experts` and a product, each with its gradient and seen by `torch.compile`. It needs
    `wavecast.ops` imported. Raises what they raise.
    """
    flat = hidden.reshape(-1, hidden.shape[-1])
    logits = flat @ router.to(flat.dtype).T
    weights, experts = torch.ops.wavecast.moe_route(logits, top_k, **(routing or {}))
    found = torch.ops.wavecast.moe_experts(
        flat, weights, experts, w1, w2, bias1, bias2, activation, alpha, limit, interleaved
    )
    return found.reshape(hidden.shape)


__all__ = ["moe"]
