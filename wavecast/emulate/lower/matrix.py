"""Matrix instructions: calls of the functions of `wavecast.emulate.matrix`.

Instructions that accumulate into the same registers are executed together: each operand is read
into an array once, when the first of them comes, and the products wait as chains, one per D, until
an instruction needs D, overwrites C, or the block ends. Sums keep their order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.sites import data_rows
from wavecast.emulate.matrix import function
from wavecast.emulate.matrix.detection import detect
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.spec import MatrixSpec, UnsupportedMatrix, matrix_spec
from wavecast.emulate.values import I8, I64, PTR, element
from wavecast.isa.instruction import Decoded, Operand

_POSITIONS = {"d": 0, "a": 1, "b": 2, "c": 3, "index": 3, "scale_a": 4, "scale_b": 5}
_ROOM = 192 << 10
"""Bytes of arrays at a time: they should stay in the host's second-level cache."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A matrix instruction but for its registers, and what follows from that: the names of the
    functions that read A and B, the bytes of their arrays, the name of the chain's function."""

    spec: MatrixSpec
    key: str
    sources: dict[str, str]
    bytes: dict[str, int]
    chain: str

    @classmethod
    def of(cls, spec: MatrixSpec, host: Host) -> _Form:
        """The form of a spec that can be a link of a chain, or of another."""
        sources = {which: function.source_name(spec, which, host) for which in "ab"}
        sizes = {which: function.source_bytes(spec, which, host) for which in "ab"}
        key, chain = function.chain_key(spec, host), function.chain_name(spec, host)
        return cls(spec, key, sources, sizes, chain)


@dataclass(slots=True)
class _Chain:
    """Instructions on one D that wait; `c` is None when the first adds to a constant."""

    key: str
    function: ir.Function
    d: Operand
    c: Operand | None
    links: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Array:
    """An operand that has been read: the registers it came from, its offset in the room."""

    registers: int
    offset: int


class MatrixGroup:
    """The matrix instructions of a block that wait, and the operands read for them."""

    def __init__(self, emitter: WaveEmitter) -> None:
        self.emitter = emitter
        self.host = detect()
        self._forms: dict[tuple[Any, ...], _Form] = {}
        """By opcode, modifiers and what is asked of the operands."""
        self._chains: list[_Chain] = []
        self._written = 0
        """Registers of every D that waits."""
        self._kept = 0
        """Registers of every C."""
        self._arrays: dict[tuple[str | int, ...], _Array] = {}
        """By function and operands."""
        self._used = 0
        self._room: Any = None

    def lower(self, decoded: Decoded) -> None:
        """Lower one matrix instruction. Raises Unsupported with the reason."""
        emitter, form = self.emitter, self._form(decoded)
        spec = form.spec
        if spec.chains:
            self._add(decoded, form)
            return
        self.before(decoded)
        callee = self._outline(
            function.function_name(spec),
            function.spec_type(spec),
            lambda module: function.spec_function(module, spec, self.host),
        )
        emitter.call(callee, [self._rows(decoded, name) for name in spec.parameters])

    def _form(self, decoded: Decoded) -> _Form:
        operands = decoded.operands
        d, last = operands[0], operands[min(3, len(operands) - 1)]
        overlap = d.first != last.first and bool(d.bits & last.bits)
        of_operands = [
            (operand.kind, operand.count, operand.text if operand.value is not None else "")
            for operand in operands
        ]
        key = (id(decoded.opcode), *decoded.modifiers.items(), *of_operands, overlap)
        cached_form = self._forms.get(key)
        if cached_form is not None:
            return cached_form
        target, lanes = self.emitter.input.program.target, self.emitter.layout.lanes
        try:
            form = _Form.of(matrix_spec(decoded, target, lanes), self.host)
        except UnsupportedMatrix as error:
            raise Unsupported(error.message) from None
        self._forms[key] = form
        return form

    def before(self, decoded: Decoded) -> None:
        """Ahead of an instruction of another kind: execute what it must not see undone."""
        self._flush_for(decoded.reads | decoded.writes, decoded.writes)
        self._forget(decoded.writes)

    def flush(self) -> None:
        """Execute what waits."""
        emitter, chains = self.emitter, self._chains
        self._chains, self._written, self._kept = [], 0, 0
        for chain in chains:
            rows = [data_rows(emitter, o) for o in (chain.d, chain.c) if o is not None]
            links = function.links_table(emitter.module, chain.links)
            emitter.call(chain.function, [*rows, self._room, links, I64(len(chain.links))])

    def close(self) -> None:
        """Execute what waits and forget the operands: control flow continues elsewhere."""
        self.flush()
        self._arrays, self._used = {}, 0

    def _add(self, decoded: Decoded, form: _Form) -> None:
        spec, key = form.spec, form.key
        d = decoded.operands[0]
        c = decoded.operands[3] if spec.c.constant is None else None
        in_place = c is not None and c.bits == d.bits
        if in_place and self._waiting(key, d) is not None:
            self._flush_for(self._factors(decoded, spec), 0)
        else:
            self._flush_for(decoded.reads | decoded.writes, decoded.writes)
        link = self._read(decoded, form)
        chain = self._waiting(key, d) if in_place else None
        if chain is None:
            callee = self._outline(
                form.chain,
                function.chain_type(spec),
                lambda module: function.chain_function(module, spec, self.host),
            )
            chain = _Chain(key, callee, d, c)
            self._chains.append(chain)
            self._written |= d.bits
            self._kept |= c.bits if c is not None else 0
        chain.links.append(link)
        self._forget(d.bits)

    def _waiting(self, key: str, d: Operand) -> _Chain | None:
        """The chain that accumulates into `d` alike."""
        return next((c for c in self._chains if c.key == key and c.d.bits == d.bits), None)

    def _factors(self, decoded: Decoded, spec: MatrixSpec) -> int:
        """The registers of A, B and their scales."""
        registers = 0
        for name in spec.parameters:
            if name not in ("d", "c"):
                registers |= decoded.operands[_POSITIONS[name]].bits
        return registers

    def _flush_for(self, registers: int, written: int) -> None:
        if registers & self._written or written & self._kept:
            self.flush()

    def _forget(self, written: int) -> None:
        """Operands whose registers are overwritten have to be read again."""
        if any(array.registers & written for array in self._arrays.values()):
            arrays = self._arrays.items()
            self._arrays = {key: array for key, array in arrays if not array.registers & written}

    def _read(self, decoded: Decoded, form: _Form) -> tuple[int, int]:
        """Where in the room A and B are, read now unless they have been."""
        if self._used + sum(form.bytes.values()) > _ROOM:
            self.close()
        return self._array(decoded, form, "a"), self._array(decoded, form, "b")

    def _array(self, decoded: Decoded, form: _Form, which: str) -> int:
        emitter, spec, size = self.emitter, form.spec, form.bytes[which]
        callee = self._outline(
            form.sources[which],
            function.source_type(spec),
            lambda module: function.source_function(module, spec, which, self.host),
        )
        names = [which, f"scale_{which}"] if spec.shape.scaled else [which]
        bits = [decoded.operands[_POSITIONS[name]].bits for name in names]
        key = (callee.name, *bits)
        cached_array = self._arrays.get(key)
        if cached_array is not None:
            return cached_array.offset
        offset, self._used = self._used, self._used + size
        self._arrays[key] = _Array(functools.reduce(operator.or_, bits), offset)
        array = element(emitter.builder, self._space(), offset, I8)
        rows = [self._rows(decoded, name) for name in names]
        emitter.call(callee, [array, *rows])
        return offset

    def _outline(
        self, name: str, kind: ir.FunctionType, build: Callable[[ir.Module], ir.Function]
    ) -> ir.Function:
        """A function of the module, made where it is not on disk."""

        def recipe(module: ir.Module) -> None:
            definition = build(module)
            definition.name, definition.linkage = runtime.OUTLINED + name, ""

        return runtime.outline(self.emitter.module, name, kind, recipe)

    def _space(self) -> Any:
        """The room: memory of the wave function, allotted once."""
        if self._room is None:
            builder = self.emitter.builder
            with builder.goto_entry_block():
                space: Any = builder.alloca(ir.ArrayType(I8, _ROOM))
                space.align = function.ALIGNMENT
                self._room = builder.inttoptr(builder.ptrtoint(space, I64), PTR)
        return self._room

    def _rows(self, decoded: Decoded, name: str) -> Any:
        return data_rows(self.emitter, decoded.operands[_POSITIONS[name]])


__all__ = ["MatrixGroup"]
