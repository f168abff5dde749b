"""Addresses of Triton's IR as sums: a pointer, a constant, ranges of lanes and other values.

`%base + 2 * (pid * 1024 + range) + 1` is the form {%base: 1, range: 2, pid: 2048} + 1. A value that
is computed in another way is a term itself, under its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wavecast.compile.ttgir import IrModule, Operation, Tensor, tensors
from wavecast.rules.triton_slice import uses

_INTEGER = re.compile(r"arith\.constant (?:dense<(?P<dense>-?\d+)>|(?P<plain>-?\d+)) :")
_RANGE = re.compile(r"end = (?P<end>\d+) : i32, start = (?P<start>\d+) : i32")
_SAME = frozenset({"tt.splat", "tt.broadcast", "arith.extsi", "arith.extui", "arith.index_cast"})


@dataclass(frozen=True, slots=True)
class AffineForm:
    """A sum: `terms` maps the name of a value to its factor."""

    terms: Mapping[str, int]
    constant: int = 0

    def plus(self, other: AffineForm, sign: int = 1) -> AffineForm:
        """The sum, or with sign -1 the difference, of two forms."""
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + sign * factor
        nonzero_terms = {name: factor for name, factor in terms.items() if factor}
        return AffineForm(nonzero_terms, self.constant + sign * other.constant)

    def times(self, factor: int) -> AffineForm:
        """The form times a constant."""
        if not factor:
            return AffineForm({})
        return AffineForm({n: f * factor for n, f in self.terms.items()}, self.constant * factor)

    @property
    def is_constant(self) -> bool:
        return not self.terms


class Forms:
    """The forms of the values of one function of TTIR."""

    def __init__(self, module: IrModule) -> None:
        self._defined: dict[str, Operation] = {}
        self._known: dict[str, AffineForm] = {}
        for operation in module.operations:
            for name in operation.results:
                self._defined[name] = operation

    def of(self, value: str) -> AffineForm:
        """The form of a value."""
        if value not in self._known:
            self._known[value] = AffineForm({value: 1})  # for values that depend on themselves
            self._known[value] = self._of(value)
        return self._known[value]

    def definition(self, value: str) -> Operation | None:
        """The operation that defines a value, None for an argument of the function or a loop."""
        return self._defined.get(value)

    def lanes(self, value: str) -> tuple[int, int] | None:
        """First and end of a range of lanes, None for another value."""
        operation = self._defined.get(value)
        if operation is None or operation.name != "tt.make_range":
            return None
        match = _RANGE.search(operation.text)
        return (int(match["start"]), int(match["end"])) if match else None

    def shape(self, value: str) -> Tensor | None:
        """The type of a value that an operation defines as a tensor, None for a scalar."""
        operation = self._defined.get(value)
        if operation is None:
            return None
        tensor_types = tensors(operation.types.rpartition("->")[2])
        return tensor_types[-1] if tensor_types else None

    def _of(self, value: str) -> AffineForm:
        operation = self._defined.get(value)
        if operation is None or len(operation.results) != 1:
            return AffineForm({value: 1})
        constant = _INTEGER.search(operation.text)
        if constant is not None:
            return AffineForm({}, int(constant["dense"] or constant["plain"]))
        inputs = uses(operation)
        if operation.name in _SAME or self._is_row(operation):
            return self.of(inputs[0])
        if operation.name in ("arith.addi", "tt.addptr"):
            return self.of(inputs[0]).plus(self.of(inputs[1]))
        if operation.name == "arith.subi":
            return self.of(inputs[0]).plus(self.of(inputs[1]), -1)
        if operation.name in ("arith.muli", "arith.shli"):
            return self._product(operation, value)
        return AffineForm({value: 1})

    def _product(self, operation: Operation, value: str) -> AffineForm:
        first, other = (self.of(name) for name in uses(operation)[:2])
        if operation.name == "arith.shli":
            return first.times(1 << other.constant) if other.is_constant else AffineForm({value: 1})
        if other.is_constant:
            return first.times(other.constant)
        return other.times(first.constant) if first.is_constant else AffineForm({value: 1})

    def _is_row(self, operation: Operation) -> bool:
        """Whether an operation makes the lanes of a vector the last axis of a matrix."""
        return operation.name == "tt.expand_dims" and "axis = 0 " in operation.text


__all__ = ["AffineForm", "Forms"]
