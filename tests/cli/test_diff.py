"""`wavecast diff` as a user calls it: two files, two commits, exit codes, formats."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import wavecast
from tests.benchmarking.diff.test_checkout import git
from tests.cli.test_main import call
from tests.documents.support import validated
from tests.warm_python import run_python
from wavecast.api.diff import DiffReport
from wavecast.benchmarking.diff import capturing, environments, releases
from wavecast.errors import CompileError
from wavecast.pipeline.explain.result import Failure

SAXPY = (Path(__file__).parents[2] / "tests/compile/data/saxpy.gfx942.s").read_text()
LINE = "\tv_fmac_f32_e32 v4, s2, v1\n"
SLOW = SAXPY.replace(LINE, "\tv_exp_f32_e32 v1, v1\n" * 6 + LINE)
SCRIPT = """
import torch, triton
import triton.language as tl
from parts import twice

@triton.jit
def fill(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), twice(1.0))

fill[(1,)](torch.empty(64), BLOCK=64)
"""
PARTS = """
import triton

@triton.jit
def twice(value):
    return value * {factor}
"""


def diff(capsys, *arguments: object) -> tuple[int, str, str]:
    return call(capsys, "diff", *map(str, arguments))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before.s", tmp_path / "after.s"
    before.write_text(SAXPY)
    after.write_text(SLOW)
    return before, after


def test_two_files_as_text(capsys, pair) -> None:
    code, out, err = diff(capsys, *pair, "--grid", "64", "--block", "256")
    assert (code, err) == (0, "")
    assert "saxpy on AMD Instinct MI300X (gfx942)" in out
    assert "trans instructions" in out
    assert "regressed loop at line 5" in out
    assert "> " in out
    assert "v_exp_f32_e32 v1, v1" in out


def test_worse_is_exit_code_1_and_better_is_not(capsys, pair) -> None:
    kpi = ("--fail-on", "code_instructions,spills", "--rows", 0)
    code, out, err = diff(capsys, *pair, *kpi)
    assert code == 1
    assert err == "wavecast: worse: code_instructions of saxpy on gfx942: 27 → 33\n"
    assert "assembly" not in out
    assert diff(capsys, *reversed(pair), *kpi)[0] == 0
    assert diff(capsys, *pair, *kpi, "--minimum", 0.5)[0] == 0


def test_json_and_html(capsys, pair, tmp_path: Path) -> None:
    code, out, _ = diff(capsys, *pair, "--format", "json")
    assert code == 0
    document = validated(json.loads(out), "wavecast.diff/1")
    (kernel,) = document["kernels"]
    assert kernel["in"] == ["before", "after"]
    assert kernel["figures"]["code_instructions"] == {"before": 27.0, "after": 33.0}
    region = kernel["regions"][kernel["responsible"]]
    assert region["loop"]
    assert region["line_after"] == 5
    page = tmp_path / "page.html"
    assert diff(capsys, *pair, "--format", "html", "-o", page)[:2] == (0, "")
    assert "v_exp_f32_e32 v1, v1" in page.read_text()


def test_a_kernel_of_one_side_only(capsys, pair, tmp_path: Path) -> None:
    lean = tmp_path / "lean.s"
    lean.write_text(SAXPY)
    code, out, _ = diff(capsys, pair[0], lean, "-k", "nothing_like_it")
    assert code == 3
    assert out == ""


def test_a_kernel_that_fails_on_one_side_is_a_failure(capsys, pair, tmp_path: Path) -> None:
    narrow = SAXPY.replace("workgroup_size: 256", "workgroup_size: 128")
    after = tmp_path / "narrow.s"
    after.write_text(narrow)
    block = ("--grid", "64", "--block", "256")
    code, out, err = diff(capsys, pair[0], after, *block)
    assert (code, out) == (2, "")
    assert err.startswith(f"wavecast: {after}: saxpy for gfx942: saxpy: a workgroup of 256")
    both, after_only = (Failure(name, "gfx942", "compile", "bad") for name in ("old", "new"))
    compared = wavecast.diff(*pair)
    assert isinstance(compared, DiffReport)
    failures = replace(compared.diff, failed_before=(both,), failed_after=(both, after_only))
    report = DiffReport(failures)
    assert report.messages() == ["not compared, they fail on one side: new for gfx942"]
    assert (report.exit_code(), compared.exit_code()) == (2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "needs two files"),
        (("--bisect",), "--bisect needs --kpi"),
        (("--kpi", "spills", "B"), "--kpi belongs to --bisect"),
        (("--commit", "a", "--triton", "3.8.0"), "exclude each other"),
        (("--triton", "1.0", "--triton", "2.0", "--triton", "3.0"), "once or twice"),
        (("--triton", "3.8.0"), "is not a script"),
        (("--fail-on", "speed", "B"), "unknown KPI of a diff 'speed'"),
        (("--commit", "HEAD"), "not in a Git checkout"),
        (("no-such.s",), "no such file"),
        (("B", "--commit", "HEAD"), "unexpected argument"),
        (("B", "third.s"), "unexpected argument 'third.s'"),
    ],
)
def test_bad_usage_is_one_line(capsys, pair, arguments: tuple[str, ...], message: str) -> None:
    given = [pair[1] if argument == "B" else argument for argument in arguments]
    code, out, err = diff(capsys, pair[0], *given)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A script whose kernel calls a function of a package in the checkout, which changed."""
    git(tmp_path, "init", "-q", "-b", "main", "work")
    work = tmp_path / "work"
    (work / "script.py").write_text(SCRIPT)
    (work / "lib").mkdir()
    (work / ".gitignore").write_text("__pycache__/\n")
    for factor in (2.0, 3.0):
        (work / "lib/parts.py").write_text(PARTS.format(factor=factor))
        git(work, "add", ".")
        git(work, "commit", "-q", "-m", f"times {factor}")
    return work


def test_a_script_at_a_commit_and_as_it_is(
    capsys, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    pytest.importorskip("triton")

    def forked(command, *, env, **_) -> subprocess.CompletedProcess[bytes]:
        done = run_python(*command[1:], environment=env)
        out, err = done.stdout.encode(), done.stderr.encode()
        return subprocess.CompletedProcess(command, done.returncode, out, err)

    streams = {name: getattr(subprocess, name) for name in ("DEVNULL", "PIPE")}
    monkeypatch.setattr(capturing, "subprocess", SimpleNamespace(run=forked, **streams))
    monkeypatch.syspath_prepend(repository / "lib")
    monkeypatch.setenv("PYTHONPATH", str(repository / "lib"))
    script = repository / "script.py"
    code, out, err = diff(capsys, script, "--commit", "main~1", "-f", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    (kernel,) = document["kernels"]
    assert (kernel["kernel"], kernel["same_code"]) == ("fill", False)
    changed = [row for region in kernel["regions"] for row in region["rows"] if row[0] != "same"]
    assert [(row[0], row[3].split()[0]) for row in changed] == [("changed", "v_mov_b32_e32")]
    assert git(repository, "status", "--porcelain") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_search_over_releases(capsys, monkeypatch: pytest.MonkeyPatch, pair) -> None:
    """Releases that are made up; which environment runs them is not this test's."""

    class Faked:
        def __init__(self, path, kpi, asked, progress) -> None:
            from wavecast.benchmarking.diff.sides import of_file

            self._sides = [of_file(file, asked, progress) for file in pair]
            assert path == pair[0]
            assert kpi.name == "spills"

        def values(self, release: str) -> dict[str, float]:
            if release == "3.7.0":
                raise CompileError("does not compile")
            return {"saxpy mi300x": 4.0 if release >= "3.8.0" else 0.0}

        def side(self, release: str):
            return self._sides[release >= "3.8.0"]

    offered = ("3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0")
    monkeypatch.setattr(environments, "offered_releases", lambda: offered)
    monkeypatch.setattr(releases, "Releases", Faked)
    asked = (pair[0], "--bisect", "--kpi", "spills", "--from", "3.6.0")
    code, out, err = diff(capsys, *asked)
    assert code == 1
    assert "spills became worse with Triton 3.8.0" in out
    assert "taken to stay worse" in out
    assert "v_exp_f32" in out
    assert err.splitlines()[:2] == [
        "wavecast: triton 3.6.0: good: saxpy mi300x: 0",
        "wavecast: triton 3.9.0: worse: saxpy mi300x: 4",
    ]
    code, out, _ = diff(capsys, *asked, "--to", "3.7.1", "-f", "json")
    assert (code, json.loads(out)["first_worse"]) == (0, "")


def test_a_release_that_cannot_be_had(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    refused = subprocess.CompletedProcess((), 1, "", "ERROR: No matching distribution found\n")
    monkeypatch.setattr(environments, "_pip", lambda *_, **__: refused)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    code, out, err = diff(capsys, script, "--triton", "3.99.0")
    assert (code, out) == (2, "")
    assert err == ("wavecast: pip cannot install Triton 3.99.0: No matching distribution found\n")
