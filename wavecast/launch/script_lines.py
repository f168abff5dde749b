"""The line of the user's program that a call comes from."""

from __future__ import annotations

import sys
import sysconfig
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
    nor of the standard library, nor of an installed one; None without such a frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_script(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def raising_line(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost such frame that an error has come through; None for none."""
    line, step = None, error.__traceback__
    while step is not None:
        if is_script(path := step.tb_frame.f_code.co_filename):
            line = path, step.tb_lineno
        step = step.tb_next
    return line


def location_suffix(line: tuple[str, int] | None) -> str:
    """` at train.py:12`, "" for no line."""
    return "" if line is None else f" at {Path(line[0]).name}:{line[1]}"


@cache
def is_script(path: str) -> bool:
    """Whether code of a file is the user's. Code made of text has names in angle brackets."""
    return not path.startswith(("<", _HERE, *_FOLDERS))


__all__ = ["is_script", "location_suffix", "raising_line", "script_line"]
