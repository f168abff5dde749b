"""A planted mistake of two GPUs, the node that it runs on, and the lines that are marked."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

DEADLOCK: Final = "deadlock"
"""What is expected of kernels that wait for ever: the launch ends with this error."""


@dataclass
class Bench:
    """A node of two GPUs and its memory."""

    node: Any

    def zeros(self, *shape: int, gpu: int = 0, dtype: Any = torch.int32) -> Any:
        return torch.zeros(shape, dtype=dtype, device=f"cuda:{gpu}")

    def empty(self, *shape: int, gpu: int = 0, dtype: Any = torch.int32) -> Any:
        return torch.empty(shape, dtype=dtype, device=f"cuda:{gpu}")

    def each(self, launch: Callable[[int], Any]) -> None:
        """`launch(rank)` by both ranks."""
        self.node.ranks(launch)

    def on(self, gpu: int, launch: Callable[[], Any]) -> None:
        """Launch on a GPU by the calling thread."""
        with torch.cuda.device(gpu):
            launch()

    def settle(self, gpu: int) -> None:
        """Wait until what was launched on a GPU has ended, which orders nothing."""
        queue = self.node.node.queue(gpu)
        while queue.ended < queue.submitted:
            time.sleep(0.001)


@dataclass(frozen=True)
class Case:
    """A mistake: `kind` is that of the reports, `DEADLOCK`, or the text of an error. `marks` are
    the lines of `kernel`, or of a function of the host, that are marked as planted."""

    name: str
    what: str
    kind: str
    run: Callable[[Bench, bool], None]
    kernel: Any = None
    marks: tuple[str, ...] = ()

    @property
    def places(self) -> set[str]:
        """The planted lines as messages name them: `cases.py:12`."""
        if self.kernel is None:
            return set()
        path = Path(getattr(self.kernel, "fn", self.kernel).__code__.co_filename)
        return {f"{path.name}:{line}" for line in self.lines}

    @property
    def lines(self) -> set[int]:
        """The numbers of the planted lines."""
        return planted_lines(self.kernel, self.marks)


def planted_lines(kernel: Any, marks: tuple[str, ...]) -> set[int]:
    """The lines of a kernel or a function marked `# planted: <mark>`."""
    if kernel is None:
        return set()
    code = getattr(kernel, "fn", kernel).__code__
    text = Path(code.co_filename).read_text().splitlines()
    found = set()
    for number in range(code.co_firstlineno, len(text) + 1):
        line = text[number - 1]
        if number > code.co_firstlineno + 1 and line.startswith(("@triton.jit", "def ")):
            break
        mark = re.search(r"# planted: (\w+)", line)
        if mark is not None and mark[1] in marks:
            found.add(number)
    return found


__all__ = ["DEADLOCK", "Bench", "Case"]
