"""`wavecast ops` used badly, and the library as an attribute of the package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from tests.warm_python import run_python  # noqa: E402
from wavecast.api.ops import follow, operators  # noqa: E402
from wavecast.cli.main import run  # noqa: E402
from wavecast.errors import UsageError  # noqa: E402
from wavecast.kernels import registry  # noqa: E402
from wavecast.pipeline.library.library import Surveyed  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "unknown operator 'nothing'"),
        (["silu", "--arch", ","], "no name in ','"),
        (["silu", "--arch", "mi300x,mi30x"], "nearest known"),
        (["silu", "-k", "["], "'[' is not a regular expression"),
        (["silu", "--tune"], "--tune belongs to --arch"),
        (["silu", "--tables", "folder"], "--tables belongs to --arch"),
        (["silu", "--pages", "folder"], "--pages belongs to --survey"),
        (["silu", "--arch", "mi300x", "--tables", "folder"], "--tables belongs to --tune"),
        (["silu", "--arch", "mi300x", "--tune", "--pages", "x"], "exclude each other"),
        (["--survey", "other.json", "--small"], "--small does not apply to --survey"),
        (["--survey", "text.json"], "text.json is not JSON"),
        (["--survey", "other.json"], "no survey of operators"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.json").write_text("a line of text")
    Path("other.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        run(["ops", *arguments])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert not Path("folder").exists()


def test_the_library_is_an_attribute_of_the_package() -> None:
    text = "import wavecast; assert wavecast.ops.silu.__doc__; assert wavecast.testing.do_bench"
    done = run_python("-c", text)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_no_module_is_not_replaced() -> None:
    from wavecast import ops

    with pytest.raises(UsageError, match=r"a NoneType is not a torch\.nn\.Module"):
        ops.replace(None)  # type: ignore[arg-type]


def test_the_list_imports_neither_pytorch_nor_an_operator() -> None:
    assert {
        line.name: (line.family, line.summary, line.gradient) for line in registry.catalogue()
    } == {
        name: (registry.family(name), one.summary, bool(one.gradient))
        for name, one in registry.built_in_operators().items()
    }
    text = (
        "import sys; from wavecast.kernels import registry; assert registry.catalogue(); "
        "assert not {'torch', 'triton', 'numpy', 'wavecast.kernels.signature'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_status_line_counts_calls() -> None:
    told: list[str] = []
    calls = [Surveyed(name, {}, device) for name in ("a", "b") for device in ("x", "y")]
    assert list(follow(iter(calls), 4, told.append)) == calls
    assert told[0] == "compiling 4 calls"
    assert told[-1] == "4 of 4 calls: b on y"


def test_python_gives_the_document_of_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    survey = tmp_path / "survey.json"
    call = ["silu", "--arch", "mi300x", "--shapes", "1"]
    assert run_ops(*call, "-o", str(survey), "--pages", str(tmp_path / "pages")) == 0
    report = operators("silu", arch="mi300x", shapes=1)
    assert json.loads(survey.read_text()) == report.to_dict()
    assert (tmp_path / "pages/silu.md").is_file()
    assert operators("silu", survey=survey).to_dict() == report.to_dict()
    assert run_ops("silu", "-f", "json") == 0
    assert json.loads(capsys.readouterr().out) == operators("silu").to_dict()


def test_tuned_configurations_are_written_and_shown(tmp_path: Path) -> None:
    report = operators("silu", arch="mi300x", shapes=1, tune=True, candidates=1, tables=tmp_path)
    (call,) = json.loads(report.json())
    assert call["operator"] == "silu"
    (entry,) = call["entries"]
    written = json.loads((tmp_path / "mi300x.json").read_text())["entries"]
    assert entry in written
    assert f"{entry['kernel']}: " in str(report)


def run_ops(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["ops", *arguments])
    return int(ended.value.code or 0)
