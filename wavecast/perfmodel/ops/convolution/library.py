"""What a convolution library has on a target: `library.toml` as typed fields."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from wavecast.arch import pattern_table

_FILE = Path(__file__).with_name("library.toml")


@dataclass(frozen=True, slots=True)
class LibraryKernels:
    """`library.toml` has the meaning of each field and its source."""

    grouped_nhwc: bool
    nhwc_bf16: bool
    gather_bf16_data: bool
    gather_bf16_rate: float
    static_solvers: bool
    winograd_fp16_gradients: bool
    note: str


@cache
def library_kernels(target: str) -> LibraryKernels:
    """The kernels for a compiler target (`gfx942`)."""
    rows = pattern_table.read(_FILE, [field.name for field in fields(LibraryKernels)])
    return LibraryKernels(**{name: pattern_table.value(row, target) for name, row in rows.items()})


__all__ = ["LibraryKernels", "library_kernels"]
