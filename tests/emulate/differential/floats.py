"""Operations on floating-point numbers: how they are written, and on which types."""

from __future__ import annotations

from random import Random

from tests.emulate.differential.integers import same
from tests.emulate.differential.operation import Operation, Pick, Picked, Write
from tests.emulate.differential.program import (
    FLOATS,
    Statement,
    element_bits,
    element_of,
    with_element,
)
from tests.emulate.differential.text import Writer, mangled, splat

SCALARS = ("half", "half", "bfloat", "float", "float", "float", "double", "double")
VECTORS = ("<2 x half>", "<2 x half>", "<4 x half>", "<2 x bfloat>", "<2 x float>", "<2 x double>")
_EVERY = (*SCALARS, *VECTORS)
_NO_BRAIN = tuple(kind for kind in _EVERY if element_of(kind) != "bfloat")
_QUIET = {"half": 0x7E00, "bfloat": 0x7FC0, "float": 0x7FC00000, "double": 0x7FF8 << 48}
ONE = {"half": 0x3C00, "bfloat": 0x3F80, "float": 0x3F800000, "double": 0x3FF0 << 48}
_INFINITY = {"half": 0x7C00, "bfloat": 0x7F80, "float": 0x7F800000, "double": 0x7FF0 << 48}
PREDICATES = (
    *("oeq", "one", "ogt", "oge", "olt", "ole", "ord"),
    *("ueq", "une", "ugt", "uge", "ult", "ule", "uno"),
)
_CLASSES = 10


def arithmetic(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        a, b = (w.operand(x) for x in s.arguments)
        return w.set(f"{name} {s.kind} {a}, {b}")

    return write


def intrinsic(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        return w.intrinsic(name, s.kind, *(w.operand(x) for x in s.arguments))

    return write


def fused(w: Writer, s: Statement) -> str:
    """On the host, halves go through double: every sum of a product of halves and a half that
    rounds near a tie is exact there."""
    values = [w.operand(x) for x in s.arguments]
    if not w.host or element_of(s.kind) != "half":
        return w.intrinsic("fma", s.kind, *values)
    wide = with_element(s.kind, "double")
    a, b, c = (w.set(f"fpext {s.kind} {value} to {wide}") for value in values)
    total = w.set(f"fadd {wide} {w.set(f'fmul {wide} {a}, {b}')}, {c}")
    return w.set(f"fptrunc {wide} {total} to {s.kind}")


def canonical(w: Writer, s: Statement) -> str:
    """On the host a product with 1: LLVM cannot lower every vector's canonicalize there."""
    value = w.operand(s.arguments[0])
    if w.host:
        return w.set(f"fmul {s.kind} {value}, {splat(s.kind, ONE[element_of(s.kind)])}")
    return w.intrinsic("canonicalize", s.kind, value)


def negate(w: Writer, s: Statement) -> str:
    return w.set(f"fneg {s.kind} {w.operand(s.arguments[0])}")


def settle(w: Writer, s: Statement) -> str:
    """The value with the canonical NaN for every NaN."""
    return settled(w, s.kind, w.operand(s.arguments[0]))


def settled(w: Writer, kind: str, value: str) -> str:
    """By integers: LLVM takes one NaN for another where floats are selected."""
    single = element_of(kind)
    whole = with_element(kind, f"i{element_bits(kind)}")
    bits = w.set(f"bitcast {kind} {value} to {whole}")
    size = w.set(f"and {whole} {bits}, {splat(whole, (1 << element_bits(kind) - 1) - 1)}")
    wrong = w.set(f"icmp ugt {whole} {size}, {splat(whole, _INFINITY[single])}")
    nan = splat(whole, _QUIET[single])
    flags = with_element(kind, "i1")
    chosen = w.set(f"select {flags} {wrong}, {whole} {nan}, {whole} {bits}")
    return w.set(f"bitcast {whole} {chosen} to {kind}")


def number_of_two(name: str) -> Write:
    """minimumnum, maximumnum. x86 code gives NaN for a signalling NaN and a number, against the
    language: the host's operands are quieted."""

    def write(w: Writer, s: Statement) -> str:
        return w.intrinsic(name, s.kind, *(_quieted(w, s.kind, w.operand(x)) for x in s.arguments))

    return write


def _quieted(w: Writer, kind: str, value: str) -> str:
    return settled(w, kind, value) if w.host else value


def clamp(w: Writer, s: Statement) -> str:
    """Limited to 0..1: AMD code has an output modifier for it."""
    value = _quieted(w, s.kind, w.operand(s.arguments[0]))
    low = w.intrinsic("maximumnum", s.kind, value, splat(s.kind, 0))
    return w.intrinsic("minimumnum", s.kind, low, splat(s.kind, ONE[element_of(s.kind)]))


def _plain(w: Writer, kind: str, value: str) -> str:
    """The value, or +0 for NaN and -0; by integers, which LLVM does not reason away."""
    bits = element_bits(kind)
    whole = w.set(f"bitcast {kind} {value} to i{bits}")
    size = w.set(f"and i{bits} {whole}, {(1 << bits - 1) - 1}")
    less = w.set(f"sub i{bits} {size}, 1")
    good = w.set(f"icmp ult i{bits} {less}, {_INFINITY[kind]}")
    chosen = w.set(f"select i1 {good}, i{bits} {whole}, i{bits} 0")
    return w.set(f"bitcast i{bits} {chosen} to {kind}")


def median(w: Writer, s: Statement) -> str:
    """The middle of three, of operands that are neither NaN nor -0: the median instruction takes
    zeros of both signs for equal, minimum and maximum do not."""
    a, b, c = (_plain(w, s.kind, w.operand(x)) for x in s.arguments)
    low = w.intrinsic("minimumnum", s.kind, a, b)
    high = w.intrinsic("maximumnum", s.kind, a, b)
    return w.intrinsic("maximumnum", s.kind, low, w.intrinsic("minimumnum", s.kind, high, c))


def compare(w: Writer, s: Statement) -> str:
    a, b = (w.operand(x) for x in s.arguments)
    return w.set(f"fcmp {s.detail[0]} {s.arguments[0].kind} {a}, {b}")


def pick_compare(random: Random) -> Picked:
    kind = random.choice(SCALARS)
    return "i1", (kind, kind), (random.choice(PREDICATES),)


def compare_select(w: Writer, s: Statement) -> str:
    a, b, c, d = (w.operand(x) for x in s.arguments)
    flag = w.set(f"fcmp {s.detail[0]} {s.kind} {a}, {b}")
    return w.set(f"select {with_element(s.kind, 'i1')} {flag}, {s.kind} {c}, {s.kind} {d}")


def pick_compare_select(random: Random) -> Picked:
    kind = random.choice(_EVERY)
    return kind, (kind,) * 4, (random.choice(PREDICATES),)


def classify(w: Writer, s: Statement) -> str:
    (a,) = s.arguments
    name = f"llvm.is.fpclass.{mangled(a.kind)}"
    return w.call(name, "i1", (a.kind, w.operand(a)), ("i32 immarg", str(s.detail[0])))


def pick_classify(random: Random) -> Picked:
    return "i1", (random.choice(SCALARS),), (random.randrange(1, 1 << _CLASSES),)


def resize(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        (a,) = s.arguments
        return w.set(f"{name} {a.kind} {w.operand(a)} to {s.kind}")

    return write


def narrow(w: Writer, s: Statement) -> str:
    """To half from behind a fence: LLVM 22 makes a product and its truncation one FMA with +0,
    which loses the sign of a zero."""
    (a,) = s.arguments
    value = w.operand(a)
    if not w.host and element_of(a.kind) == "float":
        value = w.intrinsic("arithmetic.fence", a.kind, value)
    return w.set(f"fptrunc {a.kind} {value} to {s.kind}")


def pick_resize(wider: bool) -> Pick:
    def pick(random: Random) -> Picked:
        small = random.choice(("half", "half", "bfloat", "float"))
        larger = [name for name, bits in FLOATS.items() if bits > FLOATS[small]]
        large = random.choice(larger)
        count = random.choice((0, 0, 2))
        shape = f"<{count} x i8>" if count else "i8"
        kinds = with_element(shape, large), with_element(shape, small)
        return (kinds[0], (kinds[1],), ()) if wider else (kinds[1], (kinds[0],), ())

    return pick


def to_integer(signed: bool) -> Write:
    def write(w: Writer, s: Statement) -> str:
        (a,) = s.arguments
        name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{mangled(s.kind)}.{mangled(a.kind)}"
        return w.call(name, s.kind, (a.kind, w.operand(a)))

    return write


def pick_to_integer(random: Random) -> Picked:
    if random.random() < 0.2:
        return "<2 x i16>", (random.choice(("<2 x half>", "<2 x float>")),), ()
    kind = random.choice(("i1", "i8", "i16", "i32", "i32", "i32", "i64", "i24"))
    return kind, (random.choice(SCALARS),), ()


def from_integer(name: str) -> Write:
    def write(w: Writer, s: Statement) -> str:
        (a,) = s.arguments
        return w.set(f"{name} {a.kind} {w.operand(a)} to {s.kind}")

    return write


def pick_from_integer(random: Random) -> Picked:
    if random.random() < 0.2:
        return random.choice(("<2 x half>", "<2 x float>")), ("<2 x i16>",), ()
    kind = random.choice(("i1", "i8", "i8", "i16", "i32", "i32", "i64", "i24"))
    return random.choice(SCALARS), (kind,), ()


def scale(w: Writer, s: Statement) -> str:
    """Times a power of two; the exponent is kept in a range every format can tell apart."""
    a, b = s.arguments
    bounded = w.intrinsic("smax", "i32", w.operand(b), "-4000")
    bounded = w.intrinsic("smin", "i32", bounded, "4000")
    name = f"llvm.ldexp.{mangled(s.kind)}.i32"
    return w.call(name, s.kind, (s.kind, w.operand(a)), ("i32", bounded))


def pick_scale(random: Random) -> Picked:
    kind = random.choice(("half", "float", "double"))
    return kind, (kind, "i32"), ()


def _finite(w: Writer, kind: str, value: str) -> str:
    """The value, or 1 for infinity and NaN."""
    single = element_of(kind)
    size = w.intrinsic("fabs", kind, value)
    good = w.set(f"fcmp olt {kind} {size}, {splat(kind, _INFINITY[single])}")
    return w.set(f"select i1 {good}, {kind} {value}, {kind} {splat(kind, ONE[single])}")


def mantissa(w: Writer, s: Statement) -> str:
    return _frexp(w, s.kind, w.operand(s.arguments[0]), 0)


def exponent(w: Writer, s: Statement) -> str:
    return _frexp(w, s.arguments[0].kind, w.operand(s.arguments[0]), 1)


def _frexp(w: Writer, kind: str, value: str, index: int) -> str:
    pair = f"{{ {kind}, i32 }}"
    found = w.call(f"llvm.frexp.{mangled(kind)}.i32", pair, (kind, _finite(w, kind, value)))
    return w.set(f"extractvalue {pair} {found}, {index}")


def pick_frexp(result: str) -> Pick:
    def pick(random: Random) -> Picked:
        kind = random.choice(("half", "float", "double"))
        return result or kind, (kind,), ()

    return pick


def fraction(w: Writer, s: Statement) -> str:
    a = w.operand(s.arguments[0])
    return w.set(f"fsub {s.kind} {a}, {w.intrinsic('floor', s.kind, a)}")


def reinterpret(w: Writer, s: Statement) -> str:
    (a,) = s.arguments
    return w.set(f"bitcast {a.kind} {w.operand(a)} to {s.kind}")


_SAME_SIZE = (
    ("i16", "half", "bfloat"),
    ("i32", "float", "<2 x half>", "<2 x i16>", "<4 x i8>", "<2 x bfloat>"),
    ("i64", "double", "<2 x float>", "<4 x half>", "<2 x i32>", "<4 x i16>"),
)


def pick_reinterpret(random: Random) -> Picked:
    a, b = random.sample(random.choice(_SAME_SIZE), 2)
    return a, (b,), ()


def _operations() -> dict[str, Operation]:
    found: dict[str, Operation] = {}

    def add(
        name: str, write: Write, pick: Pick, computes: bool = True, exposes: tuple[int, ...] = ()
    ) -> None:
        found[name] = Operation(name, write, pick, computes, exposes)

    for name in ("fadd", "fsub", "fmul"):
        add(name, arithmetic(name), same(_EVERY, 2))
    add("fdiv", arithmetic("fdiv"), same(("half", "bfloat", "float", "double", "<2 x half>"), 2))
    add("fma", fused, same(_NO_BRAIN, 3))
    add("sqrt", intrinsic("sqrt"), same(("half", "bfloat", "float", "double"), 1))
    for name in ("floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round"):
        add(f"round.{name}", intrinsic(name), same(_EVERY, 1))
    add("canonicalize", canonical, same(_EVERY, 1))
    for name in ("minimumnum", "maximumnum"):
        add(name, number_of_two(name), same(_EVERY, 2))
    for name in ("minimum", "maximum"):
        add(name, intrinsic(name), same(_EVERY, 2))
    add("fneg", negate, same(_EVERY, 1), computes=False)
    add("fabs", intrinsic("fabs"), same(_EVERY, 1), computes=False)
    add("copysign", intrinsic("copysign"), same(_EVERY, 2), computes=False, exposes=(1,))
    add("settle", settle, same(_EVERY, 1), computes=False)
    add("clamp", clamp, same(_EVERY, 1))
    add("median", median, same(("half", "float"), 3))
    add("fcmp", compare, pick_compare, computes=False)
    add("fcmp.select", compare_select, pick_compare_select, computes=False)
    add("is.fpclass", classify, pick_classify, computes=False, exposes=(0,))
    add("fpext", resize("fpext"), pick_resize(wider=True))
    add("fptrunc", narrow, pick_resize(wider=False))
    add("fptosi", to_integer(signed=True), pick_to_integer)
    add("fptoui", to_integer(signed=False), pick_to_integer)
    add("sitofp", from_integer("sitofp"), pick_from_integer)
    add("uitofp", from_integer("uitofp"), pick_from_integer)
    add("ldexp", scale, pick_scale)
    add("frexp.mantissa", mantissa, pick_frexp(""))
    add("frexp.exponent", exponent, pick_frexp("i32"))
    add("fract", fraction, same(("half", "float", "double"), 1))
    add("bitcast", reinterpret, pick_reinterpret, computes=False, exposes=(0,))
    return found


FLOATING: dict[str, Operation] = _operations()
