"""The boxes that TMA copies between tensors and shared memory: their bytes and their sectors.

A copy names a descriptor and coordinates. Descriptors that the host made are arguments of the
launch: tensor, strides and box are known. Of descriptors that the kernel makes only the bytes are:
those that the phase of the copy's memory barrier waits for, in equal parts, and of stores the block
that Triton's IR names. Their boxes are told apart by their coordinates.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from wavecast.analyze.sass import tensor_copies as t
from wavecast.analyze.sass.launch_constants import PARAMETERS
from wavecast.analyze.sass.walk import WarpAccess
from wavecast.compile.codeobject import Argument, Launch
from wavecast.dtypes import element_bytes
from wavecast.errors import Unpredictable
from wavecast.isa.program import Program

Array = np.ndarray[Any, Any]

SWIZZLE: Final = 128
"""Bytes that a row of a box has at most: the span of a swizzle."""
MOST: Final = 256
"""Elements that a box has at most along an axis (CUDA driver API, cuTensorMapEncodeTiled)."""
SECTOR: Final = 32
_MADE: Final = 1 << 55
"""The first sector of boxes whose addresses are not known."""
_ROOM: Final = 16
"""Bits of the number of a sector within such a box."""
_STORED: Final = re.compile(
    r"async_tma_copy_local_to_global .*?tensordesc<(?:tensor<)?([\dx]+)x(\w+)"
)


@dataclass(frozen=True, slots=True)
class TensorBox:
    """A descriptor of the host: the first byte of its tensor, and innermost first the extents of
    tensor and box in elements and the bytes between elements."""

    first: int
    extents: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]

    @staticmethod
    def of(argument: Argument) -> TensorBox:
        """The descriptor of an argument."""
        pairs = zip(argument.shape, argument.strides, strict=True)
        width = argument.bytes // (1 + sum((size - 1) * step for size, step in pairs))
        steps = tuple(step * width for step in reversed(argument.strides))
        assert isinstance(argument.value, tuple)
        box = [min(int(size), MOST) for size in reversed(argument.value)]
        box[0] = min(box[0], SWIZZLE // width)
        return TensorBox(argument.storage, tuple(reversed(argument.shape)), tuple(box), steps)

    @property
    def bytes(self) -> int:
        """Bytes of a box."""
        return math.prod(self.box) * self.steps[0]

    def sectors(self, corners: Array) -> tuple[Array, Array]:
        """The sectors (u64) of boxes at `corners` (i64[w, axes]), and how many each has (i64[w]).
        What is outside of the tensor is not read."""
        rows = np.stack(np.meshgrid(*map(np.arange, self.box[1:]), indexing="ij"), axis=-1)
        rows = rows.reshape(-1, len(self.box) - 1)
        indices = corners[:, None, 1:] + rows[None]
        valid = ((indices >= 0) & (indices < np.array(self.extents[1:]))).all(axis=2)
        first = self.first + corners[:, :1] * self.steps[0] + indices @ np.array(self.steps[1:])
        count = -(-self.box[0] * self.steps[0] // SECTOR)
        sector_numbers = (first // SECTOR)[:, :, None] + np.arange(count)
        return sector_numbers[valid].reshape(-1).astype(np.uint64), valid.sum(axis=1) * count


@dataclass(slots=True)
class TensorBoxes:
    """The boxes of a launch whose workgroups have `waves` warps."""

    program: Program
    launch: Launch
    waves: int
    _known: Mapping[int, TensorBox] = field(init=False)
    _made: dict[tuple[int, ...], int] = field(default_factory=dict)
    _bytes: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        descriptors = {a.name: a for a in self.launch.arguments if a.kind == "descriptor"}
        self._known = {
            PARAMETERS + parameter.offset: TensorBox.of(descriptors[parameter.name])
            for parameter in self.launch.code.named_parameters
            if parameter.name in descriptors and parameter.offset is not None
        }

    def measure(self, accesses: Mapping[int, WarpAccess], arrivals: list[WarpAccess]) -> None:
        """Find the bytes of every copy, by its number. `arrivals` are those with bytes to wait for.

        Raises Unpredictable for other bulk copies, and where nothing tells the bytes of one.
        """
        arrival_bytes: dict[tuple[int, int], float] = defaultdict(float)
        for access in arrivals:
            assert access.operands is not None
            assert access.addresses is not None
            at = access.addresses[np.arange(len(access.warps)), access.lanes.argmax(axis=1)]
            for warp, barrier, count in zip(
                access.warps.tolist(), at.tolist(), access.operands[:, 0].tolist(), strict=True
            ):
                arrival_bytes[warp // self.waves, barrier] += count if count >= 0 else math.nan
        box_bytes: dict[tuple[int, int], float] = defaultdict(float)
        open_copies: dict[tuple[int, int], int] = defaultdict(int)
        for number, access in accesses.items():
            box = self._box(access)
            size = math.nan if box is None else float(box.bytes)
            if box is None and self._name(access) == t.STORE:
                size = self._store_bytes(access)
            self._bytes[number] = np.full(len(access.warps), size)
            for key in self._phases(access):
                box_bytes[key] += 0.0 if box is None else size
                open_copies[key] += box is None
        for number, access in accesses.items():
            for position, key in enumerate(self._phases(access)):
                total = arrival_bytes.get(key, math.nan)
                if open_copies[key]:
                    if math.isnan(self._bytes[number][position]):
                        self._bytes[number][position] = (total - box_bytes[key]) / open_copies[key]
                elif total > 0:  # rows of boxes may be narrower than the widest swizzle
                    self._bytes[number][position] *= total / box_bytes[key]
            if not (self._bytes[number] > 0).all():
                name = self.program.instructions[access.instruction].mnemonic
                raise Unpredictable(f"the bytes that {name} copies are in a descriptor")

    def bytes(self, number: int) -> Array:
        """Bytes of each execution of a copy (f64[w])."""
        return self._bytes[number]

    def sectors(self, number: int, access: WarpAccess) -> tuple[Array, Array, Array]:
        """The sectors of the boxes of a copy (u64), the first of each (i64[w + 1]), and lines of
        128 B per box (i64[w])."""
        assert access.operands is not None
        box, lines = self._box(access), np.ceil(self._bytes[number] / 128).astype(np.int64)
        corners = access.operands[:, t.COORDINATES :]
        if box is not None and (corners != t.UNKNOWN).any():
            sector_numbers, counts = box.sectors(corners)
        else:
            counts = np.ceil(self._bytes[number] / SECTOR).astype(np.int64)
            numbers = [self._number(access, row) for row in range(len(counts))]
            parts = [
                np.uint64(_MADE + (box_number << _ROOM)) + np.arange(count, dtype=np.uint64)
                for box_number, count in zip(numbers, counts.tolist(), strict=True)
            ]
            sector_numbers = np.concatenate(parts)
        return sector_numbers, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), lines

    def identities(self, access: WarpAccess) -> Array:
        """A number (u64[w]) for each box of a copy: its first byte where addresses are known, else
        one for its coordinates."""
        assert access.operands is not None
        box, corners = self._box(access), access.operands[:, t.COORDINATES :]
        if box is not None:
            return (box.first + corners @ np.array(box.steps)).astype(np.uint64)
        numbers = [self._number(access, row) for row in range(len(corners))]
        return np.array([_MADE + (box_number << _ROOM) for box_number in numbers], np.uint64)

    def _number(self, access: WarpAccess, row: int) -> int:
        """The number of a box whose address is not known, the same for the same coordinates."""
        assert access.operands is not None
        corner = access.operands[row, t.COORDINATES :].tolist()
        key = (access.instruction, *corner)
        if t.UNKNOWN in corner:
            key = (access.instruction, access.step, int(access.warps[row]), t.UNKNOWN)
        return self._made.setdefault(key, len(self._made))

    def _phases(self, access: WarpAccess) -> list[tuple[int, int]]:
        """Workgroup and memory barrier of each load."""
        assert access.operands is not None
        if self._name(access) == t.STORE:
            return []
        groups = (access.warps // self.waves).tolist()
        return list(zip(groups, access.operands[:, t.BARRIER].tolist(), strict=True))

    def _box(self, access: WarpAccess) -> TensorBox | None:
        assert access.operands is not None
        addresses = set(access.operands[:, t.DESCRIPTOR].tolist())
        return self._known.get(addresses.pop()) if len(addresses) == 1 else None

    def _name(self, access: WarpAccess) -> str:
        """The opcode of a copy. Raises Unpredictable for other bulk copies."""
        mnemonic = self.program.instructions[access.instruction].mnemonic
        name = mnemonic.partition(".")[0]
        if name not in (t.LOAD, t.STORE) or access.operands is None:
            raise Unpredictable(f"what {mnemonic} copies is not known")
        return name

    def _store_bytes(self, access: WarpAccess) -> float:
        """Bytes of a store whose descriptor the kernel makes, from the blocks in Triton's IR where
        they are all of one size."""
        text = self.launch.code.stages.get("ttgir", "")
        text = text if isinstance(text, str) else text.decode()
        blocks = {
            math.prod(map(int, shape.split("x"))) * element_bytes(dtype)
            for shape, dtype in _STORED.findall(text)
        }
        groups = access.warps // self.waves
        copies = len(groups) / len(np.unique(groups))
        return blocks.pop() / copies if len(blocks) == 1 else math.nan


__all__ = ["TensorBox", "TensorBoxes"]
