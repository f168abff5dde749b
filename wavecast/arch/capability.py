"""What the instruction set of a compiler target can do: `capabilities.toml` as typed fields.

Code that depends on the target asks for a capability and never compares names of targets, so that a
new target is a pattern in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from wavecast.arch.quantity import STATUSES
from wavecast.arch.reader import citations

_FILE = Path(__file__).with_name("capabilities.toml")
_TEXTS = ("meaning", "status", "source", "default", "values")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of one target. `capabilities.toml` says what each field means and where its
    values are from."""

    matrix_unit: str
    matrix_fp32: bool
    matrix_tf32: bool
    matrix_fp8: tuple[str, ...]
    matrix_mx: bool
    matrix_half_k: bool
    matrix_operand_copies: int
    matrix_operands_from_lds: bool
    mfma_version: int
    lds_transposed_reads: bool
    accumulator_copies: bool
    tensor_copies: bool
    direct_to_lds: bool
    bf16_conversion: bool
    registers_per_lane: int
    fp8_conversion: tuple[str, ...]
    default_wave_size: int
    kernel_descriptor: int
    user_sgpr_count_bits: int
    wgp_mode: bool
    architected_scratch: bool
    unified_vgprs: bool
    vgpr_encoding_granule: tuple[int, int]
    kernarg_preload: bool
    named_barriers: bool
    workgroup_ids_in_ttmp: bool
    true16: bool
    fp8_fnuz: bool
    ieee754_2019_extremes: bool
    dot2_bf16_fused: bool
    mode_issue_bits: bool
    vgpr_msb: bool
    hwreg_numbers: tuple[str, ...]
    wait_counters: str
    load_to_lds_m0_bits: int
    lds_transpose_lanes: int
    lane_exchange_span: int
    buffer_swizzle_bits: int
    buffer_bounds_modes: bool
    buffer_stride_scale: bool
    wide_buffer_base: bool
    buffer_offset_in_record: bool
    matrix_layout: str
    matrix_reuse_hints: bool
    hazards: tuple[str, ...]


@cache
def capabilities(target: str) -> Capabilities:
    """The capabilities of a compiler target (`gfx942`, `sm_90`). A target that no pattern names has
    the defaults."""
    return Capabilities(**{name: _value(row, target) for name, row in table().items()})


@cache
def table() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `capabilities.toml` by capability. Raises ValueError for a row that is
    incomplete, cites an unknown source, or is not a field of `Capabilities`."""
    import tomllib

    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Capabilities)}
    if set(rows) != known:
        raise ValueError(f"{_FILE.name} and Capabilities differ in {sorted(set(rows) ^ known)}")
    for name, row in rows.items():
        if set(row) != set(_TEXTS):
            raise ValueError(f"{_FILE.name}, {name}: expected {', '.join(_TEXTS)}")
        cited = [row["source"]] if isinstance(row["source"], str) else row["source"]
        unknown = [key for key in cited if key not in citations()]
        if unknown or row["status"] not in STATUSES:
            raise ValueError(f"{_FILE.name}, {name}: unknown source or status {unknown}")
    return rows


def _value(row: Mapping[str, Any], target: str) -> Any:
    matching = [pattern for pattern in row["values"] if fnmatchcase(target, pattern)]
    best = max(matching, key=lambda pattern: len(pattern.replace("*", "")), default=None)
    value = row["default"] if best is None else row["values"][best]
    return tuple(value) if isinstance(value, list) else value


__all__ = ["Capabilities", "capabilities", "table"]
