"""One device code object of a container, read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from wavecast.isa.elf import Content


@dataclass(frozen=True, slots=True)
class Member:
    """`target` is the processor that the container names, "" where only the code object does;
    `size` has its bytes, and `archived` the file of an archive that it is in, "" for others."""

    target: str
    size: int
    _content: Callable[[], bytes] = field(repr=False)
    archived: str = ""

    @property
    def data(self) -> bytes:
        """The bytes of the code object, read at every call."""
        return self._content()


def slice_of(data: Content, start: int, size: int) -> Callable[[], bytes]:
    """The function that reads `size` bytes of `data` from `start` on."""
    return partial(data.__getitem__, slice(start, start + size))
