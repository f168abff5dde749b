"""Writing LLVM IR: names, calls of intrinsics, constants, memory, regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.emulate.differential.program import (
    Choice,
    Const,
    Loop,
    Node,
    Operand,
    Statement,
    element_bits,
    element_of,
    is_float,
    lanes_of,
    stored_bits,
    with_element,
)

HOST = "host"
_MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


def mangled(kind: str) -> str:
    """A type in the name of an overloaded intrinsic."""
    single = element_of(kind)
    name = _MANGLED.get(single, single)
    return f"v{lanes_of(kind)}{name}" if lanes_of(kind) else name


def constant(kind: str, bits: tuple[int, ...]) -> str:
    """A constant by its bit patterns."""
    whole = f"i{element_bits(kind)}"
    if not lanes_of(kind):
        number = "true" if kind == "i1" and bits[0] & 1 else "false" if kind == "i1" else bits[0]
        return f"bitcast ({whole} {number} to {kind})" if is_float(kind) else str(number)
    listed = ", ".join(f"{whole} {number}" for number in bits)
    vector = with_element(kind, whole)
    return f"bitcast ({vector} <{listed}> to {kind})" if is_float(kind) else f"<{listed}>"


def splat(kind: str, bits: int) -> str:
    """The same pattern in every element."""
    return constant(kind, (bits,) * (lanes_of(kind) or 1))


Operations = Mapping[str, Callable[["Writer", Statement], str]]
"""Operation -> what writes it and gives the name of its value."""


class Writer:
    """The body of one function in the making.

    `dialect` is a target, or HOST. `space` holds what follows `ptr` for private, local and global
    memory there.
    """

    def __init__(self, dialect: str, declarations: dict[str, str]) -> None:
        self.dialect = dialect
        self.host = dialect == HOST
        self.declarations = declarations
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.globals: list[str] = []
        self.names: dict[int, str] = {}
        self.block = "entry"
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def set(self, expression: str) -> str:
        """A new name for the value of an instruction."""
        name = self.fresh()
        self.lines.append(f"  {name} = {expression}")
        return name

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call a function of (type, value) arguments, declaring it."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declarations[name] = f"declare {result} @{name}({kinds})"
        listed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return self.set(f"call {result} @{name}({listed})")

    def intrinsic(self, name: str, kind: str, *values: str) -> str:
        """`llvm.name.kind` on values of that type."""
        return self.call(f"llvm.{name}.{mangled(kind)}", kind, *((kind, value) for value in values))

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Const):
            return constant(operand.kind, operand.bits)
        return self.names[operand.number]

    # memory

    def load(self, kind: str, pointer: str, space: str = "", align: int = 1) -> str:
        """A value in its stored width."""
        wide = with_element(kind, f"i{stored_bits(kind)}")
        if is_float(kind) or stored_bits(kind) == element_bits(kind):
            return self.set(f"load {kind}, ptr{space} {pointer}, align {align}")
        value = self.set(f"load {wide}, ptr{space} {pointer}, align {align}")
        return self.set(f"trunc {wide} {value} to {kind}")

    def store(self, kind: str, value: str, pointer: str, space: str = "", align: int = 1) -> None:
        wide = with_element(kind, f"i{stored_bits(kind)}")
        if not is_float(kind) and stored_bits(kind) != element_bits(kind):
            value, kind = self.set(f"zext {kind} {value} to {wide}"), wide
        self.do(f"store {kind} {value}, ptr{space} {pointer}, align {align}")

    def at(self, pointer: str, offset: int | str, space: str = "") -> str:
        """A pointer `offset` bytes on."""
        return self.set(f"getelementptr i8, ptr{space} {pointer}, i32 {offset}")

    # regions

    def nodes(self, nodes: tuple[Node, ...], operations: Operations) -> None:
        for node in nodes:
            self.node(node, operations)

    def node(self, node: Node, operations: Operations) -> None:
        if isinstance(node, Statement):
            self.names[node.number] = operations[node.operation](self, node)
        elif isinstance(node, Choice):
            self._choice(node, operations)
        else:
            self._loop(node, operations)

    def _labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def _choice(self, node: Choice, operations: Operations) -> None:
        first, second, after = self._labels("then", "else", "join")
        self.do(f"br i1 {self.operand(node.condition)}, label %{first}, label %{second}")
        ends, taken = [], []
        values = [a for _, _, a, _ in node.results], [b for _, _, _, b in node.results]
        for label, body, chosen in zip(
            (first, second), (node.first, node.second), values, strict=True
        ):
            self.label(label)
            self.nodes(body, operations)
            taken.append([self.operand(value) for value in chosen])
            ends.append(self.block)
            self.do(f"br label %{after}")
        self.label(after)
        for index, (number, kind, _, _) in enumerate(node.results):
            pairs = ", ".join(
                f"[ {values[index]}, %{end} ]" for values, end in zip(taken, ends, strict=True)
            )
            self.names[number] = self.set(f"phi {kind} {pairs}")

    def _loop(self, node: Loop, operations: Operations) -> None:
        head, body, after = self._labels("head", "body", "after")
        limit = self.set(f"and i32 {self.operand(node.count)}, 7")
        starts = [self.operand(start) for _, _, start, _, _ in node.carried]
        before = self.block
        self.do(f"br label %{head}")
        self.label(head)
        place = len(self.lines)
        counter = self.fresh()
        phis = [self.fresh() for _ in node.carried]
        more = self.set(f"icmp ult i32 {counter}, {limit}")
        self.do(f"br i1 {more}, label %{body}, label %{after}")
        self.names[node.counter] = counter
        for (number, _, _, _, _), name in zip(node.carried, phis, strict=True):
            self.names[number] = name
        self.label(body)
        self.nodes(node.body, operations)
        following = self.set(f"add i32 {counter}, 1")
        nexts = [self.operand(item[3]) for item in node.carried]
        end = self.block
        self.do(f"br label %{head}")
        lines = [f"  {counter} = phi i32 [ 0, %{before} ], [ {following}, %{end} ]"]
        for (_, kind, _, _, _), name, start, value in zip(
            node.carried, phis, starts, nexts, strict=True
        ):
            lines.append(f"  {name} = phi {kind} [ {start}, %{before} ], [ {value}, %{end} ]")
        self.lines[place:place] = lines
        self.label(after)
        for (_, _, _, _, number), name in zip(node.carried, phis, strict=True):
            self.names[number] = name
