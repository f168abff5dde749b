"""The stages of one kernel of a code object: its text is made when it is read.

A library has thousands of kernels; a run explains a few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

_NAMES: Final = ("amdgcn", "hsaco")


class ObjectStages(Mapping[str, "str | bytes"]):
    """`hsaco`: the bytes of the code object. `amdgcn`: the kernel as text, disassembled on first
    use, which raises InputError for code that cannot be decoded. Pickled as a dict of both."""

    def __init__(self, data: bytes, disassemble: Callable[[], str]) -> None:
        self._data = data
        self._disassemble = disassemble
        self._text: str | None = None

    def __getitem__(self, name: str) -> str | bytes:
        if name == "hsaco":
            return self._data
        if name != "amdgcn":
            raise KeyError(name)
        if self._text is None:
            self._text = self._disassemble()
        return self._text

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __reduce__(self) -> tuple[type, tuple[dict[str, str | bytes]]]:
        return dict, (dict(self),)
