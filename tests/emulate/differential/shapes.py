"""Operations on vectors and memory: elements, shuffles, arrays, atomics."""

from __future__ import annotations

from random import Random

from tests.emulate.differential.operation import Operation, Pick, Picked, Write
from tests.emulate.differential.program import (
    Statement,
    element_bits,
    element_of,
    lanes_of,
    stored_bits,
)
from tests.emulate.differential.text import HOST, Writer

_VECTORS = (
    *("<2 x i16>", "<4 x i16>", "<2 x half>", "<4 x half>", "<4 x i8>", "<2 x i32>"),
    *("<4 x i32>", "<2 x float>", "<2 x bfloat>", "<2 x i64>", "<2 x double>"),
)
_ELEMENTS = ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")
_STORED = (*_ELEMENTS, "i1", "i24", *_VECTORS)
_LENGTH = 4
_LONG = 8
_LANES = 128
_INTEGER_ATOMICS = (
    *("xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin"),
    *("uinc_wrap", "udec_wrap", "usub_cond", "usub_sat"),
)


def extract(w: Writer, s: Statement) -> str:
    vector = s.arguments[0]
    index = _index(w, s, 1, lanes_of(vector.kind))
    return w.set(f"extractelement {vector.kind} {w.operand(vector)}, i32 {index}")


def insert(w: Writer, s: Statement) -> str:
    vector, value = s.arguments[:2]
    index = _index(w, s, 2, lanes_of(s.kind))
    return w.set(
        f"insertelement {s.kind} {w.operand(vector)}, {value.kind} {w.operand(value)}, i32 {index}"
    )


def _index(w: Writer, s: Statement, position: int, count: int) -> str:
    """A constant, or an operand modulo the length."""
    if s.detail:
        return str(s.detail[0])
    return w.set(f"and i32 {w.operand(s.arguments[position])}, {count - 1}")


def pick_extract(random: Random) -> Picked:
    kind = random.choice(_VECTORS)
    if random.random() < 0.3:
        return element_of(kind), (kind, "i32"), ()
    return element_of(kind), (kind,), (random.randrange(lanes_of(kind)),)


def pick_insert(random: Random) -> Picked:
    """Not at computed places of 64-bit elements: LLVM 22 selects both halves by the wrong half of
    `s_bitcmp0_b32`."""
    kind = random.choice(_VECTORS)
    if random.random() < 0.3 and element_bits(kind) < 64:
        return kind, (kind, element_of(kind), "i32"), ()
    return kind, (kind, element_of(kind)), (random.randrange(lanes_of(kind)),)


def table(w: Writer, s: Statement) -> str:
    """A long vector of three values in turn: one place overwritten, another read."""
    *values, where, there = (w.operand(x) for x in s.arguments)
    vector = f"<{_LONG} x {s.kind}>"
    whole = "poison"
    for index in range(_LONG):
        whole = w.set(f"insertelement {vector} {whole}, {s.kind} {values[index % 3]}, i32 {index}")
    place, source = (w.set(f"and i32 {x}, {_LONG - 1}") for x in (where, there))
    changed = w.set(f"insertelement {vector} {whole}, {s.kind} {values[2]}, i32 {place}")
    return w.set(f"extractelement {vector} {changed}, i32 {source}")


def pick_table(random: Random) -> Picked:
    kind = random.choice(("i16", "i32", "i32", "float", "half"))
    return kind, (kind, kind, kind, "i32", "i32"), ()


def shuffle(w: Writer, s: Statement) -> str:
    a, b = (w.operand(x) for x in s.arguments)
    indices = ", ".join(f"i32 {index}" for index in s.detail)
    mask, kind = f"<{len(s.detail)} x i32> <{indices}>", s.kind
    return w.set(f"shufflevector {kind} {a}, {kind} {b}, {mask}")


def pick_shuffle(random: Random) -> Picked:
    kind = random.choice(_VECTORS)
    count = lanes_of(kind)
    return kind, (kind, kind), tuple(random.randrange(2 * count) for _ in range(count))


def choose(w: Writer, s: Statement) -> str:
    flag, a, b = (w.operand(x) for x in s.arguments)
    return w.set(f"select i1 {flag}, {s.kind} {a}, {s.kind} {b}")


def pick_choose(random: Random) -> Picked:
    kind = random.choice((*_ELEMENTS, *_VECTORS, "i1"))
    return kind, ("i1", kind, kind), ()


def private(w: Writer, s: Statement) -> str:
    """An array of four: filled, written at one index, read at another."""
    space = "" if w.host else " addrspace(5)"
    pointer = w.fresh()
    size = _bytes(s.kind)
    suffix = "" if w.host else ", addrspace(5)"
    w.allocas.append(f"  {pointer} = alloca [{_LENGTH * size} x i8], align 16{suffix}")
    return _array(w, s, pointer, space)


def local(w: Writer, s: Statement) -> str:
    """The same in memory the workgroup shares; every lane has its own part."""
    if w.host:
        return private(w, s)
    size = _LENGTH * _bytes(s.kind)
    name = f"@shared{len(w.globals)}"
    w.globals.append(
        f"{name} = internal addrspace(3) global [{_LANES * size} x i8] poison, align 16"
    )
    lane = w.call("llvm.amdgcn.workitem.id.x", "i32")
    start = w.set(f"mul i32 {lane}, {size}")
    return _array(w, s, w.at(name, start, " addrspace(3)"), " addrspace(3)")


def _array(w: Writer, s: Statement, pointer: str, space: str) -> str:
    first, second, where, there = (w.operand(x) for x in s.arguments)
    size = _bytes(s.kind)
    align = min(int(s.detail[0]), size & -size)
    for index in range(_LENGTH):
        value = second if index & 1 else first
        w.store(s.kind, value, w.at(pointer, index * size, space), space, align)
    for index, stores in ((where, True), (there, False)):
        number = w.set(f"and i32 {index}, {_LENGTH - 1}")
        place = w.at(pointer, w.set(f"mul i32 {number}, {size}"), space)
        if stores:
            w.store(s.kind, second, place, space, align)
    return w.load(s.kind, place, space, align)


def _bytes(kind: str) -> int:
    return stored_bits(kind) // 8 * (lanes_of(kind) or 1)


def pick_array(random: Random) -> Picked:
    kind = random.choice(_STORED)
    return kind, (kind, kind, "i32", "i32"), (random.choice((1, 2, 4, 8, 16)),)


def atomic(w: Writer, s: Statement) -> str:
    """Memory set to one value and changed by another: the old or the new value."""
    name, place, which = s.detail
    start, operand = (w.operand(x) for x in s.arguments)
    space = _atomic_space(w.dialect, str(place))
    size = element_bits(s.kind) // 8
    pointer = _slot(w, space, size)
    w.do(f"store {s.kind} {start}, ptr{space} {pointer}, align {size}")
    scope = "" if w.host else ' syncscope("workgroup")'
    old = w.set(
        f"atomicrmw volatile {name} ptr{space} {pointer}, {s.kind} {operand}{scope} acq_rel, "
        f"align {size}"
    )
    if which == "old":
        return old
    return w.set(f"load {s.kind}, ptr{space} {pointer}, align {size}")


def exchange(w: Writer, s: Statement) -> str:
    """Compare and swap: the old value, or the new one."""
    place, which = s.detail
    start, expected, value = (w.operand(x) for x in s.arguments)
    space = _atomic_space(w.dialect, str(place))
    size = element_bits(s.kind) // 8
    pointer = _slot(w, space, size)
    w.do(f"store {s.kind} {start}, ptr{space} {pointer}, align {size}")
    scope = "" if w.host else ' syncscope("workgroup")'
    pair = w.set(
        f"cmpxchg volatile ptr{space} {pointer}, {s.kind} {expected}, {s.kind} {value}{scope} "
        f"acq_rel monotonic, align {size}"
    )
    if which == "old":
        return w.set(f"extractvalue {{ {s.kind}, i1 }} {pair}, 0")
    return w.set(f"load {s.kind}, ptr{space} {pointer}, align {size}")


def _atomic_space(dialect: str, place: str) -> str:
    if dialect == HOST:
        return ""
    return " addrspace(3)" if place == "local" else " addrspace(1)"


def _slot(w: Writer, space: str, size: int) -> str:
    """Eight bytes of this lane's own."""
    if w.host:
        pointer = w.fresh()
        w.allocas.append(f"  {pointer} = alloca i64, align 8")
        return pointer
    if space == " addrspace(1)":
        return w.at("%room", 0, space)
    name = f"@shared{len(w.globals)}"
    w.globals.append(f"{name} = internal addrspace(3) global [{_LANES * 8} x i8] poison, align 8")
    lane = w.call("llvm.amdgcn.workitem.id.x", "i32")
    return w.at(name, w.set(f"mul i32 {lane}, 8"), space)


def pick_atomic(random: Random) -> Picked:
    """LLVM 22 cannot select a saturating subtraction in LDS."""
    kind = random.choice(("i32", "i32", "i64"))
    name, where = random.choice(_INTEGER_ATOMICS), _where(random)
    return kind, (kind, kind), (name, *(("global", where[1]) if name == "usub_sat" else where))


def pick_exchange(random: Random) -> Picked:
    kind = random.choice(("i32", "i64", "i16", "i8"))
    return kind, (kind, kind, kind), _where(random)


def _where(random: Random) -> tuple[str, str]:
    return random.choice(("global", "local")), random.choice(("old", "new"))


def _operations() -> dict[str, Operation]:
    entries: dict[str, tuple[Write, Pick]] = {
        "extract": (extract, pick_extract),
        "insert": (insert, pick_insert),
        "table": (table, pick_table),
        "shuffle": (shuffle, pick_shuffle),
        "select": (choose, pick_choose),
        "private": (private, pick_array),
        "local": (local, pick_array),
        "atomic": (atomic, pick_atomic),
        "cmpxchg": (exchange, pick_exchange),
    }
    return {name: Operation(name, write, pick) for name, (write, pick) in entries.items()}


SHAPES: dict[str, Operation] = _operations()
