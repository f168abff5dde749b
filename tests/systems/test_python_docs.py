"""The examples of docs/python.md, and what their results are."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

import wavecast
from tests.structure.sources import ROOT
from wavecast.documents.diff import DiffDocument
from wavecast.documents.graph import GraphDocument
from wavecast.documents.operation import OperationDocument
from wavecast.documents.profile import ProfileDocument
from wavecast.documents.system import SystemDocument
from wavecast.documents.system_search import ModelSearchDocument
from wavecast.documents.training import TrainingDocument
from wavecast.errors import UnknownName, UsageError
from wavecast.json_schema import json_schema

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT.parent / "docs/python.md").read_text(), re.S)


TRACE = {
    "schemaVersion": 1,
    "deviceProperties": [
        {"name": "AMD Instinct MI300X", "numSms": 304, "computeMajor": 9, "computeMinor": 4}
    ],
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 0, "dur": 90,
         "args": {"Input Dims": [[4096, 4096], [4096, 4096]],
                  "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "hipModuleLaunchKernel", "pid": 7, "tid": 7,
         "ts": 50, "dur": 5, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x1",
         "pid": 0, "tid": 0, "ts": 100, "dur": 250,
         "args": {"device": 0, "stream": 0, "correlation": 1}},
    ],
}  # fmt: skip
"""A run of one product on MI300X, as PyTorch's profiler writes it."""


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The variables of the examples, which run one after the other."""
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("examples")
    found: dict[str, object] = {"folder": folder}
    for name in ("matmul.py", "matmul_new.py"):
        shutil.copy(ROOT.parent / "examples" / "matmul.py", folder / name)
    with gzip.open(folder / "trace.json.gz", "wt") as file:
        json.dump(TRACE, file)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(str(found["folder"]))
        for example in EXAMPLES:
            exec(example, found)
    return found


@pytest.mark.parametrize(
    ("name", "document", "words"),
    [
        ("report", SystemDocument, "what if, 8 at once"),
        ("served", SystemDocument, "4/s"),
        ("found", ModelSearchDocument, "the best under tpot<40ms"),
        ("step", TrainingDocument, "tokens/s/GPU"),
        ("run", GraphDocument, "AMD Instinct MI300X"),
        ("ideal", OperationDocument, "of peak"),
        ("changed", DiffDocument, "the machine code is the same"),
        ("measured", ProfileDocument, "aten::mm"),
    ],
)
def test_results_show_themselves(names, name, document, words) -> None:
    report = names[name]
    assert words in str(report)
    jsonschema.validate(json.loads(report.json()), json_schema(document))
    assert report._repr_html_().lstrip().startswith("<")
    assert len(repr(report)) < 120
    assert repr(report).startswith(f"<{type(report).__name__}: ")


def test_figures_of_the_examples(names) -> None:
    report, found = names["report"], names["found"].search
    assert report.what_ifs[0].together.servings[0].tpot.value > 1
    assert report.compared[0].servings[0].rate_per_gpu.value == 1
    assert [row.per_gpu for row in found.ranked] == sorted(
        (row.per_gpu for row in found.ranked), reverse=True
    )
    assert all(row.tpot < 0.04 for row in found.ranked)
    assert found.tried == 8
    ideal, measured = names["ideal"], names["measured"]
    assert [one.device.id for one in ideal.outlooks] == ["mi300x", "mi355x"]
    assert 0 < measured.answers[0].moved[0].seconds < 250e-6
    assert "aten::mm" in measured.markdown()
    assert json.loads(measured.perfetto())["traceEvents"]
    assert 0 < names["step"].answers[0].figures.mfu.value < 1
    assert (names["folder"] / "step.html").read_text().startswith("<!doctype html>")
    assert json.loads((names["folder"] / "step.json").read_text())["traceEvents"]
    for name in ("report", "step", "run"):
        assert "</html>" in names[name].html()
        assert json.loads(names[name].perfetto())["traceEvents"]


def test_a_search_has_a_page_and_no_trace(names) -> None:
    assert "<td" in names["found"].html()
    assert not hasattr(names["found"], "perfetto")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"speculative": "mtp:2"}, UnknownName, "unknown option 'speculative'"),
        ({"slo": "tpot<1ms"}, UsageError, "--slo belongs to --search"),
        ({"search": "tp", "perfetto": "a.json"}, UsageError, "--perfetto does not apply"),
        ({"search": "tp", "rate": 2.0}, UsageError, "closed loops only"),
        ({"expert_load": "a", "expert_skew": 1.0}, UsageError, "exclude each other"),
        ({"rate": 2.0, "concurrency": 4}, UsageError, "exclude each other"),
        ({"trace_file": "a", "concurrency": 4}, UsageError, "exclude each other"),
        (
            {"train": True, "batch": 8, "seq": 64, "sequences": 2},
            UnknownName,
            "unknown option 'sequences'",
        ),
        ({"train": True, "batch": 8, "seq": 64, "fsdp": True, "zero": 1}, UsageError, "zero 3"),
    ],
)
def test_bad_arguments_are_errors(given, error, message) -> None:
    with pytest.raises(error, match=message):
        wavecast.model("Llama-3.1-8B", "8xMI300X", **given)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    from wavecast.errors import InputError

    with pytest.raises(InputError, match="cannot write"):
        wavecast.model("Llama-3.1-8B", "mi300x", concurrency=1, output=4, requests=1,
                       html=tmp_path / "none" / "a.html")  # fmt: skip
