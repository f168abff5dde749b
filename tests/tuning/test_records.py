"""Journals and tables."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.documents.support import validated
from wavecast.compile.configuration import Configuration
from wavecast.errors import InputError
from wavecast.tuning import TuningTable, load
from wavecast.tuning.records import Journal, Result, TuningProblem, read

PROBLEM = TuningProblem(
    "matmul", {"M": 64, "dtype": "bf16"}, {"a": "bfloat16:16", "M": "int:16"}, "0123", "gfx942",
    "mi300x", "triton 3.9.0",
)  # fmt: skip


def _result(block: int, seconds: float | None = None, **more) -> Result:
    return Result(Configuration.of({"BLOCK": block, "num_warps": 4}), seconds=seconds, **more)


def test_a_journal_gives_back_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    results = [_result(64, 1e-5, limiter="matrix", fidelity="static"), _result(32, reason="no")]
    for result in results:
        journal.add(PROBLEM, result)
    journal.close()
    assert list(read(path)) == [(PROBLEM, result) for result in results]


def test_a_line_cut_off_by_the_end_of_a_process_is_dropped_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.add(PROBLEM, _result(64, 1.0))
    journal.add(PROBLEM, _result(32, 2.0))
    journal.close()
    path.write_bytes(path.read_bytes()[:-9])
    assert [result for _, result in read(path)] == [_result(64, 1.0)]
    again = Journal(path)
    again.add(PROBLEM, _result(16, 3.0))
    again.close()
    assert [result for _, result in read(path)] == [_result(64, 1.0), _result(16, 3.0)]


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"a": 1}\n')
    with pytest.raises(InputError, match=r"journal:1: not a journal of wavecast tune"):
        list(read(path))


def test_results_are_ranked_simulated_ones_first_then_by_time() -> None:
    table = TuningTable.of(
        [
            (PROBLEM, _result(16, 1.0, fidelity="static")),
            (PROBLEM, _result(32, 4.0, fidelity="static")),
            (PROBLEM, _result(64, 2.0, fidelity="static")),
            (PROBLEM, _result(8, reason="takes too much")),
            (replace(PROBLEM, device="mi325x"), _result(8, 5.0)),
            (PROBLEM, _result(32, 3.0, fidelity="executed")),
        ]
    )
    first, second = table.entries
    assert [result.seconds for result in first.results] == [3.0, 1.0, 2.0]
    assert [result.reason for result in first.refused] == ["takes too much"]
    assert second.problem.device == "mi325x"
    assert first.best is not None
    assert first.best.configuration.settings == {"BLOCK": 32, "num_warps": 4}


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    table = TuningTable.of([(PROBLEM, _result(64, 1e-5)), (PROBLEM, _result(8, reason="no"))])
    path = tmp_path / "table.json"
    path.write_text(json.dumps(validated(table.to_json(), "wavecast.tune/1")))
    assert load(path) == table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ('{"schema": "other/1"}', "not a table of wavecast tune"),
        ('{"schema": "wavecast.tune/1", "entries": [{}]}', "damaged"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load(path)


def _append_forever(path: Path, added: int) -> None:
    """Append results in a child process, and write a byte to the pipe `added` after each."""
    journal = Journal(path)
    for number in itertools.count():
        journal.add(PROBLEM, _result(16, float(number), reason="x" * 5000))
        os.write(added, b".")


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05])
def test_every_result_that_was_added_survives_a_kill(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "journal"
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _append_forever(path, write_end)
    os.close(write_end)
    first = os.read(read_end, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as pipe:
        added = len(first + pipe.read())
    found = [result.seconds for _, result in read(path)]
    assert found == [float(number) for number in range(len(found))]
    assert added <= len(found) <= added + 1  # the last one may be written but not yet told
    again = Journal(path)
    again.add(PROBLEM, _result(64, 1.0))
    again.close()
    assert [result for _, result in read(path)][-1] == _result(64, 1.0)
    assert len(list(read(path))) == len(found) + 1


def test_of_one_configuration_the_last_result_counts(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.add(PROBLEM, _result(64, 1.0, fidelity="static"))
    journal.add(PROBLEM, _result(64, 1.5, fidelity="executed"))
    journal.close()
    (entry,) = TuningTable.of(read(path)).entries
    assert [result.seconds for result in entry.results] == [1.5]


def test_a_journal_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Journal(tmp_path / "nowhere" / "journal")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file: .*nothing\.json"):
        load(tmp_path / "nothing.json")
