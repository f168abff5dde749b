"""The line of a program that a call comes from, through code of libraries."""

from __future__ import annotations

import functools
import threading
from pathlib import Path

import pytest

from wavecast.launch.script_lines import location_suffix, raising_line, script_line


def test_the_innermost_line_outside_of_libraries() -> None:
    first = script_line()
    lines: list[tuple[str, int] | None] = []
    through_library = functools.partial(functools.reduce, lambda *_: lines.append(script_line()))
    through_library([0, 1])
    assert first is not None
    assert Path(first[0]) == Path(__file__)
    assert [line for line in lines if line is not None] == [(first[0], first[1] + 2)]
    assert location_suffix(first) == f" at {Path(__file__).name}:{first[1]}"


def test_the_line_that_an_error_comes_from() -> None:
    assert raising_line(ValueError()) is None
    first = script_line()
    with pytest.raises(OSError, match="no such file") as raised:
        Path("no such file").read_text()
    assert first is not None
    assert raising_line(raised.value) == (first[0], first[1] + 2)


def test_a_thread_of_libraries_alone_has_no_line() -> None:
    lines: list[tuple[str, int] | None] = []
    timer = threading.Timer(0, functools.partial(_note, lines))
    timer.start()
    timer.join()
    assert lines != [None]
    code = "from wavecast.launch.script_lines import script_line; line = script_line()"
    names: dict[str, object] = {}
    thread = threading.Thread(target=exec, args=(compile(code, "<text>", "exec"), names))
    thread.start()
    thread.join()
    assert names["line"] is None
    assert location_suffix(None) == ""


def _note(lines: list[tuple[str, int] | None]) -> None:
    lines.append(script_line())
