"""Scripts tuned from end to end, and programs that use the tables."""

from __future__ import annotations

import importlib.util
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from tests.warm_python import run_python  # noqa: E402
from wavecast.errors import InputError, NothingAnalysed, UsageError  # noqa: E402
from wavecast.perfmodel.intervals import table  # noqa: E402
from wavecast.pipeline import select  # noqa: E402
from wavecast.tuning import TuningTable, load  # noqa: E402
from wavecast.tuning.budget import SearchBudget  # noqa: E402
from wavecast.tuning.records import read  # noqa: E402
from wavecast.tuning.run import TuneResult, tune  # noqa: E402
from wavecast.tuning.script import TuneScript  # noqa: E402
from wavecast.tuning.settings import TuneSettings  # noqa: E402

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]
N = 1 << 22


def _tune(path: Path, arch: str = "mi300x", *, resume: bool = False, **settings) -> TuneResult:
    given = {"devices": (), "journal": "", "simulate": 1, **settings}
    return tune(TuneScript(path), select(arch.split(",")), TuneSettings(**given), resume=resume)


def _module(path: Path):
    spec = importlib.util.spec_from_file_location("tuned_script", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_problem_and_device_has_its_ranking(script) -> None:
    path = script(f'scale(torch.ones({N}, device="cuda"))\nscale(torch.ones(1000, device="cuda"))')
    tuned = _tune(path, "mi300x,mi325x,rx7900xtx")
    assert not tuned.failures
    found = {(e.problem.device, e.problem.key["n"]): e for e in tuned.table.entries}
    assert set(found) == {(d, n) for d in ("mi300x", "mi325x", "rx7900xtx") for n in (N, 1000)}
    large = found["mi300x", N]
    assert large.best is not None
    # 65,536 workgroups of 64 elements cost more than 4,096 of 1,024.
    assert large.best.configuration.settings["BLOCK"] == 1024
    assert large.best.fidelity == "executed"
    ends = [math.log(end / large.best.seconds) for end in (large.best.low, large.best.high)]
    assert any(ends == pytest.approx([row.low, row.high]) for row in table().rows.values())
    (refused,) = large.refused
    assert refused.configuration.settings["BLOCK"] == 32
    assert "too small" in refused.reason
    assert large.problem.arguments["x_ptr"] == "float32:16"


def test_a_wide_space_stays_within_its_budget(script) -> None:
    path = script(f'scale(torch.ones({N}, device="cuda"))')
    tuned = _tune(path, space="wide", budget=SearchBudget(12), simulate=0, jobs=2)
    (entry,) = tuned.table.entries
    assert len(entry.results) + len(entry.refused) == 12
    assert any("waves_per_eu" in r.configuration.settings for r in entry.results)
    assert not any("kpack" in r.configuration.settings for r in entry.results)  # no matrix product


def test_a_configuration_that_kills_the_compiler_is_refused(script) -> None:
    path = script(
        f"""
import os
scaled.configs[0].pre_hook = lambda arguments: os.abort()
scale(torch.ones({N}, device="cuda"))
"""
    )
    (entry,) = _tune(path, simulate=0).table.entries
    reasons = {r.configuration.settings["BLOCK"]: r.reason for r in entry.refused}
    assert reasons[64] == "the compiler crashed (SIGABRT)"
    assert [r.configuration.settings["BLOCK"] for r in entry.results] == [1024]


def test_a_script_without_autotuned_launches_is_named(script) -> None:
    with pytest.raises(NothingAnalysed, match=r"script\.py launches no autotuned kernel"):
        _tune(script("scaled.fn[(1,)](torch.ones(64), torch.ones(64), 64, 2.0, BLOCK=64)"))


def test_nvidia_gpus_are_refused(script) -> None:
    with pytest.raises(UsageError, match="only AMD code is predicted"):
        _tune(script(""), "sm_90")


def test_programs_take_configurations_from_tables(script, tmp_path: Path) -> None:
    path = script(f'if __name__ == "__main__":\n    scale(torch.ones({N}, device="cuda"))')
    tuned = _tune(path, "mi300x,mi325x", simulate=0)
    stored = tmp_path / "table.json"
    stored.write_text(json.dumps(tuned.table.to_json()))
    table = load(stored)
    module = _module(path)
    x = torch.ones(N)
    with wavecast.device("mi300x"):
        best = table.best_config(module.scaled, x, x, N, 2.0)
        assert best.kwargs == {"BLOCK": 1024}
        assert best.num_warps == 4
        assert table.best_config(module.scaled, x, x, N // 2, 2.0) is None  # another key
        assert table.best_config(module.scaled, x.half(), x, N, 2.0) is None  # another dtype
        assert table.best_config(module.scaled, x, x, N, 2.0, device="mi355x") is None
        with pytest.raises(UsageError, match=r"has scaled for mi300x, mi325x \(choose one with"):
            table.find(module.scaled, x, x, N, 2.0, device="mi308x")
        table.tuned(module.scaled)
        y = torch.ones(N)
        assert torch.equal(module.scale(y), 2 * y)
        assert module.scaled.best_config.kwargs == {"BLOCK": 1024}
        assert not hasattr(module.scaled, "configs_timings")  # nothing was timed
        assert torch.equal(module.scale(torch.ones(100)), 2 * torch.ones(100))
        assert len(module.scaled.configs_timings) == 3  # not in the table: tuned as before


def test_only_autotuned_kernels_take_tables(script) -> None:
    with pytest.raises(UsageError, match=r"@triton\.autotune"):
        TuningTable(()).tuned(_module(script("")).scaled.fn)


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "wavecast", "tune", *map(str, arguments)]


def test_what_was_finished_survives_a_kill_and_is_not_done_again(script, tmp_path: Path) -> None:
    count = tmp_path / "tried"
    path = script(
        f"""
def tried(arguments):
    with open({str(count)!r}, "a") as file:
        print(arguments["BLOCK"], file=file)
    if arguments["BLOCK"] == 1024 and not {str(tmp_path)!r} in sys.argv:
        import time
        time.sleep(120)

for config in scaled.configs:
    config.pre_hook = tried
scale(torch.ones({N}, device="cuda"))
"""
    )
    output = tmp_path / "table.json"
    journal = tmp_path / "table.json.journal"
    options = [path, "-a", "mi300x", "-o", output, "-j", "1", "--simulate", "0"]
    process = subprocess.Popen(_command(*options), cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [r.configuration.settings["BLOCK"] for _, r in read(journal)] == [64]
    again = run_python("-m", "wavecast", "tune", *options, folder=ROOT)
    assert again.returncode == 2
    assert "continue it with --resume" in again.stderr
    count.unlink()
    done = run_python("-m", "wavecast", "tune", *options, "--resume", "--", tmp_path, folder=ROOT)
    assert done.returncode == 0, done.stderr
    assert "64" not in count.read_text().split()[:1]
    assert not journal.exists()
    (entry,) = load(output).entries
    assert len(entry.results) + len(entry.refused) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.py"], 2, "no such script"),
        (["{script}", "-a", "mi999"], 2, "unknown"),
        (["{script}", "--budget", "soon"], 2, "invalid budget"),
        (["{script}", "--search", "luck", "--budget", "1"], 2, "unknown search"),
        (["{script}", "-o", "/proc/table.json"], 2, "cannot write"),
        (["{script}", "-o", "nowhere/table.json"], 2, "there is no folder"),
        (["{script}", "--resume"], 2, "--output"),
        (["{script}", "-k", "("], 2, "not a regular expression"),
        ([], 2, "no PATH of a script (or --table)"),
        (["{script}", "--shape", "8x8"], 2, "--shape belongs to --table"),
        (
            ["{script}", "--table", "fp8-product", "--shape", "8x8", "-o", "x"],
            2,
            "without a script",
        ),
        (["--table", "fp8-product", "-o", "x"], 2, "--shape is missing (SIZES)"),
        (["--table", "fp8-product", "--shape", "8x8"], 2, "--output is missing"),
    ],
)
def test_bad_input_is_one_line(script, arguments, code, message, capfd) -> None:
    from wavecast.cli.main import run

    path = str(script(""))
    with pytest.raises(SystemExit) as ended:
        run(["tune", *(argument.format(script=path) for argument in arguments)])
    error = capfd.readouterr().err
    assert ended.value.code == code
    assert message in error
    assert error.count("\n") == 1


def test_python_has_the_document_and_the_file_of_the_command(script, tmp_path: Path, capfd) -> None:
    from wavecast.api import tune as api
    from wavecast.cli.main import run

    path = script(f'scale(torch.ones({N}, device="cuda"))')
    options = ["-a", "mi300x", "--simulate", "0", "-j", "1", "-f", "json"]
    with pytest.raises(SystemExit) as ended:
        run(["tune", str(path), *options])
    table = tmp_path / "table.json"
    report = api.tune(path, arch="mi300x", simulate=0, jobs=1, output=table)
    assert isinstance(report, api.TuneReport)
    document = json.loads(capfd.readouterr().out)
    assert document == report.to_dict() == json.loads(table.read_text())
    assert ended.value.code == report.exit_code() == 0
    assert "1024" in str(report)


def test_a_run_that_fails_keeps_the_table_before(script, tmp_path: Path, capfd) -> None:
    from wavecast.cli.main import run

    output = tmp_path / "table.json"
    output.write_text("before")
    path = str(script("x = torch.ones(4)"))
    with pytest.raises(SystemExit) as ended:
        run(["tune", path, "-o", str(output), "-j", "1"])
    assert ended.value.code == 3
    assert "without launching a kernel" in capfd.readouterr().err
    assert output.read_text() == "before"


def test_an_existing_journal_is_kept(script, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("{}\n")
    with pytest.raises(InputError, match="interrupted"):
        _tune(script(""), journal=str(journal))
    assert journal.read_text() == "{}\n"
