"""What FlexAttention's modifiers of scores and masks compute, read from their graphs.

A mask is a band of positions (`kv <= q`, `q - kv < 128`), equality of documents, or several of them
at once; scores have a soft cap, a coefficient per head times the distance (ALiBi), or a mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import Graph, Node, Tracer

from wavecast.errors import UsageError
from wavecast.frameworks.torch.graphs.nodes import ANDS, name, pairs

_RELATIONS: Final = {"ge": (1, 0), "gt": (1, 1), "le": (-1, 0), "lt": (-1, 1)}
"""Sign that makes a relation `>= 0`, and what strictness between integers takes off."""


@dataclass(frozen=True, slots=True)
class Modified:
    """What a query at position q sees, kv from q - `left` to q + `right` (None: all), in its own
    of the `documents`, and how scores change: `soft_cap` (0: none), then minus `alibi` [heads]
    times distance. `signed`: the distance is q - kv, not its magnitude."""

    left: int | None = None
    right: int | None = None
    documents: Tensor | None = None
    soft_cap: float = 0.0
    alibi: Tensor | None = None
    signed: bool = False

    def join(self, other: Modified) -> Modified:
        """What both let a query see, with the scores of the one that changes them. Raises
        UsageError for two masks of documents."""
        if self.documents is not None and other.documents is not None:
            raise UsageError("two masks of documents at once")
        return Modified(
            _least(self.left, other.left),
            _least(self.right, other.right),
            other.documents if self.documents is None else self.documents,
            self.soft_cap or other.soft_cap,
            other.alibi if self.alibi is None else self.alibi,
            self.signed or other.signed,
        )


def _least(bound: int | None, other: int | None) -> int | None:
    return min((each for each in (bound, other) if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class ModifierGraph:
    """The graph of a modifier, with its arguments by their part (`score`, `b`, `h`, `q`, `kv`) and
    the tensors it captures by node."""

    result: Any
    parts: dict[Node, str]
    captured: dict[Node, Any]

    @staticmethod
    def of(graph: Graph, names: Sequence[str], captured: dict[Node, Any]) -> ModifierGraph:
        """The graph of a traced one whose first inputs are `names`."""
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        (output,) = [node for node in graph.nodes if node.op == "output"]
        result: Any = output.args[0]
        if isinstance(result, (list, tuple)):
            (result,) = result
        return ModifierGraph(result, dict(zip(inputs, names, strict=False)), captured)


SCORE: Final = ("score", "b", "h", "q", "kv")
MASK: Final = SCORE[1:]


def trace_modifier(modifier: Callable[..., Any], names: Sequence[str]) -> ModifierGraph:
    """The graph of a modifier. Raises UsageError for one that looks at values."""
    tracer = Tracer()
    try:
        graph = tracer.trace(_positional(modifier, len(names)))
    except Exception as error:  # what a function of somebody else's does with proxies
        raise UsageError(f"{_label(modifier)} cannot be traced: {error}") from error
    captured = {
        node: getattr(tracer.root, str(node.target))
        for node in graph.nodes
        if node.op == "get_attr"
    }
    return ModifierGraph.of(graph, names, captured)


def _positional(modifier: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function of so many arguments, whatever the names and defaults of the modifier's."""
    if count == len(MASK):
        return lambda b, h, q, kv: modifier(b, h, q, kv)
    return lambda score, b, h, q, kv: modifier(score, b, h, q, kv)


def _label(modifier: Any) -> str:
    return getattr(modifier, "__name__", type(modifier).__name__)


def read_score(graph: ModifierGraph, heads: int) -> Modified:
    """What a modifier of scores does. Raises UsageError with the reason where attention has not
    the like."""
    node = graph.result
    if name(node) == "where":
        condition, visible, hidden = node.args
        if hidden != -math.inf:
            raise UsageError(f"score_mod puts {hidden} where it hides")
        return read_mask(replace(graph, result=condition)).join(
            read_score(replace(graph, result=visible), heads)
        )
    if graph.parts.get(node) == "score":
        return Modified()
    for term, other in pairs(node) if name(node) in ("add", "sub") else ():
        if name(node) == "sub" and term is not node.args[0]:
            break
        alibi = _alibi(graph, other, heads)
        if alibi is not None:
            inner = read_score(replace(graph, result=term), heads)
            if inner.alibi is not None:
                raise UsageError("score_mod adds two biases")
            values, signed = alibi
            values = values if name(node) == "sub" else -values
            return inner.join(Modified(alibi=values, signed=signed))
    cap = _soft_cap(graph, node)
    if cap:
        return Modified(soft_cap=cap)
    raise UsageError(f"score_mod is not a soft cap, ALiBi or mask: it ends in {_text(node)}")


def _soft_cap(graph: ModifierGraph, node: Any) -> float:
    """c of c · tanh(score / c), 0 for anything else."""
    for tanh, cap in pairs(node) if name(node) == "mul" else ():
        ratio = tanh.args[0] if name(tanh) in ("tanh", "tanh_approx") else None
        if not isinstance(cap, (int, float)) or not isinstance(ratio, Node):
            continue
        divided = name(ratio) in ("div", "truediv") and ratio.args[1] == cap
        if divided and graph.parts.get(ratio.args[0]) == "score":  # pyright: ignore[reportArgumentType, reportCallIssue]
            return float(cap)
    return 0.0


def _alibi(graph: ModifierGraph, node: Any, heads: int) -> tuple[Tensor, bool] | None:
    """(coefficient of every head, whether it is of q - kv and not of its magnitude) of a bias."""
    for coefficient, distance in pairs(node) if name(node) == "mul" else ():
        magnitude = name(distance) in ("abs", "abs_")
        terms = _linear(graph, distance.args[0] if magnitude else distance)
        if terms is None or terms[2] or terms[:2] not in ((1, -1), (-1, 1)):
            continue
        value = _of_heads(graph, coefficient, heads)
        if value is None:
            continue
        values = torch.as_tensor(value, dtype=torch.float32).expand(heads)
        return (values if magnitude or terms[0] == 1 else -values), not magnitude
    return None


def _of_heads(graph: ModifierGraph, node: Any, heads: int) -> Any:
    """The value of what depends on the head alone, for every head; None for what does not."""
    if not isinstance(node, Node):
        return node
    if graph.parts.get(node) == "h":
        return torch.arange(heads)
    if node in graph.captured:
        value = graph.captured[node]
        return value if isinstance(value, Tensor) else None
    if node.op not in ("call_function", "call_method") or node.kwargs:
        return None
    arguments = [_of_heads(graph, operand, heads) for operand in node.args]
    if any(argument is None for argument in arguments):
        return None
    if node.op == "call_method":
        return getattr(arguments[0], str(node.target))(*arguments[1:])
    function: Any = node.target
    return function(*arguments)


def read_mask(graph: ModifierGraph) -> Modified:
    """What a modifier of masks lets a query see. Raises UsageError with the reason where attention
    has not the like."""
    node = graph.result
    if name(node) in ANDS:
        lhs, rhs = (read_mask(replace(graph, result=each)) for each in node.args)
        return lhs.join(rhs)
    if name(node) in ("new_ones", "ones") or node is True:
        return Modified()
    if name(node) == "eq":
        documents = _documents(graph, *node.args)
        if documents is not None:
            return Modified(documents=documents)
    if name(node) in _RELATIONS:
        lhs, rhs = (_linear(graph, each) for each in node.args)
        sign, strict = _RELATIONS[name(node)]
        if lhs is not None and rhs is not None:
            q, kv, number = (sign * (a - b) for a, b in zip(lhs, rhs, strict=True))
            if (q, kv) == (1, -1):  # kv <= q + number
                return Modified(right=number - strict)
            if (q, kv) == (-1, 1):  # kv >= q - number
                return Modified(left=number - strict)
    raise UsageError(f"mask_mod is not a band of positions or documents: {_text(node)}")


def _documents(graph: ModifierGraph, lhs: Any, rhs: Any) -> Tensor | None:
    """The documents of tokens, [tokens] or [batch, tokens], where both sides are theirs: one at
    the query, one at the key."""
    tables, indices = [], []
    for side in (lhs, rhs):
        if name(side) != "getitem":
            return None
        index = side.args[1] if isinstance(side.args[1], tuple) else (side.args[1],)
        indices.append(tuple(graph.parts.get(each, "") for each in index))
        tables.append(graph.captured.get(side.args[0]))
    batch = ("b",) if len(indices[0]) == 2 else ()
    queries, keys = (*batch, "q"), (*batch, "kv")
    if tables[0] is not tables[1] or not isinstance(tables[0], Tensor):
        return None
    return tables[0] if set(indices) == {queries, keys} else None


def _linear(graph: ModifierGraph, node: Any) -> tuple[int, int, int] | None:
    """(a, b, c) of a · q + b · kv + c."""
    if isinstance(node, int):
        return 0, 0, int(node)
    part = graph.parts.get(node) if isinstance(node, Node) else None
    if part in ("q", "kv"):
        return int(part == "q"), int(part == "kv"), 0
    if name(node) == "neg":
        inner = _linear(graph, node.args[0])
        return None if inner is None else (-inner[0], -inner[1], -inner[2])
    if name(node) not in ("add", "sub"):
        return None
    lhs, rhs = (_linear(graph, each) for each in node.args)
    if lhs is None or rhs is None:
        return None
    sign = 1 if name(node) == "add" else -1
    q, kv, number = (a + sign * b for a, b in zip(lhs, rhs, strict=True))
    return q, kv, number


def _text(node: Any) -> str:
    """A node as an expression of two levels."""
    if not isinstance(node, Node) or not name(node):
        return str(node)
    return f"{name(node)}({', '.join(name(operand) or str(operand) for operand in node.args)})"


__all__ = [
    "MASK",
    "SCORE",
    "Modified",
    "ModifierGraph",
    "read_mask",
    "read_score",
    "trace_modifier",
]
