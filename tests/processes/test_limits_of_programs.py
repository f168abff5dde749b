"""Programs and forks that exceed a limit, and a program that continues in a child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import runs, sleeps, until
from wavecast import processes
from wavecast.limits import ProcessLimits
from wavecast.processes import Ended

FAR = ProcessLimits(60.0, 60.0, 4 << 30)
BRIEF = ProcessLimits(60.0, 0.5, 4 << 30)
LITTLE = ProcessLimits(0.5, 60.0, 4 << 30)
SMALL = ProcessLimits(60.0, 60.0, 1 << 27)
TOO_MUCH = "it needs more than 0.5 s of processor time"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_program_printed() -> None:
    code = "import sys; print(sys.stdin.read()); print('log', file=sys.stderr); sys.exit(3)"
    done = processes.run(python(code), FAR, stdin=b"in")
    assert (done.status, done.text, done.log, done.exceeded) == (3, "in\n", "log\n", "")


@pytest.mark.parametrize(
    ("code", "limits", "exceeded"),
    [
        ("import time; time.sleep(60)", BRIEF, "it did not finish in 0.5 s"),
        ("while True: pass", LITTLE, TOO_MUCH),
        (
            "import subprocess, sys\n"
            "sys.exit(128 - subprocess.call([sys.executable, '-c', 'while True: pass']))",
            LITTLE,
            TOO_MUCH,
        ),
        ("bytearray(1 << 30)", SMALL, "it needs more than 0.125 GiB of memory"),
        (
            "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
            "while True: print('x' * 10_000_000)",
            SMALL,
            "it wrote more than 0.125 GiB",
        ),
    ],
    ids=["sleeps", "computes", "starts", "allocates", "prints"],
)
def test_a_program_that_exceeds_a_limit(code: str, limits: ProcessLimits, exceeded: str) -> None:
    done = processes.run(python(code), limits)
    assert done.exceeded == exceeded


def test_waiting_takes_no_processor_time() -> None:
    done = processes.run(python("import time; time.sleep(0.6); print('done')"), LITTLE)
    assert (done.text, done.exceeded) == ("done\n", "")


def test_what_a_late_program_started_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(path)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)"
    )
    assert processes.run(python(code), ProcessLimits(60.0, 2.0, 4 << 30)).exceeded
    child = int(path.read_text())
    until(lambda: not runs(child))


def test_a_program_that_cannot_start() -> None:
    with pytest.raises(FileNotFoundError):
        processes.run(["/nowhere/program"], FAR)


def limited(work: str, limits: ProcessLimits) -> tuple[Ended | None, str]:
    """How a fork with limits ends, and what that means."""

    def child() -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        processes.limit_self(limits)
        exec(work)

    ended = processes.wait(processes.fork(child))
    number = ended.signal if ended is not None else 0
    return ended, processes.exceeded_limit(limits, number, "")


def test_a_fork_that_exceeds_a_limit() -> None:
    ended, exceeded = limited("import time; time.sleep(60)", BRIEF)
    assert (ended, exceeded) == (Ended(signal=signal.SIGALRM), "it did not finish in 0.5 s")
    ended, exceeded = limited("while True: pass", LITTLE)
    assert (ended, exceeded) == (Ended(signal=signal.SIGPROF), TOO_MUCH)
    ended, exceeded = limited("import time; time.sleep(0.6)", LITTLE)
    assert (ended, exceeded) == (Ended(code=0), "")
    ended, _ = limited("bytearray(1 << 30)", SMALL)  # MemoryError
    assert ended == Ended(code=1)
    ended, _ = limited("bytearray(1 << 26)", SMALL)
    assert ended == Ended(code=0)


PROGRAM = """
import os, signal, sys
from wavecast import processes
ended = processes.continue_in_child()
if ended is None:
    print("child", flush=True)
    {child}
    sys.exit(7)
print("parent", ended.signal, ended.code)
"""


@pytest.mark.parametrize(
    ("child", "said"),
    [
        ("", "parent 0 7"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", f"parent {int(signal.SIGSEGV)} 0"),
        ("import atexit; atexit.register(print, 'exit')", "exit\nparent 0 7"),
    ],
)
def test_a_program_that_continues_in_a_child(child: str, said: str) -> None:
    command = python(PROGRAM.format(child=child))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"child\n{said}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_to_the_child(number: signal.Signals) -> None:
    child = f"signal.signal({int(number)}, lambda *_: sys.exit(9)); print('ready', flush=True)\n"
    child += "    import time; time.sleep(60)"
    with subprocess.Popen(
        python(PROGRAM.format(child=child)), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["child\n", "ready\n"]
        until(lambda: sleeps(process.pid))
        process.send_signal(number)
        assert process.stdout.read() == "parent 0 9\n"
