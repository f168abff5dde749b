"""TTIR with pairs of interleaved accesses rewritten: one contiguous access, and a split or join.

a = load(p + 2 i)            both = load(p + range(2 n))
b = load(p + 2 i + 1)   ->   a, b = split(reshape(both, (n, 2)))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wavecast.compile.ttgir import IrModule, Operation, Tensor
from wavecast.rules.affine import AffineForm, Forms
from wavecast.rules.triton_slice import access, uses

_COMPARED = re.compile(r"arith\.cmpi (slt|ult), ")
_DENSE = re.compile(r"arith\.constant dense<(.*?)> : ")
_ATTRIBUTES = re.compile(r" \{[^}]*\} :")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two loads or two stores whose lanes alternate: `first` at even elements, `second` at odd.

    `lanes` is the value of the range whose lanes are two elements apart, `tensor` the type of what
    each accesses.
    """

    first: Operation
    second: Operation
    lanes: str
    tensor: Tensor
    form: AffineForm

    @property
    def is_load(self) -> bool:
        return self.first.name == "tt.load"


class CannotRewrite(Exception):
    """The pair is written in a form that the rewriting does not cover."""


def rewritten(text: str, module: IrModule, forms: Forms, pairs: Iterable[Pair]) -> str:
    """The module with the pairs rewritten. Raises CannotRewrite."""
    lines = text.splitlines()
    for number, pair in enumerate(pairs):
        first, second = sorted((pair.first, pair.second), key=lambda access: access.line)
        emitter = _Emitter(module, forms, pair, f"%wavecast{number}_", _location(lines, first))
        if pair.is_load:
            lines[first.line - 1] = "\n".join(emitter.load())
            lines[second.line - 1] = ""
        else:
            lines[first.line - 1] = ""
            lines[second.line - 1] = "\n".join(emitter.store())
    return "\n".join(lines) + "\n"


def _location(lines: Sequence[str], operation: Operation) -> str:
    """The ` loc(#loc12)` of an operation."""
    line = lines[operation.line - 1]
    start = line.rfind(" loc(")
    return line[start:] if start >= 0 else ""


class _Emitter:
    """Writes the operations that replace a pair."""

    def __init__(
        self, module: IrModule, forms: Forms, pair: Pair, prefix: str, location: str
    ) -> None:
        self._module, self._forms, self._pair = module, forms, pair
        self._prefix, self._location = prefix, location
        self._lines: list[str] = []
        *rows, self._count = pair.tensor.shape
        if len(rows) > 1:
            raise CannotRewrite("tensors of more than two dimensions")
        self._rows = rows
        span = forms.lanes(pair.lanes)
        if span is None or span[0] != 0 or span[1] != self._count:
            raise CannotRewrite("a range that is not the last axis")

    def load(self) -> list[str]:
        pair, element = self._pair, self._pair.tensor.element
        operands = [self._pointers(), *self._mask_and_other()]
        pointers = self._wide("!tt.ptr", element)
        loaded = self._emit(f"tt.load {', '.join(operands)}{_attributes(pair.first)} : {pointers}")
        shape = "x".join(map(str, [*self._rows, self._count, 2]))
        tensor = f"tensor<{shape}x{element}>"
        pieces = self._emit(f"tt.reshape {loaded} : {self._wide('', element)} -> {tensor}")
        half = f"tensor<{'x'.join(map(str, pair.tensor.shape))}x{element}>"
        names = f"{pair.first.results[0]}, {pair.second.results[0]}"
        self._lines.append(f"{names} = tt.split {pieces} : {tensor} -> {half}{self._location}")
        return self._lines

    def store(self) -> list[str]:
        pair, element = self._pair, self._pair.tensor.element
        values = [uses(pair.first)[1], uses(pair.second)[1]]
        half = f"tensor<{'x'.join(map(str, pair.tensor.shape))}x{element}>"
        shape = "x".join(map(str, [*self._rows, self._count, 2]))
        joined = self._emit(f"tt.join {', '.join(values)} : {half} -> tensor<{shape}x{element}>")
        wide = self._wide("", element)
        both = self._emit(f"tt.reshape {joined} : tensor<{shape}x{element}> -> {wide}")
        operands = [self._pointers(), both, *self._mask_and_other()]
        self._lines.append(
            f"tt.store {', '.join(operands)}{_attributes(pair.first)} : "
            f"{self._wide('!tt.ptr', element)}{self._location}"
        )
        return self._lines

    def _emit(self, operation: str) -> str:
        name = f"{self._prefix}{len(self._lines)}"
        self._lines.append(f"{name} = {operation}{self._location}")
        return name

    def _wide(self, wrapper: str, element: str) -> str:
        """The type of a tensor with both elements of every pair."""
        shape = "x".join(map(str, [*self._rows, 2 * self._count]))
        return f"tensor<{shape}x{f'{wrapper}<{element}>' if wrapper else element}>"

    def _constant(self, value: int) -> str:
        return self._emit(f"arith.constant {value} : i32")

    def _splat(self, value: str, type_: str) -> str:
        wide = f"tensor<{'x'.join(map(str, [*self._rows, 2 * self._count]))}x{type_}>"
        return self._emit(f"tt.splat {value} : {type_} -> {wide}")

    def _range(self) -> str:
        """0 … 2 n - 1 in the last axis."""
        end = 2 * self._count
        iota = self._emit(
            f"tt.make_range {{end = {end} : i32, start = 0 : i32}} : tensor<{end}xi32>"
        )
        if not self._rows:
            return iota
        row = self._emit(
            f"tt.expand_dims {iota} {{axis = 0 : i32}} : tensor<{end}xi32> -> tensor<1x{end}xi32>"
        )
        wide = self._wide("", "i32")
        return self._emit(f"tt.broadcast {row} : tensor<1x{end}xi32> -> {wide}")

    def _sum(self, form: AffineForm, factor: int) -> tuple[str | None, list[tuple[str, int]]]:
        """The scalar part of a form times a factor, and its terms that are columns."""
        total: str | None = None
        columns = []
        for name, times in form.terms.items():
            shape = self._forms.shape(name)
            if shape is not None:
                columns.append((name, times * factor))
                continue
            total = self._add(total, self._scale(name, times * factor))
        if form.constant:
            total = self._add(total, self._constant(form.constant * factor))
        return total, columns

    def _scale(self, name: str, factor: int) -> str:
        if self._is_wide_integer(name):
            raise CannotRewrite("64-bit offsets")
        if factor == 1:
            return name
        return self._emit(f"arith.muli {name}, {self._constant(factor)} : i32")

    def _is_wide_integer(self, name: str) -> bool:
        operation = self._forms.definition(name)
        return operation is not None and not operation.types.endswith("i32")

    def _add(self, total: str | None, value: str) -> str:
        return value if total is None else self._emit(f"arith.addi {total}, {value} : i32")

    def _pointers(self) -> str:
        """The addresses of both elements of every pair."""
        pair, element = self._pair, self._pair.tensor.element
        terms = dict(pair.form.terms)
        terms.pop(pair.lanes)
        bases = [name for name in terms if self._is_pointer(name)]
        if len(bases) != 1 or terms.pop(bases[0]) != 1:
            raise CannotRewrite("an address without one base pointer")
        scalar, columns = self._sum(AffineForm(terms, pair.form.constant), 1)
        base, pointer = bases[0], f"!tt.ptr<{element}>"
        if scalar is not None:
            base = self._emit(f"tt.addptr {base}, {scalar} : {pointer}, i32")
        wide = self._wide("!tt.ptr", element)
        pointers = self._splat(base, pointer)
        for offset in (*(self._column(name, times) for name, times in columns), self._range()):
            pointers = self._emit(
                f"tt.addptr {pointers}, {offset} : {wide}, {self._wide('', 'i32')}"
            )
        return pointers

    def _column(self, name: str, factor: int) -> str:
        """A term with a value per row, for both elements of every pair."""
        shape = self._forms.shape(name)
        if shape is None or shape.element != "i32" or shape.shape != (*self._rows, 1):
            raise CannotRewrite(f"the term {name}")
        wide = self._wide("", "i32")
        column = self._emit(f"tt.broadcast {name} : tensor<{shape.shape[0]}x1xi32> -> {wide}")
        if factor == 1:
            return column
        factors = self._emit(f"arith.constant dense<{factor}> : {wide}")
        return self._emit(f"arith.muli {column}, {factors} : {wide}")

    def _is_pointer(self, name: str) -> bool:
        operation = self._forms.definition(name)
        if operation is None:
            header = next(self._module.operations_named("tt.func")).text
            return bool(re.search(re.escape(name) + r": !tt\.ptr", header))
        return operation.types.startswith("!tt.ptr") or "-> !tt.ptr" in operation.types

    def _mask_and_other(self) -> list[str]:
        """Mask and default of the wide access: a pair is on where its element was."""
        masks = access(self._pair.first).mask
        if masks != access(self._pair.second).mask:
            raise CannotRewrite("different masks")
        if not masks:
            return []
        operands = [self._mask(masks[0])]
        if self._pair.is_load and len(uses(self._pair.first)) > 2:
            operation = self._forms.definition(uses(self._pair.first)[2])
            dense = _DENSE.search(operation.text) if operation is not None else None
            if dense is None:
                raise CannotRewrite("a default that is not constant")
            wide = self._wide("", self._pair.tensor.element)
            operands.append(self._emit(f"arith.constant dense<{dense[1]}> : {wide}"))
        return operands

    def _mask(self, value: str) -> str:
        """A mask for pairs: where it compares the lanes, `lanes + s < n` is `lanes' + 2 s < 2 n`;
        where it differs by row only, it is that of the row."""
        operation = self._forms.definition(value)
        if operation is None:
            raise CannotRewrite("a mask from outside")
        if operation.name == "arith.andi":
            first, other = (self._mask(name) for name in uses(operation)[:2])
            return self._emit(f"arith.andi {first}, {other} : {self._wide('', 'i1')}")
        shape = self._forms.shape(value)
        if self._rows and shape is not None and shape.shape == (*self._rows, 1):
            return self._emit(
                f"tt.broadcast {value} : tensor<{self._rows[0]}x1xi1> -> {self._wide('', 'i1')}"
            )
        if operation.name in ("tt.broadcast", "tt.expand_dims"):
            return self._mask(uses(operation)[0])
        return self._compare(operation)

    def _compare(self, operation: Operation) -> str:
        """A comparison of the lanes with a bound, for pairs."""
        match = _COMPARED.search(operation.text)
        if match is None:
            raise CannotRewrite("a mask that is not made of comparisons")
        left, right = (self._forms.of(name) for name in uses(operation)[:2])
        if left.terms.get(self._pair.lanes) != 1 or self._pair.lanes in right.terms:
            raise CannotRewrite("a mask that does not compare the lanes")
        remaining = left.plus(AffineForm({self._pair.lanes: 1}), -1)
        (low, columns), (high, more) = self._sum(remaining, 2), self._sum(right, 2)
        if columns or more or high is None:
            raise CannotRewrite("a mask whose bound differs by row")
        compared, wide = self._range(), self._wide("", "i32")
        if low is not None:
            compared = self._emit(f"arith.addi {compared}, {self._splat(low, 'i32')} : {wide}")
        bound = self._splat(high, "i32")
        return self._emit(f"arith.cmpi {match[1]}, {compared}, {bound} : {wide}")


def _attributes(operation: Operation) -> str:
    match = _ATTRIBUTES.search(operation.text)
    return match[0].removesuffix(" :") if match else ""


__all__ = ["CannotRewrite", "Pair", "rewritten"]
