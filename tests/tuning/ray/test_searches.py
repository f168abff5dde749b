"""`wavecast model --search` and `wavecast tune` on nodes; nodes and drivers are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tuning.ray.cluster import Nodes, tasks_of
from tests.waiting import runs, until

pytest.importorskip("torch", reason="needs PyTorch")

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).resolve().parents[3]
N = 1 << 22
MODEL = (
    *("model", "Llama-3.1-8B", "--system", "8xMI300X", "--in", "64", "--out", "16"),
    *("--search", "tp,dtype,kv-dtype,batch=1|4|16", "--jobs", "1", "--format", "json"),
)


def _start(*arguments: object) -> subprocess.Popen[str]:
    """A command that is a process of its own, not one that a parent waits for."""
    return subprocess.Popen(
        [sys.executable, "-m", "wavecast", *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _ended(process: subprocess.Popen[str]) -> str:
    """The output of a command that succeeds in silence."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert errors == ""
    return output


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def test_a_search_loses_nothing_with_its_driver_and_a_node(nodes: Nodes, tmp_path: Path) -> None:
    state = tmp_path / "state"
    ray = (*MODEL, "--ray", nodes.address, "--state", state)
    local = json.loads(_ended(_start(*MODEL)))
    total = local["tried"]
    driver = _start(*ray)
    until(lambda: _lines(state))
    driver.kill()
    driver.communicate()
    kept = sum("result" in line for line in state.read_text().split("\n"))
    assert 0 < kept < total
    again = _start(*ray)
    until(lambda: _lines(state) > 2 * kept + 2)
    nodes.kill(nodes.running[0])
    assert _lines(state) < 2 * total
    found = json.loads(_ended(again))
    assert found.pop("known") == kept
    local.pop("known")
    assert found == local


SEARCHED = f"""
import os, time
from pathlib import Path
folder = Path(sys.argv[1])
script = os.getpid()

def hook(arguments):
    if folder.name != "none" and os.getpid() != script:  # a trial, not the launch of the best
        node = os.environ.get("RAY_RAYLET_PID", "here")
        (folder / f"{{arguments['BLOCK']}}-{{node}}").touch()
        while arguments["BLOCK"] == 1024 and not (folder / "go").exists():
            time.sleep(0.02)

for config in scaled.configs:
    config.pre_hook = hook
scale(torch.ones({N}, device="cuda"))
"""


def test_a_tuning_loses_nothing_with_its_driver_and_a_node(
    nodes: Nodes, script, tmp_path: Path
) -> None:
    path, seen = script(SEARCHED), tmp_path / "seen"
    seen.mkdir()
    table, journal = tmp_path / "table.json", tmp_path / "table.json.journal"
    options = ("tune", path, "--simulate", "1", "--jobs", "1", "-f", "json")
    ray = (*options, "-o", table, "--ray", nodes.address)
    driver = _start(*ray, "--", seen)
    until(lambda: _lines(journal) == 2 and list(seen.glob("1024-*")))
    driver.kill()
    driver.communicate()
    first = {int(one.name.rpartition("-")[2]) for one in seen.glob("1024-*")}
    for one in seen.iterdir():
        one.unlink()
    again = _start(*ray, "--resume", "--", seen)
    until(lambda: list(seen.glob("1024-*")))
    (held,) = (int(one.name.rpartition("-")[2]) for one in seen.glob("1024-*"))
    assert first <= set(nodes.running)
    nodes.kill(held)
    (seen / "go").touch()
    assert json.loads(_ended(again)) == json.loads(_ended(_start(*options, "--", "none")))
    tried = [one.name for one in seen.glob("*-*") if not one.name.endswith("-here")]
    assert len(tried) == 2  # on two nodes; the others are of the first run
    assert all(name.startswith("1024-") for name in tried)
    assert not journal.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_search_that_is_ended_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'wavecast[ray]'")
    state = tmp_path / "state"
    driver = _start(*MODEL, "--ray", "local", "--state", state)
    until(lambda: _lines(state))
    tasks = tasks_of(driver.pid)
    assert tasks
    driver.send_signal(number)
    output, errors = driver.communicate(timeout=120)
    assert output == ""
    if number == signal.SIGINT:
        assert driver.returncode == 130
        assert errors.strip() == "wavecast: interrupted"
    until(lambda: not any(map(runs, tasks)))
