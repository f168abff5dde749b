"""`wavecast explain gemm --shape …`: operations instead of files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import wavecast
from tests.documents.support import validated
from wavecast.cli.main import run
from wavecast.errors import UsageError, WavecastError

Capture = pytest.CaptureFixture[str]


def invoke(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as end:
        run(["explain", *arguments])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_chips_stand_side_by_side(capsys: Capture) -> None:
    code, out, _ = invoke(
        capsys, *("gemm", "--shape", "4096x4096x4096", "--dtype", "fp8", "--arch", "mi300x,mi355x")
    )
    assert code == 0
    assert "gemm 4096x4096x4096 fp8" in out
    assert out.index("MI300X") < out.index("MI355X")
    assert "matrix" in out


def test_json_holds_the_prediction_and_the_roofline(capsys: Capture) -> None:
    code, out, _ = invoke(
        capsys, "gemm", "--shape", "64x4096x4096", "--dtype", "bf16", "-f", "json"
    )
    assert code == 0
    (entry,) = validated(json.loads(out), "wavecast.operation/1")["operations"]
    found = entry["prediction"]
    assert found["low"] <= found["seconds"] <= found["high"]
    assert found["seconds"] >= entry["floor_seconds"]
    assert found["limiter"] in found["bounds"]
    assert entry["flops"] == {"bf16": 2 * 64 * 4096 * 4096}


def test_several_shapes_and_a_file(capsys: Capture, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    code, out, _ = invoke(
        capsys,
        *("softmax", "--shape", "4096x1024", "--shape", "8x8", "--dtype", "bf16"),
        *("-f", "json", "-o", str(target)),
    )
    assert (code, out) == (0, "")
    assert len(json.loads(target.read_text())["operations"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("gemm", "--shape", "4096", "--dtype", "fp8"),
        ("gemm", "--shape", "16x16x16", "--dtype", "fp9"),
        ("gem", "--shape", "16x16x16"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "--set", "depth"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "--set", "depth=3"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "--arch", "mi999"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "-f", "sarif"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "-o", "no/such/folder/out.txt"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "--set", "bias=perhaps"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "--perfetto", "unit.json"),
        ("gemm", "--shape", "16x16x16", "--dtype", "bf16", "--", "--batch", "4"),
        ("gemm", "--dtype", "bf16"),
        ("moe", "--shape", "64x7168x256x256x8"),
        (
            "collective",
            "--shape",
            "9",
            "--set",
            "gpus=8",
            "--set",
            "function=all_reduce",
            "--set",
            "channels=few",
        ),
        ("script.py", "--set", "causal=true"),
        (
            "elementwise",
            "--shape",
            "8x8",
            "--dtype",
            "bf16",
            "--set",
            "function=add",
            "--set",
            "in_place=maybe",
        ),
        (
            "norm",
            "--shape",
            "8x8",
            "--dtype",
            "bf16",
            "--set",
            "function=rms_norm",
            "--set",
            "fused=maybe",
        ),
    ],
)
def test_bad_input_is_one_line(capsys: Capture, arguments: tuple[str, ...]) -> None:
    code, out, error = invoke(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert error.startswith("wavecast: ")
    assert error.count("\n") == 1


def test_what_one_chip_lacks_does_not_hide_the_other(capsys: Capture) -> None:
    code, out, _ = invoke(
        capsys, *("gemm", "--shape", "64x64x64", "--dtype", "mxfp4", "--arch", "mi300x,mi355x")
    )
    assert code == 0
    assert "no known library has a kernel" in " ".join(out.split())


@pytest.mark.parametrize("shape", ["1x32x8x99999999999999x128", "1x1x1x99999999999x128"])
def test_what_no_memory_holds_is_not_predicted(capsys: Capture, shape: str) -> None:
    code, out, error = invoke(capsys, "attention", "--shape", shape, "--dtype", "bf16")
    assert (code, out) == (3, "")
    assert "192 GiB" in error or "206 GB" in error


def test_from_python() -> None:
    found = wavecast.estimate("gemm", shape="4096x4096x4096", dtype="fp8", arch="mi300x,mi355x")
    first, second = (outlook.prediction for outlook in found.outlooks)
    assert first is not None
    assert second is not None
    assert second.seconds < first.seconds
    assert "MI355X" in str(found)
    numbers = wavecast.estimate("gemm", shape=(4096, 4096, 4096), dtype="fp8", arch="mi300x")
    assert numbers.outlooks[0].prediction == first
    ragged = wavecast.estimate("attention", shape="1x8x64x64", dtype="bf16", lengths=[64, 128])
    assert ragged.outlooks[0].prediction is not None
    with pytest.raises(UsageError):
        wavecast.estimate("gemm", shape="4096", dtype="fp8")
    with pytest.raises(UsageError, match="needs a shape"):
        wavecast.estimate("gemm", shape=[], dtype="fp8")
    with pytest.raises(WavecastError):
        wavecast.estimate("gemm", shape="1x1x1", dtype="bf16", arch="nothing")


def test_a_narrow_terminal_keeps_every_figure(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = invoke(
        capsys, "reduction", "--shape", "8192x4096", "--dtype", "bf16", "--arch", "mi300x"
    )
    table = out.partition("\n\n")[0]
    assert code == 0
    assert "memory-side" in table  # the longest name of a bound
    assert "…" not in table


def test_a_chip_that_a_file_adds_is_predicted(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "new.toml"
    path.write_text('id = "mi999x"\nbase = "mi355x"\n[fields]\nmem_bw = 4000\n')
    code, out, _ = invoke(
        capsys, "gemm", "--shape", "1x8192x8192", "--dtype", "bf16", "-f", "json",
        "--arch", "mi355x,mi999x", "--arch-file", str(path),
    )  # fmt: skip
    assert code == 0
    known, added = json.loads(out)["operations"]
    assert added["prediction"]["seconds"] > 1.3 * known["prediction"]["seconds"]


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_no_cell_of_the_table_is_cut(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _, out, _ = invoke(
        capsys, *("gemm", "--shape", "4096x4096x4096", "--dtype", "int8", "--arch", "mi300x,h100"),
        *("--detail", "brief"),
    )  # fmt: skip
    assert "…" not in out
    assert "bound by" in out
    assert "POP/s" in out
    assert "FLOP" not in out


def test_assumptions_have_units_and_sizes(capsys: Capture) -> None:
    _, out, _ = invoke(
        capsys, "gemm", "--shape", "4096x4096x4096", "--dtype", "int8", "--arch", "mi300x"
    )
    told = " ".join(out.split())
    assert re.search(r"tile \d+x\d+, ", told)
    assert re.search(r"clock \d,\d{3} MHz", told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("norm", "--shape", "8x8", "--dtype", "bf16"), "--set function=… (function: layer_norm"),
        (("norm", "--shape", "8x8"), "--set function=… and --dtype (function: layer_norm"),
        (("gemm", "--shape", "8x8x8"), "gemm needs --dtype (dtype: fp64, "),
        (("elementwise", "--shape", "8", "--set", "function=addd"), "function 'addd'"),
    ],
)
def test_what_is_missing_is_listed_with_its_values(
    capsys: Capture, arguments: tuple[str, ...], told: str
) -> None:
    code, _, err = invoke(capsys, *arguments)
    assert code == 2
    assert told in err
