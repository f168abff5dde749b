"""Steps in time."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.cli.test_main import call
from wavecast.systems.graph import Step
from wavecast.systems.timeline import timeline


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("step", [Step(decode=8, context=500), Step(chunks=1, tokens=32)])
def test_slices_fill_the_step(ready, engine, step) -> None:
    model = ready("gpt-oss-20b", "2xMI300X", 2, engine=engine).model
    time, kernels = model.time(step), model.kernels(step)
    slices = timeline(time, kernels, model.builder.engine)
    on_gpu = [one for one in slices if one.priced is not None]
    assert len(on_gpu) == time.kernels
    assert sum(one.seconds for one in on_gpu) == pytest.approx(sum(time.modules.values()))
    assert max(one.start + one.seconds for one in on_gpu) == pytest.approx(time.seconds)
    for before, after in itertools.pairwise(on_gpu):
        assert after.start >= before.start + before.seconds - 1e-12
    layers = {f"layer {n}" for n in range(model.builder.architecture.depth)}
    assert {one.where for one in on_gpu} == {"", *layers}
    host = sum(one.seconds for one in slices if one.priced is None)
    assert host == pytest.approx(time.host)


def test_the_trace_has_a_process_per_step(capsys, tmp_path) -> None:
    path = tmp_path / "trace.json"
    code, _, err = call(capsys, "model", "Llama-3.1-8B", "--system", "2xMI300X", "--out", "8",
                        "--concurrency", "2", "--perfetto", str(path))  # fmt: skip
    assert (code, err) == (0, "")
    events = json.loads(path.read_text())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert [name.rpartition(": ")[2] for name in names] == [
        "decode step, one rank",
        "prefill step, one rank",
    ]
    assert {e["tid"] for e in events if e["ph"] == "X"} == {0, 1, 2}
