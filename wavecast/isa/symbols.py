"""Assembler symbols set to expressions: `.set k.num_vgpr, max(22, .Lf.num_vgpr)`.

LLVM writes a kernel's resource usage this way, so that functions it calls can be counted in.
Only the operators it uses there are known; anything else has no value here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from wavecast.isa.quoting import QUOTED, quote, without_comment

_NAME = re.compile(rf"{QUOTED}|\.?[A-Za-z_$][\w$.]*")
_MAX_DEPTH = 64
_MAX_LENGTH = 2000
_BITS = 64
_PLAIN = re.compile(r"[\w.$+*&|<>(), \t-]+", re.ASCII)
"""What an expression is written with; anything else is not handed to Python's parser."""


def _total_vgprs(agprs: int, vgprs: int) -> int:
    """LLVM's `totalnumvgprs` on targets with accumulation registers: VGPRs rounded to 4."""
    return -(-vgprs // 4) * 4 + agprs if agprs else vgprs


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "max": lambda *values: max(values),
    "or": lambda *values: int(any(values)),
    "alignto": lambda value, to: -(-value // to) * to if to else value,
    "totalnumvgprs": _total_vgprs,
}
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.BitAnd: int.__and__,
    ast.BitOr: int.__or__,
    ast.LShift: int.__lshift__,
    ast.RShift: int.__rshift__,
}


def function_resource(text: str, function: str, what: str) -> int | None:
    """What LLVM's assembly states about a function (`num_vgpr`), None where it states nothing."""
    for prefix in (".L", ""):
        value = _value(quote(f"{prefix}{function}.{what}"), text, 0)
        if value is not None:
            return value
    return None


def evaluate(expression: str, text: str) -> int | None:
    """The value of an assembler expression over `.set` symbols of `text`, None if unknown."""
    return _evaluate(expression, text, 0)


def _value(name: str, text: str, depth: int) -> int | None:
    directive = f".set {name},"
    start = text.rfind(directive)
    if start < 0:
        return None
    end = text.find("\n", start)
    expression = text[start + len(directive) : end if end >= 0 else len(text)]
    return _evaluate(without_comment(expression), text, depth + 1)


def _evaluate(expression: str, text: str, depth: int) -> int | None:
    expression = expression.strip()
    if depth > _MAX_DEPTH or len(expression) > _MAX_LENGTH:
        return None
    if expression.isdecimal():
        return int(expression)
    names: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"n{len(names)}")

    plain = _NAME.sub(placeholder, expression)
    if not _PLAIN.fullmatch(plain):
        return None
    by_alias = {alias: name for name, alias in names.items()}
    try:
        tree = ast.parse(plain, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return None
    try:
        return _node(tree.body, by_alias, text, depth)
    except RecursionError:
        return None


def _node(node: ast.expr, names: Mapping[str, str], text: str, depth: int) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, ast.Name):
        return _value(names[node.id], text, depth)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left = _node(node.left, names, text, depth)
        right = _node(node.right, names, text, depth)
        if left is None or right is None:
            return None
        if isinstance(node.op, (ast.LShift, ast.RShift)) and not 0 <= right < _BITS:
            return None
        value = _BINARY[type(node.op)](left, right)
        return value if abs(value) < 1 << _BITS else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(names[node.func.id])
        values = [_node(argument, names, text, depth) for argument in node.args]
        if function is not None and values and None not in values:
            return function(*values)
    return None
