"""Scripts with bad luck: odd grids, forked copies of themselves, text that is not UTF-8."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtimes.conftest import GFX942
from tests.targets import thorough_beyond
from tests.waiting import until
from wavecast.errors import CaptureError, NothingAnalysed
from wavecast.runtimes.triton import capture_script
from wavecast.runtimes.triton.program import ending, run_as_main

pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.torch


def test_a_copy_the_script_forks_neither_ends_the_run_nor_mixes_up_counts(script):
    path = script(
        """
import os, sys
launch(500)
child = os.fork()
if child == 0:
    for _ in range(5):
        launch(900)
    sys.exit(3)
os.waitpid(child, 0)
launch(2000)
launch(2000)
"""
    )
    found = capture_script(path, [], [GFX942], quiet=True)
    counts = {launch.grid[0]: launch.count for launch in found.launches["gfx942"]}
    assert counts == {2: 1, 4: 1, 8: 2}
    assert not any("did not finish" in note for note in found.notes)


@pytest.mark.usefixtures("_as_main")
def test_annotations_of_a_script_are_what_python_makes_of_them(tmp_path: Path):
    path = tmp_path / "annotated.py"
    path.write_text("def f(x: 1 + 1): ...\nassert f.__annotations__ == {'x': 2}\n")
    run_as_main(path, [])


TOO_LARGE = ("(2**40,)", "1099511627776 programs")


@pytest.mark.parametrize(
    ("grid", "says"), thorough_beyond([TOO_LARGE], [("(1.5,)", "float"), TOO_LARGE])
)
def test_a_grid_no_gpu_takes_is_refused(script, grid: str, says: str):
    path = script(f"x = torch.ones(8)\nadd[{grid}](x, x, x, 8, BLOCK=8)\n")
    with pytest.raises(CaptureError, match=says):
        capture_script(path, [], [GFX942], quiet=True)


@pytest.mark.parametrize("grid", thorough_beyond(["(0,)"], ["(0,)", "(-1,)"]))
def test_an_empty_grid_is_why_nothing_was_launched(script, grid: str):
    path = script(f"x = torch.ones(8)\nadd[{grid}](x, x, x, 8, BLOCK=8)\n")
    with pytest.raises(NothingAnalysed, match="empty grid"):
        capture_script(path, [], [GFX942], quiet=True)


@pytest.fixture
def _as_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `run_as_main` replaces is put back."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.usefixtures("_as_main")
def test_a_source_that_is_not_utf8_says_so(tmp_path):
    path = tmp_path / "script.py"
    path.write_bytes(b"print(1)\n\n# caf\xe9\n")
    with pytest.raises(SyntaxError) as caught:
        run_as_main(path, [])
    said = ending(caught.value, path)
    assert said is not None
    assert re.search(r"SyntaxError: .*not utf-8 text.*script.py:3", said)


@pytest.mark.usefixtures("_as_main")
def test_a_source_may_state_another_encoding(tmp_path):
    path = tmp_path / "script.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\nassert len('caf\xe9') == 4\n")
    run_as_main(path, [])


@pytest.mark.parametrize("method", thorough_beyond(["spawn"], ["spawn", "forkserver", "fork"]))
def test_processes_of_any_start_method_are_captured(script, method: str):
    path = script(
        f"""
import multiprocessing
if __name__ == "__main__":
    x, y, out = launch(500)
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        pool.map(abs, [1, 2])
    process = multiprocessing.get_context("{method}").Process(target=launch, args=(2000,))
    process.start()
    process.join()
"""
    )
    found = capture_script(path, [], [GFX942], quiet=True, timeout=120)
    assert [launch.grid[0] for launch in found.launches["gfx942"]] == [2, 8]


def test_nothing_is_left_when_the_command_is_killed(script, tmp_path):
    pid = tmp_path / "pid"
    body = f"open({str(pid)!r}, 'w').write(str(os.getpid()))"
    path = script(f"import os, time\n{body}\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "wavecast", "explain", str(path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, start_new_session=True) as started:
        until(lambda: pid.exists() and pid.read_text())
        os.killpg(started.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid.read_text()}").exists())
