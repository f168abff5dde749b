"""Damaged assembly is refused in words, or read as what is left of it."""

from __future__ import annotations

import pytest

from wavecast import isa
from wavecast.errors import InputError, ParseError, UsageError
from wavecast.isa import symbols
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.targets import isa_target

METADATA = """
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .wavefront_size: {wave}
...
	.end_amdgpu_metadata
"""


def parse(body: str) -> isa.AssemblyModule:
    return isa.parse(f"\t.type k,@function\nk:\n{body}", "gfx942", file="k.s")


@pytest.mark.parametrize("branch", ["s_branch", "s_cbranch_scc1"])
def test_a_branch_behind_the_last_instruction_leaves(branch: str) -> None:
    program = parse(f"\ts_nop 0\n\t{branch} .Lend\n.Lend:\n").functions["k"]
    assert [block.successors for block in program.blocks] == [()]


@pytest.mark.parametrize(
    ("operand", "says"),
    [
        ("99999999999999999999999999", "no such number"),
        ("0x11223344556677889900", "no such number"),
        ("007", "no such number"),
        ("1.0e99", "does not fit"),
        ("-" * 5000 + "v1", "too many modifiers"),
        ("neg(" * 5000 + "v1" + ")" * 5000, "too many modifiers"),
    ],
)
def test_numbers_and_modifiers_no_assembler_takes(operand: str, says: str) -> None:
    with pytest.raises(ParseError, match=says) as caught:
        parse(f"\tv_add_f32_e64 v0, v1, {operand}\n")
    assert caught.value.line == 3


def test_a_section_needs_a_name() -> None:
    with pytest.raises(ParseError, match=r"k.s:3: .section without a name"):
        parse("\t.section\n")


@pytest.mark.parametrize(
    "expression",
    ["é", "1<<99999999999", "1<<-1", "1+" * 20_000 + "1", "(" * 500, "9" * 5000, "2*" * 90 + "2"],
)
def test_expressions_beyond_reason_have_no_value(expression: str) -> None:
    assert symbols.evaluate(expression, "") is None


def test_a_product_is_bounded() -> None:
    assert symbols.evaluate("*".join(["18446744073709551615"] * 3), "") is None


def test_a_wave_size_must_be_a_number() -> None:
    assert descriptors_from_assembly(METADATA.format(wave=32), "gfx1100")["k"].wave_size == 32
    with pytest.raises(InputError, match="wavefront_size"):
        descriptors_from_assembly(METADATA.format(wave="many"), "gfx1100")


def test_a_known_gpu_without_a_table_is_named_as_such() -> None:
    with pytest.raises(UsageError, match="gfx906 cannot be read"):
        isa_target("gfx906:sramecc+")
