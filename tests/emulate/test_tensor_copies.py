"""Copies of tensor tiles between memory and LDS (gfx1250), against a loop over elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from tests.emulate.memory_support import run
from wavecast.emulate.errors import ExecutionError

LDS_BYTES = 4096
START = 64
"""Where the tile lies in LDS."""


@dataclass
class Tile:
    """A descriptor. `strides` are those of the dimensions from the second on, in elements."""

    size: int
    tile: tuple[int, ...]
    tensor: tuple[int, ...]
    strides: tuple[int, ...] = ()
    padding: tuple[int, int] | None = None
    """Dwords between paddings (a power of two) and of each."""
    rows: tuple[int, ...] = ()
    """The rows that are gathered; `tile` has one dimension then."""
    wide_rows: bool = False
    iterations: tuple[int, int, int] | None = None
    """How many, and by how many elements each moves in LDS and in memory."""
    flags: dict[tuple[int, int], int] = field(default_factory=dict)

    def words(self, address: int) -> np.ndarray:
        """The four groups of the descriptor, 20 dwords."""
        groups = [0, 0, 0, 0]

        def put(group: int, first: int, value: int) -> None:
            groups[group] |= value << first

        put(0, 0, 1)
        put(0, 32, START)
        put(0, 64, address)
        put(0, 126, 2)
        put(1, 16, self.size.bit_length() - 1)
        if self.padding is not None:
            put(1, 20, 1)
            put(1, 22, self.padding[0].bit_length() - 2)
            put(1, 25, self.padding[1] - 1)
        places = [((1, 48), (1, 112)), ((1, 80), (1, 128)), ((2, 0), (1, 144)),
                  ((2, 32), (2, 112)), ((3, 48), (3, 80))]  # fmt: skip
        for (tensor, tile), extent in zip(places, self.tensor, strict=False):
            put(*tensor, extent)
            del tile
        for (_, tile), extent in zip(places, self.tile, strict=False):
            put(*tile, extent)
        for place, stride in zip([(1, 160), (1, 208), (2, 64), (3, 0)], self.strides, strict=False):
            put(*place, stride)
        if self.rows:
            put(0, 31, 1)
            put(1, 128, len(self.rows))
            put(0, 30, int(self.wide_rows))
            width, each = (32, 4) if self.wide_rows else (16, 8)
            for number, row in enumerate(self.rows):
                put(2 + number // each, width * (number % each), row)
        if self.iterations is not None:
            count, near, far = self.iterations
            put(1, 19, 1)
            put(2, 112, count - 1)
            put(2, 32, near)
            put(2, 64, far)
        for place, value in self.flags.items():
            put(*place, value)
        data = b"".join(
            g.to_bytes(4 * n, "little") for g, n in zip(groups, (4, 8, 4, 4), strict=True)
        )
        return np.frombuffer(data, np.uint32).copy()

    def elements(self) -> list[tuple[int, int, bool]]:
        """Element in memory, byte in LDS without padding, and whether it is in the tensor."""
        found = []
        if self.rows:
            for number, row in enumerate(self.rows):
                for column in range(self.tile[0]):
                    inside = column < self.tensor[0] and row < self.tensor[1]
                    near = (number * self.tile[0] + column) * self.size
                    found.append((column + row * self.strides[0], near, inside))
            return found
        strides = (1, *self.strides)
        count, near_step, far_step = self.iterations or (1, 0, 0)
        for iteration in range(count):
            start, origin = iteration * far_step, [0] * len(self.tile)
            rest = start
            for dimension in reversed(range(1, len(self.tile))):
                if self.tensor[dimension] > 1:
                    origin[dimension], rest = divmod(rest, strides[dimension])
            origin[0] = rest
            for number, place in enumerate(product(*map(range, reversed(self.tile)))):
                place = place[::-1]
                far = start + sum(c * s for c, s in zip(place, strides, strict=False))
                inside = all(o + c < e for o, c, e in zip(origin, place, self.tensor, strict=False))
                near = (iteration * near_step + number) * self.size
                found.append((far, near, inside))
        return found

    def padded(self, near: int) -> int:
        if self.padding is None:
            return near
        return near + near // (4 * self.padding[0]) * 4 * self.padding[1]


CASES = {
    "one dimension": Tile(4, (40,), (33,)),
    "bytes": Tile(1, (37, 3), (37, 3), (50,)),
    "pairs, odd": Tile(2, (33, 5), (31, 4), (64,)),
    "pairs, whole dwords": Tile(2, (64, 8), (64, 7), (96,)),
    "quads": Tile(8, (10, 4), (9, 9), (12,)),
    "three dimensions": Tile(4, (8, 3, 2), (7, 3, 5), (8, 40)),
    "five dimensions": Tile(2, (4, 3, 2, 2, 2), (4, 2, 2, 1, 2), (8, 24, 48, 100)),
    "strides out of order": Tile(4, (4, 3, 2), (4, 3, 2), (40, 8)),
    "padded": Tile(2, (64, 6), (64, 6), (64,), padding=(32, 4)),
    "padded within rows": Tile(4, (24, 4), (20, 4), (24,), padding=(2, 1)),
    "gathered": Tile(4, (20,), (18, 9), (24,), rows=(8, 0, 3, 9, 3)),
    "gathered, wide": Tile(2, (16,), (16, 70000), (16,), rows=(5, 69999, 70000, 1), wide_rows=True),
    "iterated": Tile(4, (8, 2), (8, 6), (8,), iterations=(3, 16, 16)),
    "iterated, beyond": Tile(4, (8, 2), (8, 5), (10,), iterations=(4, 20, 20)),
    "iterated along a row": Tile(2, (4, 3), (20, 3), (20,), iterations=(6, 12, 4)),
    "nothing inside": Tile(4, (8, 2), (0, 2), (8,)),
}


def _copy(case: Tile, name: str, memory: np.ndarray, lds: np.ndarray) -> np.ndarray:
    """Run one copy; the contents of LDS afterwards."""
    out, words = np.zeros(LDS_BYTES // 4, np.uint32), case.words(memory.ctypes.data)
    rows = "\n".join(
        f"\tds_load_b32 v3, v1 offset:{128 * row}\n\ts_wait_dscnt 0x0\n"
        f"\tglobal_store_b32 v1, v3, s[14:15] offset:{128 * row}"
        for row in range(LDS_BYTES // 128)
    )
    fill = "\n".join(
        f"\tglobal_load_b32 v3, v1, s[10:11] offset:{128 * row}\n\ts_wait_loadcnt 0x0\n"
        f"\tds_store_b32 v1, v3 offset:{128 * row}"
        for row in range(LDS_BYTES // 128)
    )
    body = f"""
	s_load_b512 s[20:35], s[8:9], 0x0
	s_load_b128 s[36:39], s[8:9], 0x40
{fill}
	s_wait_dscnt 0x0
	s_wait_kmcnt 0x0
	s_mov_b32 exec_lo, 0x5
	{name} s[20:23], s[24:31], s[32:35], s[36:39]
	s_mov_b32 exec_lo, -1
	s_wait_tensorcnt 0x0
{rows}"""
    run("gfx1250", body, words, lds, memory, out, threads=32, lds=LDS_BYTES)
    return out


@pytest.mark.parametrize("name", CASES)
def test_load(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(5)
    elements = case.elements()
    inside = [far for far, _, is_inside in elements if is_inside]
    memory = rng.integers(0, 256, (max(inside, default=0) + 1) * case.size, dtype=np.uint8)
    lds = rng.integers(0, 1 << 32, LDS_BYTES // 4, dtype=np.uint32)
    expected = lds.view(np.uint8).copy()
    for far, near, is_inside in elements:
        at = START + case.padded(near)
        value = memory[far * case.size :][: case.size] if is_inside else 0
        expected[at : at + case.size] = value
    out = _copy(case, "tensor_load_to_lds", memory, lds)
    np.testing.assert_array_equal(out.view(np.uint8), expected)


@pytest.mark.parametrize("name", CASES)
def test_store(name: str) -> None:
    """Padding is ignored."""
    case, rng = CASES[name], np.random.default_rng(6)
    elements = case.elements()
    inside = [far for far, _, is_inside in elements if is_inside]
    memory = rng.integers(0, 256, (max(inside, default=0) + 1) * case.size, dtype=np.uint8)
    lds = rng.integers(0, 1 << 32, LDS_BYTES // 4, dtype=np.uint32)
    expected, bytes_ = memory.copy(), lds.view(np.uint8)
    for far, near, is_inside in elements:
        if is_inside:
            value = bytes_[START + near :][: case.size]
            expected[far * case.size : (far + 1) * case.size] = value
    out = _copy(case, "tensor_store_from_lds", memory, lds)
    np.testing.assert_array_equal(memory, expected)
    np.testing.assert_array_equal(out, lds)


def test_a_count_of_zero_copies_nothing() -> None:
    memory, lds = np.zeros(4, np.uint8), np.arange(LDS_BYTES // 4, dtype=np.uint32)
    case = Tile(1, (4,), (4,))
    words = case.words(memory.ctypes.data)
    words[0] &= ~np.uint32(1)
    case.words = lambda address: words  # type: ignore[method-assign]
    np.testing.assert_array_equal(_copy(case, "tensor_load_to_lds", memory, lds), lds)


def test_a_tile_without_a_first_dimension_copies_nothing() -> None:
    memory, lds = np.zeros(4, np.uint8), np.arange(LDS_BYTES // 4, dtype=np.uint32)
    case = Tile(4, (0, 8), (0, 0), (4,))
    np.testing.assert_array_equal(_copy(case, "tensor_load_to_lds", memory, lds), lds)


def test_a_copy_for_a_cluster_is_each_workgroups_own() -> None:
    memory, lds = np.arange(4, dtype=np.uint32), np.zeros(LDS_BYTES // 4, np.uint32)
    out = _copy(Tile(4, (4,), (4,), flags={(1, 0): 3}), "tensor_load_to_lds", memory, lds)
    np.testing.assert_array_equal(out[START // 4 :][:4], memory)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Tile(4, (4, 0, 2), (4, 1, 2), (4, 4)), "a tile without elements"),
        (
            Tile(4, (4,), (4, 9), (4,), rows=(1,) * 8, wide_rows=True, flags={(1, 128): 1}),
            "more than it has indices",
        ),
        (Tile(4, (4, 2), (8, 4), (4,), iterations=(2, 8, 8)), "not nested by stride"),
    ],
)
def test_refusals_say_why(case: Tile, reason: str) -> None:
    memory, lds = np.zeros(64, np.uint32), np.zeros(LDS_BYTES // 4, np.uint32)
    with pytest.raises(ExecutionError, match=reason):
        _copy(case, "tensor_load_to_lds", memory, lds)


@pytest.mark.parametrize(
    ("barrier", "expected"),
    [
        (0x0002_0000_0001, 0x0002_0000_0000),
        (0x0002_0000_0000, 0x0002_FFFF_0002),
        (0xABCD_0003_0001_0000, 0xABCD_0003_0000_0003),
    ],
)
def test_a_copy_arrives_at_its_barrier(barrier: int, expected: int) -> None:
    memory, lds = np.arange(4, dtype=np.uint32), np.zeros(LDS_BYTES // 4, np.uint32)
    lds.view(np.uint64)[64] = barrier
    case = Tile(4, (4,), (4,), flags={(1, 18): 1, (1, 32): 64})
    out = _copy(case, "tensor_load_to_lds", memory, lds)
    assert int(out.view(np.uint64)[64]) == expected
    np.testing.assert_array_equal(out[START // 4 :][:4], memory)


def test_memory_outside_every_tensor_is_an_error() -> None:
    memory, lds = np.zeros(16, np.uint32), np.zeros(LDS_BYTES // 4, np.uint32)
    with pytest.raises(ExecutionError, match=r"tensor_load_to_lds.* lane 4 touches"):
        _copy(Tile(4, (32,), (32,)), "tensor_load_to_lds", memory, lds)
