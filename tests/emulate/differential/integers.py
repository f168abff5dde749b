"""Operations on integers: how they are written, and on which types."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.emulate.differential.operation import Operation, Pick, Write
from tests.emulate.differential.program import (
    Statement,
    element_bits,
    with_element,
)
from tests.emulate.differential.text import Writer, mangled, splat

SCALARS = ("i1", "i8", "i16", "i32", "i32", "i32", "i64", "i64", "i7", "i24", "i33")
VECTORS = ("<2 x i16>", "<2 x i16>", "<4 x i16>", "<4 x i8>", "<2 x i32>", "<4 x i32>", "<2 x i64>")
PREDICATES = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")


def same(kinds: tuple[str, ...], count: int) -> Pick:
    """All operands and the result of one type."""

    def pick(random: Random) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
        kind = random.choice(kinds)
        return kind, (kind,) * count, ()

    return pick


def binary(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        return w.set(f"{name} {s.kind} {a}, {b}")

    return write


def shift(name: str) -> Write:
    """The amount modulo the width, so that it is defined."""

    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        return w.set(f"{name} {s.kind} {a}, {_amount(w, s.kind, b)}")

    return write


def _amount(w: Writer, kind: str, value: str) -> str:
    bits = element_bits(kind)
    if bits == 1:
        return splat(kind, 0)
    if bits & (bits - 1):
        return w.set(f"urem {kind} {value}, {splat(kind, bits)}")
    return w.set(f"and {kind} {value}, {splat(kind, bits - 1)}")


def divide(name: str) -> Write:
    """By a divisor that is neither 0 nor, signed, -1."""

    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        flags = with_element(s.kind, "i1")
        wrong = w.set(f"icmp eq {s.kind} {b}, {splat(s.kind, 0)}")
        if name[0] == "s":
            ones = splat(s.kind, (1 << element_bits(s.kind)) - 1)
            minus = w.set(f"icmp eq {s.kind} {b}, {ones}")
            wrong = w.set(f"or {flags} {wrong}, {minus}")
        instead = splat(s.kind, 3)
        b = w.set(f"select {flags} {wrong}, {s.kind} {instead}, {s.kind} {b}")
        return w.set(f"{name} {s.kind} {a}, {b}")

    return write


def intrinsic(name: str, *rest: str) -> Write:
    """An intrinsic over one type; `rest` are constants that follow, such as `i1 false`."""

    def write(w: Writer, s: Statement) -> str:
        values = [(s.kind, w.operand(x)) for x in s.arguments]
        values += [(kind, value) for kind, value in (item.split() for item in rest)]
        return w.call(f"llvm.{name}.{mangled(s.kind)}", s.kind, *values)

    return write


def saturating_shift(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        return w.intrinsic(name, s.kind, a, _amount(w, s.kind, b))

    return write


def overflowing(name: str) -> Write:
    """The result, all of its bits flipped where it overflowed."""

    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        pair = f"{{ {s.kind}, i1 }}"
        found = w.call(f"llvm.{name}.with.overflow.{s.kind}", pair, (s.kind, a), (s.kind, b))
        value = w.set(f"extractvalue {pair} {found}, 0")
        flag = w.set(f"extractvalue {pair} {found}, 1")
        mask = w.set(f"sext i1 {flag} to {s.kind}")
        return w.set(f"xor {s.kind} {value}, {mask}")

    return write


def high_product(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        bits = element_bits(s.kind)
        wide = with_element(s.kind, f"i{2 * bits}")
        a, b = (w.set(f"{name} {s.kind} {w.operand(x)} to {wide}") for x in s.arguments)
        product = w.set(f"mul {wide} {a}, {b}")
        high = w.set(f"lshr {wide} {product}, {splat(wide, bits)}")
        return w.set(f"trunc {wide} {high} to {s.kind}")

    return write


def small_product(name: str, bits: int) -> Write:
    """The product of the lowest bits, as 24-bit multipliers have it."""

    def write(w: Writer, s: Statement) -> str:
        narrow = with_element(s.kind, f"i{bits}")
        values = []
        for argument in s.arguments:
            cut = w.set(f"trunc {s.kind} {w.operand(argument)} to {narrow}")
            values.append(w.set(f"{name} {narrow} {cut} to {s.kind}"))
        return w.set(f"mul {s.kind} {values[0]}, {values[1]}")

    return write


def compare(w: Writer, s: Statement) -> str:
    a, b = (w.operand(x) for x in s.arguments)
    return w.set(f"icmp {s.detail[0]} {s.arguments[0].kind} {a}, {b}")


def pick_compare(random: Random) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
    kind = random.choice(SCALARS)
    return "i1", (kind, kind), (random.choice(PREDICATES),)


def compare_select(w: Writer, s: Statement) -> str:
    a, b, c, d = (w.operand(x) for x in s.arguments)
    kind, flags = s.arguments[0].kind, with_element(s.kind, "i1")
    flag = w.set(f"icmp {s.detail[0]} {kind} {a}, {b}")
    return w.set(f"select {flags} {flag}, {s.kind} {c}, {s.kind} {d}")


def pick_compare_select(random: Random) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
    kind = random.choice((*SCALARS, *VECTORS))
    return kind, (kind,) * 4, (random.choice(PREDICATES),)


def resize(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        (a,) = s.arguments
        return w.set(f"{name} {a.kind} {w.operand(a)} to {s.kind}")

    return write


def pick_resize(wider: bool) -> Pick:
    def pick(random: Random) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
        widths = sorted(random.sample((1, 7, 8, 16, 24, 32, 33, 64), 2))
        small, large = (f"i{bits}" for bits in widths)
        return (large, (small,), ()) if wider else (small, (large,), ())

    return pick


def bit_field(signed: bool) -> Write:
    """A field of bits at an offset, by shifts: compilers know an instruction for it."""

    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        width, bits = int(s.detail[0]), element_bits(s.kind)
        amount = w.set(f"and {s.kind} {b}, {splat(s.kind, bits - 1)}")
        moved = w.set(f"lshr {s.kind} {a}, {amount}")
        if not signed:
            return w.set(f"and {s.kind} {moved}, {splat(s.kind, (1 << width) - 1)}")
        up = w.set(f"shl {s.kind} {moved}, {splat(s.kind, bits - width)}")
        return w.set(f"ashr {s.kind} {up}, {splat(s.kind, bits - width)}")

    return write


def pick_bit_field(random: Random) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
    kind = random.choice(("i32", "i32", "i64"))
    return kind, (kind, kind), (random.randint(1, element_bits(kind) - 1),)


def insert_field(w: Writer, s: Statement) -> str:
    """Bits of one value where a mask is set, of another elsewhere."""
    mask, a, b = (w.operand(x) for x in s.arguments)
    inverse = w.set(f"xor {s.kind} {mask}, -1")
    first = w.set(f"and {s.kind} {a}, {mask}")
    second = w.set(f"and {s.kind} {b}, {inverse}")
    return w.set(f"or {s.kind} {first}, {second}")


def absolute_difference(w: Writer, s: Statement) -> str:
    """Sum of absolute differences of four bytes, plus a third operand."""
    a, b, total = (w.operand(x) for x in s.arguments)
    for place in range(0, 32, 8):
        parts = []
        for value in (a, b):
            moved = w.set(f"lshr i32 {value}, {place}")
            parts.append(w.set(f"and i32 {moved}, 255"))
        low, high = (w.intrinsic(n, "i32", *parts) for n in ("umin", "umax"))
        total = w.set(f"add i32 {total}, {w.set(f'sub i32 {high}, {low}')}")
    return total


def dot(signed: bool) -> Write:
    """A dot product of four bytes as sums of products."""

    def write(w: Writer, s: Statement) -> str:
        a, b, total = (w.operand(x) for x in s.arguments)
        extend = "sext" if signed else "zext"
        for index in range(4):
            parts = []
            for value in (a, b):
                byte = w.set(f"extractelement <4 x i8> {value}, i32 {index}")
                parts.append(w.set(f"{extend} i8 {byte} to i32"))
            product = w.set(f"mul i32 {parts[0]}, {parts[1]}")
            total = w.set(f"add i32 {total}, {product}")
        return total

    return write


def _dot_pick(random: Random) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
    return "i32", ("<4 x i8>", "<4 x i8>", "i32"), ()


def boolean(name: str) -> Write:
    """All lanes' conditions are wave masks in AMD code."""

    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        return w.set(f"{name} i1 {a}, {b}")

    return write


def _operations() -> dict[str, Operation]:
    every = (*SCALARS, *VECTORS)
    plain = ("i8", "i16", "i32", "i32", "i64", *VECTORS)
    found: dict[str, Operation] = {}

    def add(name: str, write: Callable[[Writer, Statement], str], pick: Pick) -> None:
        found[name] = Operation(name, write, pick)

    for name in ("add", "sub", "mul", "and", "or", "xor"):
        add(name, binary(name), same(every, 2))
    for name in ("shl", "lshr", "ashr"):
        add(name, shift(name), same(every, 2))
    for name in ("udiv", "urem", "sdiv", "srem"):
        add(name, divide(name), same(("i8", "i16", "i24", "i32", "i32", "i64", "<2 x i16>"), 2))
    for name in ("smin", "smax", "umin", "umax", "sadd.sat", "ssub.sat", "uadd.sat", "usub.sat"):
        add(name, intrinsic(name), same(plain, 2))
    for name in ("sshl.sat", "ushl.sat"):
        add(name, saturating_shift(name), same(("i8", "i16", "i32", "i64"), 2))
    for name in ("ctpop", "bitreverse"):
        add(name, intrinsic(name), same(plain, 1))
    for name in ("ctlz", "cttz"):
        add(name, intrinsic(name, "i1 false"), same(plain, 1))
    add("abs", intrinsic("abs", "i1 false"), same(plain, 1))
    add("bswap", intrinsic("bswap"), same(("i16", "i32", "i64", "<2 x i16>"), 1))
    for name in ("fshl", "fshr"):
        add(name, intrinsic(name), same(plain, 3))
    for name in ("sadd", "uadd", "ssub", "usub", "smul", "umul"):
        add(f"{name}.overflow", overflowing(name), same(("i8", "i16", "i32", "i64"), 2))
    for name in ("zext", "sext"):
        add(f"mulhi.{name}", high_product(name), same(("i8", "i16", "i32", "i32", "i64"), 2))
        add(f"mul24.{name}", small_product(name, 24), same(("i32", "i64"), 2))
        add(name, resize(name), pick_resize(wider=True))
    add("trunc", resize("trunc"), pick_resize(wider=False))
    add("icmp", compare, pick_compare)
    add("icmp.select", compare_select, pick_compare_select)
    add("ubfe", bit_field(signed=False), pick_bit_field)
    add("sbfe", bit_field(signed=True), pick_bit_field)
    add("bfi", insert_field, same(("i32", "i64", "i16"), 3))
    add("sad.u8", absolute_difference, same(("i32",), 3))
    add("dot4.signed", dot(signed=True), _dot_pick)
    add("dot4.unsigned", dot(signed=False), _dot_pick)
    for name in ("and", "or", "xor"):
        add(f"mask.{name}", boolean(name), same(("i1",), 2))
    return found


INTEGERS: dict[str, Operation] = _operations()
