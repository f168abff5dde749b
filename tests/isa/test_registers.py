"""Register sets as integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wavecast.isa import registers
from wavecast.isa.operand import parse_operand, print_operand


@given(st.sampled_from(["v", "a", "s"]), st.integers(0, 90), st.integers(1, 16))
def test_spans_have_their_size_and_names(file: str, first: int, count: int) -> None:
    text = f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"
    operand = parse_operand(text)
    assert operand.bits.bit_count() == operand.count == count
    expected = [f"{file}{number}" for number in range(first, first + count)]
    assert registers.register_names(operand.bits) == expected
    assert print_operand(operand) == text


def test_classes_do_not_overlap() -> None:
    assert registers.VGPRS & registers.AGPRS == 0
    assert registers.AGPRS & registers.SGPRS == 0
    specials = 0
    for name in ("vcc", "exec", "m0", "scc", "flat_scratch", "xnack_mask", "mode"):
        bits = registers.special(name)
        assert bits & (registers.VGPRS | registers.AGPRS | registers.SGPRS | specials) == 0
        specials |= bits


def test_halves_share_bits_with_their_pair() -> None:
    assert registers.special("vcc_lo") | registers.special("vcc_hi") == registers.VCC
