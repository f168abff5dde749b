"""`wavecast model --train`."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.cli.test_main import call
from wavecast.documents.training import TrainingDocument
from wavecast.json_schema import json_schema

MODEL = ("model", "Llama-3.1-8B", "--system", "8xMI300X")
RUN = (*MODEL, "--train", "--batch", "64", "--seq", "8192")


def test_text_fits_a_narrow_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = call(capsys, *RUN, "--fsdp", "--recompute", "full", "--tokens", "1e12")
    assert (code, err) == (0, "")
    assert "Training Llama-3.1-8B on 8x AMD Instinct MI300X" in out
    for words in ("memory of the fullest GPU", "tokens/s/GPU", "MFU (bf16)", "time to train",
                  "data communication", "gate_up_proj weight grad", "(again)"):  # fmt: skip
        assert words in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_follows_its_schema(capsys) -> None:
    code, out, _ = call(capsys, *RUN, "--pp", "4", "--tokens", "1e9", "--format", "json")
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, json_schema(TrainingDocument))
    (training,) = document["trainings"]
    assert training["parallelism"] == "TP1 PP4 DP2 ZeRO-1 1f1b"
    figures, memory = training["figures"], training["memory"]
    assert memory["needed"] == pytest.approx(sum(memory["parts"].values()))
    step, rate = figures["seconds"], figures["tokens_per_gpu"]
    assert rate["value"] == pytest.approx(64 * 8192 / 8 / step["value"])
    assert figures["training_seconds"]["low"] == pytest.approx(1e9 / 64 / 8192 * step["low"])
    for name in ("seconds", "tokens_per_gpu", "mfu"):
        assert figures[name]["low"] < figures[name]["value"] < figures[name]["high"]
        assert figures[name]["basis"]


def test_several_nodes(capsys) -> None:
    arguments = ("--train", "--batch", "64", "--seq", "8192", "--overlap", "0")
    code, out, _ = call(capsys, *MODEL[:2], "--system", "2x8xMI300X", *arguments)
    assert code == 0
    assert "Training Llama-3.1-8B on 2x 8x AMD Instinct MI300X" in out
    assert "data communication" in out


def test_a_training_that_does_not_fit(capsys) -> None:
    arguments = ("--train", "--batch", "64", "--seq", "8192", "--micro-batch", "8")
    code, out, err = call(capsys, *MODEL, *arguments)
    assert code == 3
    assert "does not fit: Llama-3.1-8B needs" in out
    assert "a micro-batch of 2 fits" in " ".join(out.split())
    assert "fits none of the systems" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*MODEL, "--train", "--batch", "8"), "--train needs --batch and --seq"),
        ((*MODEL, "--lora", "16"), "--lora belongs to --train"),
        ((*MODEL, "--seq", "16"), "--seq belongs to --train"),
        ((*MODEL, "--no-sequence-parallel"), "--no-sequence-parallel belongs to --train"),
        ((*RUN, "--concurrency", "4"), "--concurrency does not apply to --train"),
        ((*RUN, "--engine", "vllm"), "--engine does not apply to --train"),
        ((*RUN, "--fsdp", "--zero", "1"), "--fsdp is --zero 3"),
        ((*RUN, "--dtype", "int4"), "unknown dtype of training 'int4'"),
        ((*RUN, "--dp", "4"), "8 GPUs have 8 replicas, not the 4 of --dp"),
        ((*RUN, "--overlap", "2"), "--overlap"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message) -> None:
    code, _, err = call(capsys, *arguments)
    assert code == 2
    assert message in err
