"""Other block sizes written into Triton's IR: dimensions, constants, the grid."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.rules.support import assembly_subject
from wavecast.compile.codeobject import Parameter
from wavecast.rules.finding import RuleInput
from wavecast.rules.tiles import NARROWEST, BlockSize, block_sizes, other_blocks, resize_block

TILE = """module {
  tt.func public @tile(%x: !tt.ptr<f32>, %n: i32) {
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %wide = arith.constant dense<32> : tensor<64x32xi32>
    %c32_i32 = arith.constant 32 : i32
    %pid = tt.get_program_id x : i32
    %padded = arith.addi %n, %c63_i32 : i32
    %blocks = arith.divsi %padded, %c64_i32 : i32
    %row = arith.remsi %pid, %blocks : i32
    %first = arith.muli %row, %c64_i32 : i32
    %second = tt.get_program_id y : i32
    %third = arith.muli %second, %c32_i32 : i32
    %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %columns = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    tt.return
  }
}
"""


def subject(text: str = TILE, **blocks: int) -> RuleInput:
    """A launch of 100 x 40 workgroups of a kernel with these block sizes."""
    found = assembly_subject("s_endpgm", grid=(100, 40, 1), stages={"ttir": text})
    parameters = tuple(
        Parameter(name, "constexpr", None, None, constant=value) for name, value in blocks.items()
    )
    return replace(found, code=replace(found.code, parameters=parameters))


def test_block_sizes_are_constants_that_are_dimensions() -> None:
    found = block_sizes(subject(BLOCK_M=64, BLOCK_N=32, GROUP=8, EVEN=True, HEADS=128))
    assert found == [BlockSize(("BLOCK_M",), 64), BlockSize(("BLOCK_N",), 32)]
    assert found[0].text(128) == "BLOCK_M=128"


def test_a_smaller_block_changes_types_ranges_constants_and_its_axis_of_the_grid() -> None:
    given = subject(BLOCK_M=64, BLOCK_N=32)
    change = resize_block(given, BlockSize(("BLOCK_M",), 64), 16)
    assert change is not None
    assert change.grid == (400, 40, 1)
    assert change.same_work
    assert "tensor<16x32xi32>" in change.text
    assert "%c63_i32 = arith.constant 15" in change.text
    assert "%c64_i32 = arith.constant 16" in change.text
    assert "dense<32>" in change.text
    assert not re.search(r"\b6[34] : i32|<64", change.text)


def test_a_larger_block_rounds_the_grid_up() -> None:
    change = resize_block(subject(BLOCK_M=64, BLOCK_N=32), BlockSize(("BLOCK_N",), 32), 64)
    assert change is not None
    assert change.grid == (100, 20, 1)
    assert "tensor<64x64xi32>" in change.text


def test_both_block_sizes_are_tried_with_their_names() -> None:
    fixes = list(other_blocks(subject(BLOCK_M=64, BLOCK_N=32), smaller=True, why=" here"))
    assert [fix.advice for fix in fixes] == [
        "Use BLOCK_M=32 (now 64) here.",
        "Use BLOCK_N=16 (now 32) here.",
    ]


@pytest.mark.parametrize(
    "extra",
    [
        "%c256_i32 = arith.constant 256 : i32",  # four blocks, or something else
        "%all = tt.get_num_programs x : i32",  # a loop over blocks, whose number would change
        "%both = arith.muli %sum, %c64_i32 : i32\n    %sum = arith.addi %pid, %second : i32",
    ],
)
def test_what_depends_on_a_block_in_an_unknown_way_is_left_alone(extra: str) -> None:
    text = TILE.replace("    tt.return", f"    {extra}\n    tt.return")
    given = subject(text, BLOCK_M=64, BLOCK_N=32)
    assert resize_block(given, BlockSize(("BLOCK_M",), 64), 32) is None


def test_blocks_smaller_than_a_matrix_instruction_are_not_tried() -> None:
    assert resize_block(subject(BLOCK_N=32), BlockSize(("BLOCK_N",), 32), 8) is None


NARROW = """module {
  tt.func public @narrow(%x: !tt.ptr<bf16>, %n: i32) {
    %c2_i32 = arith.constant 2 : i32
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %c2_i32 : i32
    %columns = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
    %cells = tt.splat %n : i32 -> tensor<1024x2xi32>
    tt.return
  }
}
"""


def test_a_narrow_block_is_replaced_where_it_is_a_dimension_and_a_factor() -> None:
    given, block = subject(NARROW, BLOCK_M=1024, BLOCK_N=2), BlockSize(("BLOCK_N",), 2)
    assert block in block_sizes(given, NARROWEST)
    assert block not in block_sizes(given)
    change = resize_block(given, block, 32)
    assert change is not None
    assert change.grid == (7, 40, 1)
    assert "tensor<1024x32xi32>" in change.text
    assert "%c2_i32 = arith.constant 32" in change.text


@pytest.mark.parametrize(
    "line",
    ["%other = arith.addi %n, %c2_i32 : i32", "%c1_i32 = arith.constant 1 : i32"],
)
def test_a_narrow_block_whose_number_may_be_another_one_stays(line: str) -> None:
    text = NARROW.replace("    tt.return", f"    {line}\n    tt.return")
    given = subject(text, BLOCK_M=1024, BLOCK_N=2)
    assert resize_block(given, BlockSize(("BLOCK_N",), 2), 32) is None
