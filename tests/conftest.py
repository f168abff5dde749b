"""Caches that belong to the tests, the option that rewrites golden files, and the garbage
collector."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warm_python import captures

HERE = Path(__file__).resolve().parent
CACHES = HERE.parent / "build" / "tests"
"""What the tests compile, by program: none of it in a fresh checkout, and none of the user's."""
FOLDERS = {
    "WAVECAST_CACHE_DIR": "wavecast",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "ZIG_GLOBAL_CACHE_DIR": "zig",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite golden files with what the tests find, instead of comparing; in one process",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--update-golden writes files: run it without -n")
    for name, folder in FOLDERS.items():
        os.environ[name] = str(CACHES / folder)
    # Tensors of tests are small: threads of PyTorch would wait for each other, at full speed
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Inductor compiles programs to find the vector instructions of the CPU, for as long as all
    # tests of its code for the CPU take
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "0"
    # A script of the last session must run again; tests of the cache switch it on
    os.environ.setdefault("WAVECAST_CAPTURE_CACHE", "0")


def pytest_collection(session: pytest.Session) -> None:
    """Import no file in the order of another process of the tests. Each compiles its part first,
    with pytest's assertions, and reads the bytecode that the others have written meanwhile."""
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    files = sorted(HERE.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in files[first:] + files[:first]:
        name = ".".join(path.relative_to(HERE.parent).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection reports it
            importlib.import_module(name)


def pytest_collection_finish() -> None:
    """Leave what was imported out of collections: a fifth of the time of tests that compute."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    atexit.register(gc.unfreeze)  # the end of Python collects, and Triton reports what is left


@pytest.fixture(autouse=True)
def same_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that a test runs in this process stays `__main__`, which processes that later tests
    spawn would execute."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="session", autouse=True)
def warm_captures() -> Iterator[None]:
    """Scripts are captured in forks of one process that has imported PyTorch and Triton."""
    with captures():
        yield
