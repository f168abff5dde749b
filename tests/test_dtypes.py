"""The registry of dtypes against PyTorch, numpy, Triton, and the limits of each format."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from wavecast import dtypes
from wavecast.arch.rates import DTYPES as RATES
from wavecast.dtypes import DTYPES, Dtype, Spelling, Variant, lookup
from wavecast.errors import UnknownName

ALL = list(DTYPES.values())
UNPUBLISHED = {"", "int16", "int32", "int64"}
"""Rates that no device file has."""


def spelled(source: Spelling) -> list[Dtype]:
    return [one for one in ALL if one.spellings[source]]


@pytest.mark.parametrize("one", spelled(Spelling.TORCH), ids=str)
def test_sizes_and_limits_are_those_of_torch(one: Dtype) -> None:
    torch = pytest.importorskip("torch")
    packed = 2 if one.name == "float4_e2m1fn" else 1
    kinds = {getattr(torch, name) for name in one.spellings[Spelling.TORCH]}
    assert len(kinds) == 1
    (kind,) = kinds
    assert kind.itemsize == one.bytes * packed
    assert one.is_float == kind.is_floating_point
    if one.encoding is not None and packed == 1:
        assert one.encoding.largest == torch.finfo(kind).max


def test_every_float_of_torch_has_a_row() -> None:
    torch = pytest.importorskip("torch")
    known = {getattr(torch, n) for one in ALL for n in one.spellings[Spelling.TORCH]}
    others = {value for value in vars(torch).values() if isinstance(value, torch.dtype)} - known
    floats = {one for one in others if one.is_floating_point or one.is_complex}
    assert floats == {torch.complex32}


@pytest.mark.parametrize("one", spelled(Spelling.NUMPY), ids=str)
def test_sizes_are_those_of_numpy_and_struct(one: Dtype) -> None:
    kind = np.dtype(one.spelling(Spelling.NUMPY))
    assert kind.itemsize == one.bytes
    assert one.is_integer == (kind.kind in "iu")
    if one.struct:
        assert struct.calcsize("<" + one.struct) == one.bytes
        assert np.dtype(one.struct) == kind


def test_spellings_of_triton() -> None:
    language = pytest.importorskip("triton.language")
    for name in (*language.dtype.FP_TYPES, *language.dtype.SINT_TYPES, *language.dtype.UINT_TYPES):
        found = lookup(name, Spelling.TRITON)
        width = language.dtype(name).primitive_bitwidth
        assert found.bits == (width if width > 1 else 8), name


@pytest.mark.parametrize("source", Spelling)
def test_a_source_spells_no_two_dtypes_alike(source: Spelling) -> None:
    names = [name for one in ALL for name in one.spellings[source]]
    assert len(names) == len(set(names)) > 5 or source is Spelling.NUMPY


def test_only_short_names_are_shared() -> None:
    owners: dict[str, set[str]] = {}
    for one in ALL:
        names = (one.name, *(n for ns in one.spellings.values() for n in ns), *one.aliases)
        for name in names:
            owners.setdefault(name.lower().replace("_", ""), set()).add(one.name)
    assert {name: who for name, who in owners.items() if len(who) > 1} == {}


@pytest.mark.parametrize("one", ALL, ids=str)
def test_a_row_agrees_with_itself(one: Dtype) -> None:
    assert lookup(one.name) is one
    assert lookup(one.short).short == one.short
    assert one.rate in {*RATES, *UNPUBLISHED}
    if one.element:
        parts = 2 if one.family is dtypes.Family.COMPLEX else 1
        assert lookup(one.element).bits * parts == one.bits
    assert bool(one.block) == bool(one.scale) == (one.family is dtypes.Family.MX)
    if one.variant is not None:
        assert one.in_variant(one.variant) is one
        assert lookup(one.generic).in_variant(one.variant) is one


def test_the_same_dtype_by_the_names_of_all_sources() -> None:
    fnuz = DTYPES["float8_e4m3fnuz"]
    names = ("torch.float8_e4m3fnuz", "fp8e4b8", "f8E4M3FNUZ", "__hip_fp8_e4m3_fnuz", "FP8_FNUZ")
    assert {lookup(name) for name in names} == {fnuz}
    assert fnuz.in_variant(Variant.OCP) is DTYPES["float8_e4m3fn"]
    assert DTYPES["float32"].in_variant(Variant.FNUZ) is DTYPES["float32"]
    assert lookup("fp8").in_variant(Variant.FNUZ) is fnuz
    assert lookup("mxfp4").bytes + lookup("mxfp4").scale_bytes == 0.5 + 1 / 32
    assert lookup("nvfp4").scale_bytes == 1 / 16
    assert lookup("float32").scale_bytes == 0.0
    assert dtypes.element_bytes("half") == 2.0


def test_unknown_names_are_one_clear_line() -> None:
    with pytest.raises(UnknownName, match=r"^unknown dtype 'fp8e9' \(nearest known: .*fp8e4nv"):
        lookup("fp8e9")
    with pytest.raises(UnknownName, match=r"^unknown mlir dtype 'bfloat16' \(nearest known: bf16"):
        lookup("bfloat16", Spelling.MLIR)
    with pytest.raises(UnknownName, match=r"^unknown triton dtype 'int4'"):
        DTYPES["int4"].spelling(Spelling.TRITON)
    assert not dtypes.is_dtype("fp8e9")
    assert dtypes.is_dtype("f8E5M2")
