"""Which kernel arguments a value of Triton's IR depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from wavecast.compile.ttgir import IrModule, Operation, parse

_ARGUMENT = re.compile(
    r"%(?P<name>\w+): (?P<type>!?[\w.]+(?:<[^{}]*?>)?)(?: \{(?P<attrs>[^}]*)\})?"
)
_VALUE = re.compile(r"%[\w.]+(?:#\d+)?")
_BUFFER = re.compile(
    r"(?P<base>%[\w.]+)\[(?P<offsets>%[\w.]+(?:#\d+)?)\](?:, (?P<mask>%[\w.]+(?:#\d+)?))?"
)
_NAMED_MASK = re.compile(r" mask (?:= )?(%[\w.]+(?:#\d+)?)")
_WRAPPERS = frozenset(
    {"tt.splat", "tt.broadcast", "tt.expand_dims", "ttg.convert_layout", "arith.extsi"}
    | {"arith.extui", "arith.trunci", "arith.index_cast"}
)
_CARRIED = re.compile(r"(%[\w.]+) = (%[\w.]+(?:#\d+)?)")


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """One argument of the kernel function: `attributes` are what the launch specialised."""

    name: str
    type: str
    attributes: tuple[str, ...]

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("!tt.ptr")

    def has(self, attribute: str) -> bool:
        """Whether it carries an attribute such as `tt.divisibility`."""
        return any(item.split(" = ")[0] == attribute for item in self.attributes)


@lru_cache(maxsize=64)
def function_arguments(header: str) -> dict[str, FunctionArgument]:
    """The arguments in the header of a `tt.func`, by name, in order."""
    arguments = {}
    for match in _ARGUMENT.finditer(header):
        attributes = tuple(item.strip() for item in (match["attrs"] or "").split(",") if item)
        arguments[match["name"]] = FunctionArgument(match["name"], match["type"], attributes)
    return arguments


class TritonSlices:
    """Backward slices over one module."""

    def __init__(self, module: IrModule) -> None:
        self._module = module
        self._defined: dict[str, Operation] = {}
        self._carried: dict[str, tuple[Operation, int]] = {}
        self._yields: dict[int, list[Operation]] = {}
        for operation in module.operations:
            for name in operation.results:
                self._defined[name] = operation
            if operation.name == "scf.for":
                for position, (name, _) in enumerate(_iter_args(operation)):
                    self._carried[name] = (operation, position)
            if operation.name == "scf.yield" and operation.parent is not None:
                self._yields.setdefault(operation.parent, []).append(operation)
        function = next(module.operations_named("tt.func"), None)
        self.arguments = function_arguments(function.text) if function is not None else {}

    def of(self, values: Iterable[str]) -> tuple[FunctionArgument, ...]:
        """The arguments the values depend on, in the order of the signature."""
        names = self.names(values)
        return tuple(arg for arg in self.arguments.values() if f"%{arg.name}" in names)

    def unproven(self, values: Iterable[str]) -> tuple[FunctionArgument, ...]:
        """The arguments without `tt.divisibility` that keep an address from being aligned.

        Pointers and strides (what is multiplied by an index) come first; other numbers count only
        when there are none, since a bound or a modulus rarely decides the alignment of a row.
        """
        arguments = [arg for arg in self.of(values) if not arg.has("tt.divisibility")]
        strides = self.factors(values)
        decisive = [arg for arg in arguments if arg.is_pointer or arg.name in strides]
        return tuple(decisive or arguments)

    def factors(self, values: Iterable[str]) -> set[str]:
        """Names of the arguments that are multiplied with something on the way to the values."""
        names = set()
        for operation in self.operations(values):
            if operation.name == "arith.muli":
                names |= {self._unwrap(value).lstrip("%") for value in uses(operation)}
        return names & set(self.arguments)

    def _unwrap(self, value: str) -> str:
        """The value behind splats, extensions and broadcasts."""
        operation = self._defined.get(value)
        while operation is not None and operation.name in _WRAPPERS:
            value = uses(operation)[0]
            operation = self._defined.get(value)
        return value

    def names(self, values: Iterable[str]) -> frozenset[str]:
        """Every value, arguments included, that the values depend on."""
        dependences: set[str] = set()
        queue = list(values)
        while queue:
            value = queue.pop()
            if value in dependences:
                continue
            dependences.add(value)
            queue += self._inputs(value)
        return frozenset(dependences)

    def operations(self, values: Iterable[str]) -> Iterator[Operation]:
        """The operations that compute the values, directly or not."""
        for name in self.names(values):
            operation = self._defined.get(name.partition("#")[0])
            if operation is not None:
                yield operation

    def _inputs(self, value: str) -> list[str]:
        if value in self._carried:
            loop, position = self._carried[value]
            return self._loop_inputs(loop, position)
        name, _, position = value.partition("#")
        operation = self._defined.get(name)
        if operation is None:
            return []
        if operation.name == "scf.for":
            return self._loop_inputs(operation, int(position or 0))
        inputs = uses(operation)
        for inner in self._yields.get(operation.index, ()):
            inputs += uses(inner)
        return inputs

    def _loop_inputs(self, loop: Operation, position: int) -> list[str]:
        carried = _iter_args(loop)
        inputs = [carried[position][1]] if position < len(carried) else []
        for inner in self._yields.get(loop.index, ()):
            inputs += uses(inner)[position : position + 1]
        return inputs


def uses(operation: Operation) -> list[str]:
    """The values an operation uses in printed order, a member of a group as `%acc#1`."""
    left, equals, right = operation.text.partition(" = ")
    body = right if equals and left.startswith("%") else operation.text
    return _VALUE.findall(body)


@dataclass(frozen=True, slots=True)
class AccessValues:
    """The values a load or store uses: for its address, and for its mask (empty without one)."""

    address: list[str]
    mask: list[str]


def access(operation: Operation) -> AccessValues:
    """Address and mask of a load or store, in any of the forms Triton prints.

    `tt.load %p, %mask, %other`, `tt.store %p, %value, %mask`,
    `amdg.buffer_… %base[%offsets], %mask`, and copies to shared memory, which name theirs:
    `… mask = %mask`.
    """
    mask_match = _NAMED_MASK.search(operation.text)
    buffer = _BUFFER.search(operation.text)
    if buffer is not None:
        masks = [value for value in (buffer["mask"], mask_match and mask_match[1]) if value]
        return AccessValues([buffer["base"], buffer["offsets"]], masks[:1])
    if mask_match is not None:
        return AccessValues(uses(operation)[:1], [mask_match[1]])
    values = uses(operation)
    at = {"tt.load": 1, "tt.store": 2}.get(operation.name, len(values))
    return AccessValues(values[:1], values[at : at + 1])


def _iter_args(loop: Operation) -> list[tuple[str, str]]:
    """The loop-carried values of a `scf.for`: (name inside the loop, initial value)."""
    _, _, rest = loop.text.partition("iter_args(")
    return _CARRIED.findall(rest.partition(") ->")[0])


@lru_cache(maxsize=16)
def slices(module_text: str, moved_files: tuple[tuple[str, str], ...] = ()) -> TritonSlices:
    """The slices of a module, kept while the rules of one kernel run."""
    return TritonSlices(parse(module_text, moved_files))
