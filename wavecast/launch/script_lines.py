"""The line of the user's program that a call comes from."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

_HERE: Final = f"{Path(__file__).parents[1]}/"
_FOLDERS: Final = tuple(
    {
        f"{Path(sysconfig.get_path(name))}/"
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)


def script_line() -> tuple[str, int] | None:
    """File and line of the innermost frame of the calling thread that is neither of this package,
    nor of the standard library, nor of an installed one; None without such a frame. A frame of
    generated code stands for the line that it is made of."""
    return frame_line(sys._getframe(1))


def frame_line(frame: FrameType | None) -> tuple[str, int] | None:
    """The same from a frame outwards."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path in _generated:
            if (line := _generated[path](frame.f_lineno)) is not None:
                return line
        elif is_script(path):
            return path, frame.f_lineno
        frame = frame.f_back
    return None


def raising_line(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost such frame that an error has come through; None for none."""
    line, step = None, error.__traceback__
    while step is not None:
        if is_user_code(path := step.tb_frame.f_code.co_filename):
            line = path, step.tb_lineno
        step = step.tb_next
    return line


def location_suffix(line: tuple[str, int] | None) -> str:
    """` at train.py:12`, "" for no line."""
    return "" if line is None else f" at {Path(line[0]).name}:{line[1]}"


@cache
def is_script(path: str) -> bool:
    """Whether a file is none of a library. Code made of text has names in angle brackets."""
    return not path.startswith(("<", _HERE, *_FOLDERS))


def is_user_code(path: str) -> bool:
    """Whether code of a file is the user's."""
    return is_script(path) and path not in _generated


def is_own(path: str) -> bool:
    """Whether a file is of this package."""
    return path.startswith(_HERE)


def note_generated(path: str, line_of: Callable[[int], tuple[str, int] | None]) -> None:
    """A file is generated code: `line_of` gives the line of the program that one of it is made of,
    None for an unknown one."""
    _generated[path] = line_of


_generated: Final[dict[str, Callable[[int], tuple[str, int] | None]]] = {}

__all__ = [
    "frame_line",
    "is_own",
    "is_script",
    "is_user_code",
    "location_suffix",
    "note_generated",
    "raising_line",
    "script_line",
]
