"""Running something in a copy of this process, so that memory stays as it is.

A kernel that is sampled writes to the arrays it was given, and reaches them through pointers in
them. The copy is a forked process: the system copies what is written, and nothing else.
"""

from __future__ import annotations

import os
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import TypeVar

from wavecast.emulate.errors import Unsupported
from wavecast.errors import WavecastError

Result = TypeVar("Result")


def isolated(work: Callable[[], Result]) -> Result:
    """What `work` returns, run in a fork; an error it raises is raised here.

    The fork has this thread only: `work` must not need others, or locks they may hold. Memory that
    processes share on purpose is not copied. Raises Unsupported where the system cannot fork or
    the fork dies.
    """
    if not hasattr(os, "fork"):
        raise Unsupported("executing a sample needs a system that can fork processes")
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of other threads
        child = os.fork()
    if child == 0:
        _answer(work, reader, writer)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            content = pipe.read()
    finally:
        _, status = os.waitpid(child, 0)
    if not content:
        raise Unsupported(f"the process that executed the sample died (status {status})")
    failed, result = pickle.loads(content)
    if failed:
        raise result
    return result


def _answer(work: Callable[[], object], reader: int, writer: int) -> None:
    """In the fork: send the result and end. What is no error of ours goes to standard error."""
    status = 1
    try:
        os.close(reader)
        try:
            answer = False, work()
        except WavecastError as error:
            answer = True, error
        content = pickle.dumps(answer, protocol=5)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(content)
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


__all__ = ["isolated"]
