"""Operators whose kernels move their tensors once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wavecast.profiles.profile import ProfiledOp
from wavecast.profiles.tensor_bytes import operation
from wavecast.systems.sources.part import SameBytes

_BF16, _FP8 = "c10::BFloat16", "c10::Float8_e4m3fn"


def _op(name: str, *tensors: tuple[list[int], str], strides: Any = None) -> ProfiledOp:
    return ProfiledOp(
        name,
        sizes=json.dumps([shape for shape, _ in tensors]),
        dtypes=json.dumps([dtype for _, dtype in tensors]),
        strides=json.dumps(strides) if strides else "",
    )


@pytest.mark.parametrize(
    ("given", "read", "written"),
    [
        (_op("triton_poi_fused_add_mul_3", ([8, 64], _BF16), ([64], "float"), ([8, 64], _BF16),
             ([], "Scalar")), 8 * 64 * 2 + 64 * 4, 8 * 64 * 2),
        (_op("triton_red_fused_sum_0", ([8, 64], _BF16), ([8], "float"), ([], ""),
             strides=[[0, 1], [1], []]), 64 * 2, 32),
        (_op("_C::rms_norm", ([8, 64], _FP8), ([8, 64], _BF16), ([64], _BF16), ([], "Scalar")),
         8 * 64 * 2 + 64 * 2, 8 * 64),
        (_op("_C::fused_add_rms_norm", ([8, 64], _BF16), ([8, 64], _BF16), ([64], _BF16)),
         2 * 1024 + 128, 2 * 1024),
        (_op("_C::silu_and_mul", ([8, 64], _BF16), ([8, 128], _BF16)), 2048, 1024),
        (_op("_C_cache_ops::reshape_and_cache_flash", ([8, 1, 64], _BF16), ([8, 1, 64], _BF16),
             ([999, 16, 1, 64], "unsigned char"), ([999, 16, 1, 64], "unsigned char")),
         2 * 8 * 64 * 2, 2 * 8 * 64),
    ],
)  # fmt: skip
def test_bytes_of_the_tensors(given: ProfiledOp, read: float, written: float) -> None:
    assert operation(given) == SameBytes(given.name, read, written)


@pytest.mark.parametrize(
    "given",
    [
        _op("aten::mm", ([8, 64], _BF16), ([64, 8], _BF16)),
        _op("triton_tem_fused_mm_0", ([8, 64], _BF16), ([64, 8], _BF16)),
        _op("triton_poi_fused_fill_0", ([8], _BF16), ([], "Scalar")),
        _op("_C::rms_norm", ([8, 64], _BF16)),
        _op("_C::rms_norm", ([8, 64], "Unheard"), ([8, 64], _BF16), ([64], _BF16)),
        _op("_C::rms_norm", ([0, 64], _BF16), ([0, 64], _BF16), ([0], _BF16)),
        ProfiledOp("triton_poi_fused_add_0"),
        ProfiledOp("triton_poi_fused_add_0", sizes="[[8], [8]]", dtypes="[3, null]"),
        ProfiledOp("triton_poi_fused_add_0", sizes="{", dtypes="["),
        ProfiledOp("triton_poi_fused_add_0", sizes='[["x"]]', dtypes=f'["{_BF16}"]'),
        ProfiledOp("triton_poi_fused_add_0", sizes="7", dtypes="8"),
        ProfiledOp("triton_poi_fused_add_0", sizes="[[1e999], [8]]", dtypes='["int", "int"]'),
    ],
)
def test_others_are_not_guessed(given: ProfiledOp) -> None:
    assert operation(given) is None
