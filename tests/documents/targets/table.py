"""What works on each target, tried: the table of docs/targets.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from wavecast import arch

PAGE: Final = Path(__file__).parents[3] / "docs" / "targets.md"
_FOLDER: Final = Path(__file__).parent
_INPUTS: Final = {"Triton": "add.py", "HIP": "add.hip"}
_VERBS: Final = ("explain", "run", "check", "time")
TARGETS: Final = tuple(dict.fromkeys(device.target for device in arch.devices()))


def cells() -> list[tuple[str, str]]:
    """(input, verb) of every column."""
    return [(name, verb) for name in _INPUTS for verb in _VERBS]


def works(target: str, name: str, verb: str) -> bool:
    """Whether a verb works for an input on a target: it ends with 0 and gives what it promises."""
    file = str(_FOLDER / _INPUTS[name])
    command = {
        "explain": ["explain", file],
        "run": ["run", file],
        "check": ["run", file, "--check"],
        "time": ["explain", file] if name == "Triton" else ["run", file, "--predict"],
    }[verb]
    done = subprocess.run(
        [sys.executable, "-m", "wavecast", *command, "--arch", target],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    text = done.stdout + done.stderr
    promise = {
        "explain": rf"{target} \(",
        "run": "",
        "check": "check: nothing found",
        "time": r"[1-9][\d.]* [µm]s predicted",
    }[verb]
    return done.returncode == 0 and re.search(promise, text) is not None


def page(text: str, answer: Callable[[str, str, str], bool]) -> str:
    """The page with `answer` in every cell of its table; the rest is that of `text`."""
    columns = cells()
    table = [
        "| target | " + " | ".join(f"{name} {verb}" for name, verb in columns) + " |",
        "|---" * (1 + len(columns)) + "|",
    ]
    for target in TARGETS:
        marks = ["yes" if answer(target, *column) else "–" for column in columns]
        table.append(f"| {target} | " + " | ".join(marks) + " |")
    return re.sub(r"(^\|.*\n)+", "\n".join(table) + "\n", text, count=1, flags=re.MULTILINE)


def stated(text: str) -> dict[tuple[str, str, str], bool]:
    """The cells of a page: (target, input, verb) -> whether it works."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {
        (target, *column): mark == "yes"
        for target, *marks in rows[1:]
        for column, mark in zip(cells(), marks, strict=True)
    }


__all__ = ["PAGE", "TARGETS", "cells", "page", "stated", "works"]
