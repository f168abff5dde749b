"""Running something in a copy of this process, so that memory stays as it is.

A kernel that is sampled writes to the arrays it was given, and reaches them through pointers in
them. The copy is a forked process: the system copies what is written, and nothing else.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from wavecast import processes
from wavecast.emulate.errors import Unsupported
from wavecast.errors import WavecastError

Result = TypeVar("Result")


def isolated(work: Callable[[], Result]) -> Result:
    """What `work` returns, run in a fork; a WavecastError it raises is raised here.

    The fork has this thread only: `work` must not need others, or locks they may hold. Memory that
    processes share on purpose is not copied. Raises Unsupported where the system cannot fork or
    the fork dies.
    """
    if not processes.can_fork():
        raise Unsupported("executing a sample needs a system that can fork processes")
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as pipe:
        try:
            child = processes.fork(lambda: _answer(work, reader, writer))
        finally:
            os.close(writer)
        try:
            content = pipe.read()
        except BaseException:
            processes.kill(child)
            processes.wait(child)
            raise
    ended = processes.wait(child)
    if not content:
        raise Unsupported(f"the process that executed the sample died{_how(ended)}")
    failed, result = pickle.loads(content)
    if failed:
        raise result
    return result


def _how(ended: processes.Ended | None) -> str:
    if ended is None:
        return ""
    return f" ({ended.signal_name or f'exit code {ended.code}'})"


def _answer(work: Callable[[], object], reader: int, writer: int) -> None:
    """In the fork: send the result or the error."""
    os.close(reader)
    try:
        answer = False, work()
    except WavecastError as error:
        answer = True, error
    content = pickle.dumps(answer, protocol=5)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(content)


__all__ = ["isolated"]
