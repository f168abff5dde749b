"""Plain words: names, comments, messages and documents do not use the words of `words.BANNED`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.structure import remaining
from tests.structure.words import (
    BANNED,
    MOST_VAGUE,
    counted,
    in_name,
    in_prose,
    package,
    vague_share,
)


def test_banned_words_only_become_fewer() -> None:
    """A text that fails here uses the replacement in `words.BANNED`."""
    remaining.check("banned words", counted())


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Standing", "standing"), ("held_rows", "held"), ("_WAYS", "way"), ("gains", "gain"),
        ("inside", "inside"), ("slope", "slope"), ("rest1", "rest"), ("turnCount", "turn"),
        ("EIGHT", "eight"), ("places", "place"), ("_Front", "front"), ("spread", "spread"),
    ],
)  # fmt: skip
def test_names(name: str, word: str) -> None:
    assert in_name(name) == (word,)


@pytest.mark.parametrize(
    "name",
    ["understanding", "always", "withheld", "placement", "restored", "in_place", "conflict_ways"],
)
def test_names_that_only_contain_a_banned_word_are_fine(name: str) -> None:
    assert in_name(name) == ()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Sorted by commit, which is said.", "is said"),
        ("What stands in the way", "stand"),
        ("it goes on with\nthe next", "go on"),
        ("a file that is no journal", "is no …"),
        ("in a process of its own", "of its own"),
        ("bytes beside the others", "beside"),
        ("as far as it is known", "as far as"),
        ("Time has two ways.", "way"),
        ("every turn of the loop", "turn"),
        ("values held in registers", "held"),
    ],
)
def test_prose(text: str, word: str) -> None:
    assert word in in_prose(text)


@pytest.mark.parametrize(
    "text",
    [
        "There is no such file, and it is no longer used.",
        "inside the loop, in this place, a share of it",
        "A 16-way set; each in turn; turn off the cache; it stands for the target.",
        "I understand; besides, `held` is quoted, ongoing work goes one step",
    ],
)
def test_ordinary_english_is_fine(text: str) -> None:
    assert in_prose(text) == []


def test_every_banned_word_has_a_pattern_and_a_replacement() -> None:
    for word, banned in BANNED.items():
        assert banned.instead, word
        assert banned.name or banned.prose, word


def test_a_planted_word_is_counted(tmp_path: Path) -> None:
    code = tmp_path / "wavecast" / "tuning" / "planted.py"
    code.parent.mkdir(parents=True)
    code.write_text(
        '"""What stands here."""\n\n'
        "held = 1  # goes on\n"
        'message = f"{held} is no number"\n'
        "inside_of = `held`\n".replace("`held`", "held")
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Beside it.\n```\nheld\n```\n`held`\n")
    assert counted(tmp_path) == {
        "wavecast/tuning: stand": 1,
        "wavecast/tuning: held": 1,
        "wavecast/tuning: go on": 1,
        "wavecast/tuning: is no …": 1,
        "wavecast/tuning: inside": 1,
        "docs: beside": 1,
    }
    assert package(code, tmp_path) == "wavecast/tuning"


def test_variables_have_names_of_what_they_hold() -> None:
    assert vague_share() <= MOST_VAGUE


def test_vague_names_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(given, rows):\n    found = [one for one in rows]\n")
    assert vague_share(tmp_path) == 0.75
