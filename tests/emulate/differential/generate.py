"""Random programs, a function of a seed and a target."""

from __future__ import annotations

from random import Random

from tests.emulate.differential.exchange import EXCHANGES
from tests.emulate.differential.floats import FLOATING
from tests.emulate.differential.integers import INTEGERS
from tests.emulate.differential.operation import Operation
from tests.emulate.differential.program import (
    FLOATS,
    Choice,
    Const,
    Exchange,
    Loop,
    Node,
    Operand,
    Program,
    Statement,
    Use,
    element_bits,
    element_of,
    is_float,
    lanes_of,
)
from tests.emulate.differential.shapes import SHAPES

OPERATIONS: dict[str, Operation] = INTEGERS | FLOATING | SHAPES
_FAMILIES = (INTEGERS, FLOATING, FLOATING, SHAPES)
_INPUTS = (
    *("i8", "i16", "i32", "i32", "i32", "i64", "half", "bfloat", "float", "float", "double"),
    *("<2 x i16>", "<2 x half>", "<4 x i8>", "<2 x float>", "<4 x i32>"),
)
_UNIFORMS = ("i32", "i32", "i64", "float", "half", "double")
_SPECIAL = {
    "half": (0, 1, 0x3FF, 0x400, 0x3800, 0x3C00, 0x4000, 0x7BFF, 0x7C00, 0x7E00, 0x7D01),
    "bfloat": (0, 1, 0x7F, 0x80, 0x3F00, 0x3F80, 0x4000, 0x7F7F, 0x7F80, 0x7FC0, 0x7FA1),
    "float": (
        *(0, 1, 0x7FFFFF, 0x800000, 0x3F000000, 0x3F800000, 0x40000000, 0x4F000000, 0x33000000),
        *(0x477FE000, 0x477FF000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7FA00001, 0x4B7FFFFF),
    ),
    "double": (
        *(0, 1, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x3FE0 << 48, 0x3FF0 << 48, 0x4000 << 48),
        *(0x41DFFFFFFFC00000, 0x43E0 << 48, 0x47EFFFFFF0000000, 0x7FEFFFFFFFFFFFFF),
        *(0x7FF0 << 48, 0x7FF8 << 48, 0x7FF4000000000001, 0x36A0000000000000),
    ),
}
_MIDDLE = {"half": 15, "bfloat": 127, "float": 127, "double": 1023}
_FRACTION = {"half": 10, "bfloat": 7, "float": 23, "double": 52}


def pattern(random: Random, kind: str) -> int:
    """Bits of one element: special, of ordinary size, or any."""
    bits = element_bits(kind)
    single = element_of(kind)
    choice = random.random()
    if single in FLOATS:
        if choice < 0.35:
            return random.choice(_SPECIAL[single]) | random.randrange(2) << bits - 1
        if choice < 0.8:
            exponent = _MIDDLE[single] + random.randint(-6, 12)
            fraction = random.getrandbits(_FRACTION[single])
            if choice < 0.5:  # few bits: sums and ties are exact
                fraction &= -1 << max(_FRACTION[single] - 4, 0)
            sign = random.randrange(2) << bits - 1
            return sign | exponent << _FRACTION[single] | fraction
        return random.getrandbits(bits)
    if choice < 0.4:
        edges = (0, 1, 2, 31, 32, 255, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1)
        return random.choice(edges) & (1 << bits) - 1
    if choice < 0.6:
        return random.randrange(64) & (1 << bits) - 1
    return random.getrandbits(bits)


def constant(random: Random, kind: str) -> Const:
    """In vectors of halves without -0: LLVM 22 takes it for 0 when it packs one for gfx9."""
    bits = [pattern(random, kind) for _ in range(lanes_of(kind) or 1)]
    if lanes_of(kind) and element_of(kind) in ("half", "bfloat"):
        bits = [0 if item == 0x8000 else item for item in bits]
    return Const(kind, tuple(bits))


class Generator:
    """One program in the making. `known` are the values in scope."""

    def __init__(self, seed: int, target: str) -> None:
        self.random = Random(seed)
        self.target = target
        self.known: list[Use] = []
        self.uniform: list[Use] = []
        self.settled: set[int] = set()
        self._count = 0

    def number(self) -> int:
        self._count += 1
        return self._count

    def program(self) -> Program:
        random = self.random
        inputs = tuple((self.number(), random.choice(_INPUTS)) for _ in range(random.randint(2, 4)))
        uniforms = tuple(
            (self.number(), random.choice(_UNIFORMS)) for _ in range(random.randint(0, 3))
        )
        self.known = [Use(*item) for item in (*inputs, *uniforms)]
        self.uniform = [Use(*item) for item in uniforms]
        self.settled = {item.number for item in self.known if element_of(item.kind) != "bfloat"}
        nodes: list[Node | Exchange] = []
        for _ in range(random.randint(4, 14)):
            nodes += self._top()
        defined = self.known[len(inputs) + len(uniforms) :]
        outputs = random.sample(defined, min(len(defined), random.randint(2, 6)))
        if defined and defined[-1] not in outputs:
            outputs.append(defined[-1])
        return Program(inputs, uniforms, tuple(nodes), tuple(outputs), frozenset(self.settled))

    def _top(self) -> list[Node | Exchange]:
        choice = self.random.random()
        if choice < 0.08:
            return [*self._exchange()]
        if choice < 0.16:
            return [*self._choice()]
        if choice < 0.22:
            return [*self._loop()]
        return [*self.statement()]

    # operands

    def operand(self, kind: str, before: list[Node], settled: bool = False) -> Operand:
        """A value in scope, a constant, or what turns a value of another type into this one."""
        random = self.random
        fitting = [use for use in self.known if use.kind == kind]
        choice = random.random()
        if choice < 0.15 or (not fitting and choice < 0.3):
            return constant(random, kind)
        if fitting and choice < 0.9:
            # late values more often, so that statements build on each other
            found = fitting[max(random.randrange(len(fitting)) for _ in range(2))]
        else:
            found = self._made(kind, before)
        if settled and isinstance(found, Use) and found.number not in self.settled:
            return self._state("settle", found.kind, (found,), (), before)
        return found

    def _made(self, kind: str, before: list[Node]) -> Operand:
        """A value of `kind` by conversion, if there is a short way; else a constant."""
        random = self.random
        if lanes_of(kind):
            element = element_of(kind)
            singles = [use for use in self.known if use.kind == element]
            if not singles:
                return constant(random, kind)
            value: Operand = constant(random, kind)
            for index in range(lanes_of(kind)):
                value = self._state(
                    "insert", kind, (value, random.choice(singles)), (index,), before
                )
            return value
        sources = [use for use in self.known if not lanes_of(use.kind) and use.kind != kind]
        if not sources:
            return constant(random, kind)
        source = random.choice(sources)
        return self._converted(source, kind, before)

    def _converted(self, source: Use, kind: str, before: list[Node]) -> Operand:
        random = self.random
        small, large = element_bits(source.kind), element_bits(kind)
        if is_float(kind) and is_float(source.kind):
            if small == large:
                return constant(random, kind)
            return self._state("fpext" if large > small else "fptrunc", kind, (source,), (), before)
        if is_float(kind):
            if source.kind in ("i7", "i33"):
                return constant(random, kind)
            return self._state(random.choice(("sitofp", "uitofp")), kind, (source,), (), before)
        if is_float(source.kind):
            if kind in ("i7", "i33"):
                return constant(random, kind)
            return self._state(random.choice(("fptosi", "fptoui")), kind, (source,), (), before)
        name = random.choice(("zext", "sext")) if large > small else "trunc"
        return self._state(name, kind, (source,), (), before)

    def _state(
        self,
        name: str,
        kind: str,
        arguments: tuple[Operand, ...],
        detail: tuple[int | str, ...],
        before: list[Node],
    ) -> Use:
        statement = Statement(self.number(), kind, name, arguments, detail)
        before.append(statement)
        use = Use(statement.number, kind)
        self.known.append(use)
        if name == "settle" or not is_float(kind) or self._keeps(name, kind, arguments):
            self.settled.add(use.number)
        return use

    def _keeps(self, name: str, kind: str, arguments: tuple[Operand, ...]) -> bool:
        if OPERATIONS[name].computes or element_of(kind) == "bfloat":
            return False
        return all(isinstance(x, Const) or x.number in self.settled for x in arguments)

    # nodes

    def statement(self) -> list[Node]:
        random = self.random
        nodes: list[Node] = []
        family = random.choice(_FAMILIES)
        operation = family[random.choice(list(family))]
        kind, wanted, detail = operation.pick(random)
        if self.uniform and random.random() < 0.2:
            known, self.known = self.known, list(self.uniform)
            arguments = self._operands(operation, wanted, nodes)
            self._state(operation.name, kind, arguments, detail, nodes)
            added = self.known[len(self.uniform) :]
            self.uniform, self.known = self.known, known + added
            return nodes
        arguments = self._operands(operation, wanted, nodes)
        self._state(operation.name, kind, arguments, detail, nodes)
        return nodes

    def _operands(
        self, operation: Operation, wanted: tuple[str, ...], nodes: list[Node]
    ) -> tuple[Operand, ...]:
        found = tuple(
            self.operand(kind, nodes, settled=index in operation.exposes and is_float(kind))
            for index, kind in enumerate(wanted)
        )
        if all(isinstance(item, Const) for item in found) and self.known:
            # nothing but constants would be folded away
            index = self.random.randrange(len(found))
            source = self.random.choice(self.known)
            if source.kind == wanted[index] and index not in operation.exposes:
                return (*found[:index], source, *found[index + 1 :])
        return found

    def _exchange(self) -> list[Node | Exchange]:
        random = self.random
        nodes: list[Node] = []
        operation = random.choice([e for e in EXCHANGES.values() if e.exists(self.target)])
        arguments = tuple(self.operand("i32", nodes) for _ in range(operation.operands))
        detail = operation.detail(random, self.target)
        exchange = Exchange(self.number(), operation.name, arguments, detail)
        self.known.append(Use(exchange.number, "i32"))
        self.settled.add(exchange.number)
        return [*nodes, exchange]

    def _body(self, size: int) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for _ in range(size):
            nodes += self.statement()
        if self.random.random() < 0.15 and size > 1:
            nodes += self._choice()
        return tuple(nodes)

    def _choice(self) -> list[Node]:
        random = self.random
        nodes: list[Node] = []
        condition = self.operand("i1", nodes)
        outer, uniform = list(self.known), list(self.uniform)
        bodies, scopes = [], []
        for _ in range(2):
            self.known, self.uniform = list(outer), list(uniform)
            bodies.append(self._body(random.randint(1, 3)))
            scopes.append(self.known)
        self.known, self.uniform = outer, uniform
        results = []
        kinds = {use.kind for use in scopes[0][len(outer) :]}
        for kind in sorted(kinds):
            values: list[Operand] = []
            for scope in scopes:
                fitting = [use for use in scope if use.kind == kind]
                values.append(fitting[-1] if fitting else constant(random, kind))
            number = self.number()
            results.append((number, kind, values[0], values[1]))
            if not is_float(kind) or (
                element_of(kind) != "bfloat"
                and all(isinstance(v, Const) or v.number in self.settled for v in values)
            ):
                self.settled.add(number)
        self.known += [Use(number, kind) for number, kind, _, _ in results]
        nodes.append(Choice(condition, bodies[0], bodies[1], tuple(results)))
        return nodes

    def _loop(self) -> list[Node]:
        random = self.random
        nodes: list[Node] = []
        count = self.operand("i32", nodes)
        outer, uniform = list(self.known), list(self.uniform)
        starts = random.sample(outer, min(len(outer), random.randint(1, 3)))
        carried = [(self.number(), use) for use in starts]
        counter = self.number()
        self.known = [*outer, Use(counter, "i32")]
        self.settled.add(counter)
        for number, use in carried:
            self.known.append(Use(number, use.kind))
            if not is_float(use.kind):
                self.settled.add(number)
        body = self._body(random.randint(1, 4))
        scope = self.known
        self.known, self.uniform = outer, uniform
        results = []
        for number, use in carried:
            following = [item for item in scope if item.kind == use.kind][-1]
            after = self.number()
            results.append((number, use.kind, use, following, after))
            if not is_float(use.kind):
                self.settled.add(after)
        self.known += [Use(after, kind) for _, kind, _, _, after in results]
        nodes.append(Loop(count, counter, body, tuple(results)))
        return nodes


def generate(seed: int, target: str) -> Program:
    """The program of a seed; lane exchanges are those the target has."""
    return Generator(seed, target).program()
