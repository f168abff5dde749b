"""Parallel maps in processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import runs, until
from wavecast.pipeline import processes
from wavecast.pipeline.processes import map_unordered


def _square(number: int) -> int:
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def _refuse(number: int) -> int:
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_dies_takes_its_call_only(jobs: int) -> None:
    found = dict(map_unordered(_square, range(10), jobs))
    assert found == {n: None if n == 7 else n * n for n in range(10)}


def test_more_calls_than_a_process_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PER_PROCESS", 2)
    assert len(list(map_unordered(_square, range(100, 103), 1))) == 3


def test_what_is_raised_is_raised() -> None:
    with pytest.raises(ValueError, match="no 3"):
        list(map_unordered(_refuse, [3], 1))


_SPREADING = """
from tests.pipeline.test_processes import _wait
from wavecast.pipeline.processes import map_unordered
if __name__ == "__main__":
    list(map_unordered(_wait, [FOLDER], 1))
"""


def _wait(folder: str) -> None:
    (Path(folder) / "started").write_text(str(os.getpid()))
    time.sleep(60)


def test_processes_end_with_the_one_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "spreading.py"
    script.write_text(_SPREADING.replace("FOLDER", repr(str(tmp_path))))
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root}
    ) as own:
        started = tmp_path / "started"
        until(lambda: started.exists() and started.read_text() != "")
        own.kill()
    child = int(started.read_text())
    until(lambda: not runs(child))
