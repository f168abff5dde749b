"""Chapters of the course as they are stored in the package."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wavecast.errors import InputError, UnknownName

_FOLDER: Final = Path(__file__).parent / "chapters"
PYTHON_FILE: Final = "kernel.py"
HIP_FILE: Final = "kernel.hip"


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter. `goals` maps the names of `goals.GOALS` to what they demand; with several `gpus`
    its kernels are executed on all of them."""

    number: int
    name: str
    title: str
    arch: tuple[str, ...]
    goals: Mapping[str, Any]
    folder: Path
    gpus: int = 1

    @property
    def file(self) -> str:
        """The name of the file that a learner edits."""
        return HIP_FILE if (self.folder / "start" / HIP_FILE).exists() else PYTHON_FILE

    @property
    def start(self) -> Path:
        """The file as a learner gets it."""
        return self.folder / "start" / self.file

    @property
    def solution(self) -> Path:
        """The file that reaches all goals."""
        return self.folder / "solution" / self.file

    @property
    def text(self) -> str:
        """What the chapter teaches, and the task, as Markdown."""
        return (self.folder / "text.md").read_text(encoding="utf-8")

    def begin(self, folder: Path) -> Path:
        """Write text and kernel to `folder` and return the path of the kernel.

        Raises InputError where one of them is there already: it may have been edited.
        """
        target, text = folder / self.file, folder / "README.md"
        for path in (target, text):
            if path.exists():
                raise InputError(f"{path} exists", hint="take another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.start, target)
            shutil.copyfile(self.folder / "text.md", text)
        except OSError as error:
            raise InputError(f"cannot write {folder}: {error.strerror}") from None
        return target


def chapters() -> tuple[Chapter, ...]:
    """All chapters in their order."""
    return tuple(_read(path.parent) for path in sorted(_FOLDER.glob("*/chapter.toml")))


def chapter(selector: str) -> Chapter:
    """The chapter of a number or name. Raises UnknownName."""
    catalog = chapters()
    for entry in catalog:
        if selector in (str(entry.number), entry.name, entry.folder.name):
            return entry
    raise UnknownName("chapter", selector, [entry.name for entry in catalog])


def _read(folder: Path) -> Chapter:
    number, _, name = folder.name.partition("-")
    with (folder / "chapter.toml").open("rb") as file:
        values = tomllib.load(file)
    return Chapter(
        *(int(number), name, values["title"], tuple(values["arch"]), values["goals"], folder),
        gpus=values.get("gpus", 1),
    )
