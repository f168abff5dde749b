"""Reads Triton's intermediate representation (TTIR, TTGIR) for rules and predictions.

The printed form has one operation per line; regions open with `{` at the end of a line. Types and
layouts are kept as printed, source locations are resolved through the `#loc` aliases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from wavecast.isa.instruction import SourceLocation

_ALIAS = re.compile(r"^(?P<name>#\w+) = (?P<value>.*)$")
_OPERATION = re.compile(r'^(?:(?P<results>%[^=]*) = )?"?(?P<name>[a-z][\w]*\.[\w.]+)"?')
_LOCATION_TAIL = re.compile(r"\s*loc\((?P<body>.*)\)\s*$")
_FILE_LOCATION = re.compile(r'"(?P<file>[^"]*)":(?P<line>\d+):(?P<column>\d+)')
_VALUE = re.compile(r"%[\w.]+")
_FLOAT_TENSOR = re.compile(r"tensor<([0-9x]+)xb?f(\d+)[ ,>]")
_SHAPE = re.compile(r"(?P<shape>(?:\d+x)*)(?P<element>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A `tensor<…>` or `!ttg.memdesc<…>` type: shape, element type, and layout as printed."""

    shape: tuple[int, ...]
    element: str
    layout: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `text` is its line without the location; `parent` the operation whose region
    holds it; `closing` the text after the brace that closes its last region (attributes)."""

    index: int
    name: str
    text: str
    line: int
    location: SourceLocation | None
    parent: int | None
    closing: str = ""

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the values it defines, without the count of a group (`%acc:4` is `%acc`)."""
        result_text, equals, _ = self.text.partition(" = ")
        return tuple(_VALUE.findall(result_text)) if equals and result_text.startswith("%") else ()

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the values it uses, in printed order."""
        left, equals, right = self.text.partition(" = ")
        body = right if equals and left.startswith("%") else self.text
        return tuple(_VALUE.findall(body))

    @property
    def types(self) -> str:
        """The trailing type part: what follows the last ` : `."""
        return self.text.rpartition(" : ")[2]


@dataclass(frozen=True, slots=True)
class IrModule:
    """A parsed module. `layouts` maps an alias (`#mma`) to its layout."""

    operations: tuple[Operation, ...]
    layouts: Mapping[str, str]

    def operations_named(self, *names: str) -> Iterator[Operation]:
        """The operations of these names, in order."""
        return (operation for operation in self.operations if operation.name in names)

    def ancestors(self, operation: Operation) -> Iterator[Operation]:
        """The operations whose regions hold `operation`, innermost first."""
        parent = operation.parent
        while parent is not None:
            yield self.operations[parent]
            parent = self.operations[parent].parent

    def loop_of(self, operation: Operation) -> Operation | None:
        """The innermost loop around `operation`."""
        for ancestor in self.ancestors(operation):
            if ancestor.name in LOOPS:
                return ancestor
        return None

    def within(self, outer: Operation) -> Iterator[Operation]:
        """Every operation within the regions of `outer`, at any depth."""
        return (
            operation
            for operation in self.operations[outer.index + 1 :]
            if outer in self.ancestors(operation)
        )

    def layout(self, tensor: Tensor) -> str:
        """The tensor's layout with its alias resolved."""
        return self.layouts.get(tensor.layout, tensor.layout)


LOOPS = ("scf.for", "scf.while")
DOTS = ("tt.dot", "tt.dot_scaled", "ttng.warp_group_dot", "ttng.tc_gen5_mma")
_TENSOR_PREFIXES = ("tensor<", "!ttg.memdesc<")


def tensors(text: str) -> list[Tensor]:
    """Every tensor or memory descriptor type in `text`, in order."""
    tensor_types = []
    position = 0
    while position < len(text):
        starts = [(text.find(prefix, position), prefix) for prefix in _TENSOR_PREFIXES]
        starts = [(start, prefix) for start, prefix in starts if start >= 0]
        if not starts:
            break
        start, prefix = min(starts)
        begin = start + len(prefix)
        end = _matching(text, begin)
        tensor_types.append(_tensor(text[begin:end]))
        position = end
    return tensor_types


def _matching(text: str, begin: int) -> int:
    """Index of the `>` that closes the bracket opened before `begin`."""
    depth = 1
    for index in range(begin, len(text)):
        if text[index] == "<":
            depth += 1
        elif text[index] == ">" and text[index - 1] != "-":
            depth -= 1
            if depth == 0:
                return index
    return len(text)


def _tensor(body: str) -> Tensor:
    head, _, layout = body.partition(", ")
    match = _SHAPE.fullmatch(head)
    assert match is not None  # the element group takes any text
    shape = tuple(int(size) for size in match["shape"].split("x") if size)
    return Tensor(shape, match["element"], layout)


def dot_operands(operation: Operation) -> tuple[Tensor, Tensor, Tensor] | None:
    """The types of A, B and the result of a dot; None when they are not printed as tensors."""
    left, separator, right = operation.types.partition(" * ")
    result = right.rpartition(" -> ")
    if not separator or not result[1]:
        return None
    a, b, d = tensors(left), tensors(result[0]), tensors(result[2])
    if not a or not b or not d:
        return None
    return a[0], b[0], d[0]


def carried_registers(text: str, threads: int) -> int:
    """32-bit registers per lane that the floating-point tensors carried around a loop need at
    least, spread over `threads`: the most of any loop of a TTGIR module."""
    most = 0
    for line in text.splitlines():
        if "scf.for" not in line or "iter_args" not in line:
            continue
        carried = line.rpartition("-> (")[2]
        bits = 0
        for shape, width in _FLOAT_TENSOR.findall(carried):
            bits += math.prod(map(int, shape.split("x"))) * int(width)
        most = max(most, bits // 32 // threads)
    return most


@lru_cache(maxsize=64)
def parse(text: str, moved_files: tuple[tuple[str, str], ...] = ()) -> IrModule:
    """Read a printed TTIR or TTGIR module. Lines without an operation are skipped. Locations in the
    first file of a pair of `moved_files` are in the second."""
    lines = text.splitlines()
    aliases = {
        match["name"]: match["value"] for match in map(_ALIAS.match, lines) if match is not None
    }
    locations = _Locations(aliases, dict(moved_files))
    operations: list[Operation] = []
    open_regions: list[int | None] = []
    for number, raw in enumerate(lines, 1):
        body, location = _split_location(raw.strip())
        if body.startswith("}"):
            if body.endswith("{"):  # `} else {`
                continue
            if open_regions:
                _close(operations, open_regions.pop(), body[1:].strip(), locations.of(location))
            continue
        match = _OPERATION.match(body)
        if match is not None:
            operations.append(
                Operation(
                    index=len(operations),
                    name=match["name"],
                    text=body,
                    line=number,
                    location=locations.of(location),
                    parent=open_regions[-1] if open_regions else None,
                )
            )
        if body.endswith("{") and operations and match is not None:
            open_regions.append(operations[-1].index)
        elif body.endswith("{"):
            open_regions.append(None)
    return IrModule(tuple(operations), aliases)


def _close(
    operations: list[Operation], index: int | None, closing: str, location: SourceLocation | None
) -> None:
    """Complete the operation whose region ends here: its location and attributes follow it."""
    if index is None:
        return
    operation = operations[index]
    operations[index] = Operation(
        operation.index,
        operation.name,
        operation.text,
        operation.line,
        location or operation.location,
        operation.parent,
        closing,
    )


def _split_location(line: str) -> tuple[str, str]:
    """A line without its trailing `loc(…)`, and that location's body."""
    if line.endswith("{"):
        return line, ""
    start = line.rfind(" loc(")
    if start < 0:
        return line, ""
    match = _LOCATION_TAIL.match(line[start:])
    return (line[:start], match["body"]) if match else (line, "")


class _Locations:
    """Resolves `#loc` aliases to source locations."""

    def __init__(self, aliases: Mapping[str, str], path_map: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._moved = path_map
        self._known: dict[str, SourceLocation | None] = {}

    def of(self, body: str) -> SourceLocation | None:
        if body not in self._known:
            self._known[body] = self._resolve(body)
        return self._known[body]

    def _resolve(self, body: str) -> SourceLocation | None:
        if body.startswith("#"):
            match = _LOCATION_TAIL.match(self._aliases.get(body, ""))
            return self.of(match["body"]) if match else None
        if body.startswith("callsite("):
            callee, _, caller = body[len("callsite(") : -1].partition(" at ")
            return _inline_at(self.of(callee), self.of(caller))
        match = _FILE_LOCATION.match(body)
        if match is not None:
            file = self._moved.get(match["file"], match["file"])
            return SourceLocation(file, int(match["line"]), int(match["column"]))
        inner = re.search(r"#loc\d*", body)  # a named location or the first of a fused one
        return self.of(inner[0]) if inner else None


def _inline_at(
    callee: SourceLocation | None, caller: SourceLocation | None
) -> SourceLocation | None:
    if callee is None or caller is None:
        return callee or caller
    if callee.inlined_at is not None:
        caller = _inline_at(callee.inlined_at, caller)
    return SourceLocation(callee.file, callee.line, callee.column, caller)
