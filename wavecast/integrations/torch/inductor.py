"""Graphs that `torch.compile` makes, with operators of the library in them.

pass_ = ops.inductor_pass()
torch.compile(model, options={"pre_grad_custom_pass": pass_})
print(pass_.replaced)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx import Graph, Node

from wavecast.integrations.torch import library
from wavecast.integrations.torch.replaced import Done, Left, Replaced
from wavecast.integrations.torch.substitutes import FLOATS, SUBSTITUTES, why_not


class InductorPass(CustomGraphPass):
    """Before autograd sees a graph: replaces calls in `SUBSTITUTES`, RMS norms written out, and
    silu(x) * y. `replaced` tells what it did in all graphs so far.

    With `cached` PyTorch may take a graph it compiled before from its cache; then the pass does not
    run, and `replaced` does not tell of that graph.
    """

    def __init__(self, *, cached: bool = False) -> None:
        library.install()
        self._cached = cached
        self.replaced = Replaced()

    def __call__(self, graph: Graph) -> None:
        for node in _calls(graph):
            if not self._gated(graph, node):
                self._written_norm(graph, node)
        graph.eliminate_dead_code()
        for node in _calls(graph):
            self._substituted(node)

    def uuid(self) -> Any:
        """What names the pass in caches of compiled graphs: its text; None keeps them out."""
        if not self._cached:
            return None
        here = Path(__file__)
        return get_hash_for_files((str(here), str(here.with_name("substitutes.py"))))

    def _substituted(self, node: Node) -> None:
        function: Any = node.target
        if isinstance(function, str):
            function = getattr(torch.Tensor, function, None)
        if function not in SUBSTITUTES:
            return
        found, name = SUBSTITUTES[function], _name(node)
        reason = why_not(function, _values(node.args), _named(node.kwargs))
        if reason:
            self.replaced.left.append(Left(node.name, name, reason))
            return
        node.op, node.target = "call_function", found.call
        self.replaced.done.append(Done(node.name, name, found.operator))

    def _gated(self, graph: Graph, node: Node) -> bool:
        """silu(gate) * up -> silu_mul."""
        if _name(node) != "mul":
            return False
        for one, other in (node.args[:2], node.args[1::-1]):
            if not (isinstance(one, Node) and isinstance(other, Node)):
                continue
            if one.target is not F.silu or len(one.users) != 1:
                continue
            gate, up = _value(one.args[0]), _value(other)
            if not _alike(gate, up):
                continue
            with graph.inserting_before(node):
                fused = graph.call_function(
                    torch.ops.wavecast.silu_mul.default, (one.args[0], other)
                )
            self._put(node, fused, "silu(x) * y", "silu_mul")
            return True
        return False

    def _written_norm(self, graph: Graph, node: Node) -> bool:
        """weight * (x · rsqrt(mean(x²) + eps)).to(dtype), as models write it, -> rms_norm."""
        if _name(node) != "mul":
            return False
        for weight, normal in (node.args[:2], node.args[1::-1]):
            found = _normalised(normal)
            if found is None or not isinstance(weight, Node):
                continue
            x, eps = found
            shape, scale, result = _value(x), _value(weight), _value(node)
            fits = (
                isinstance(shape, Tensor)
                and isinstance(scale, Tensor)
                and isinstance(result, Tensor)
                and shape.dtype in FLOATS
                and scale.dtype in FLOATS
                and result.dtype == shape.dtype
                and tuple(scale.shape) == tuple(shape.shape[-1:])
            )
            if not fits:
                continue
            with graph.inserting_before(node):
                fused = graph.call_function(torch.ops.wavecast.rms_norm.default, (x, weight, eps))
            self._put(node, fused, "x * rsqrt(mean(x²)) * weight", "rms_norm")
            return True
        return False

    def _put(self, node: Node, fused: Node, what: str, name: str) -> None:
        fused.meta = dict(node.meta)
        node.replace_all_uses_with(fused)
        self.replaced.done.append(Done(node.name, what, name))


def _calls(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op in ("call_function", "call_method")]


def _normalised(node: Any) -> tuple[Node, float] | None:
    """(x, eps) of x · rsqrt(mean(x²) + eps), casts aside."""
    node = _uncast(node)
    if not isinstance(node, Node) or _name(node) != "mul":
        return None
    for wide, scale in (node.args[:2], node.args[1::-1]):
        if not isinstance(scale, Node) or _name(scale) != "rsqrt":
            continue
        total = scale.args[0]
        if not isinstance(total, Node) or _name(total) != "add":
            continue
        mean, eps = total.args[:2]
        if not isinstance(mean, Node) or _name(mean) != "mean" or not isinstance(eps, float):
            continue
        square = mean.args[0]
        if not isinstance(square, Node) or not _is_square(square, wide):
            continue
        if _dimension(mean) != -1 or not _keeps_dimension(mean):
            continue
        x = _uncast(wide)
        return (x, eps) if isinstance(x, Node) else None
    return None


def _is_square(node: Node, of: Any) -> bool:
    if _name(node) == "pow":
        return bool(node.args[0] is of and node.args[1] == 2)
    return _name(node) in ("mul", "square") and all(one is of for one in node.args)


def _dimension(mean: Node) -> Any:
    dim = mean.args[1] if len(mean.args) > 1 else mean.kwargs.get("dim")
    return dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim


def _keeps_dimension(mean: Node) -> bool:
    return bool(mean.args[2] if len(mean.args) > 2 else mean.kwargs.get("keepdim", False))


def _uncast(node: Any) -> Any:
    while isinstance(node, Node) and _name(node) in ("to", "float", "type_as"):
        node = node.args[0]
    return node


def _name(node: Node) -> str:
    """What a node calls: `mul` for `x * y`, `torch.mul(x, y)` and `x.mul(y)`, which is what the
    first becomes where a function mode is traced."""
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _alike(one: Any, other: Any) -> bool:
    return (
        isinstance(one, Tensor)
        and isinstance(other, Tensor)
        and one.dtype == other.dtype
        and one.dtype in FLOATS
        and one.shape == other.shape
    )


def _value(argument: Any) -> Any:
    """What stands for an argument while a graph is made: a fake tensor, or itself."""
    return argument.meta.get("example_value") if isinstance(argument, Node) else argument


def _values(arguments: Sequence[Any]) -> list[Any]:
    return [_value(one) for one in arguments]


def _named(arguments: Any) -> dict[str, Any]:
    return {name: _value(one) for name, one in arguments.items()}


__all__ = ["InductorPass"]
