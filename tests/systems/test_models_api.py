"""`wavecast.model` and `wavecast.serve`."""

from __future__ import annotations

import json

import jsonschema
import pytest

import wavecast
from wavecast import arch
from wavecast.documents.system import SystemDocument
from wavecast.errors import NothingAnalysed, UnknownName, UsageError
from wavecast.json_schema import json_schema
from wavecast.systems.intervals import metric_interval


@pytest.fixture(scope="module")
def report():
    return wavecast.model("Llama-3.1-8B", "mi300x,8xH200", tp=1, dtype="fp8", concurrency=(1, 4))


def test_the_package_and_its_call_have_one_name() -> None:
    import wavecast.perfmodel.ops

    assert callable(wavecast.model)
    assert wavecast.perfmodel.ops.op("gemm").kind == "gemm"


def test_a_report_shows_itself(report) -> None:
    jsonschema.validate(json.loads(report.json()), json_schema(SystemDocument))
    assert [model["device_id"] for model in report.to_dict()["models"]] == ["mi300x", "h200"]
    assert "Llama-3.1-8B on 1x AMD Instinct MI300X" in str(report)
    page = report._repr_html_()
    assert "4 at once" in page
    assert "80% intervals from" in page
    assert [serving.load.concurrency for serving in report.servings] == [1, 4]


def test_a_name_cannot_become_markup(tmp_path) -> None:
    from wavecast.systems import huggingface

    config = tmp_path / "config.json"
    config.write_text(json.dumps({**huggingface.load("Llama-3.1-8B")[1], "_name_or_path": "<b>"}))
    page = wavecast.model(str(config), "mi300x", concurrency=1)._repr_html_()
    assert "<b>on" not in page


def test_one_load() -> None:
    served = wavecast.serve("Llama-3.1-8B", "mi300x", dtype="fp8", rate=2, requests=20, output=64)
    assert served.serving.load.rate == 2
    tpot = served.serving.tpot
    assert tpot == metric_interval("tpot", tpot.value, arch.load("mi300x"), "vllm")
    closed = wavecast.serve("Llama-3.1-8B", "mi300x", dtype="fp8", requests=20, output=64)
    assert closed.serving.load.concurrency == 16


def test_what_cannot_be_served_is_refused() -> None:
    with pytest.raises(NothingAnalysed, match="needs"):
        wavecast.serve("DeepSeek-R1", "mi300x")
    assert wavecast.model("DeepSeek-R1", "mi300x").answers[0].why_not
    with pytest.raises(UsageError, match="exclude each other"):
        wavecast.serve("Llama-3.1-8B", "mi300x", rate=2, concurrency=4)


def test_a_module_takes_its_inputs_and_a_system_by_position() -> None:
    with pytest.raises(UsageError, match="takes no argument 3"):
        wavecast.model("script.py:factory", None, "h200", 3)
    with pytest.raises(UnknownName, match="mi3000x"):
        wavecast.model("script.py:factory", None, "mi3000x")
