"""Traces as JSON, for Perfetto and for a terminal, from a kernel whose counts are known."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import jsonschema
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from rich.console import Console

from tests.emulate.trace.support import aligned, trace
from tests.emulate.trace.test_streams import WALK
from wavecast.emulate.trace.result import Trace
from wavecast.report.execution import perfetto, trace_terminal, traces


@pytest.fixture(scope="module")
def walk() -> Trace:
    """Two workgroups of two waves that load, store to LDS and meet at a barrier three times."""
    return trace("gfx942", WALK, aligned(1024), groups=2, threads=128, lds=1024, streams=2)


def test_the_document_follows_its_schema(walk: Trace) -> None:
    schema = traces.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    counted = trace("gfx1100", "\tv_mov_b32_e32 v2, 1", memory=False)
    for found in ([walk, counted], []):
        jsonschema.validate(json.loads(traces.dumps(found)), schema)


def test_the_document_has_the_counts(walk: Trace) -> None:
    (launch,) = traces.document([walk])["launches"]
    assert (launch["workgroups"], launch["waves"], launch["barriers"]) == (2, 4, 12)
    assert [block["executions"] for block in launch["blocks"]] == [4, 12, 4]
    assert launch["blocks"][1]["taken"] == 8
    assert launch["instructions"] == 4 * (7 + 3 * 8 + 1)
    load = next(m for m in launch["memory"] if m["text"].startswith("global_load"))
    assert (load["executions"], load["lanes"], load["bytes"]) == (12, 768, 3072)
    assert launch["streams"][0] == {
        "workgroup": [0, 0, 0], "wave": 0, "complete": True, "accesses": 7,
        "blocks": [[0, 1], [1, 3], [2, 1]],
    }  # fmt: skip
    assert sum(line["executions"] for line in launch["lines"]) == launch["instructions"]
    assert launch["classes"]["barrier"] == {"executions": 12, "active_lanes": 0}


@pytest.mark.parametrize("signal", ["s_barrier_signal", "s_barrier_signal_isfirst"])
def test_halves_of_a_barrier_are_one(signal: str) -> None:
    body = f"\t{signal} -1\n\ts_barrier_wait -1\n"
    (launch,) = traces.document([trace("gfx1201", body, threads=64)])["launches"]
    assert launch["barriers"] == 2


def test_equal_launches_give_equal_documents(walk: Trace) -> None:
    again = trace("gfx942", WALK, aligned(1024), groups=2, threads=128, lds=1024, streams=2)
    assert traces.dumps([walk]) == traces.dumps([again])


def test_perfetto_shows_waves_on_an_axis_of_instructions(walk: Trace) -> None:
    document = json.loads(perfetto.dumps([walk]))
    assert "not time" in document["otherData"]["axis"]
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in slices} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    wave = [event for event in slices if (event["pid"], event["tid"]) == (1, 1)]
    # 7 instructions, then 4 up to the barrier and 4 after it, three times, then the end
    assert [event["dur"] for event in wave] == [7, 4, 4, 4, 4, 4, 4, 1]
    ends = [event["ts"] + event["dur"] for event in wave]
    assert [event["ts"] for event in wave] == [0, *ends[:-1]]
    assert ends[-1] * 4 == walk.instructions
    names = [e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"]
    assert names == [
        "launch 0: k (0, 0, 0) (instructions, not time)",
        "launch 0: k (1, 0, 0) (instructions, not time)",
    ]


UNEVEN = """	v_cmp_gt_u32_e32 vcc, 64, v0
	s_cbranch_vccz meet
	v_mov_b32_e32 v2, 1
	v_mov_b32_e32 v2, 2
meet:
	s_barrier
"""


def test_perfetto_lets_waves_wait_for_each_other() -> None:
    found = trace("gfx942", UNEVEN, threads=128, streams=1)
    events = perfetto.document([found])["traceEvents"]
    (waiting,) = [event for event in events if event.get("cat") == "barrier"]
    assert (waiting["tid"], waiting["dur"]) == (2, 2)
    last = {event["tid"]: event["ts"] for event in events if event["ph"] == "X"}
    assert last[1] == last[2]


def test_the_terminal_names_lines_lanes_and_conflicts(walk: Trace) -> None:
    text = io.StringIO()
    trace_terminal.render([walk], Console(file=text, width=100))
    shown = text.getvalue()
    assert "2 workgroups, 4 waves, 128 wave-instructions, 12 barrier waits" in shown
    assert "128 B lines" in shown
    assert "no source line" in shown


def test_only_the_source_is_cut_in_a_narrow_terminal(
    walk: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = io.StringIO()
    (line,) = traces.by_line(walk)
    monkeypatch.setattr(traces, "by_line", lambda trace: [replace(line, file="walk.py", line=7)])
    monkeypatch.setattr(trace_terminal.source, "file_line", lambda file, line: "x = y + " * 40)
    trace_terminal.render([walk], Console(file=text, width=60))
    (row,) = (line for line in text.getvalue().splitlines() if "x = y" in line)
    assert "100%" in row
    assert "…" in row
