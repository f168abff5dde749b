"""Values of a function of LLVM IR in every lane of its first wave, where lanes determine them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from wavecast.compile.ir_blocks import IrBlock, IrInstruction, integer_width

LANES: Final = 64
_Words = npt.NDArray[np.uint64]
_Known = npt.NDArray[np.bool_]
_ALL: Final = np.ones(LANES, np.bool_)
_WORDS: Final = {"true": 1, "false": 0, "null": 0, "zeroinitializer": 0}
_KEPT = frozenset({"zext", "trunc", "freeze"})
_ITEM: Final = "llvm.amdgcn.workitem.id."
_UNIFORM = frozenset({"llvm.amdgcn.readfirstlane", "llvm.amdgcn.readlane"})


@dataclass(frozen=True, slots=True)
class LaneWords:
    """A value in every lane (u64[64]), where `known` (bool[64]) says so."""

    words: _Words
    known: _Known

    def may_be(self, word: int) -> int:
        """The lanes (a mask) in which it may be `word`."""
        return _mask_of(~self.known | (self.words == word))

    def complete(self) -> list[int] | None:
        """The value of every lane; None where that of one is unknown."""
        return self.words.tolist() if self.known.all() else None


@dataclass(frozen=True, slots=True)
class WaveStart:
    """The first wave of a workgroup: its active lanes (a mask) and the number of each in x, y, z,
    None where the launch's block is not known."""

    active: int
    items: tuple[LaneWords | None, LaneWords | None, LaneWords | None]


def first_wave(block: tuple[int, int, int] | None, most: int, *, is_flat: bool) -> WaveStart:
    """The first wave of a `block`, or of one of at most `most` threads that nobody has stated; it
    has one dimension where the kernel `is_flat`."""
    lanes = np.arange(LANES, dtype=np.uint64)
    threads = most if block is None else block[0] * block[1] * block[2]
    active = (1 << min(threads, LANES)) - 1
    if block is None:
        return WaveStart(active, (LaneWords(lanes, _ALL) if is_flat else None, None, None))
    x, y, _ = (np.uint64(size) for size in block)
    items = (lanes % x, lanes // x % y, lanes // (x * y))
    first, second, third = (LaneWords(item, _ALL) for item in items)
    return WaveStart(active, (first, second, third))


def _mask_of(lanes: npt.NDArray[np.bool_]) -> int:
    """The lanes (bool[64]) as bits."""
    return int(np.packbits(lanes, bitorder="little").view(np.uint64)[0])


class LaneValues:
    """Values by name."""

    def __init__(self, start: WaveStart) -> None:
        self.start = start
        self.values: dict[str, LaneWords] = {}

    def add(self, blocks: Mapping[str, IrBlock]) -> None:
        """Evaluate all instructions in order."""
        for block in blocks.values():
            for instruction in block.instructions:
                self.evaluate(instruction)

    def evaluate(self, instruction: IrInstruction) -> None:
        """Keep the value of an instruction if it is known in a lane."""
        if not instruction.result or not instruction.width:
            return
        value = self._value(instruction)
        if value is not None and value.known.any():
            words = value.words & np.uint64((1 << instruction.width) - 1)
            self.values[instruction.result] = LaneWords(words, value.known)

    def of(self, operand: str) -> LaneWords | None:
        """The value of a name or a constant."""
        if operand.startswith("%"):
            return self.values.get(operand)
        word = constant_word(operand)
        return None if word is None else _constant(word)

    def may_be(self, operand: str, word: int) -> int:
        """The lanes (a mask) in which a value may be `word`."""
        value = self.of(operand)
        return (1 << LANES) - 1 if value is None else value.may_be(word)

    def _value(self, instruction: IrInstruction) -> LaneWords | None:
        opcode = instruction.opcode
        if opcode == "call":
            return self._call(instruction)
        if opcode == "select":
            return self._select(instruction)
        if opcode == "phi":
            return self._phi(instruction)
        if opcode in _KEPT:
            return self.of(instruction.operands[0])
        if opcode == "sext":
            value = self.of(instruction.operands[0])
            width = integer_width(instruction.detail)
            return (
                None if value is None else LaneWords(_sign_extend(value.words, width), value.known)
            )
        if len(instruction.operands) != 2:
            return None
        return self._binary(instruction)

    def _binary(self, instruction: IrInstruction) -> LaneWords | None:
        first, other = (self.of(operand) for operand in instruction.operands)
        if first is None or other is None:
            return None
        width = integer_width(instruction.type)
        known_mask = first.known & other.known
        mask = np.uint64((1 << width) - 1)
        a, b = first.words & mask, other.words & mask
        if instruction.opcode == "icmp":
            compare = _COMPARISONS.get(instruction.detail)
            return None if compare is None else LaneWords(compare(a, b, width), known_mask)
        compute = _BINARY.get(instruction.opcode)
        if compute is None:
            return None
        if instruction.opcode in _DIVISIONS:
            known_mask = known_mask & (b != 0)
            b = np.where(b == 0, np.uint64(1), b)
        elif instruction.opcode in _SHIFTS:
            known_mask = known_mask & (b < width)
            b = np.where(b < width, b, np.uint64(0))
        return LaneWords(compute(a, b, width), known_mask)

    def _select(self, instruction: IrInstruction) -> LaneWords | None:
        condition, *arms = (self.of(operand) for operand in instruction.operands)
        first, other = (arm or _UNKNOWN for arm in arms)
        if condition is None:
            same = first.known & other.known & (first.words == other.words)
            return LaneWords(first.words, same)
        is_true = condition.words != 0
        known_mask = condition.known & np.where(is_true, first.known, other.known)
        return LaneWords(np.where(is_true, first.words, other.words), known_mask)

    def _phi(self, instruction: IrInstruction) -> LaneWords | None:
        values = [self.of(operand) or _UNKNOWN for operand in instruction.operands]
        first, *others = values
        known_mask = first.known
        for other in others:
            known_mask = known_mask & other.known & (other.words == first.words)
        return LaneWords(first.words, known_mask)

    def _call(self, instruction: IrInstruction) -> LaneWords | None:
        callee, operands = instruction.detail, instruction.operands
        if callee.startswith(_ITEM):
            return self.start.items["xyz".index(callee[-1])]
        if callee.startswith("llvm.amdgcn.mbcnt."):
            return self._lanes_below(callee, operands)
        if callee == "llvm.amdgcn.wavefrontsize":
            return _constant(LANES)
        if callee in _UNIFORM:
            value = self.of(operands[0])
            same = value is not None and value.known.all() and len(set(value.words.tolist())) == 1
            return value if same else None
        compute = _CALLS.get(callee.rsplit(".", 1)[0])
        if compute is None or len(operands) < 2:
            return None
        first, other = self.of(operands[0]), self.of(operands[1])
        if first is None or other is None:
            return None
        known_mask = first.known & other.known
        return LaneWords(compute(first.words, other.words, instruction.width), known_mask)

    def _lanes_below(self, callee: str, operands: tuple[str, ...]) -> LaneWords | None:
        """The number of lanes below each: only that of all, not of those in a mask."""
        below = self.of(operands[1])
        if constant_word(operands[0]) not in (0xFFFFFFFF, (1 << 64) - 1) or below is None:
            return None
        lanes = np.arange(LANES, dtype=np.uint64)
        half = np.minimum(lanes, np.uint64(32))
        count = half if callee.endswith("lo") else lanes - half
        return LaneWords(below.words + count, below.known)


def constant_word(text: str) -> int | None:
    """A constant as 64 bits; None for another text."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.removeprefix("-")
    return int(text) & (1 << 64) - 1 if digits.isdecimal() else None


def _constant(word: int) -> LaneWords:
    return LaneWords(np.full(LANES, word, np.uint64), _ALL)


_UNKNOWN: Final = LaneWords(np.zeros(LANES, np.uint64), np.zeros(LANES, np.bool_))


def _sign_extend(words: _Words, width: int) -> _Words:
    """Integers of `width` bits, with their sign in all bits above."""
    sign = np.uint64(1 << width - 1)
    return ((words & np.uint64((1 << width) - 1)) ^ sign) - sign


def _comparison(compare: Callable[..., _Known], *, signed: bool = False) -> Callable[..., _Words]:
    def words(a: _Words, b: _Words, width: int) -> _Words:
        if signed:
            left, right = (
                _sign_extend(a, width).view(np.int64),
                _sign_extend(b, width).view(np.int64),
            )
            return compare(left, right).astype(np.uint64)
        return compare(a, b).astype(np.uint64)

    return words


_COMPARISONS: Final = {
    "eq": _comparison(np.equal),
    "ne": _comparison(np.not_equal),
    "ult": _comparison(np.less),
    "ule": _comparison(np.less_equal),
    "ugt": _comparison(np.greater),
    "uge": _comparison(np.greater_equal),
    "slt": _comparison(np.less, signed=True),
    "sle": _comparison(np.less_equal, signed=True),
    "sgt": _comparison(np.greater, signed=True),
    "sge": _comparison(np.greater_equal, signed=True),
}


def _signed_shift(a: _Words, b: _Words, width: int) -> _Words:
    return (_sign_extend(a, width).view(np.int64) >> b.astype(np.int64)).view(np.uint64)


def _signed_quotient(a: _Words, b: _Words, width: int) -> _Words:
    x, y = _sign_extend(a, width).view(np.int64), _sign_extend(b, width).view(np.int64)
    return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).view(np.uint64)


def _signed_rest(a: _Words, b: _Words, width: int) -> _Words:
    x, y = _sign_extend(a, width).view(np.int64), _sign_extend(b, width).view(np.int64)
    return (np.sign(x) * (np.abs(x) % np.abs(y))).view(np.uint64)


def _extreme(choose: Callable[..., npt.NDArray[np.int64]]) -> Callable[..., _Words]:
    def words(a: _Words, b: _Words, width: int) -> _Words:
        winner = choose(
            _sign_extend(a, width).view(np.int64), _sign_extend(b, width).view(np.int64)
        )
        return winner.view(np.uint64)

    return words


_DIVISIONS = frozenset({"udiv", "urem", "sdiv", "srem"})
_SHIFTS = frozenset({"shl", "lshr", "ashr"})
_BINARY: Final[dict[str, Callable[[_Words, _Words, int], _Words]]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shl": lambda a, b, _: a << b,
    "lshr": lambda a, b, _: a >> b,
    "ashr": _signed_shift,
    "udiv": lambda a, b, _: a // b,
    "urem": lambda a, b, _: a % b,
    "sdiv": _signed_quotient,
    "srem": _signed_rest,
}


_CALLS: Final[dict[str, Callable[[_Words, _Words, int], _Words]]] = {
    "llvm.umin": lambda a, b, _: np.minimum(a, b),
    "llvm.umax": lambda a, b, _: np.maximum(a, b),
    "llvm.smin": _extreme(np.minimum),
    "llvm.smax": _extreme(np.maximum),
}

__all__ = [
    "LANES",
    "LaneValues",
    "LaneWords",
    "WaveStart",
    "constant_word",
    "first_wave",
]
