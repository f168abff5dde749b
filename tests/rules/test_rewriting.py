"""Rewritten kernels: interleaved pairs, 32-bit offsets, constants, alignment, padded arrays."""

from __future__ import annotations

import pytest

from wavecast.compile.codeobject import CodeObject
from wavecast.compile.ttgir import parse
from wavecast.rules.affine import Forms
from wavecast.rules.hip_source import arrays_at, body_of, pad_rows, shared_arrays
from wavecast.rules.narrowing import narrow_integers
from wavecast.rules.pair_rewrite import CannotRewrite, Pair, rewritten
from wavecast.rules.specialise import declare_divisible, multiple, with_constants
from wavecast.rules.triton_slice import access

PAIRS = """module {
  tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %s: i32) {
    %one = arith.constant dense<1> : tensor<64xi32>
    %two = arith.constant dense<2> : tensor<64xi32>
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %start = arith.muli %pid, %c64 : i32
    %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %starts = tt.splat %start : i32 -> tensor<64xi32>
    %offs = arith.addi %starts, %lanes : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %mask = arith.cmpi slt, %offs, %ns : tensor<64xi32>
    %double = arith.muli %offs, %two : tensor<64xi32>
    %base = tt.splat %x : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %p = tt.addptr %base, %double : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %a = tt.load %p, %mask : tensor<64x!tt.ptr<f16>>
    %q = tt.addptr %p, %one : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %b = tt.load %q, %mask : tensor<64x!tt.ptr<f16>>
    tt.return
  }
}
"""
TILE = """
__global__ void k(float* x, int n) {
  __shared__ float a[32][32], b[64];
  for (size_t i = 0; i < n; ++i) { a[i][0] = b[i]; }
}
__global__ void other(float* x) {}
"""


def pair(text: str) -> tuple[Forms, Pair]:
    module = parse(text)
    forms = Forms(module)
    first, second = module.operations_named("tt.load")
    form = forms.of(access(first).address[0])
    tensor = forms.shape("%a")
    assert tensor is not None
    return forms, Pair(first, second, "%lanes", tensor, form)


def test_an_address_is_a_sum() -> None:
    forms, found = pair(PAIRS)
    assert dict(found.form.terms) == {"%x": 1, "%lanes": 2, "%pid": 128}
    second = forms.of(access(found.second).address[0])
    difference = second.plus(found.form, -1)
    assert difference.is_constant
    assert difference.constant == 1


def test_a_pair_of_loads_becomes_one_and_a_split() -> None:
    forms, found = pair(PAIRS.replace("tensor<64x!tt.ptr<f16>>\n    %q", "tensor<64xf16>\n    %q"))
    text = rewritten(PAIRS, parse(PAIRS), forms, [found])
    assert text.count("tt.load") == 1
    assert "tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>" in text
    assert "%a, %b = tt.split" in text
    assert text.index("tt.split") < text.index("%q = ")
    assert "tt.get_program_id" in text


def test_a_mask_of_two_comparisons_is_rewritten() -> None:
    text = PAIRS.replace("%a = tt.load %p, %mask", "%a = tt.load %p, %both")
    text = text.replace("%b = tt.load %q, %mask", "%b = tt.load %q, %both")
    text = text.replace(
        "    %double", "    %both = arith.andi %mask, %mask : tensor<64xi1>\n    %double"
    )
    forms, found = pair(text)
    changed = rewritten(text, parse(text), forms, [found])
    assert changed.count("arith.cmpi slt") == 3
    assert changed.count(": tensor<128xi1>") == 1


def test_a_mask_that_is_not_a_comparison_is_not_rewritten() -> None:
    text = PAIRS.replace("arith.cmpi slt, %offs, %ns", "arith.xori %offs, %ns")
    forms, found = pair(text)
    with pytest.raises(CannotRewrite, match="mask"):
        rewritten(text, parse(text), forms, [found])


def test_offsets_become_32_bit() -> None:
    text = (
        "  tt.func public @k(%x: !tt.ptr<f16>, %n: i32) attributes {noinline = false} {\n"
        "    %0 = tt.get_program_id x : i32\n"
        "    %1 = arith.extsi %0 : i32 to i64\n"
        "    %2 = arith.constant 64 : i64\n"
        "    %3 = arith.muli %1, %2 : i64\n"
    )
    found = narrow_integers(text)
    assert found is not None
    assert "i64" not in found
    assert "arith.muli %0, %2 : i32" in found
    assert narrow_integers(text.replace("constant 64", "constant 4294967296")) is None
    assert narrow_integers(text.replace("%n: i32", "%n: i64")) is None


def test_arguments_become_constants_and_multiples_of_16() -> None:
    constant = with_constants(PAIRS, {"n": 7})
    assert "%wavecast_n = arith.constant 7 : i32" in constant
    assert "tt.splat %wavecast_n : i32" in constant
    assert "%ns = " in constant
    aligned = declare_divisible(PAIRS, ["n", "x"])
    assert "%n: i32 {tt.divisibility = 16 : i32}" in aligned
    assert aligned.count("divisibility") == 2
    assert (multiple(4098, 16), multiple(32, 16)) == (4112, 32)


def test_shared_arrays_are_padded_in_their_last_dimension() -> None:
    code = CodeObject("k", "gfx942", "hip", {}, (), {}, 0, 0, "k.hip", 2, TILE, "", "")
    assert [array.name for array in shared_arrays(TILE)] == ["a", "b"]
    first, second = arrays_at(code, 4)
    assert (first.rank, second.rank) == (2, 1)
    assert "a[32][32 + 1], b[64]" in pad_rows(TILE, first, 1)
    assert not arrays_at(code, 2)


def test_the_body_of_a_kernel_ends_at_its_brace() -> None:
    span = body_of(TILE, 2)
    assert span is not None
    assert TILE[span[0] : span[1]].startswith("{\n  __shared__")
    assert TILE[span[1] :].startswith("\n__global__ void other")
    assert body_of(TILE, 99) is None
