"""RMS norms written out, with the additions before and the quantisation after them."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import Graph, Node

from wavecast.frameworks.torch.graphs.nodes import (
    Report,
    alike,
    argument,
    calls,
    given_before,
    is_given,
    is_number,
    kept_dimension,
    name,
    named_values,
    pairs,
    put,
    put_parts,
    uncast,
    value,
    values,
)
from wavecast.frameworks.torch.substitutes import FLOATS, RMS_NORM_EPS, why_not

_LIMITS: Final = {torch.float8_e4m3fn: 448.0, torch.float8_e4m3fnuz: 240.0}
"""Dtypes of quantised norms, with the largest value of each."""


def written_norm(graph: Graph, node: Node, report: Report) -> bool:
    """weight * (x · rsqrt(mean(x²) + eps)), as models write it, casts anywhere -> rms_norm; the
    weight may have a number added (Gemma: 1). With what becomes of it, `_quantised`, or what x is,
    `_added`, it is one operator."""
    if name(node) != "mul":
        return False
    for scale, normal in pairs(node):
        norm = _match_normalise(normal)
        weight, offset = _scale(scale)
        if norm is None or not isinstance(weight, Node):
            continue
        x, eps = norm
        end = _result_node(node, value(x))
        if end is None or not _fits(value(x), value(weight)):
            continue
        _put(graph, end, (x, weight, eps, offset), "x * rsqrt(mean(x²)) * weight", report)
        return True
    return False


def called_norm(graph: Graph, node: Node, report: Report) -> bool:
    """`torch.rms_norm` of the last dimension -> rms_norm, or as `written_norm` with what becomes of
    it or what x is. Other calls are left to `SUBSTITUTES`."""
    if node.target not in (torch.rms_norm, torch.nn.functional.rms_norm):
        return False
    x, weight = node.args[0], argument(node, 2, "weight")
    if why_not(node.target, values(node.args), named_values(node.kwargs)) or weight is None:
        return False
    epsilon = argument(node, 3, "eps")
    eps = RMS_NORM_EPS[value(x).dtype] if epsilon is None else epsilon
    _put(graph, node, (x, weight, eps, 0.0), "rms_norm", report)
    return True


def _put(graph: Graph, end: Node, args: tuple[Any, ...], what: str, report: Report) -> None:
    """rms_norm(*args) instead of a node, together with what becomes of it or what x is."""
    y = put(graph, end, torch.ops.wavecast.rms_norm.default, args)
    if _fuse_quantise(graph, y):
        report(end, "rms_norm quantised by rows", "rms_norm_quantised")
    elif _fuse_residual(graph, y):
        report(end, "rms_norm(x + residual)", "rms_norm_residual")
    else:
        report(end, what, "rms_norm")


def _fits(x: Any, weight: Any) -> bool:
    return (
        isinstance(x, Tensor)
        and isinstance(weight, Tensor)
        and x.dtype in FLOATS
        and weight.dtype in FLOATS
        and tuple(weight.shape) == tuple(x.shape[-1:])
    )


def _result_node(node: Node, x: Any) -> Node | None:
    """The node of the dtype of x: this one, or the cast that alone uses it."""
    result = value(node)
    if not isinstance(result, Tensor) or not isinstance(x, Tensor):
        return None
    if result.dtype == x.dtype:
        return node
    users = list(node.users)
    cast = users[0] if len(users) == 1 and uncast(users[0]) is not users[0] else None
    return cast if cast is not None and value(cast).dtype == x.dtype else None


def _scale(node: Any) -> tuple[Any, float]:
    """(weight, what is added to it)."""
    node = uncast(node)
    if name(node) == "add":
        for weight, offset in pairs(node):
            if isinstance(offset, (int, float)):
                return uncast(weight), float(offset)
    return node, 0.0


def _match_normalise(node: Any) -> tuple[Node, Any] | None:
    """(x, eps) of x · rsqrt(mean(x²) + eps), casts aside."""
    node = uncast(node)
    if name(node) != "mul":
        return None
    for wide, scale in pairs(node):
        total: Any = scale.args[0] if name(scale) == "rsqrt" else None
        if name(total) != "add":
            continue
        mean, eps = total.args[:2]
        if name(mean) != "mean" or not is_number(eps):
            continue
        square, x = mean.args[0], uncast(wide)
        if not _is_square(square, wide) or kept_dimension(mean) != -1:
            continue
        return (x, eps) if isinstance(x, Node) else None
    return None


def _is_square(node: Any, of: Any) -> bool:
    if name(node) == "pow":
        return bool(node.args[0] is of and node.args[1] == 2)
    return name(node) in ("mul", "square") and all(operand is of for operand in node.args)


def _fuse_residual(graph: Graph, node: Node) -> bool:
    """rms_norm(x + residual), whose sum others may read, -> rms_norm_residual."""
    total, weight, *numbers = node.args
    if name(total) != "add" or not isinstance(total, Node) or not is_given(weight):
        return False
    operands = list(total.args)
    if len(operands) != 2 or total.kwargs or not alike(value(operands[0]), value(operands[1])):
        return False
    if not all(given_before(number, total) for number in numbers):
        return False
    target = torch.ops.wavecast.rms_norm_residual.default
    put_parts(graph, total, target, (*operands, weight, *numbers), node, total)
    return True


def _fuse_quantise(graph: Graph, y: Node) -> bool:
    """An rms_norm of which only rows quantised to fp8 are used, by the largest magnitude of each:
    (y / scale).clamp(…).to(fp8), scale = amax(|y|) / 448, -> rms_norm_quantised."""
    for node in calls(graph):
        dtype = argument(node, 1, "dtype") if name(node) == "to" else None
        limit = _LIMITS.get(dtype) if isinstance(dtype, torch.dtype) else None
        clamped: Any = node.args[0]
        if limit is None or name(clamped) != "clamp":
            continue
        bounds = argument(clamped, 1, "min"), argument(clamped, 2, "max")
        ratio = clamped.args[0]
        if bounds != (-limit, limit) or name(ratio) not in ("div", "truediv"):
            continue
        wide, scale = ratio.args
        pattern = {y, wide, ratio, clamped, node}
        if uncast(wide) is not y or not _is_scale(scale, wide, limit, pattern):
            continue
        if any(user not in pattern for producer in (y, wide) for user in producer.users):
            return False
        x, weight, *numbers = y.args
        target = torch.ops.wavecast.rms_norm_quantised.default
        put_parts(graph, y, target, (x, weight, None, dtype, 0, *numbers), node, scale)
        return True
    return False


def _is_scale(node: Any, of: Any, limit: float, pattern: set[Any]) -> bool:
    """Whether a node is amax(|of|, -1) / limit, perhaps with a least value; its nodes are added to
    `pattern`."""
    divided = False
    while isinstance(node, Node):
        pattern.add(node)
        if name(node) in ("clamp", "clamp_min") and argument(node, 2, "max") is None:
            node = node.args[0]
        elif name(node) in ("div", "truediv") and node.args[1] == limit and not divided:
            node, divided = node.args[0], True
        elif name(node) == "amax" and kept_dimension(node) == -1:
            magnitude: Any = node.args[0]
            pattern.add(magnitude)
            return divided and name(magnitude) == "abs" and magnitude.args[0] is of
        else:
            return False
    return False


__all__ = ["called_norm", "written_norm"]
