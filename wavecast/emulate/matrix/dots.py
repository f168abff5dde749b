"""Products of pairs of bf16: when they give the bits of fused multiply-adds, and code for them.

`vdpbf16ps` adds two products to an f32 by two fused multiply-adds, that of the high halves first,
but takes denormals for zero and writes zero for them (Intel 64 and IA-32 Architectures Software
Developer's Manual, VDPBF16PS). So even k lie in the high halves, and operands are *fit* when no
sum can be denormal: every element of A and B is zero or has a magnitude of 2^-56 or more, is
finite, and every element of C is zero or at least 2^-103. Then products, C, and every sum of them
are multiples of 2^-126, the least normal number. Other operands are multiplied one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from wavecast.dtypes import Encoding, SpecialValues
from wavecast.emulate.matrix.formats import Integer
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.layouts import Placement
from wavecast.emulate.matrix.loops import counted_loop
from wavecast.emulate.matrix.spec import MatrixSource, MatrixSpec
from wavecast.emulate.values import I8, I16, I32, I64, constant, element, load

WIDTH: Final = 16
"""Sums of an instruction."""
_SIGNIFICANT = 8
"""Significant bits of a bf16."""
_BIAS, _MANTISSA = 127, 7
_LEAST_FACTOR = -56
_LEAST_ADDEND = -103
_INTRINSIC = "llvm.x86.avx512bf16.dpbf16ps.512"


class _BrainFloat(ir.Type):
    """LLVM's `bfloat`, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BrainFloat)

    def __hash__(self) -> int:
        return hash(_BrainFloat)


_FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
_WORDS = ir.VectorType(I32, WIDTH)
_HALVES = ir.VectorType(I16, 2 * WIDTH)
_PAIRS = ir.VectorType(_BrainFloat(), 2 * WIDTH)


def uses_dots(spec: MatrixSpec, host: Host) -> bool:
    """Whether products of an instruction are made of pairs of bf16 on this host: elements of A and
    B, scaled or not, have no more bits, and those of a pair lie next to each other."""
    if not (host.bf16_dots and spec.chains and spec.d_type == "f32"):
        return False
    if min(spec.shape.m, spec.shape.n) < WIDTH:
        return False
    sides = ((spec.a, spec.a_layout), (spec.b, spec.b_layout))
    return all(_fits(source) and _in_pairs(layout) for source, layout in sides)


def _fits(source: MatrixSource) -> bool:
    kind = source.format
    if isinstance(kind, Integer) or kind.exponent > 8:
        return False
    scale = source.scale_format
    scale_bits = scale.mantissa if isinstance(scale, Encoding) else 0
    return kind.mantissa + 1 + (scale_bits + 1 if scale_bits else 0) <= _SIGNIFICANT


def _in_pairs(layout: Placement) -> bool:
    return bool(layout.depth) and layout.depth[0] == (1, 0)


def pair(builder: ir.IRBuilder, even: Any, odd: Any) -> Any:
    """Words of two bf16 from f32 values that are exact as such."""
    high = builder.and_(builder.bitcast(even, _WORDS), constant(0xFFFF0000, 32, WIDTH))
    low = builder.lshr(builder.bitcast(odd, _WORDS), constant(16, 32, WIDTH))
    return builder.or_(high, low)


def halves(builder: ir.IRBuilder, word: Any) -> tuple[Any, Any]:
    """The even and the odd f32 of a word, or of words."""
    lanes = word.type.count if isinstance(word.type, ir.VectorType) else 0
    kind = ir.VectorType(ir.FloatType(), lanes) if lanes else ir.FloatType()
    even = builder.and_(word, constant(0xFFFF0000, 32, lanes))
    odd = builder.shl(word, constant(16, 32, lanes))
    return builder.bitcast(even, kind), builder.bitcast(odd, kind)


def add_products(builder: ir.IRBuilder, total: Any, left: Any, right: Any) -> Any:
    """`total` and the two products of each pair: f32 sums, words of two bf16."""
    module = builder.module
    function = module.globals.get(_INTRINSIC)
    if function is None:
        kind = ir.FunctionType(_FLOATS, [_FLOATS, _PAIRS, _PAIRS])
        function = ir.Function(module, kind, _INTRINSIC)
    pairs = [builder.bitcast(value, _PAIRS) for value in (left, right)]
    return builder.call(function, [total, *pairs])


FIT: Final = 0
"""State of an array all of whose elements are fit; f32 are not there."""
UNFIT: Final = 1
"""State of one that has f32 and elements that are not fit."""
_EXPANDED: Final = 2
"""State of one that is fit and has f32 too."""


@dataclass(frozen=True, slots=True)
class PairsArray:
    """An operand of `words` pairs: the pairs, its state (i32), and room for its f32. Offsets and
    size are in bytes."""

    words: int

    @property
    def state(self) -> int:
        return 4 * self.words

    @property
    def floats(self) -> int:
        return self.state + 4 * WIDTH

    @property
    def bytes(self) -> int:
        return self.floats + 8 * self.words


def expand(builder: ir.IRBuilder, array: Any, parts: PairsArray, rows: int) -> None:
    """Write the f32 of an array of `rows` per k unless they are there."""
    where = element(builder, array, parts.state, I8)
    missing = builder.icmp_unsigned("==", load(builder, where, I32), I32(FIT))
    with builder.if_then(missing):
        builder.store(I32(_EXPANDED), where, align=4)
        floats = element(builder, array, parts.floats, I8)
        with counted_loop(builder, parts.words // rows) as depth:
            source, target = (builder.mul(depth, I64(count)) for count in (rows, 2 * rows))
            for first in range(0, rows, WIDTH):
                at = builder.add(source, I64(first))
                words = load(builder, element(builder, array, at, I32), _WORDS)
                for part, value in enumerate(halves(builder, words)):
                    at = builder.add(target, I64(first + part * rows))
                    builder.store(value, element(builder, floats, at, I32), align=4)


class FactorGuard:
    """Finds out whether all elements of an operand are fit, while they are converted.

    Smallest and largest magnitudes are kept in memory of the function, of words for scaled
    elements, whose f32 may have more bits than a bf16, else of halves of words.
    """

    def __init__(self, builder: ir.IRBuilder, source: MatrixSource) -> None:
        self.builder = builder
        kind, self.scaled = source.format, source.scale is not None
        assert isinstance(kind, Encoding)
        least = 1 - kind.bias - kind.mantissa
        self._kind = _WORDS if self.scaled else _HALVES
        self._bits = 32 if self.scaled else 16
        finite = kind.specials is SpecialValues.NONE and not self.scaled
        low = self._slot(-1) if self.scaled or least < _LEAST_FACTOR else None
        self._slots = {"umin": low, "umax": None if finite else self._slot(0)}

    def _slot(self, value: int) -> Any:
        with self.builder.goto_entry_block():
            slot: Any = self.builder.alloca(self._kind)
            slot.align = 64
            self.builder.store(self._constant(value), slot)
            return slot

    def _constant(self, value: int) -> Any:
        return constant(value, self._bits, self._kind.count)

    def see_pair(self, value: Any) -> None:
        """Take note of words of two unscaled elements."""
        if not self.scaled:
            self._see(self.builder.bitcast(value, _HALVES))

    def see_scaled(self, value: Any) -> None:
        """Take note of the f32 of scaled elements."""
        self._see(self.builder.bitcast(value, _WORDS))

    def _see(self, value: Any) -> None:
        twice = self.builder.add(value, value)  # without its sign
        # zero becomes the largest
        for name, seen in (("umin", self.builder.sub(twice, self._constant(1))), ("umax", twice)):
            slot = self._slots[name]
            if slot is not None:
                before = load(self.builder, slot, self._kind, 64)
                after = extreme(self.builder, name, before, seen)
                self.builder.store(after, slot, align=64)

    def unfit(self) -> Any:
        """i1: some element is not fit; None where none of the format can be."""
        builder, unfit = self.builder, None
        mantissa = self._bits - 9
        least = ((_BIAS + _LEAST_FACTOR) << (mantissa + 1)) - 1
        bounds = {"umin": ("<", least), "umax": (">=", 0xFF << (mantissa + 1))}
        for name, (comparison, bound) in bounds.items():
            slot = self._slots[name]
            if slot is not None:
                value = load(builder, slot, self._kind, 64)
                wrong = builder.icmp_unsigned(comparison, value, self._constant(bound))
                some = any_lane(builder, wrong)
                unfit = some if unfit is None else builder.or_(unfit, some)
        return unfit


def unfit_addends(builder: ir.IRBuilder, addends: list[Any]) -> Any:
    """i1: some element of C is not fit. Infinity and NaN are: with finite factors, pairs give
    the same."""
    smallest: Any = constant(-1, 32, WIDTH)
    for addend in addends:
        value = builder.bitcast(addend, _WORDS)
        twice = builder.add(value, value)
        smallest = extreme(builder, "umin", smallest, builder.sub(twice, constant(1, 32, WIDTH)))
    bound = constant(((_BIAS + _LEAST_ADDEND) << 24) - 1, 32, WIDTH)
    small: Any = builder.icmp_unsigned("<", smallest, bound)
    return any_lane(builder, small)


def any_lane(builder: ir.IRBuilder, mask: Any) -> Any:
    """i1: some lane of a vector of i1 is set."""
    whole: Any = builder.bitcast(mask, ir.IntType(mask.type.count))
    return builder.icmp_unsigned("!=", whole, ir.Constant(whole.type, 0))


def extreme(builder: ir.IRBuilder, name: str, left: Any, right: Any) -> Any:
    """The smaller (`umin`) or larger (`umax`) unsigned integers of two vectors."""
    kind = right.type
    full = f"llvm.{name}.v{kind.count}i{kind.element.width}"
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind, kind]), full)
    return builder.call(function, [left, right])


__all__ = [
    "FIT",
    "UNFIT",
    "WIDTH",
    "FactorGuard",
    "PairsArray",
    "add_products",
    "any_lane",
    "expand",
    "extreme",
    "halves",
    "pair",
    "unfit_addends",
    "uses_dots",
]
