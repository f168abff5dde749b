"""Reading graphs: what nodes call, the fake tensors they give, and what lies behind casts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from torch import SymFloat, SymInt, Tensor
from torch.fx import Graph, Node

from wavecast.frameworks.torch.substitutes import FLOATS

Report = Callable[[Node, str, str], None]
"""(node, what it was, the operator that computes it now)"""

ANDS: Final = ("and", "and_", "logical_and", "bitwise_and")
"""Names of `x & y`."""
FLOOR_DIVISIONS: Final = ("floordiv", "floor_divide")
"""Names of `x // y`."""
_FRAME: Final = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)
"""A frame of a stack trace: file, line."""
_SPECIAL: Final = re.compile("__(.+)__")
_PURE: Final = (*ANDS, "or_", "not_", "is_")
_OVERWRITING: Final = frozenset(
    f"i{operation}"
    for operation in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
)
"""Names of `x += y` and the like."""
_ORIGINS: Final = ("nn_module_stack", "source_fn_stack", "stack_trace")
"""What the meta of a node says of where it is from."""
_CASTS: Final = ("to", "float", "type_as", "half", "bfloat16")


def calls(graph: Graph) -> list[Node]:
    """The nodes that call functions and methods."""
    return [node for node in graph.nodes if node.op in ("call_function", "call_method")]


def name(node: Any) -> str:
    """What a node calls: `mul` for `x * y`, `torch.mul(x, y)` and `x.mul(y)`, which is what the
    first becomes where a function mode is traced, as `x & y` becomes `x.__and__(y)`: `and`. "" for
    what is not a call."""
    if not isinstance(node, Node) or node.op not in ("call_function", "call_method"):
        return ""
    if not isinstance(node.target, str):
        return getattr(node.target, "__name__", "")
    method = _SPECIAL.fullmatch(node.target)
    return method[1] if method else node.target


def origin(node: Node) -> str:
    """Where in a model a node is from: the path of its module and the line of the module's file, as
    far as Dynamo says so, else the line that called PyTorch, or the name of the node."""
    modules = list(node.meta.get("nn_module_stack", {}).values())
    path, kind = modules[-1] if modules else ("", None)
    path = re.sub(r"^L\['\w+'\](\[\d+\])?", "", path)
    path = re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", path.replace("._modules", "")).strip(".")
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    file = getattr(sys.modules.get(getattr(kind, "__module__", "")), "__file__", None)
    in_module = [frame for frame in frames if frame[0] == file] or frames
    line = f"{Path(in_module[-1][0]).name}:{in_module[-1][1]}" if in_module else node.name
    return f"{path} ({line})" if path else line


def writes(node: Node) -> bool:
    """Whether a node has an effect other than its result. FX takes methods and operators that
    overwrite a tensor for pure, and would delete what writes to a cache."""
    label = name(node)
    overwrites = label in _OVERWRITING or (label.endswith("_") and label not in _PURE)
    return node.is_impure() or overwrites or node.kwargs.get("out") is not None


def value(argument: Any) -> Any:
    """What stands for an argument while a graph is made: a fake tensor, or itself."""
    return argument.meta.get("example_value") if isinstance(argument, Node) else argument


def is_number(argument: Any) -> bool:
    """Whether an argument is a number, which is a node where graphs are made for any value of it:
    with `dynamic=True` the epsilon of a norm is one."""
    return isinstance(value(argument), (int, float, SymInt, SymFloat))


def values(arguments: Sequence[Any]) -> list[Any]:
    return [value(operand) for operand in arguments]


def named_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {label: value(operand) for label, operand in arguments.items()}


def argument(node: Any, position: int, label: str, default: Any = None) -> Any:
    """An argument given by position or by name."""
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(label, default)


def uncast(node: Any) -> Any:
    """What a tensor was before it was cast to another dtype."""
    while name(node) in _CASTS and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """The operands of a commutative function in both orders."""
    if len(node.args) == 2 and not node.kwargs:
        yield node.args[0], node.args[1]
        yield node.args[1], node.args[0]


def alike(tensor: Any, other: Any) -> bool:
    """Whether two fake tensors have one shape and one floating dtype."""
    return (
        isinstance(tensor, Tensor)
        and isinstance(other, Tensor)
        and tensor.dtype == other.dtype
        and tensor.dtype in FLOATS
        and tensor.shape == other.shape
    )


def put(graph: Graph, node: Node, target: Any, args: tuple, **kwargs: Any) -> Node:
    """A call before `node`, which takes its users and its fake tensor."""
    with graph.inserting_before(node):
        call = graph.call_function(target, args, kwargs)
    call.meta = dict(node.meta)
    node.replace_all_uses_with(call)
    return call


def put_parts(graph: Graph, before: Node, target: Any, args: tuple, *parts: Node) -> list[Node]:
    """A call before a node that returns a tuple, whose elements take the users of `parts`."""
    with graph.inserting_before(before):
        whole = graph.call_function(target, args)
        elements = [graph.call_function(getitem, (whole, number)) for number in range(len(parts))]
    whole.meta = {key: before.meta[key] for key in _ORIGINS if key in before.meta}
    for element, part in zip(elements, parts, strict=True):
        element.meta = dict(part.meta)
        part.replace_all_uses_with(element)
    return elements


def getitem(results: Any, number: int) -> Any:
    """One result of several."""
    return results[number]


def is_given(node: Any) -> bool:
    """Whether a node is an input or a parameter of the graph, which is there before any call."""
    return isinstance(node, Node) and node.op in ("placeholder", "get_attr")


def given_before(number: Any, node: Node) -> bool:
    """Whether a number is there before a node: a constant, an input, or a call on inputs alone,
    which moves before the node."""
    if not isinstance(number, Node) or is_given(number):
        return True
    if not all(is_given(operand) for operand in number.all_input_nodes):
        return False
    if not number < node:
        node.prepend(number)
    return True


def kept_dimension(node: Any, label: str = "dim") -> Any:
    """The dimension that a reduction with `keepdim` reduces, None for any other reduction."""
    dim = argument(node, 1, label)
    if not argument(node, 2, "keepdim", False):
        return None
    return dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim


__all__ = [
    "ANDS", "FLOOR_DIVISIONS", "Report", "alike", "argument", "calls", "getitem", "given_before",
    "is_given", "is_number", "kept_dimension", "name", "named_values", "origin", "pairs", "put",
    "put_parts", "uncast", "value", "values", "writes",
]  # fmt: skip
