"""Conversions of elements, every encoding, with and without the host's own conversion."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

from tests.emulate.matrix.support import compile_module, encode, values
from wavecast.dtypes import Encoding
from wavecast.emulate.matrix import formats
from wavecast.emulate.matrix.decode import ElementDecoder
from wavecast.emulate.matrix.detection import detect
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.loops import counted_loop
from wavecast.emulate.values import I32, I64, PTR, element, load

WIDTH = 8
HOSTS = [pytest.param(detect(), id="host"), pytest.param(Host(256, 16), id="plain")]
FORMATS = {
    "F16": formats.F16,
    "BF16": formats.encoding("bfloat16"),
    "FP8": formats.encoding("float8_e4m3fn"),
    "BF8": formats.encoding("float8_e5m2"),
    "FP8_FNUZ": formats.encoding("float8_e4m3fnuz"),
    "BF8_FNUZ": formats.encoding("float8_e5m2fnuz"),
    "FP6": formats.encoding("float6_e2m3fn"),
    "BF6": formats.encoding("float6_e3m2fn"),
    "FP4": formats.encoding("float4_e2m1fn"),
}


def convert(raw: np.ndarray, host: Host, emit: Callable[[ElementDecoder, Any], Any]) -> np.ndarray:
    """Apply an emitted conversion to u32 values."""
    module = ir.Module("decode")
    kind = ir.FunctionType(ir.VoidType(), [PTR, PTR])
    function = ir.Function(module, kind, "convert")
    builder = ir.IRBuilder(function.append_basic_block())
    vector = ir.VectorType(I32, WIDTH)
    assert raw.size % WIDTH == 0
    with counted_loop(builder, raw.size, WIDTH) as index:
        value = load(builder, element(builder, function.args[0], index, I32), vector)
        result = emit(ElementDecoder(builder, host, WIDTH), value)
        result = builder.bitcast(result, vector)
        place = builder.add(index, I64(0))
        builder.store(result, element(builder, function.args[1], place, I32), align=4)
    builder.ret_void()
    engine = compile_module(module)
    source = np.ascontiguousarray(raw, np.uint32)
    found = np.empty_like(source)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    call(engine.get_function_address("convert"))(source.ctypes.data, found.ctypes.data)
    return found


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_encoding(name: str, host: Host) -> None:
    kind = FORMATS[name]
    raw = np.arange(max(1 << kind.bits, WIDTH), dtype=np.uint32) & ((1 << kind.bits) - 1)
    dirty = raw | np.uint32(0xA5A50000 if kind.bits == 16 else 0xA5A5A500)
    if kind.bits < 8:
        dirty = raw | np.uint32(0xA5A5A500) | np.uint32(3 << kind.bits & 0xFF)
    found = convert(dirty, host, lambda decoder, value: decoder.to_float(value, kind))
    wanted = values(kind)[raw].astype(np.float32)
    numbers = ~np.isnan(wanted)
    assert (found[numbers] == wanted.view(np.uint32)[numbers]).all()
    assert np.isnan(found.view(np.float32)[~numbers]).all()


def interesting_floats() -> np.ndarray:
    """f32 bits around every rounding boundary of f16 and bf16, specials, and random ones."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    exact = halves.view(np.float16).astype(np.float32).view(np.uint32)
    exact = exact[(exact & 0x7F800000) != 0x7F800000]
    near = [exact + np.uint32(offset) for offset in (0, 1, 0xFFF, 0x1000, 0x1001)]
    special = np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x80000001], np.uint32)
    wide = np.random.default_rng(1).integers(0, 2**32, 50_000, dtype=np.uint32)
    found = np.concatenate([*near, special, wide, wide & 0xFFFF8000 | 0x8000])
    return found[: found.size // WIDTH * WIDTH]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("name", "element_type"), [("F16", "f16"), ("BF16", "bf16")])
def test_rounding_to_sixteen_bits(name: str, element_type: str, host: Host) -> None:
    kind: Encoding = FORMATS[name]
    bits = interesting_floats()
    found = convert(
        bits,
        host,
        lambda decoder, value: decoder.from_float(decoder.to_float(value, formats.F32), kind),
    )
    source = bits.view(np.float32)
    wanted = encode(source, element_type)
    numbers = ~np.isnan(source)
    assert (found[numbers] == wanted[numbers]).all()
    assert np.isnan(values(kind)[found[~numbers]]).all()


def test_rounding_to_xf32() -> None:
    bits = np.array(
        [0x3F800FFF, 0x3F801000, 0x3F803000, 0x3F801001, 0xBF801001, 0x7F800000, 0x7F800001, 0],
        np.uint32,
    )
    wanted = [0x3F800000, 0x3F800000, 0x3F804000, 0x3F802000, 0xBF802000, 0x7F800000, 0x7F800001, 0]
    found = convert(
        bits,
        detect(),
        lambda decoder, value: decoder.round_to_xf32(decoder.to_float(value, formats.F32)),
    )
    assert found.tolist() == wanted


def test_every_block_scale() -> None:
    raw = np.arange(256, dtype=np.uint32)
    found = convert(raw | np.uint32(0x5A00), detect(), ElementDecoder.to_scale).view(np.float32)
    assert (found[:255] == 2.0 ** (np.arange(255) - 127.0)).all()
    assert np.isnan(found[255])
