"""What the instruction set of a compiler target can do: `capabilities.toml` as typed fields.

Code that depends on the target asks for a capability and never compares names of targets, so that a
new target is a pattern in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from wavecast.arch import pattern_table

_FILE = Path(__file__).with_name("capabilities.toml")


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
    mma_version: int
    lds_transposed_reads: bool
    accumulator_copies: bool
    packed_scalar_twice: bool
    tensor_copies: bool
    direct_to_lds: bool
    bf16_conversion: bool
    registers_per_lane: int
    fp8_conversion: tuple[str, ...]
    default_wave_size: int
    kernel_descriptor: int
    user_sgpr_count_bits: int
    allocates_sgprs: bool
    wgp_mode: bool
    workgroup_waits: bool
    architected_scratch: bool
    unified_vgprs: bool
    vgpr_encoding_granule: tuple[int, int]
    kernarg_preload: bool
    named_barriers: bool
    clusters: bool
    workgroup_ids_in_ttmp: bool
    packed_work_items: bool
    true16: bool
    fp8_fnuz: bool
    ieee754_2019_extremes: bool
    dot2_bf16_fused: bool
    mode_issue_bits: bool
    vgpr_msb: bool
    hwreg_numbers: tuple[str, ...]
    wait_counters: str
    cache_policy: str
    agent_acquire: str
    agent_write_back: str
    system_acquire: str
    system_write_back: str
    load_to_lds_m0_bits: int
    transpose_lanes: int
    transposed_bits: tuple[int, ...]
    triton: bool
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
    rows = table().items()
    return Capabilities(**{name: pattern_table.value(row, target) for name, row in rows})


@cache
def table() -> pattern_table.Rows:
    """The rows of `capabilities.toml` by capability. Raises ValueError for a row that is
    incomplete, cites an unknown source, or is not a field of `Capabilities`."""
    return pattern_table.read(_FILE, [field.name for field in fields(Capabilities)])


__all__ = ["Capabilities", "capabilities", "table"]
