"""8-bit floats that one launch stores and another reads in another format, as plain bytes.

Tensors of bytes have no format. A launch that stores 8-bit floats leaves a copy of what its tensors
have then (`StoredFormats`); one that reads 8-bit floats compares its tensors with the copies: bytes
at the same address that are still the same, and stretches of bytes that a copy of a tensor has.
`format_uses` says which formats a kernel reads and stores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.names import readable
from wavecast.dtypes import Dtype
from wavecast.emulate.check.format_uses import FormatUse
from wavecast.emulate.check.report import Kind, Report
from wavecast.emulate.check.tensors import LaunchTensor, bytes_at
from wavecast.isa.program import Program

_BLOCK: Final = 16
"""Bytes that are compared at once."""
_VALUES: Final = 4
"""Bytes of a block, fewer in tensors that are smaller, that are not 0: that is 0 in every format.
"""
_DIFFERENT: Final = 8
"""Different bytes of a block that is looked for at other addresses: others are there by chance."""
_PROBES: Final = 16
_KEPT: Final = 1 << 25
"""Bytes of all copies; the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """What a launch has left at an address: a copy, and the use of the kernel that stored it."""

    first: int
    content: bytes = field(repr=False)
    use: FormatUse
    kernel: str

    @property
    def end(self) -> int:
        return self.first + len(self.content)


class StoredFormats:
    """What launches have stored, the newest first."""

    def __init__(self) -> None:
        self._stored: deque[StoredBytes] = deque()
        self._total = 0

    def reports(
        self,
        program: Program,
        launch: Launch,
        uses: Sequence[FormatUse],
        tensors: Sequence[LaunchTensor],
    ) -> list[Report]:
        """The reads of a launch that is about to begin, of bytes stored in another format."""
        found = []
        strides = {argument.name: argument.strides for argument in launch.arguments}
        for use, tensor in _matched(uses, tensors, stores=False) if self._stored else ():
            steps = {1, *(abs(step) for step in strides.get(tensor.name, ()) if step)}
            stored = self._origin(tensor, sorted(steps))
            if stored is not None and stored.use.dtype != use.dtype:
                found.append(_report(program, launch.code, tensor, use, stored))
        return found

    def note(
        self, code: CodeObject, uses: Sequence[FormatUse], tensors: Sequence[LaunchTensor]
    ) -> None:
        """Remember what a launch that has ended stored."""
        for use, tensor in _matched(uses, tensors, stores=True):
            content = bytes_at(tensor.first, tensor.end)
            if content.any():
                copy = content.tobytes()
                self._stored.appendleft(StoredBytes(tensor.first, copy, use, code.kernel))
                self._total += len(copy)
        while self._total > _KEPT:
            self._total -= len(self._stored.pop().content)

    def _origin(self, tensor: LaunchTensor, steps: Sequence[int]) -> StoredBytes | None:
        """What a tensor comes from; None if that is not known. `steps` are its strides: what is
        contiguous in a tensor is a column of its transpose."""
        content = bytes_at(tensor.first, tensor.end)
        found = self._at_address(content, tensor.first)
        for step in steps:
            found = found or self._elsewhere(content, step)
        return found

    def _at_address(self, content: np.ndarray, first: int) -> StoredBytes | None:
        """The newest copy at an address some blocks of which are still there."""
        for stored in self._stored:
            start, end = max(first, stored.first), min(first + content.size, stored.end)
            if start >= end:
                continue
            now = content[start - first : end - first]
            content_then = np.frombuffer(stored.content, np.uint8)
            before = content_then[start - stored.first : end - stored.first]
            if _same_blocks(now, before):
                return stored
        return None

    def _elsewhere(self, content: np.ndarray, step: int) -> StoredBytes | None:
        """The copy that has the blocks of a tensor, if all that have them are of one format."""
        origins = []
        for probe in _probes(content, step):
            having = [stored for stored in self._stored if probe in stored.content]
            if not having:
                return None
            origins += having
        same = len({stored.use.dtype for stored in origins}) == 1
        return origins[0] if same else None


def _same_blocks(now: np.ndarray, before: np.ndarray) -> bool:
    """Whether a block of both is the same and has values."""
    size = min(_BLOCK, now.size)
    count = now.size // size * size
    same = (now[:count] == before[:count]).reshape(-1, size).all(axis=1)
    values = np.count_nonzero(now[:count].reshape(-1, size), axis=1)
    return bool((same & (values >= min(_VALUES, size))).any())


def _probes(content: np.ndarray, step: int) -> Iterator[bytes]:
    """Blocks of bytes `step` apart, spread over a tensor, that are hardly anywhere by chance."""
    last = content.size - (_BLOCK - 1) * step
    starts = range(0, last, max(1, _BLOCK if step == 1 else 1))
    for number in dict.fromkeys(np.linspace(0, len(starts) - 1, _PROBES).astype(int).tolist()):
        if starts:
            block = content[starts[number] :: step][:_BLOCK]
            if np.unique(block).size >= _DIFFERENT:
                yield block.tobytes()


def _matched(
    uses: Sequence[FormatUse], tensors: Sequence[LaunchTensor], *, stores: bool
) -> Iterator[tuple[FormatUse, LaunchTensor]]:
    """The uses of one direction with the tensor that their argument points to."""
    by_name = {tensor.name: tensor for tensor in tensors}
    for use in uses:
        tensor = by_name.get(use.argument)
        if use.stores == stores and tensor is not None and tensor.end > tensor.first:
            yield use, tensor


def _report(
    program: Program, code: CodeObject, tensor: LaunchTensor, use: FormatUse, stored: StoredBytes
) -> Report:
    location = stored.use.location
    where = f" at {location.outermost}" if location is not None else ""
    effect = _difference(stored.use.dtype, use.dtype)
    here = [
        i for i in program.instructions if i.location is not None and i.location == use.location
    ]
    accesses = [i for i in here if i.memory is not None]
    at = next(iter((*accesses, *here)), program.instructions[0])
    return Report(
        kind=Kind.FP8_FORMAT,
        kernel=program.name,
        target=program.target,
        message=f"reads {tensor.name} as {use.dtype.name}, and {readable(stored.kernel)} stored "
        f"its bytes as {stored.use.dtype.name}{where}: {effect}; use one format in "
        "both kernels",
        instruction=at.index,
        text=at.decoded.text,
        location=use.location,
        other_location=location,
        other_kernel=stored.kernel if stored.kernel != code.kernel else "",
    )


def _difference(one: Dtype, other: Dtype) -> str:
    same = one.generic == other.generic
    return "values differ by a factor of two" if same else "they are other values"


__all__ = ["StoredFormats"]
