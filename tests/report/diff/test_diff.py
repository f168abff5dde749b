"""Comparisons of versions as text: what is left out, how changes read."""

from __future__ import annotations

import io

from rich.console import Console

from tests.documents.support import validated
from wavecast.benchmarking.diff.bisect import Found, Probe
from wavecast.benchmarking.diff.result import Delta, Diff, DiffRow
from wavecast.benchmarking.kpis import kpi
from wavecast.pipeline.explain.result import Failure
from wavecast.report.diff import json, terminal, words


def rows(text: str) -> list[DiffRow]:
    kinds = {".": "same", "+": "new", "-": "gone"}
    return [DiffRow(kinds[c], n, n, f"a{n}", f"b{n}") for n, c in enumerate(text)]  # type: ignore[arg-type]


def shown(text: str, context: int = 1) -> list[int | str]:
    found = words.hunks(rows(text), context)
    return [item if isinstance(item, int) else item.before_text for item in found]


def test_what_is_the_same_far_from_a_change_is_counted() -> None:
    assert shown("....+....") == [3, "a3", "a4", "a5", 3]
    assert shown("+..-") == ["a0", "a1", "a2", "a3"]
    assert shown("...") == [3]
    assert shown("") == []


def test_changes_in_percent_and_from_zero() -> None:
    assert words.change(Delta("x", 100, 110)) == "+10.0%"
    assert words.change(Delta("x", 0, 4)) == "+4"
    assert words.change(Delta("x", None, 4)) == ""
    assert words.change(Delta("x", 4, 4)) == ""
    assert words.change(Delta("x", 100, 90)) == "−10.0%"


def test_times_that_read_the_same_are_no_change() -> None:
    assert not words.shows(Delta("predicted_seconds", 24.5e-6, 24.501e-6))
    assert words.shows(Delta("predicted_seconds", 24.5e-6, 24.6e-6))
    assert words.shows(Delta("code_instructions", 100_000, 100_001))
    assert words.shows(Delta("findings", 0, 1))
    assert not words.shows(Delta("spills", 0, 0))


def test_failures_and_notes_are_shown() -> None:
    failure = Failure("k", "gfx942", "compile", "does not fit", "smaller tiles")
    found = Diff("main", "pr", (), (), (failure,), ("a note",))
    stream = io.StringIO()
    terminal.render(found, Console(file=stream, width=120), rows=10)
    text = stream.getvalue()
    assert "failed in pr: k for gfx942: does not fit (smaller tiles)" in text
    assert "note: a note" in text
    assert json.document(found)["failed_after"][0]["message"] == "does not fit"


def search(first_worse: str, undecided: tuple[str, ...] = ()) -> Found:
    probes = (
        Probe("3.6.0", {"k mi300x": 0.0}),
        Probe("3.9.0", {"k mi300x": 4.0}, ("k mi300x",)),
        Probe("3.7.0", failed="no [wheel]"),
    )
    releases = ("3.6.0", "3.7.0", "3.9.0")
    return Found(kpi("spills"), releases, "3.6.0", first_worse, undecided, probes)


def test_a_search_shows_every_probe_in_the_order_of_releases() -> None:
    stream = io.StringIO()
    terminal.render_bisect(search("3.9.0", ("3.7.0",)), Console(file=stream, width=120))
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["triton", "3.6.0", "3.7.0", "3.9.0"]
    assert "skipped: no [wheel]" in lines[2]
    assert lines[4].startswith("3 of 3 releases asked")
    assert lines[5] == (
        "spills became worse after Triton 3.6.0, by 3.9.0 at the latest; 3.7.0 could not be asked"
    )


def test_the_answer_in_a_sentence() -> None:
    assert words.conclusion(search("3.9.0")) == "spills became worse with Triton 3.9.0"
    assert words.conclusion(search("")) == "spills is not worse with Triton 3.6.0"
    document = validated(json.bisect_document(search(""), None), "wavecast.bisect/1")
    assert [probe["verdict"] for probe in document["probes"]] == ["good", "worse", "skipped"]
