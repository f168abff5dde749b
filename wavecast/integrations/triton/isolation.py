"""A compiler call in a child process first, so that its crash is an error and not the end.

LLVM aborts on code it cannot select. The child leaves its results in Triton's disk cache, from
where the same call in this process takes them.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import tempfile
import warnings
from collections.abc import Callable

from wavecast.errors import CompileError

_DIAGNOSTIC = re.compile(r"(?:fatal )?error: .*|.*LLVM ERROR: .*|.*Assertion .* failed.*")


def rehearse(compile_kernel: Callable[[], object]) -> str:
    """Run `compile_kernel` in a forked child; what it printed on stderr is returned.

    An exception in the child is not reported: the call in this process will raise it again.
    Raises CompileError when the child dies of a signal.
    """
    with tempfile.TemporaryFile() as output:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads
            child = os.fork()
        if child == 0:
            _run_child(compile_kernel, output.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        log = output.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        said = diagnostic(log)
        raise CompileError(f"the compiler crashed ({name}){': ' + said if said else ''}", log=log)
    return log


def diagnostic(log: str) -> str:
    """The compiler's own first complaint in what it printed; "" when there is none."""
    for line in log.splitlines():
        match = _DIAGNOSTIC.search(line)
        if match:
            return match[0].strip()
    return ""


def _run_child(compile_kernel: Callable[[], object], output: int) -> None:
    status = 1
    try:
        faulthandler.disable()  # its stack would be taken for a crash of the script
        os.dup2(output, 2)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        compile_kernel()
        status = 0
    finally:
        os._exit(status)
