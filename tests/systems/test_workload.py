"""Arrivals and lengths of requests."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wavecast.errors import InputError, UsageError
from wavecast.systems import workload
from wavecast.systems.workload import Load, read_trace


def test_uniform_lengths_are_within_their_range() -> None:
    _, prompts, outputs = Load(1000, 200, concurrency=4, requests=500, shortest=0.5).sample()
    assert (prompts.min(), prompts.max()) == pytest.approx((500, 1000), rel=0.02)
    assert (outputs.min(), outputs.max()) == pytest.approx((100, 200), rel=0.05)


def test_lognormal_lengths_have_the_nominal_mean_and_the_deviation() -> None:
    load = Load(2000, 500, concurrency=4, requests=20000, distribution="lognormal", sigma=0.7)
    _, prompts, outputs = load.sample()
    assert prompts.mean() == pytest.approx(2000, rel=0.03)
    assert outputs.mean() == pytest.approx(500, rel=0.03)
    assert np.log(prompts).std() == pytest.approx(0.7, rel=0.03)


@pytest.mark.parametrize("shape", [0.25, 1.0, 4.0])
def test_times_between_arrivals_are_gamma_distributed(shape) -> None:
    arrivals, _, _ = Load(10, 10, rate=5.0, requests=20000, burstiness=shape).sample()
    gaps = np.diff(arrivals)
    assert gaps.mean() == pytest.approx(1 / 5, rel=0.05)
    assert gaps.var() == pytest.approx(gaps.mean() ** 2 / shape, rel=0.15)


def test_a_share_of_a_load() -> None:
    share = Load(10, 10, concurrency=9, requests=90).share(2)
    assert (share.concurrency, share.requests) == (5, 45)
    assert Load(10, 10, rate=3.0).share(3).rate == 1.0


def test_traces_of_both_formats(tmp_path) -> None:
    text = "Timestamp,input,output\n3.5,100,7\n1.5,50,9\n"
    (tmp_path / "a.csv").write_text(text)
    rows = [{"arrival": 2, "in": 50, "out": 9}, {"arrival": 4, "in": 100, "out": 7}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    long = "y" * 140_000  # more than the csv module takes by default
    text = f"Timestamp,input,output,text\n3.5,100,7,{long}\n1.5,50,9,\n"
    (tmp_path / "long.csv").write_text(text)
    found = [read_trace(tmp_path / name) for name in ("a.csv", "a.jsonl", "long.csv")]
    assert found[0] == found[1] == found[2]
    assert found[0].arrivals == (0.0, 2.0)
    assert found[0].prompts == (50, 100)
    load = Load(50, 9, trace=found[0])
    assert load.count == 2
    assert list(load.sample()[0]) == [0.0, 2.0]
    assert load.share(2).count == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no requests"),
        ("arrival,input\n1,2\n", "request 1 has no output"),
        ("arrival,input,output\n1,two,3\n", "input of request 1 is two, not a finite number"),
        (f"arrival,input,output\n1,{'9' * 5000},3\n", "not a finite number"),
        ('{"arrival": [1], "input": 1, "output": 1}\n', r"arrival of request 1 is \[1\]"),
        ('{"arrival": true, "input": 1, "output": 1}\n', "arrival of request 1 is True"),
        (f'{{"arrival": 1, "input": {"9" * 400}, "output": 1}}\n', "not a finite number"),
        (f'{{"arrival": {"[" * 100_000}\n', "nested too deeply"),
        ("arrival,input,output\nnan,2,3\n", "arrival of request 1 is nan"),
        ("arrival,input,output\n1,0,3\n", "request 1 of the trace has"),
        ("{}\n[1]\n", "request 1 has no arrival"),
        ("{broken\n", "Expecting property name"),
    ],
)
def test_a_bad_trace_is_refused(tmp_path, text, message) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_trace(path)


def test_a_missing_trace_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_trace(tmp_path / "none")


def test_a_trace_with_too_many_requests_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(workload, "_MOST_REQUESTS", 2)
    path = tmp_path / "trace"
    path.write_text("arrival,input,output\n" + "0,1,1\n" * 3)
    with pytest.raises(UsageError, match="has more than 2 requests"):
        read_trace(path)


@pytest.mark.parametrize(
    "given",
    [
        {"distribution": "zipf"},
        {"sigma": 0.0},
        {"burstiness": float("inf")},
        {"prefix": 1.0},
        {"concurrency": 1, "rate": 1.0},
    ],
)
def test_absurd_distributions_are_refused(given) -> None:
    with pytest.raises(UsageError):
        Load(10, 10, **{"rate": 1.0, **given})


def test_more_requests_than_are_simulated() -> None:
    with pytest.raises(UsageError, match="1,310,720 requests, the most that are simulated"):
        Load(10, 10, concurrency=1 << 17)
