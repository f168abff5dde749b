"""Rows by name on arrays of bit patterns, and operands worth trying."""

from __future__ import annotations

import struct

import numpy as np

from wavecast.isa import semantics
from wavecast.isa.semantics import FloatMode, LaneOps

SPECIAL_F32 = np.array(
    [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF,
     0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00123, 0x7F800001],
    dtype=np.uint32,
)  # fmt: skip


def f32(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f16(value: float) -> int:
    return struct.unpack("<H", struct.pack("<e", value))[0]


def f64(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def samples_f32(seed: int, count: int) -> np.ndarray:
    """Random patterns, random numbers of ordinary size, and every pair of special values."""
    generator = np.random.default_rng(seed)
    patterns = generator.integers(0, 1 << 32, count, dtype=np.uint32)
    sizes = 10.0 ** generator.integers(-8, 8, count)
    numbers = (generator.standard_normal(count) * sizes).astype(np.float32).view(np.uint32)
    return np.concatenate([patterns, numbers, SPECIAL_F32])


def pairs_f32(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = samples_f32(seed, count), samples_f32(seed + 1, count)
    specials = np.meshgrid(SPECIAL_F32, SPECIAL_F32)
    return (
        np.concatenate([a, specials[0].reshape(-1)]),
        np.concatenate([b, specials[1].reshape(-1)]),
    )


def run(name: str, *inputs: np.ndarray, machine: FloatMode | None = None) -> tuple[np.ndarray, ...]:
    """A row on arrays of one length; the row's own modifiers are inputs too."""
    operations = LaneOps(max(value.size for value in inputs), machine=machine)
    return semantics.registry()[name].evaluate(operations, *inputs)


def one(name: str, *inputs: int, bits: int = 32, machine: FloatMode | None = None) -> int:
    """A row with one result on single values of one width."""
    kind = {32: np.uint32, 64: np.uint64}[bits]
    arrays = [np.array([value], dtype=kind) for value in inputs]
    return int(run(name, *arrays, machine=machine)[0][0])


def same(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two float arrays agree bit for bit, any NaN agreeing with any."""
    width = np.dtype(f"u{found.itemsize}")
    equal = found.view(width) == expected.view(width)
    return equal | (np.isnan(found) & np.isnan(expected))
