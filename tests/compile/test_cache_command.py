from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from wavecast.api.cache import show
from wavecast.cli.cache import command
from wavecast.compile.cache import KINDS, DiskCache
from wavecast.compile.digest import key


def _run(*words: str) -> str:
    result = CliRunner().invoke(command, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def test_an_empty_cache_says_so() -> None:
    assert "no entries" in _run()


def test_show_counts_by_kind() -> None:
    cache = DiskCache()
    for number in range(3):
        cache.put(key("hip", number), "x" * 2000)
    cache.put(key("ptx", 0), "y")
    output = _run("show")
    assert output == _run() == str(show())
    assert str(cache.root) in output
    assert [line.split()[:2] for line in output.splitlines()[2:]] == [
        ["hip", "3"],
        ["ptx", "1"],
        ["total", "4"],
    ]


def test_clear_takes_a_kind_and_an_age() -> None:
    cache = DiskCache()
    cache.put(key("hip", 0), 1)
    cache.put(key("ptx", 0), 1)
    assert "removed 0 entries" in _run("clear", "--older-than", "1")
    assert "removed 1 entry" in _run("clear", "--kind", "ptx")
    assert [entry.kind for entry in cache.entries()] == ["hip"]
    assert "removed 1 entry" in _run("clear")


def test_a_negative_age_is_refused() -> None:
    assert CliRunner().invoke(command, ["clear", "--older-than", "-1"]).exit_code == 2


def test_an_unknown_kind_is_refused() -> None:
    result = CliRunner().invoke(command, ["clear", "--kind", "nope"])
    assert result.exit_code == 2
    assert "'ptx'" in result.output


def test_every_kind_that_is_stored_is_known() -> None:
    sources = Path(__file__).parents[2].glob("wavecast/**/*.py")
    stored = {
        kind
        for source in sources
        for call in re.findall(r"\bkey\((\"[^,]*),", source.read_text())
        for kind in re.findall(r"\"(\w+)\"", call)
    }
    assert stored == set(KINDS)
