"""`wavecast model`."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from tests.cli.test_main import call
from wavecast.documents.system import SystemDocument
from wavecast.json_schema import json_schema

RUN = ("model", "Llama-3.1-8B", "--system", "mi300x", "--dtype", "fp8", "--concurrency", "1..4")


def test_text_fits_a_narrow_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = call(capsys, *RUN)
    assert (code, err) == (0, "")
    assert "Llama-3.1-8B on 1x AMD Instinct MI300X" in out
    assert "4 at once" in out
    assert "decode attention" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("width", [80, 160])
def test_all_figures_and_operations_fit_a_terminal(width: int, capsys, monkeypatch) -> None:
    """At 80 columns the operations are lines after the table."""
    monkeypatch.setenv("COLUMNS", str(width))
    options = ("--system", "mi300x", "--concurrency", "4", "--detail", "full")
    code, out, _ = call(capsys, "model", "Llama-3.1-8B", *options)
    assert code == 0
    assert "…" not in out
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    (times, *_) = [line for line in lines if line.startswith("  gate_up_proj")]
    (*_, operation) = [line for line in lines if line.startswith("  gate_up_proj")]
    assert re.search(r" [\d.]+ µs +[\d.]+ ms +\d+% +memory +blas", times)
    assert operation.endswith("  gemm 4x28672x4096 bf16")
    assert (times == operation) is (width == 160)


def test_json_follows_its_schema(capsys) -> None:
    code, out, _ = call(capsys, *RUN, "--format", "json")
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, json_schema(SystemDocument))
    (model,) = document["models"]
    assert [serving["concurrency"] for serving in model["servings"]] == [1, 2, 4]
    for serving in model["servings"]:
        for name in ("ttft", "tpot", "output_rate"):
            assert serving[name]["low"] < serving[name]["value"] < serving[name]["high"]
        device = sum(kernel["seconds"] * kernel["count"] for kernel in serving["kernels"])
        assert device == pytest.approx(serving["decode"]["device"])


def test_changes_are_a_table(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    changes = ("--what-if", "hbm*1.5; attention free; tp 3", "--requests", "8", "--out", "64")
    code, out, err = call(capsys, *RUN, *changes)
    assert (code, err) == (0, "")
    assert "what if, 4 at once" in out
    assert "tp 3: TP3 takes 3 GPUs" in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = call(capsys, *RUN, *changes, "--format", "json")
    document = json.loads(out)
    jsonschema.validate(document, json_schema(SystemDocument))
    (found,) = document["what_if"]
    assert [change["change"] for change in found["changes"]] == changes[1].split("; ")
    speedup = found["changes"][0]["servings"][2]["tpot_speedup"]
    assert 1 < speedup["low"] < speedup["value"] < speedup["high"] < 1.5


def test_a_model_that_does_not_fit(capsys) -> None:
    code, out, err = call(capsys, "model", "DeepSeek-R1", "--system", "mi300x,8xMI300X")
    assert code == 0
    assert "does not fit: DeepSeek-R1 needs" in out
    code, out, err = call(capsys, "model", "DeepSeek-R1", "--system", "mi300x")
    assert code == 3
    assert "fits none of the systems" in err


def test_known_models_are_listed(capsys) -> None:
    code, out, _ = call(capsys, "model", "--list")
    assert code == 0
    assert any(line.split()[:2] == ["Llama-3.3-70B", "70.6"] for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no MODEL"),
        (["nothing"], "unknown model 'nothing'"),
        (["Llama-3.1-8B", "--system", "9xMI300X"], "a node has 1 to 8 GPUs, not 9"),
        (["Llama-3.1-8B", "--system", "3xRX7900XTX"], "do not divide among 3 GPUs"),
        (["Llama-3.1-8B", "--tp", "16"], "TP16 takes 16 GPUs"),
        (["Llama-3.1-8B", "--engine", "other"], "unknown engine 'other'"),
        (["Llama-3.1-8B", "--what-if", "atention free"], "unknown part of a model or chip"),
        (["Llama-3.1-8B", "--what-if", "hbm"], "'hbm' is not a change"),
        (["Llama-3.1-8B", "--dtype", "fp3"], "unknown format of weights 'fp3'"),
        (["Llama-3.1-8B", "--kv-dtype", "int2"], "unknown dtype of keys and values"),
        (["Llama-3.1-8B", "--concurrency", "4..1"], "is not like 1,4,16 or 4..256"),
        (["Llama-3.1-8B", "--concurrency", "1", "--rate", "2"], "exclude each other"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message) -> None:
    code, out, err = call(capsys, "model", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
