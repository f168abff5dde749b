"""`wavecast.api.learn`: the course: chapters, their goals on a learner's file, solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult, partial
from wavecast.errors import InputError, MissingTool
from wavecast.extras import install_hint
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import OUTPUT_FILE

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.learn.chapter import Chapter
    from wavecast.learn.goals import Reached


@dataclass(frozen=True, kw_only=True)
class NotebookOptions(Options):
    """Where a notebook is written."""

    output: Path | None = option(
        None, "The file.", "-o", "--output", values=OUTPUT_FILE, default_text="NAME.ipynb"
    )


@dataclass(frozen=True, slots=True, repr=False)
class Course(ShownResult):
    """The chapters in their order."""

    chapters: Sequence[Chapter]

    def to_dict(self) -> list[Any]:
        return [
            {
                "number": chapter.number,
                "name": chapter.name,
                "title": chapter.title,
                "arch": [*chapter.arch],
            }
            for chapter in self.chapters
        ]

    def render(self, console: Console) -> None:
        from wavecast.report.course import render_list

        render_list(self.chapters, console)

    def subject(self) -> str:
        return "the course"


@dataclass(frozen=True, slots=True, repr=False)
class ChapterStart(ShownResult):
    """A chapter that begins: its kernel was written to `file`."""

    chapter: Chapter
    file: Path

    def to_dict(self) -> dict[str, Any]:
        return {"chapter": self.chapter.name, "file": str(self.file)}

    def render(self, console: Console) -> None:
        check = f"wavecast learn check {self.chapter.number} {self.file}"
        console.out(self.chapter.text, highlight=False)
        console.out(f"Edit {self.file}, then: {check}", highlight=False)

    def subject(self) -> str:
        return f"chapter {self.chapter.number}"


@dataclass(frozen=True, slots=True, repr=False)
class GoalChecks(ShownResult):
    """The goals of a chapter on a file, in the order they were checked."""

    chapter: Chapter
    goals: Sequence[Reached]

    @property
    def reached(self) -> bool:
        """Whether all goals are."""
        return all(goal.reached for goal in self.goals)

    def to_dict(self) -> list[Any]:
        return [asdict(goal) for goal in self.goals]

    def render(self, console: Console) -> None:
        from wavecast.report.course import render_goal

        for goal in self.goals:
            render_goal(goal, console)
        if len(self.goals) > 0 and self.reached:
            console.print(f"{self.subject()} is done")

    def exit_code(self) -> int:
        """1 while a goal is not reached."""
        return int(not self.reached)

    def subject(self) -> str:
        return f"chapter {self.chapter.number}"


@dataclass(frozen=True, slots=True, repr=False)
class ChapterFile(ShownResult):
    """A file of a chapter: its `text`, or where it was written."""

    chapter: Chapter
    text: str
    file: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"chapter": self.chapter.name, "file": self.file and str(self.file)}

    def render(self, console: Console) -> None:
        console.out(f"{self.file}\n" if self.file else self.text, highlight=False, end="")

    def subject(self) -> str:
        return f"chapter {self.chapter.number}"


def course(*, progress: Progress = silent) -> Course:  # noqa: ARG001
    """The chapters of the course."""
    from wavecast.learn.chapter import chapters

    return Course(chapters())


def start(
    chapter: str,
    folder: str | Path | None = None,
    *,
    progress: Progress = silent,  # noqa: ARG001
) -> ChapterStart:
    """Write the text and the kernel of a chapter, a number or name, to a folder (its name). Raises
    UnknownName, and InputError for files that are there already."""
    from wavecast.learn.chapter import chapter as find

    begun = find(chapter)
    return ChapterStart(begun, begun.begin(Path(folder or begun.name)))


def check(
    chapter: str, file: str | Path | None = None, *, progress: Progress = silent
) -> GoalChecks:
    """Check the goals of a chapter on a file, by default the one that `start` wrote; an error has
    those until then as `partial`. Raises UnknownName, InputError and what explaining the file
    raises."""
    from wavecast.learn import goals
    from wavecast.learn.chapter import chapter as find

    checked = find(chapter)
    path = Path(file or Path(checked.name) / checked.file)
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint=f"wavecast learn start {checked.number}")
    if (path.suffix == ".py") != (Path(checked.file).suffix == ".py"):
        wanted = Path(checked.file).suffix
        raise InputError(
            f"{path} is not a {wanted} file as the {checked.file} of chapter {checked.number} is",
            hint=f"save it as {path.with_suffix(wanted).name}",
        )
    progress(f"executing and predicting {path}")
    results: list[Reached] = []
    with partial(lambda _: GoalChecks(checked, results)):
        for goal in goals.check(checked, path.resolve()):
            results.append(goal)
            progress(f"{goal.goal}: {'reached' if goal.reached else 'not reached'}")
    return GoalChecks(checked, results)


def solution(chapter: str, *, progress: Progress = silent) -> ChapterFile:  # noqa: ARG001
    """A solution of a chapter. Raises UnknownName."""
    from wavecast.learn.chapter import chapter as find

    solved = find(chapter)
    return ChapterFile(solved, solved.solution.read_text(encoding="utf-8"))


def notebook(
    chapter: str,
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> ChapterFile:
    """Write a chapter as a Jupyter notebook. `options` are those of `NotebookOptions`. Raises
    UnknownName, MissingTool without nbformat, InputError where it cannot be written."""
    from wavecast.files import write_text
    from wavecast.learn.chapter import chapter as find

    stated, shown = NotebookOptions.of(options), find(chapter)
    try:
        from wavecast.learn.notebook import dumps
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"notebooks need the package nbformat ({error})",
            hint=install_hint("notebook"),
        ) from None
    path, text = stated.output or Path(f"{shown.name}.ipynb"), dumps(shown)
    write_text(path, text)
    return ChapterFile(shown, text, path)


__all__ = [
    "ChapterFile",
    "ChapterStart",
    "Course",
    "GoalChecks",
    "NotebookOptions",
    "check",
    "course",
    "notebook",
    "solution",
    "start",
]
