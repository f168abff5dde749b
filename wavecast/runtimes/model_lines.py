"""Lines of a model that code of `torch.compile` launches kernels for.

Inductor writes a number before every call of a kernel, its own or a library's, and keeps for each
number the stack traces of the operators it fused (PyTorch's provenance tracking).
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from wavecast.launch.script_lines import is_own, is_script, note_generated

_CALL: Final = re.compile(r"\[Provenance debug handles\] (\S+)")
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')
_LIBRARIES: Final = ("/torch/", "/wavecast/", "/transformers/")
"""Parts of paths of code that models call; the line that calls it is sought."""

_modules: dict[str, Mapping[str, Sequence[str]]] = {}


def remember(path: str, traces: Mapping[str, Sequence[str]]) -> None:
    """Note the stack traces of a file of generated code, by kernel and number."""
    _modules[path] = {name: tuple(stack_traces) for name, stack_traces in traces.items()}
    note_generated(path, functools.partial(_script_line, path))


def model_lines() -> tuple[str, ...]:
    """The lines (`path:line`) of the model that the launch at hand comes from, sorted; () where no
    generated code launches."""
    if not _modules:
        return ()
    frame = sys._getframe()
    while frame is not None:
        traces = _modules.get(frame.f_code.co_filename)
        if traces is not None:
            return _lines(traces.get(_number(frame.f_code.co_filename, frame.f_lineno), ()))
        frame = frame.f_back
    return ()


def _script_line(path: str, line: int) -> tuple[str, int] | None:
    """The first line of the program that a line of generated code is made of. Inductor lists the
    lines of an operator's inputs too; a library has called the operator itself, as functions of
    `torch.distributed` do."""
    stacks = [_FRAME.findall(trace) for trace in _modules[path].get(_number(path, line), ())]
    called = [
        stack for stack in stacks if not all(is_script(file) or is_own(file) for file, _ in stack)
    ]
    lines = [
        (file, int(at))
        for stack in called or stacks
        for file, at in reversed(stack)
        if is_script(file)
    ]
    return lines[0] if lines else None


def _number(path: str, line: int) -> str:
    """The kernel and number that are written above a line, "" without one."""
    for text in reversed(linecache.getlines(path)[:line]):
        if match := _CALL.search(text):
            return match[1]
    return ""


def _lines(traces: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{path}:{line}" for path, line in sorted(set(_user_lines(traces))))


def _user_lines(traces: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The innermost line of each trace that is not a library's."""
    for trace in traces:
        frames = [(path, int(line)) for path, line in _FRAME.findall(trace)]
        user_frames = [
            frame for frame in frames if not any(part in frame[0] for part in _LIBRARIES)
        ]
        if frames:
            path, line = (user_frames or frames)[-1]
            yield Path(path).as_posix(), line


__all__ = ["model_lines", "remember"]
