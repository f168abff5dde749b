"""What a sum of products is beyond exact small numbers: order, specials, overlap, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.matrix.support import compile_all, matrix_rows, read, text_of, write
from wavecast.emulate.matrix.spec import UnsupportedMatrix, matrix_spec
from wavecast.isa.decode import Decoder

BF16 = "v_mfma_f32_32x32x8_bf16 {d}, {a}, {b}, {c}"


def run_bf16(text: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D of a 32x32x8 bf16 product, from f32 arrays whose low halves are zero."""
    (program,) = compile_all([text], "gfx942", 64)
    spec, operands = program.spec, program.decoded.operands
    registers = np.zeros((256, 64), np.uint32)
    row, k = np.ogrid[:32, :8]
    column = np.arange(32)[None]
    layout = spec.result_layout("f32")
    write(
        registers, operands[3].first, layout, c.view(np.uint32), np.ogrid[:32, :1][0], 0, 0, column
    )
    for position, layout, found in ((1, spec.a_layout, a), (2, spec.b_layout, b.T)):
        raw = np.ascontiguousarray(found).view(np.uint32) >> 16
        write(registers, operands[position].first, layout, raw, row, k, 0)
    program.run(registers)
    found = read(registers, operands[0].first, spec.result_layout("f32"), spec.shape)
    return found[0].astype(np.uint32).view(np.float32)


def plain() -> str:
    return BF16.format(d="v[20:35]", a="v[0:1]", b="v[2:3]", c="v[40:55]")


def bf16(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Random bf16 values between 2^-7 and 2^6 in size, as f32."""
    size = random.uniform(0.5, 1, shape) * 2.0 ** random.integers(-6, 7, shape)
    size = size.astype(np.float32)
    signed = size * random.choice([-1, 1], shape).astype(np.float32)
    return (signed.view(np.uint32) & 0xFFFF0000).view(np.float32)


def chain(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """C + a0*b0 + a1*b1 + …, rounded to f32 after each term; the f64 sums here are exact."""
    total = c
    for k in range(a.shape[1]):
        with np.errstate(all="ignore"):
            wide = total.astype(np.float64) + a[:, k, None].astype(np.float64) * b[k]
            total = wide.astype(np.float32)
    return total


def test_one_rounding_per_product_in_order_of_k() -> None:
    random = np.random.default_rng(5)
    a, b = bf16(random, (32, 8)), bf16(random, (8, 32))
    c = random.integers(-(2**20), 2**20, (32, 32)).astype(np.float32) / np.float32(2**18)
    found = run_bf16(plain(), a, b, c)
    assert (found == chain(a, b, c)).all()
    backwards = chain(a[:, ::-1], b[::-1], c)
    assert (found != backwards).any(), "the order of k makes no difference to this input"


def test_nan_infinity_and_denormals() -> None:
    a = np.zeros((32, 8), np.float32)
    b = np.ones((8, 32), np.float32)
    c = np.zeros((32, 32), np.float32)
    a[0, 3], a[1, 0], a[2, 5] = np.nan, np.inf, -np.inf
    a[3, 0], a[3, 1] = np.inf, -np.inf
    a[4, 2], b[2, 7] = np.inf, 0.0
    a[5, 0] = np.array([0x00010000], np.uint32).view(np.float32)[0]  # smallest bf16 denormal
    c[6] = np.array([1], np.uint32).view(np.float32)[0]
    c[7] = -0.0
    found = run_bf16(plain(), a, b, c)
    wanted = chain(a, b, c)
    assert np.isnan(found[[0, 3]]).all()
    assert np.isnan(found[4, 7])
    assert (np.isnan(found) == np.isnan(wanted)).all()
    numbers = ~np.isnan(wanted)
    assert (found.view(np.uint32)[numbers] == wanted.view(np.uint32)[numbers]).all()
    assert found[5, 0].view(np.uint32) == 0x00010000


@pytest.mark.parametrize(
    "places",
    [
        {"d": "v[40:55]", "c": "v[40:55]"},
        {"d": "v[0:15]", "c": "v[40:55]"},
        {"d": "v[38:53]", "c": "v[40:55]"},
        {"d": "v[44:59]", "c": "v[40:55]"},
        {"d": "v[2:17]", "c": "v[4:19]"},
    ],
    ids=["in place", "over sources", "before c", "after c", "over all"],
)
def test_results_may_overlap_sources(places: dict[str, str]) -> None:
    random = np.random.default_rng(6)
    a, b = bf16(random, (32, 8)), bf16(random, (8, 32))
    c = random.integers(-64, 64, (32, 32)).astype(np.float32)
    text = BF16.format(a="v[0:1]", b="v[2:3]", **places)
    assert (run_bf16(text, a, b, c) == chain(a, b, c)).all()


def test_equal_instructions_share_a_function() -> None:
    texts = [
        BF16.format(d=d, a=a, b="v[2:3]", c=d)
        for d, a in (("v[20:35]", "v[0:1]"), ("a[0:15]", "v[8:9]"))
    ]
    decoder = Decoder("gfx942", 64)
    first, second = (matrix_spec(decoder.decode(text), "gfx942", 64) for text in texts)
    assert first == second


def test_saturation_of_integer_sums() -> None:
    row = next(
        row
        for row in matrix_rows("gfx1201")
        if row.mnemonics["gfx1201"] == "v_wmma_i32_16x16x16_iu8"
    )
    texts = [text_of(row, "gfx1201", modifiers) for modifiers in ("clamp", "")]
    found = []
    for program in compile_all(texts, "gfx1201", 32):
        registers = np.full((64, 32), 0x7FFFFFF0, np.uint32)
        for operand in program.decoded.operands[1:3]:
            registers[operand.first : operand.first + operand.count] = 0xFFFFFFFF
        program.run(registers)
        found.append(registers[program.decoded.operands[0].first, 0])
    total = 0x7FFFFFF0 + 16 * 255 * 255
    assert found == [0x7FFFFFFF, total]


@pytest.mark.parametrize(
    ("target", "text", "reason"),
    [
        ("gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[22:23], 0 cbsz:2", "cbsz"),
        (
            "gfx1201",
            "v_wmma_i32_16x16x16_iu8 v[0:7], v[8:9], v[10:11], v[0:7] neg_hi:[1,0,0]",
            "neg_hi",
        ),
        ("gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[22:23], 0 clamp", "clamp"),
        (
            "gfx942",
            "v_smfmac_i32_32x32x32_i8 v[0:15], v[20:21], v[24:27], v28 abid:2",
            "index set 2",
        ),
        ("gfx942", "v_mfma_f32_32x32x8_f16 v[0:3], v[20:21], v[22:23], 0", "16 registers"),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], 0 cbsz:7", "format"),
    ],
)
def test_unknown_modifiers_are_refused(target: str, text: str, reason: str) -> None:
    lanes = 64 if target.startswith("gfx9") else 32
    with pytest.raises(UnsupportedMatrix, match=reason):
        matrix_spec(Decoder(target, lanes).decode(text), target, lanes)
