"""`wavecast arch`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.documents.support import validated
from wavecast import arch
from wavecast.api.arch import facts
from wavecast.cli.arch import command
from wavecast.errors import UnknownName, UsageError


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def row(text: str, field: str) -> list[str]:
    lines = [line.split() for line in text.splitlines()]
    return next(line for line in lines if line and line[0] == field)


def test_list_shows_every_device_within_100_columns() -> None:
    text = run().stdout
    for device in arch.devices():
        assert row(text, device.id)
    assert "1307.4" in row(text, "mi300x")
    assert row(text, "mi308x").count("—") == 4
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


def test_side_by_side() -> None:
    text = run("mi300x", "mi355x").stdout
    assert row(text, "peak_clock")[1:] == ["MHz", "2100", "2400"]
    assert row(text, "lds_banks")[1:] == ["banks", "32", "64", "≠"]
    assert row(text, "peak_mat_bf16")[1:] == ["TFLOPS", "1307.4", "2516.6", "="]
    assert "≠ conflict: " in text
    assert max(map(len, text.splitlines())) <= 100


def test_one_device_shows_what_fields_mean() -> None:
    assert "highest engine clock" in run("mi300x", "--field", "^peak_clock$").stdout


def test_sources_show_both_sides_of_a_conflict() -> None:
    text = " ".join(run("mi355x", "--field", "lds_banks", "--sources").stdout.split())
    assert "conflict, cdna4-fp8-gemm-blog" in text
    assert "also 32 banks (llvm, FeatureLDSBankCount32)" in text
    assert "hipkittens: HazyResearch/HipKittens@f09e968" in text


def test_the_choice_among_several_devices_is_on_stderr() -> None:
    result = run("gfx942", "--field", "^cu$")
    assert "mi300x (AMD Instinct MI300X) is assumed" in result.stderr
    assert "mi325x" in result.stderr
    assert "took" not in result.stdout


def test_json() -> None:
    stdout = run("mi300x", "b200", "--format", "json").stdout
    document = validated(json.loads(stdout), "wavecast.arch/1")
    mi300x, b200 = document["devices"]
    assert (mi300x["id"], b200["target"]) == ("mi300x", "sm_100")
    assert mi300x["fields"]["peak_clock"] == {
        "value": 2100,
        "unit": "MHz",
        "status": "spec",
        "sources": ["cdna3-white-paper"],
        "note": "",
        "alternatives": [],
    }
    assert b200["fields"]["mem_bw"]["alternatives"][0]["value"] == 7700
    assert "cdna3-white-paper" in document["sources"]
    everything = validated(json.loads(run("--format", "json").stdout), "wavecast.arch/1")
    assert len(everything["devices"]) == len(arch.devices())


def test_arch_file(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text('device = "mi300x"\npeak_clock = 1050\n', encoding="utf-8")
    text = run("mi300x", "--arch-file", str(path), "--field", "peak_(clock|mat_bf16)").stdout
    assert row(text, "peak_clock")[1:4] == ["MHz", "1050", "!"]
    assert row(text, "peak_mat_bf16")[1:4] == ["TFLOPS", "653.722", "="]
    assert "set by a file the user gave" in text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("mi30x",), UnknownName, "unknown device 'mi30x'"),
        (("mi300x", "--field", "peak_clok"), UnknownName, "peak_clock"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(*arguments)


def test_a_wrong_expression_is_refused() -> None:
    assert "--field': '(' is not a regular expression" in run("mi300x", "--field", "(").stderr
    with pytest.raises(UsageError, match="--field: '\\('"):
        facts("mi300x", field="(")


def test_python_gives_the_document_of_the_command() -> None:
    report = facts("mi300x", "h200", field="peak")
    words = ("mi300x", "h200", "--field", "peak")
    assert json.loads(run(*words, "-f", "json").stdout) == report.to_dict()
    assert run(*words).stdout == str(report)
    assert run().stdout == str(facts())
