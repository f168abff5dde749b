"""Forks: how they end, signals, and the parent's death."""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import runs, sleeps, until
from wavecast import processes
from wavecast.limits import ProcessLimits
from wavecast.processes import Ended


@pytest.fixture
def _handlers() -> Iterator[None]:
    """A parent with handlers of its own, which must not run in a fork."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: os._exit(77)) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def _leave() -> None:
    os._exit(3)


def _abort() -> None:
    faulthandler.disable()  # its stack would be a crash of the tests
    os.abort()


def _raise() -> None:
    raise KeyError("bug")


@pytest.mark.parametrize(
    ("log", "is_full"),
    [
        ("LLVM ERROR: out of memory\nAllocation failed", True),
        ("terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("libc++abi: terminating due to uncaught exception of type std::bad_alloc", True),
        ("sh: fork: Cannot allocate memory", True),
        ("Traceback (most recent call last):\nMemoryError", True),
        ("error: OutOfMemory", True),
        ("ld.lld: error: undefined symbol: std::bad_alloc::~bad_alloc()", False),
        ('a.hip:3: error: expected ;\n 3 | puts("out of memory")', False),
        ("ValueError: not a MemoryError", False),
    ],
)
def test_what_a_program_quotes_is_not_a_lack_of_memory(log: str, is_full: bool) -> None:
    exceeded = processes.exceeded_limit(ProcessLimits(9, 9, 1 << 30), 0, log)
    assert ("of memory" in exceeded) is is_full


@pytest.mark.parametrize(
    ("work", "ended"),
    [
        (lambda: None, Ended()),
        (_leave, Ended(code=3)),
        (_raise, Ended(code=1)),
        (_abort, Ended(signal=signal.SIGABRT)),
    ],
)
def test_how_a_fork_ended(
    work: Callable[[], object], ended: Ended, capfd: pytest.CaptureFixture[str]
) -> None:
    assert processes.wait(processes.fork(work)) == ended
    assert ("KeyError: 'bug'" in capfd.readouterr().err) is (work is _raise)
    assert ended.signal_name == ("SIGABRT" if work is _abort else "")


@pytest.mark.usefixtures("_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_fork_at_once(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()

    def work() -> None:
        os.write(writer, b"!")
        time.sleep(60)

    child = processes.fork(work)
    os.read(reader, 1)
    assert processes.poll(child) is None
    os.kill(child, number)
    assert processes.wait(child) == Ended(signal=number)
    assert capfd.readouterr().err == ""
    os.close(reader)
    os.close(writer)


@pytest.mark.usefixtures("_handlers")
def test_a_group_of_its_own_has_pythons_interrupts() -> None:
    def work() -> None:
        assert os.getpgid(0) == os.getpid()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            os._exit(5)

    assert processes.wait(processes.fork(work, own_group=True)) == Ended(code=5)


def test_a_group_ends_with_what_it_started() -> None:
    reader, writer = os.pipe()

    def work() -> None:
        started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        os.write(writer, str(started.pid).encode())
        time.sleep(60)

    child = processes.fork(work, own_group=True)
    started = int(os.read(reader, 20))
    processes.kill_group(child)
    assert processes.wait(child) == Ended(signal=signal.SIGKILL)
    until(lambda: not runs(started))
    processes.kill_group(child)  # nothing is left
    os.close(reader)
    os.close(writer)


def test_an_interrupted_wait_ends_the_fork() -> None:
    def work() -> None:
        until(lambda: sleeps(os.getppid()))
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(60)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = processes.fork(work)
        with pytest.raises(KeyboardInterrupt):
            processes.wait(child)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not runs(child)
    assert processes.wait(child) is None


_PARENT = """
import os, sys, time
from pathlib import Path
from wavecast import processes
from wavecast.limits import ProcessLimits
def work():
    Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(60)
processes.wait(processes.fork(work))
"""


def test_a_fork_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(started)], env={**os.environ, "PYTHONPATH": root}
    ) as parent:
        until(lambda: started.exists() and started.read_text() != "")
        parent.kill()
    until(lambda: not runs(int(started.read_text())))


def test_a_fork_while_a_thread_compiles_can_compile() -> None:
    from llvmlite import binding
    from llvmlite.binding import ffi

    held = threading.Event()

    def compile_slowly() -> None:
        with ffi.lib._lock:
            held.set()
            time.sleep(0.2)

    def work() -> None:
        signal.alarm(300)  # instead of waiting for ever
        binding.get_process_triple()

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    held.wait()
    child = processes.fork(work)
    thread.join()
    assert processes.wait(child) == Ended(code=0)


def test_a_fork_while_a_thread_imports_can_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a module that another thread imports would stay locked in the fork."""
    (tmp_path / "slowly_imported.py").write_text("import time\ntime.sleep(0.5)\nvalue = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def load() -> int:
        return importlib.import_module("slowly_imported").value

    thread = threading.Thread(target=load)
    thread.start()
    while "slowly_imported" not in sys.modules:
        time.sleep(0.01)
    child = processes.fork(lambda: load() == 3 or sys.exit(2))
    thread.join()
    end = time.monotonic() + 20
    while (ended := processes.poll(child)) is None and time.monotonic() < end:
        time.sleep(0.02)
    if ended is None:
        processes.kill(child)
        processes.wait(child)
    assert ended is not None, "it hangs"
    assert ended.code == 0


def test_a_fork_of_a_thread_that_imports_does_not_wait_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may wait for the module that it imports."""
    (tmp_path / "waits_for_forks.py").write_text("import forks_while_imported\n")
    (tmp_path / "forks_while_imported.py").write_text(
        "import sys, time\n"
        "from wavecast import processes\n"
        "while 'waits_for_forks' not in sys.modules:\n    time.sleep(0.01)\n"
        "time.sleep(0.1)\n"
        "start = time.monotonic()\n"
        "ended = processes.wait(processes.fork(lambda: None))\n"
        "seconds = time.monotonic() - start\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    threads = [
        threading.Thread(target=importlib.import_module, args=(name,))
        for name in ("forks_while_imported", "waits_for_forks")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = importlib.import_module("forks_while_imported")
    assert done.ended.code == 0
    assert done.seconds < 5
