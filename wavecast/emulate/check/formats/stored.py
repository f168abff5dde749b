"""8-bit floats that one launch stores and another reads in another format, as plain bytes.

Tensors of bytes have no format. A launch that stores 8-bit floats leaves a copy of what its tensors
have then and which bytes it changed (`StoredFormats`); one that reads 8-bit floats compares its
tensors with the copies: bytes at the same address that are still the same, stretches of bytes that
a copy of a tensor has, also backwards, and all bytes of a copy in another order. A tensor that also
has bytes in the format which is read is left alone: the launch may read only these.
`format_uses` says which formats a kernel reads and stores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.names import readable
from wavecast.dtypes import Dtype
from wavecast.emulate.check.formats.uses import FormatUse
from wavecast.emulate.program_lines import program_location
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import LaunchTensor, bytes_at
from wavecast.isa.program import Program

_BLOCK: Final = 16
"""Bytes that are compared at once."""
_VALUES: Final = 4
"""Bytes of a block, fewer in tensors that are smaller, that are not 0: that is 0 in every format.
"""
_DIFFERENT: Final = 8
"""Different bytes of a block that is looked for at other addresses: others are there by chance."""
_FEW: Final = 64
"""The share of bytes or blocks below which they are the same by chance."""
_PROBES: Final = 16
_KEPT: Final = 1 << 25
"""Bytes of all copies; the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """What a launch has left at an address: a copy, which of its bytes (bool) were others before,
    and the use of the kernel that stored it."""

    first: int
    content: bytes = field(repr=False)
    changed: np.ndarray = field(repr=False)
    use: FormatUse
    kernel: str

    @property
    def end(self) -> int:
        return self.first + len(self.content)

    def is_permutation(self, counts: np.ndarray) -> bool:
        """Whether `counts` (of every byte) are those of the copy, and hardly so by chance."""
        if np.count_nonzero(counts) < _DIFFERENT or counts.sum() != len(self.content):
            return False
        content = np.frombuffer(self.content, np.uint8)
        others = np.count_nonzero(content[~self.changed])
        return bool(others * _FEW < content.size) and np.array_equal(counts, _counts(content))

    def has(self, block: bytes) -> bool:
        """Whether the launch has stored a block of bytes somewhere, forwards or backwards."""
        for order in (block, block[::-1]):
            at = self.content.find(order)
            while at >= 0:
                if self.changed[at : at + len(order)].any():
                    return True
                at = self.content.find(order, at + 1)
        return False


class StoredFormats:
    """What launches have stored, the newest first."""

    def __init__(self) -> None:
        self._stored: deque[StoredBytes] = deque()
        self._total = 0
        self._before: dict[tuple[int, int], np.ndarray] = {}
        """What the tensors had in which the launch that runs stores."""

    def reports(
        self,
        program: Program,
        launch: Launch,
        uses: Sequence[FormatUse],
        tensors: Sequence[LaunchTensor],
    ) -> list[Report]:
        """The reads of a launch that is about to begin, of bytes stored in another format."""
        self._before = {
            (tensor.first, tensor.end): bytes_at(tensor.first, tensor.end).copy()
            for _, tensor in _pair_with_tensors(uses, tensors, stores=True)
        }
        reports = []
        strides = {argument.name: argument.strides for argument in launch.arguments}
        for use, tensor in _pair_with_tensors(uses, tensors, stores=False) if self._stored else ():
            steps = {1, *(abs(step) for step in strides.get(tensor.name, ()) if step)}
            origins = self._origins(tensor, sorted(steps))
            stored = next(iter(origins), None)
            if stored is not None and all(o.use.dtype != use.dtype for o in origins):
                reports.append(_report(program, launch.code, tensor, use, stored))
        return reports

    def note(
        self, launch: Launch, uses: Sequence[FormatUse], tensors: Sequence[LaunchTensor]
    ) -> None:
        """Remember what a launch that has ended stored."""
        for use, tensor in _pair_with_tensors(uses, tensors, stores=True):
            content = bytes_at(tensor.first, tensor.end)
            before = self._before.get((tensor.first, tensor.end))
            changed = np.ones(content.size, np.bool_) if before is None else content != before
            if content[changed].any():
                copy = content.tobytes()
                use = replace(use, location=program_location(use.location, launch))
                kernel = launch.code.kernel
                stored = StoredBytes(tensor.first, copy, changed, use, kernel)
                self._stored.appendleft(stored)
                self._total += len(copy)
        self._before = {}
        while self._total > _KEPT:
            self._total -= len(self._stored.pop().content)

    def _origins(self, tensor: LaunchTensor, steps: Sequence[int]) -> list[StoredBytes]:
        """What a tensor comes from; none if that is not known. `steps` are its strides: what is
        contiguous in a tensor is a column of its transpose."""
        content = bytes_at(tensor.first, tensor.end)
        origins = self._at_address(content, tensor.first)
        for step in steps:
            origins = origins or self._elsewhere(content, step)
        return origins or self._permutations(content)

    def _at_address(self, content: np.ndarray, first: int) -> list[StoredBytes]:
        """The copies at an address some blocks of which are still there, the newest first. A block
        is that of the newest copy that has it."""
        blocks: list[tuple[int, StoredBytes]] = []
        unknown = np.ones(content.size, np.bool_)
        for stored in self._stored:
            start, end = max(first, stored.first), min(first + content.size, stored.end)
            if start >= end:
                continue
            here = slice(start - first, end - first)
            there = slice(start - stored.first, end - stored.first)
            before = np.frombuffer(stored.content, np.uint8)[there]
            stores = stored.changed[there] & unknown[here]
            blocks.append((_same_blocks(content[here], before, stores), stored))
            unknown[here] &= ~stored.changed[there]
        most = max((number for number, _ in blocks), default=0)
        return [stored for number, stored in blocks if number and number * _FEW >= most]

    def _elsewhere(self, content: np.ndarray, step: int) -> list[StoredBytes]:
        """The copies that have the blocks of a tensor, if all that have them are of one format."""
        origins = []
        for probe in _probes(content, step):
            having = [stored for stored in self._stored if stored.has(probe)]
            if not having:
                return []
            origins += having
        return _of_one_format(origins)

    def _permutations(self, content: np.ndarray) -> list[StoredBytes]:
        """The copies whose bytes a tensor has in another order, if all are of one format."""
        counts = _counts(content)
        return _of_one_format([stored for stored in self._stored if stored.is_permutation(counts)])


def _of_one_format(origins: list[StoredBytes]) -> list[StoredBytes]:
    return origins if len({stored.use.dtype for stored in origins}) == 1 else []


def _counts(content: np.ndarray) -> np.ndarray:
    return np.bincount(content, minlength=256)


def _same_blocks(now: np.ndarray, before: np.ndarray, stores: np.ndarray) -> int:
    """The number of blocks all of whose bytes that a launch has stored are the same in both, and
    have values."""
    size = min(_BLOCK, now.size)
    count = now.size // size * size
    blocks = stores[:count].reshape(-1, size)
    same = ((now == before) | ~stores)[:count].reshape(-1, size).all(axis=1)
    values = np.count_nonzero(now[:count].reshape(-1, size) * blocks, axis=1)
    return int(np.count_nonzero(same & (values >= min(_VALUES, size))))


def _probes(content: np.ndarray, step: int) -> Iterator[bytes]:
    """Blocks of bytes `step` apart, spread over a tensor, that are hardly anywhere by chance."""
    last = content.size - (_BLOCK - 1) * step
    starts = range(0, last, max(1, _BLOCK if step == 1 else 1))
    for number in dict.fromkeys(np.linspace(0, len(starts) - 1, _PROBES).astype(int).tolist()):
        if starts:
            block = content[starts[number] :: step][:_BLOCK]
            if np.unique(block).size >= _DIFFERENT:
                yield block.tobytes()


def _pair_with_tensors(
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


def _difference(first: Dtype, other: Dtype) -> str:
    same = first.generic == other.generic
    return "values differ by a factor of two" if same else "they are other values"


__all__ = ["StoredFormats"]
