"""The 64-byte kernel descriptor of a code object, as `.amdhsa_*` directives would state it.

Source: LLVM "User Guide for AMDGPU Backend", section "Kernel Descriptor" (layout, and the fields
of compute_pgm_rsrc1, 2, 3 and kernel_code_properties). Register counts in it are in granules, so
`next_free_vgpr` is rounded up; the metadata note has the exact count.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from wavecast.arch import capabilities
from wavecast.errors import InputError
from wavecast.isa.registers import SGPR_COUNT

SIZE: Final = 64
_LAYOUT = struct.Struct("<III4xq20xIIIHH4x")
assert _LAYOUT.size == SIZE

Field = tuple[str, int, int]  # directive, lowest bit, number of bits

_RSRC1: Final[tuple[Field, ...]] = (
    ("float_round_mode_32", 12, 2),
    ("float_round_mode_16_64", 14, 2),
    ("float_denorm_mode_32", 16, 2),
    ("float_denorm_mode_16_64", 18, 2),
    ("fp16_overflow", 26, 1),
)
_RSRC1_BEFORE_GFX12: Final[tuple[Field, ...]] = (("dx10_clamp", 21, 1), ("ieee_mode", 23, 1))
_RSRC1_GFX10: Final[tuple[Field, ...]] = (
    ("workgroup_processor_mode", 29, 1),
    ("memory_ordered", 30, 1),
    ("forward_progress", 31, 1),
)
_RSRC1_GFX12: Final[tuple[Field, ...]] = (("round_robin_scheduling", 21, 1),)
_RSRC2: Final[tuple[Field, ...]] = (
    ("system_sgpr_workgroup_id_x", 7, 1),
    ("system_sgpr_workgroup_id_y", 8, 1),
    ("system_sgpr_workgroup_id_z", 9, 1),
    ("system_sgpr_workgroup_info", 10, 1),
    ("system_vgpr_workitem_id", 11, 2),
    ("exception_fp_ieee_invalid_op", 24, 1),
    ("exception_fp_denorm_src", 25, 1),
    ("exception_fp_ieee_div_zero", 26, 1),
    ("exception_fp_ieee_overflow", 27, 1),
    ("exception_fp_ieee_underflow", 28, 1),
    ("exception_fp_ieee_inexact", 29, 1),
    ("exception_int_div_zero", 30, 1),
)
_PROPERTIES: Final[tuple[Field, ...]] = (
    ("user_sgpr_dispatch_ptr", 1, 1),
    ("user_sgpr_queue_ptr", 2, 1),
    ("user_sgpr_kernarg_segment_ptr", 3, 1),
    ("user_sgpr_dispatch_id", 4, 1),
    ("user_sgpr_private_segment_size", 6, 1),
    ("uses_dynamic_stack", 11, 1),
)
_ABSOLUTE_SCRATCH: Final[tuple[Field, ...]] = (
    ("user_sgpr_private_segment_buffer", 0, 1),
    ("user_sgpr_flat_scratch_init", 5, 1),
)
_PRELOAD: Final[tuple[Field, ...]] = (
    ("user_sgpr_kernarg_preload_length", 0, 7),
    ("user_sgpr_kernarg_preload_offset", 7, 9),
)


USER_SGPRS: Final = (
    ("private_segment_buffer", 4),
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)
"""User SGPRs in the order the hardware loads those that are enabled, with their count."""


def directives(data: bytes, processor: str, vgprs: object = None) -> dict[str, int]:
    """Directive name (without `.amdhsa_`) -> value. `vgprs` is the count of the metadata, which is
    exact: it takes the place of the granulated one where both mean the same. They differ where the
    compiler allocates more than it uses, to keep to `waves_per_eu`.

    Raises InputError for a wrong length.
    """
    if len(data) != SIZE:
        raise InputError(f"kernel descriptor has {len(data)} bytes, not {SIZE}")
    lds, scratch, kernarg, _, rsrc3, rsrc1, rsrc2, properties, preload = _LAYOUT.unpack(data)
    return {
        "group_segment_fixed_size": lds,
        "private_segment_fixed_size": scratch,
        "kernarg_size": kernarg,
        **_of_registers(
            rsrc1, rsrc2, rsrc3, properties, preload, processor,
            vgprs if isinstance(vgprs, int) else None,
        ),
    }  # fmt: skip


def _free_sgprs(rsrc1: int) -> int:
    """The SGPRs of a kernel without VCC, FLAT_SCRATCH and XNACK_MASK, which assemblers add unless
    they are told otherwise. Source: LLVM "User Guide for AMDGPU Backend", "Code Object V3 Kernel
    Descriptor", GRANULATED_WAVEFRONT_SGPR_COUNT of GFX9."""
    allocated = (_bits(rsrc1, 6, 4) // 2 + 1) * _SGPR_GRANULE
    return min(allocated - _RESERVED_SGPRS, _ADDRESSABLE_SGPRS)


_SGPR_GRANULE: Final = 16
_RESERVED_SGPRS: Final = 6
_ADDRESSABLE_SGPRS: Final = 102


@lru_cache(maxsize=4096)
def _of_registers(
    rsrc1: int,
    rsrc2: int,
    rsrc3: int,
    properties: int,
    preload: int,
    processor: str,
    vgprs: int | None,
) -> dict[str, int]:
    """Directives of the words that set registers up. Few differ among the kernels of a library."""
    able = capabilities(processor)
    version = able.kernel_descriptor
    wave32 = bool(properties >> 10 & 1)
    granule = vgpr_granule(processor, wave32)
    allocated = (_bits(rsrc1, 0, 6) + 1) * granule
    if vgprs is not None and max(1, -(-vgprs // granule)) * granule == allocated:
        allocated = max(1, vgprs)
    fields = {
        "user_sgpr_count": _bits(rsrc2, 1, able.user_sgpr_count_bits),
        "next_free_vgpr": allocated,
        "next_free_sgpr": _free_sgprs(rsrc1) if able.allocates_sgprs else SGPR_COUNT,
    }
    fields |= _fields(rsrc1, _RSRC1) | _fields(rsrc2, _RSRC2) | _fields(properties, _PROPERTIES)
    if version >= 10:
        fields["wavefront_size32"] = int(wave32)
        fields |= _fields(rsrc1, _RSRC1_GFX10)
        if not able.wgp_mode:
            del fields["workgroup_processor_mode"]
    fields |= _fields(rsrc1, _RSRC1_BEFORE_GFX12 if version < 12 else _RSRC1_GFX12)
    if able.architected_scratch:
        fields["enable_private_segment"] = _bits(rsrc2, 0, 1)
    else:
        fields["system_sgpr_private_segment_wavefront_offset"] = _bits(rsrc2, 0, 1)
        fields |= _fields(properties, _ABSOLUTE_SCRATCH)
    if able.unified_vgprs:
        fields["accum_offset"] = (_bits(rsrc3, 0, 6) + 1) * 4
        fields["tg_split"] = _bits(rsrc3, 16, 1)
    if able.kernarg_preload:
        fields |= _fields(preload, _PRELOAD)
    if version in (10, 11):
        fields["shared_vgpr_count"] = _bits(rsrc3, 0, 4)
    if version == 11:
        fields["inst_pref_size"] = _bits(rsrc3, 4, 6)
    if version >= 12:
        fields["inst_pref_size"] = _bits(rsrc3, 4, 8)
    if able.named_barriers:
        fields["named_barrier_count"] = _bits(rsrc3, 14, 3)
    return fields


def vgpr_granule(processor: str, wave32: bool) -> int:
    """Encoding granule of the VGPR count (not the allocation granule)."""
    of_wave32, of_wave64 = capabilities(processor).vgpr_encoding_granule
    return of_wave32 if wave32 else of_wave64


def _bits(word: int, low: int, width: int) -> int:
    return word >> low & ((1 << width) - 1)


def _fields(word: int, fields: tuple[Field, ...]) -> dict[str, int]:
    return {name: _bits(word, low, width) for name, low, width in fields}
