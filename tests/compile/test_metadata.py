"""Kernel descriptors from assembly text; `test_elf` compares them with those of code objects."""

from __future__ import annotations

import msgspec
import pytest

from wavecast.errors import InputError, ParseError
from wavecast.isa import elf, kernel_code, symbols
from wavecast.isa.assembly_metadata import descriptors_from_assembly, target_from_assembly
from wavecast.isa.elf_metadata import descriptors_of
from wavecast.isa.metadata import processor_of_triple


@pytest.mark.parametrize(
    ("triple", "processor"),
    [
        ("amdgcn-amd-amdhsa--gfx942", "gfx942"),
        ("amdgpu9.42-amd-amdhsa-unknown-gfx942", "gfx942"),
        ("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a"),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", "gfx1100"),
        ("amdgcn-amd-amdhsa--gfx9-4-generic:xnack-", "gfx9-4-generic"),
        ("host-x86_64-unknown-linux--", ""),
    ],
)
def test_both_spellings_of_a_triple(triple: str, processor: str) -> None:
    assert processor_of_triple(triple) == processor
    assert target_from_assembly(f'\t.amdgcn_target "{triple}"\n') == processor


def test_a_compiler_s_descriptor(saxpy: str) -> None:
    (found,) = descriptors_from_assembly(saxpy).values()
    assert (found.vgprs, found.agprs, found.sgprs) == (6, 0, 15)
    assert (found.lds_bytes, found.scratch_bytes) == (0, 0)
    assert (found.wave_size, found.max_workgroup_size, found.kernarg_bytes) == (64, 256, 288)
    visible = [a for a in found.arguments if not a.kind.startswith("hidden_")]
    assert [(a.offset, a.size, a.kind) for a in visible] == [
        (0, 4, "by_value"),
        (8, 8, "global_buffer"),
        (16, 8, "global_buffer"),
        (24, 4, "by_value"),
    ]
    assert found.directives["accum_offset"] == 8
    assert found.directives["next_free_vgpr"] == 6
    assert "amdhsa_accum_offset" not in found.directives


def test_accumulation_registers_are_counted_apart() -> None:
    text = """
    .set .Lk.num_vgpr, 126
    .amdhsa_kernel k
        .amdhsa_next_free_vgpr 152
        .amdhsa_accum_offset 128
    .end_amdhsa_kernel
    .amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .agpr_count: 24
    .vgpr_count: 152
    .wavefront_size: 64
    .reqd_workgroup_size: [16, 4, 2]
    .max_flat_workgroup_size: 128
...
    .end_amdgpu_metadata
"""
    (found,) = descriptors_from_assembly(text, "gfx942").values()
    assert (found.vgprs, found.agprs, found.required_threads) == (126, 24, 128)
    (rounded,) = descriptors_from_assembly(text.replace(".set", "# "), "gfx942").values()
    assert (rounded.vgprs, rounded.agprs) == (128, 24)


def test_directives_alone_are_enough() -> None:
    text = """
    .amdhsa_kernel hand_written
        .amdhsa_next_free_vgpr 20
        .amdhsa_next_free_sgpr 0x10
        .amdhsa_group_segment_fixed_size 512
        .amdhsa_inst_pref_size ((instprefsize(.Lend-k)<<4)&4080)>>4
    .end_amdhsa_kernel
"""
    (found,) = descriptors_from_assembly(text, "gfx1100").values()
    assert (found.vgprs, found.sgprs, found.lds_bytes, found.wave_size) == (20, 16, 512, 32)
    assert found.arguments == ()
    assert "inst_pref_size" not in found.directives


def test_resource_expressions_are_followed() -> None:
    text = """
    .set .Lf.num_vgpr, 40
    .set k.num_vgpr, max(22, .Lf.num_vgpr)
    .set k.num_agpr, max(0, 3)
    .set loop, loop
"""
    assert symbols.evaluate("max(totalnumvgprs(k.num_agpr, k.num_vgpr), 1, 0)", text) == 43
    assert symbols.evaluate("alignto(k.num_vgpr, 16)+1", text) == 49
    assert symbols.evaluate("0+or(0, 1)", text) == 1
    assert symbols.evaluate("unknown_symbol", text) is None
    assert symbols.evaluate("loop", text) is None
    assert symbols.evaluate("__import__('os')", text) is None


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("\t.amdgpu_metadata\n---\na: [\n\t.end_amdgpu_metadata\n", ParseError, "YAML"),
        ("\t.amdgpu_metadata\n---\n- 1\n\t.end_amdgpu_metadata\n", ParseError, "mapping"),
        ("\t.amdgpu_metadata\n---\namdhsa.kernels:\n", ParseError, "never closed"),
        (
            "\t.amdgpu_metadata\n---\namdhsa.kernels: [1]\n\t.end_amdgpu_metadata\n",
            InputError,
            "named kernels",
        ),
        (
            "\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: k\n    .args: [{.size: x}]\n"
            "\t.end_amdgpu_metadata\n",
            InputError,
            "argument",
        ),
        (
            "\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: k\n    .vgpr_count: many\n"
            "\t.end_amdgpu_metadata\n",
            InputError,
            "vgpr_count",
        ),
    ],
)
def test_malformed_metadata(body: str, error: type[InputError], message: str) -> None:
    with pytest.raises(error, match=message):
        descriptors_from_assembly(body, "gfx942")


def test_the_line_of_a_yaml_error_is_named() -> None:
    text = "\n\n\t.amdgpu_metadata\n---\nok: 1\nbad: [\n\t.end_amdgpu_metadata\n"
    with pytest.raises(ParseError) as caught:
        descriptors_from_assembly(text, "gfx942")
    assert caught.value.line in (6, 7)


def test_a_kernel_descriptor_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(InputError, match="63 bytes"):
        kernel_code.directives(bytes(63), "gfx942")


def test_wave_size_and_granules_follow_the_target() -> None:
    wave32 = bytearray(64)
    wave32[48] = 4  # five granules
    wave32[57] = 4  # ENABLE_WAVEFRONT_SIZE32
    assert kernel_code.directives(bytes(wave32), "gfx1201")["next_free_vgpr"] == 40
    assert kernel_code.directives(bytes(wave32), "gfx1250")["next_free_vgpr"] == 80
    assert kernel_code.directives(bytes(wave32), "gfx1100")["wavefront_size32"] == 1
    assert "wavefront_size32" not in kernel_code.directives(bytes(wave32), "gfx942")


def test_all_notes_of_a_linked_code_object_describe_kernels() -> None:
    """Linked Tensile libraries have a note per kernel; AITER fills segments with `pad`."""
    arguments = [
        {".name": "alpha", ".offset": 0, ".size": 4, ".value_kind": "by_value"},
        {".name": "pad", ".offset": 4, ".size": 12, ".value_kind": "by_value"},
    ]
    notes = tuple(
        (
            "AMDGPU",
            32,
            msgspec.msgpack.encode(
                {
                    "amdhsa.kernels": [
                        {".name": name, ".symbol": f"{name}.kd", ".args": arguments}
                    ],
                    "amdhsa.target": "amdgcn-amd-amdhsa--gfx90a",
                }
            ),
        )
        for name in ("first", "second")
    )
    found = descriptors_of(elf.Elf(elf.MACHINE_AMDGPU, 0x3F, True, (), {}, notes))
    assert list(found) == ["first", "second"]
    for descriptor in found.values():
        assert [one.kind for one in descriptor.arguments] == ["by_value", "hidden_none"]
