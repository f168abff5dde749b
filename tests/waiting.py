"""Waiting for processes in tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def runs(process: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def sleeps(process: int) -> bool:
    """Whether a process waits for something."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, ten minutes at most: the machine may do other things."""
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
