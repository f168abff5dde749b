"""Python processes that have PyTorch and Triton imported, forked from one that imported them once.

Importing PyTorch takes seconds of every process that a test starts. A test of what a process does
before it imports anything starts its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_SERVER = """
import json, os, runpy, sys, traceback
import pytest, torch, triton

def work(job):
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    for number, name in enumerate(("/dev/null", *job["outputs"])):
        flags = os.O_RDWR | os.O_APPEND if number else os.O_RDONLY
        os.dup2(os.open(name, flags), number)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, "r" if not number else "w", closefd=False) for number in range(3)
    )
    sys.argv = job["command"]
    sys.path.insert(0, job["folder"])
    code = 0
    try:
        runpy.run_module(job["command"][0], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)

for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            work(json.loads(line))
        finally:
            os._exit(70)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run_module(
    *command: str, folder: Path, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `python -m` with these arguments in a
    folder."""
    server = _server(os.getpid())
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        job = {
            "command": command,
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder),
            "outputs": (out.name, err.name),
        }
        server.stdin.write(f"{json.dumps(job)}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return code, out.read().decode(), err.read().decode()


@cache
def _server(process: int) -> subprocess.Popen[str]:
    """The process that forks; it ends when this one closes its end of the pipe."""
    del process
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
