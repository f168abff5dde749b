"""The course: solutions reach all goals, starts do not, and the verb writes and checks chapters."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.warm_python import finished
from wavecast.api.learn import check as check_goals
from wavecast.api.learn import course
from wavecast.cli.learn import command
from wavecast.errors import InputError, UnknownName
from wavecast.learn.chapter import Chapter, chapter, chapters
from wavecast.learn.goals import GOALS, check, explain_file, unchecked_goal
from wavecast.report.course import render_goal
from wavecast.servers import verbs

CHAPTERS = chapters()


def ids(one: Chapter) -> str:
    return one.name


def test_chapters_are_numbered_from_one() -> None:
    assert [one.number for one in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))


@pytest.mark.parametrize("one", CHAPTERS, ids=ids)
def test_a_chapter_is_whole(one: Chapter) -> None:
    assert set(one.goals) <= set(GOALS)
    assert ("link-bytes" if one.gpus > 1 else "faster") in one.goals
    assert "## Task" in one.text
    assert one.start.read_text() != one.solution.read_text()
    launched = one.folder / ("launch.toml" if one.file.endswith(".hip") else "check.py")
    assert launched.is_file()


@pytest.mark.torch
@pytest.mark.hip
@pytest.mark.thorough
@pytest.mark.parametrize("one", CHAPTERS, ids=ids)
def test_the_solution_reaches_all_goals_and_the_start_is_only_right(one: Chapter) -> None:
    pytest.importorskip("torch")
    missed = [goal for goal in check(one, one.solution) if not goal.reached]
    assert not missed
    begun = list(check(one, one.start))
    assert all(goal.reached for goal in begun if goal.goal.startswith("right"))
    assert not all(goal.reached for goal in begun)


@pytest.mark.parametrize(
    ("number", "name", "right"), [("3", "mine.py", "mine.hip"), ("1", "mine.hip", "mine.py")]
)
def test_a_file_of_another_language_is_one_error(
    number: str, name: str, right: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(chapter(number).solution.read_text())
    with pytest.raises(InputError, match=rf"save it as {right}"):
        check_goals(number, path)


@pytest.mark.torch
def test_a_wrong_kernel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(verbs, "processes", SimpleNamespace(run=finished))
    one = chapter("coalescing")
    path = one.begin(tmp_path / "work")
    path.write_text(path.read_text().replace("values, mask=mask)", "values + 1, mask=mask)"))
    first = next(check(one, path))
    assert (first.goal, first.reached) == ("right on gfx942", False)
    assert first.detail


def test_what_cannot_be_executed_is_shown_as_not_checked() -> None:
    one = chapter("porting")
    assert "sm_90" in one.arch
    goal = unchecked_goal("sm_90")
    assert goal is not None
    assert not goal.checked
    text = io.StringIO()
    console = Console(file=text, width=100)
    for shown in (goal, replace(goal, checked=True), replace(goal, checked=True, reached=False)):
        render_goal(shown, console)
    marks = [line[:2] for line in text.getvalue().splitlines()]
    assert marks == ["? ", "✔ ", "✖ "]
    assert [unchecked_goal(arch) for arch in ("gfx942", "gfx1100")] == [None, None]


def test_a_chapter_is_never_overwritten(tmp_path: Path) -> None:
    one = chapter("1")
    one.begin(tmp_path)
    with pytest.raises(InputError, match="exists"):
        one.begin(tmp_path)
    with pytest.raises(UnknownName):
        chapter("99")


def test_the_verb_lists_starts_and_writes_notebooks(tmp_path, monkeypatch) -> None:
    pytest.importorskip("nbformat")
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    listed = run.invoke(command, [])
    assert listed.output == run.invoke(command, ["list"]).output
    rows = [line.split() for line in listed.output.splitlines() if line.strip()]
    named = [row[1] for row in rows if row[0].isdigit()]
    assert named == [row["name"] for row in course().to_dict()]
    assert named == [one.name for one in CHAPTERS]
    assert run.invoke(command, ["start", "2"]).exit_code == 0
    assert (tmp_path / "coalescing" / "kernel.py").is_file()
    assert run.invoke(command, ["solution", "2"]).output == chapter("2").solution.read_text()
    assert run.invoke(command, ["notebook", "2"]).exit_code == 0
    cells = json.loads((tmp_path / "coalescing.ipynb").read_text())["cells"]
    assert "".join(cells[1]["source"]).startswith("%%writefile kernel.py\n")


def test_a_chapter_overwrites_no_file(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InputError, match=r"README\.md exists"):
        chapter("1").begin(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_hip_file_of_any_name_is_explained_as_hip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(verbs, "document", lambda arguments, **_: given.append(arguments) or {})
    monkeypatch.setattr(
        verbs, "text", lambda arguments, **_: given.append(arguments) or (0, "", "")
    )
    one = next(one for one in CHAPTERS if one.file.endswith(".hip"))
    file = tmp_path / "mine.hip"
    explain_file(one, file)
    next(check(one, file))
    assert [arguments[1] for arguments in given] == [str(file)] * 2
