"""Where the buffers and signals of ranks that work together are: in this process, or in memory
that the processes of the ranks share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol


class GroupMemory(Protocol):
    """Memory of one group, zero at first."""

    def tensor(self, name: str, size: int, gpu: int) -> Any:
        """A tensor uint8[size] on a GPU."""
        ...

    def array(self, name: str, size: int) -> Any:
        """An array uint8[size] of the host."""
        ...

    def exclusive(self) -> AbstractContextManager[Any]:
        """A block that one of the ranks is in."""
        ...


shared: Callable[[str], GroupMemory | None] | None = None
"""The memory of a group by its name, None where its ranks are threads of this process; set while
GPUs are emulated."""
_numbers = itertools.count()


def memory_of(name: str) -> GroupMemory | None:
    """The memory that the processes of a group share, None in a group of this process. Groups
    without a name are told apart by their order, which is the same in all processes."""
    return shared(name or f"group {next(_numbers)}") if shared is not None else None


__all__ = ["GroupMemory", "memory_of", "shared"]
