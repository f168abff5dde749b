"""The integers of a Python script that set how its Triton kernels are launched, for fields above
the editor: constants of kernels (`BLOCK: tl.constexpr`) and options of Triton's compiler.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.compile.configuration import COMPILER_OPTIONS

_DECORATORS: Final = ("jit", "kernel")
"""`triton.jit`, `gluon.jit`, `helion.kernel` …"""


@dataclass(frozen=True, slots=True)
class LaunchSetting:
    """An integer of the source: `start` and `stop` are its first character and the one after its
    last, counted from 0 in the text. `line` counts from 1."""

    name: str
    value: str
    line: int
    start: int
    stop: int


def launch_settings(text: str, file_name: str) -> list[LaunchSetting]:
    """The settings in the order of the text; [] for a script with a syntax error and for other
    languages.

    An integer sets a launch where it is bound to the name of a kernel's constant or of a compiler
    option (`num_warps=4`, `{"BLOCK_M": 128}`, `BLOCK = 64`), or assigned to a name that a launch
    passes as one of these. Sizes in its grid are those of the problem.
    """
    if not file_name.endswith(".py"):
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()
    settings = {}
    for name, node in _integers(tree, _names(tree)):
        line = lines[node.lineno - 1].encode()
        start = starts[node.lineno - 1] + len(line[: node.col_offset].decode())
        stop = start + (node.end_col_offset or 0) - node.col_offset
        settings[start] = LaunchSetting(name, text[start:stop], node.lineno, start, stop)
    return [settings[start] for start in sorted(settings)]


def _integers(tree: ast.Module, names: frozenset[str]) -> Iterator[tuple[str, ast.Constant]]:
    for node in ast.walk(tree):
        for name, value in _bindings(node):
            constant = _constant(value)
            if name in names and constant is not None:
                yield name, constant


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names and the expressions that `node` binds to them."""
    if isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _assignments(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _assignments(node.target, node.value)
    elif isinstance(node, ast.arguments):
        parameters = [*node.posonlyargs, *node.args]
        values = [None] * (len(parameters) - len(node.defaults)) + [*node.defaults]
        for parameter, value in (
            *zip(parameters, values, strict=True),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ):
            if value is not None:
                yield parameter.arg, value


def _assignments(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for part, assigned in zip(target.elts, value.elts, strict=False):
            yield from _assignments(part, assigned)


def _constant(value: ast.expr) -> ast.Constant | None:
    """An integer, or that of `tl.constexpr(64)`."""
    if isinstance(value, ast.Call) and _last_name(value.func) == "constexpr" and value.args:
        value = value.args[0]
    integer = isinstance(value, ast.Constant) and type(value.value) is int
    return value if integer else None  # type: ignore[return-value]


def _names(tree: ast.Module) -> frozenset[str]:
    """Names whose integers set a launch."""
    kernels = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(_last_name(decorator) in _DECORATORS for decorator in node.decorator_list)
    }
    constants = {name: _constants(kernel) for name, kernel in kernels.items()}
    names = set(COMPILER_OPTIONS).union(
        *(filter(None, parameters) for parameters in constants.values())
    )
    argument_names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            positions = constants.get(_last_name(node.func.value))
            if positions is None:  # a kernel of another file: what it is told by name
                names.update(keyword.arg for keyword in node.keywords if keyword.arg)
            for value in _constant_arguments(node, positions or (), names):
                argument_names.update(
                    name.id for name in ast.walk(value) if isinstance(name, ast.Name)
                )
    return frozenset(names | argument_names)


def _constants(kernel: ast.FunctionDef) -> Sequence[str]:
    """For each parameter its name where it is a constant, else ""."""
    parameters = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    return [
        parameter.arg if _last_name(parameter.annotation) == "constexpr" else ""
        for parameter in parameters
    ]


def _constant_arguments(
    launch: ast.Call, positions: Sequence[str], names: set[str]
) -> Iterator[ast.expr]:
    """The values that a launch passes as constants and options."""
    for name, value in zip(positions, launch.args, strict=False):
        if name:
            yield value
    for keyword in launch.keywords:
        if keyword.arg in names:
            yield keyword.value


def _last_name(node: ast.AST | None) -> str:
    """`jit` of `triton.jit`, `@triton.jit(…)` and `jit`."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return _last_name(node.func)
        case ast.Constant(value=str(text)):
            return text.rpartition(".")[2]
        case _:
            return ""


__all__ = ["LaunchSetting", "launch_settings"]
