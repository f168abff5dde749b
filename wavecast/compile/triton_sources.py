"""Where the source files of a kernel from Triton's cache are now.

Triton's cache key has the text and the first line of every function of a kernel, but no path: a
script that was copied, moved or renamed takes a kernel whose debug information has the paths of the
script that was compiled. Every function of the kernel is in its first stage, `source`, with its
file and line. The function that the program would compile now is in the same line of a live file.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from wavecast.compile import ttgir

_MAX_DEPTH = 8
"""Modules in modules that are followed to a function, as in `package.module.function(x)`."""


def moved_files(kernel: Any) -> dict[str, str]:
    """The files that a `CompiledKernel`'s debug information names -> the files of the same
    functions in this process, for files that differ; {} for a kernel without its Python function.
    """
    function = getattr(kernel.src, "fn", None)
    text = kernel.asm.get("source", "")
    if function is None or not isinstance(text, str):
        return {}
    live = _live_functions(function, getattr(kernel.src, "constants", {}))
    votes: dict[str, Counter[str]] = {}
    for operation in ttgir.parse(text).operations_named("tt.func"):
        location = operation.location
        if location is None or not location.file:
            continue
        files = _files(operation.text, location.line, function, live)
        votes.setdefault(location.file, Counter()).update(files)
    return {
        file: counts.most_common(1)[0][0]
        for file, counts in votes.items()
        if counts and file not in counts
    }


def _files(text: str, line: int, kernel: Any, live: list[Any]) -> set[str]:
    """The files with the function whose `tt.func` line is `text`, at this line. The name of a
    private function ends with the types of its arguments."""
    if text.startswith("tt.func public"):
        return {str(kernel.fn.__code__.co_filename)}
    name = text.partition("@")[2]
    return {
        str(function.fn.__code__.co_filename)
        for function in live
        if 0 <= line - function.starting_line_number < len(function.raw_src)
        and f".{function.fn.__qualname__}__" in name
    }


def _live_functions(kernel: Any, constants: Any) -> list[Any]:
    """The JIT functions that the text of `kernel`, or of one of them, may name, and those among the
    kernel's constants."""
    base = getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", type(kernel))
    pending: list[Any] = [kernel, *_flat(constants.values())]
    functions: dict[int, Any] = {}
    while pending:
        value = pending.pop()
        if isinstance(value, base) and id(value) not in functions:
            functions[id(value)] = value
            pending.extend(_referenced_values(value.fn))
    return list(functions.values())


def _referenced_values(function: Any) -> Iterator[Any]:
    """The values that the code of a Python function may name. Attributes are read from modules and
    classes alone, without running code."""
    code = function.__code__
    names = (*code.co_names, *code.co_freevars)
    scopes: list[dict[str, Any]] = [function.__globals__]
    if function.__closure__:
        cells = zip(code.co_freevars, function.__closure__, strict=True)
        scopes.append({name: cell.cell_contents for name, cell in cells if _is_filled(cell)})
    ids: set[int] = set()
    for _ in range(_MAX_DEPTH):
        values = [scope[name] for scope in scopes for name in names if name in scope]
        yield from values
        inner = {id(v): v for v in values if isinstance(v, (ModuleType, type))}
        scopes = [dict(vars(value)) for key, value in inner.items() if key not in ids]
        ids |= inner.keys()


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading an empty cell raises
    except ValueError:
        return False
    return True


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield getattr(value, "value", value) if type(value).__name__ == "constexpr" else value


__all__ = ["moved_files"]
