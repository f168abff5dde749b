"""`wavecast model` for scripts, programs and YAML files."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.cli.test_main import call
from wavecast.documents.graph import GraphDocument
from wavecast.json_schema import json_schema

NET = """
import torch
def make():
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
    return module.to("cuda"), torch.randn(8, 64, device="cuda")
def make_wrong():
    return torch.nn.Linear(4, 4), torch.randn(3, 5)
"""


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(NET)
    return f"{path}:make"


def test_a_script_is_predicted_for_every_gpu(net, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    options = ("--system", "mi300x,h200", "--train", "--optimizer", "adamw")
    code, out, err = call(capsys, "model", net, *options)
    assert (code, err) == (0, "")
    assert "make on AMD Instinct MI300X" in out
    assert "make on NVIDIA H200" in out
    assert "optimizer" in out
    assert "the GPU waits" in out


def test_json_follows_its_schema(net, capsys) -> None:
    code, out, _ = call(capsys, "model", net, "--engine", "fusion-rule", "--format", "json")
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, json_schema(GraphDocument))
    (model,) = document["models"]
    assert model["engine"] == "fusion-rule"
    assert model["total"]["low"] <= model["total"]["value"] <= model["total"]["high"]
    seconds = sum(kernel["seconds"] * kernel["count"] for kernel in model["kernels"])
    assert seconds == pytest.approx(model["device"])
    assert sum(model["by_module"].values()) == pytest.approx(model["device"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{net}", "--system", "8xmi300x"), "a module runs on one GPU"),
        (("{net}", "--engine", "vllm"), "unknown engine of modules 'vllm'"),
        (("{net}", "--optimizer", "adam"), "an optimizer needs training"),
        (("{net}x",), "unknown function of net.py 'makex'"),
        (("{net}_wrong",), "does not run on tensors without values: RuntimeError"),
        (("nothing.py:make",), "no such script: nothing.py"),
        (("nothing.py",), "nothing.py: no function"),
        (("nothing.yaml",), "no such file: nothing.yaml"),
        (("nothing.pt2",), "nothing.pt2"),
        (("nothing.yaml", "--train"), "no training: a YAML file"),
        (("{net}", "--concurrency", "4"), "No such option"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message, net, capsys) -> None:
    code, out, err = call(capsys, "model", *(text.format(net=net) for text in arguments))
    assert (code, out) == (2, "")
    assert message.lower() in err.lower()
    assert len(err.strip().splitlines()) == 1
