"""Search of configurations of a served model."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import jsonschema
import pytest
from rich.console import Console

from tests.cli.test_main import call
from wavecast.arch.systems import system
from wavecast.documents.system_search import ModelSearchDocument
from wavecast.errors import InputError, UnknownName, UsageError
from wavecast.json_schema import json_schema
from wavecast.report.systems.search import render
from wavecast.systems.answer import Deployment
from wavecast.systems.huggingface import load
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load
from wavecast.tuning import model_search
from wavecast.tuning.model_search import search
from wavecast.tuning.model_space import configurations, dimensions, objectives

LOAD = Load(64, 16, concurrency=4, requests=8)
MODEL = "Llama-3.1-8B"
CONFIG = load(MODEL)


def space(text: str, machine: str = "2xMI300X"):
    deployments = [(system(machine), Deployment(parallel=Parallelism(tensor=1)))]
    return list(configurations(deployments, dimensions(text), LOAD))


def test_every_combination_is_a_configuration() -> None:
    found = space("tp,dp,dtype=bf16|fp8,batch=1|8")
    assert len(found) == 2 * 2 * 2 * 2
    last = found[-1]
    assert (last.deployment.parallel.tensor, last.deployment.parallel.data) == (2, 2)
    assert (last.deployment.dtype, last.load.concurrency) == ("fp8", 8)
    (both,) = space("ep=2,tp=2")
    assert both.deployment.parallel.expert == 2


def test_the_best_is_first_and_nothing_beats_the_frontier() -> None:
    found = search(CONFIG, space("tp,dp,batch=1|8|32"), objectives("tpot<20ms"))
    assert found.tried == 12
    rates = [one.per_gpu for one in found.ranked]
    assert rates == sorted(rates, reverse=True)
    assert len(found.ranked) + found.missed + sum(found.skipped.values()) == 12
    assert found.skipped["TP2 DP2 takes 4 GPUs, 2x AMD Instinct MI300X has 2"] == 3
    assert found.skipped["fewer requests than replicas"] == 1
    for one in found.ranked:
        assert one.meets
        assert not any(
            one.per_gpu > best.per_gpu and one.per_user > best.per_user for best in found.frontier
        )


def test_objectives_decide_what_is_ranked() -> None:
    every = search(CONFIG, space("batch=1|32"), ())
    limit = sorted(one.tpot for one in every.ranked)
    between = (limit[0] + limit[1]) / 2 * 1e3
    some = search(CONFIG, space("batch=1|32"), objectives(f"tpot<{between:.6f}ms"))
    assert [one.concurrency for one in some.ranked] == [1]
    assert some.missed == 1
    assert len(some.frontier) == 2


def test_what_does_not_fit_is_counted() -> None:
    found = search(load("Llama-3.1-405B"), space("dtype=bf16,tp=1|2"), ())
    assert found.skipped == {"does not fit the memory": 2}
    assert not found.frontier


def test_values_are_separated_by_bars_or_commas() -> None:
    assert dimensions("tp,batch=16,64,dtype=fp8") == dimensions("tp,batch=16|64,dtype=fp8")
    assert dimensions("batch=1|2,4") == {"batch": ("1", "2", "4")}
    for text in ("16,batch", "tp,16"):
        with pytest.raises(UsageError, match="unknown dimension of a search '16'"):
            dimensions(text)


def test_a_search_continues_from_its_state(tmp_path, monkeypatch) -> None:
    state = tmp_path / "state"
    first = search(CONFIG, space("batch=1|8"), (), state=state)
    whole = state.read_text()
    assert whole.count("\n") == 2
    state.write_text(whole[:-40])  # killed while it wrote the second
    again = search(CONFIG, space("batch=1|8"), (), state=state)
    assert again.known == 1
    assert again.ranked == first.ranked
    monkeypatch.setattr(model_search, "predict_group", None)  # nothing is left to predict
    assert search(CONFIG, space("batch=1|8"), (), state=state).known == 2


def test_a_state_is_of_its_device_and_load(tmp_path) -> None:
    state = tmp_path / "state"
    search(CONFIG, space("batch=1"), (), state=state)
    assert search(CONFIG, space("batch=1", "mi355x"), (), state=state).known == 0
    other = [replace(one, load=replace(one.load, prompt=65)) for one in space("batch=1")]
    assert search(CONFIG, other, (), state=state).known == 0
    assert search(CONFIG, space("batch=1"), (), state=state).known == 1


def test_a_file_that_is_something_else_is_refused(tmp_path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(InputError, match="is not the state of a search"):
        search(CONFIG, space("batch=1"), (), state=path)
    with pytest.raises(InputError, match="cannot write"):
        search(CONFIG, space("batch=1"), (), state=tmp_path / "none" / "state")


def test_processes_find_the_same(tmp_path) -> None:
    one = search(CONFIG, space("tp=1|2,batch=1"), ())
    two = search(CONFIG, space("tp=1|2,batch=1"), (), state=tmp_path / "state", jobs=2)
    assert one.ranked == two.ranked


@pytest.mark.parametrize(
    ("text", "error"),
    [("", UsageError), ("batch=", UsageError), ("pipeline", UnknownName)],
)
def test_what_is_not_a_space(text, error) -> None:
    with pytest.raises(error):
        dimensions(text)


@pytest.mark.parametrize("text", ["tpot", "tpot<5", "tpot<1.2.3s", "latency<2s"])
def test_what_is_not_an_objective(text) -> None:
    with pytest.raises(UsageError):
        objectives(text)


def test_the_command(capsys) -> None:
    run = ("model", MODEL, "--system", "mi300x", "--search", "batch=1|4", "--slo", "ttft<2s",
           "--in", "64", "--out", "16", "-j", "1")  # fmt: skip
    code, out, err = call(capsys, *run)
    assert (code, err) == (0, "")
    assert "2 configurations" in out
    assert "frontier" in out
    code, out, _ = call(capsys, *run, "--format", "json")
    document = json.loads(out)
    jsonschema.validate(document, json_schema(ModelSearchDocument))
    assert [one["concurrency"] for one in document["ranked"]] == [4, 1]
    code, out, err = call(capsys, "model", MODEL, "--slo", "ttft<2s")
    assert (code, out) == (2, "")
    assert "--slo belongs to --search" in err


def test_the_text_has_the_reasons_that_skip_most() -> None:
    found = search(CONFIG, space("tp,pp,batch=1"), ())
    reasons = {f"reason {number}": 9 - number for number in range(9)}
    stream = io.StringIO()
    render(replace(found, skipped=reasons), Console(file=stream, width=100), slo="")
    lines = [line.strip() for line in stream.getvalue().splitlines() if "skipped" in line]
    assert lines[0] == "9 skipped: reason 0"
    assert lines[6:] == ["6 skipped for 3 other reasons, which the JSON has"]
    stages = {one.parallelism for one in found.ranked}
    assert {"TP1", "TP2", "TP1 PP2"} <= stages
