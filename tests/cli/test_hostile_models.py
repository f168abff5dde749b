"""Hostile models, machines, loads and searches: each is one clear line and exit code 2."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.test_hostile import refused
from wavecast import files

LLAMA = {
    "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1024,
}  # fmt: skip
MOE = {
    **LLAMA, "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
}  # fmt: skip
DEEP = "[" * 100_000
LONG = "9" * 400
SYSTEM = '[a]\ndevice = "mi300x"\ngpus = 2\n[a.fabric]\ntopology = "mesh"\nbandwidth = '

FILES = {
    "model.json": json.dumps(LLAMA),
    "layers.json": json.dumps({**LLAMA, "num_hidden_layers": (1 << 31) - 1}),
    "dense.json": json.dumps({**MOE, "mlp_only_layers": 5}),
    "dense_list.json": json.dumps({**MOE, "mlp_only_layers": [[1]]}),
    "quantised.json": json.dumps({**LLAMA, "quantization_config": 5}),
    "kept.json": json.dumps({**LLAMA, "quantization_config": {"quant_method": "fp8",
                                                              "modules_to_not_convert": 5}}),
    "deep.json": DEEP,
    "deep.jsonl": f'{{"arrival": {DEEP}',
    "list.jsonl": '{"arrival": [1], "input": 1, "output": 1}\n',
    "huge_load.json": f"[{LONG}, 1]",
    "nan_load.json": "[NaN, 1]",
    "huge.toml": SYSTEM + LONG,
    "nan.toml": SYSTEM + "nan",
    "state.jsonl": "5\n[]\n",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "WAIT_SECONDS", 0.05)
    for name, text in FILES.items():
        Path(name).write_text(text)
    os.mkfifo("pipe")
    os.mkfifo("pipe.json")


MODEL = ("model", "model.json", "--system", "mi300x", "--tp", "1", "--in", "8", "--out", "2")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--trace", "pipe"), "nothing was written to the pipe"),
        (("--trace", "/dev/zero"), "is a device"),
        (("--trace", "deep.jsonl"), "nested too deeply"),
        (("--trace", "list.jsonl"), "arrival of request 1 is [1], not a finite number"),
        (("--expert-load", "pipe"), "nothing was written to the pipe"),
        (("--expert-load", "deep.json"), "nested too deeply"),
        (("--expert-load", "huge_load.json"), "is not a list of numbers"),
        (("--expert-load", "nan_load.json"), "are numbers, not negative, and not all zero"),
        (("--system-file", "pipe"), "nothing was written to the pipe"),
        (("--system-file", "huge.toml"), "fabric.bandwidth must be a positive number of GB/s"),
        (("--system-file", "nan.toml"), "fabric.bandwidth must be a positive number of GB/s"),
        (("--system", "x" * 5000), "unknown system or device"),
        (("--engine-setting", "sequences=nan"), "sequences is nan"),
        (("--engine-setting", "poll=inf"), "poll is inf"),
        (("--concurrency", "1048576"), "10,485,760 requests, the most that are simulated are"),
        (("--what-if", "tp " + "9" * 5000), "'tp 999"),
        (("--search", "batch=" + "9" * 5000), "is not a number from 1 to 1,048,576"),
        (("--search", "batch=²"), "is not a number from 1 to 1,048,576"),
        (("--search", "tp", "--state", "pipe"), "nothing was written to the pipe"),
        (("--search", "tp", "--state", "state.jsonl"), "is not the state of a search"),
    ],
)
def test_a_hostile_option(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(capsys, *MODEL, *arguments)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pipe.json", "nothing was written to the pipe"),
        ("deep.json", "nested too deeply"),
        ("layers.json", "num_hidden_layers is 2147483647, not 1 to 16384"),
        ("dense.json", "mlp_only_layers is 5, not a list of numbers"),
        ("dense_list.json", "mlp_only_layers is [[1]], not a list of numbers"),
        ("quantised.json", "quantization_config is 5, not an object"),
        ("kept.json", "modules_to_not_convert is 5, not a list"),
    ],
)
def test_a_hostile_configuration(capsys: pytest.CaptureFixture[str], name: str, says: str) -> None:
    assert says in refused(capsys, "model", name, "--system", "mi300x", "--tp", "1")
