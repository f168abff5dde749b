"""Running a function in a fork of this process, so that memory stays as it is.

A kernel that is sampled writes to the arrays it was given, and reaches them through pointers in
them. In a fork the system copies the pages that are written, and nothing else. The answer is a
plain value (`plain`): a map with `result`, or with `error` (class name, message, hint).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wavecast import processes
from wavecast.emulate.errors import AddressFault, ExecutionError, Unsupported
from wavecast.errors import (
    CompileError,
    InputError,
    LaunchError,
    MissingFact,
    MissingTool,
    UsageError,
    WavecastError,
)
from wavecast.sampling.plain import from_bytes, to_bytes

_ERRORS: Final[dict[str, type[WavecastError]]] = {
    error.__name__: error
    for error in (
        AddressFault, CompileError, ExecutionError, InputError, LaunchError, MissingFact,
        MissingTool, Unsupported, UsageError,
    )
}  # fmt: skip
"""Errors that come back as themselves; others as a WavecastError with the same message."""


def run_in_fork(work: Callable[[], object]) -> Any:
    """The plain value that `work` returns, run in a fork; a WavecastError it raises is raised here.

    The fork has this thread only: `work` must not need others, or locks they may hold. Memory that
    processes share on purpose is not copied. Raises Unsupported where the system cannot fork or
    the fork dies.
    """
    if not processes.can_fork():
        raise Unsupported("executing a sample needs a system that can fork processes")
    content, exit_status = processes.fork_for_bytes(lambda pipe: pipe.write(_answer(work)))
    if not content:
        raise Unsupported(f"the process that executed the sample died{_how(exit_status)}")
    answer = from_bytes(content)
    if "error" in answer:
        name, message, hint = answer["error"]
        raise _ERRORS.get(name, WavecastError)(message, hint=hint)
    return answer["result"]


def _how(exit_status: processes.Ended | None) -> str:
    if exit_status is None:
        return ""
    return f" ({exit_status.signal_name or f'exit code {exit_status.code}'})"


def _answer(work: Callable[[], object]) -> bytes:
    """In the fork: the result or the error. A sample touches little of large arrays."""
    processes.without_huge_pages()
    answer: dict[str, object]
    try:
        answer = {"result": work()}
    except WavecastError as error:
        answer = {"error": (type(error).__name__, error.message, error.hint)}
    return to_bytes(answer)


__all__ = ["run_in_fork"]
