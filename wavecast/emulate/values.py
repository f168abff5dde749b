"""Small helpers over llvmlite's builder: constants, splats, widths."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
PTR = ir.PointerType()
VOID = ir.VoidType()


def integer(bits: int, lanes: int = 0) -> ir.Type:
    """`iN`, or `<lanes x iN>`."""
    return ir.VectorType(ir.IntType(bits), lanes) if lanes else ir.IntType(bits)


class Written(ir.Constant):
    """A constant given by its text: lists of lanes are slow to write and to read back."""

    def __init__(self, kind: ir.Type, text: str) -> None:
        super().__init__(kind, None)
        self._text = text

    def get_reference(self) -> str:
        return self._text


class TextValue(ir.Value):
    """The result of an instruction that was added as text."""

    def __init__(self, kind: ir.Type, reference: str) -> None:
        self.type = kind
        self._reference = reference

    def get_reference(self) -> str:
        return self._reference


@lru_cache(maxsize=4096, typed=True)
def constant(value: int, bits: int, lanes: int = 0) -> ir.Constant:
    """An integer constant modulo 2^bits, the same in every lane."""
    value &= (1 << bits) - 1
    if lanes:
        return Written(ir.VectorType(ir.IntType(bits), lanes), f"splat (i{bits} {value})")
    return ir.Constant(ir.IntType(bits), value)


def splat(builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """A scalar in every lane."""
    kind = value.type
    if isinstance(value, ir.Constant) and isinstance(kind, ir.IntType):
        number = value.constant
        if isinstance(number, int):
            return constant(number, kind.width, lanes)
    nothing = Written(ir.VectorType(value.type, lanes), "poison")
    single = builder.insert_element(nothing, value, I32(0))
    return builder.shuffle_vector(single, nothing, constant(0, 32, lanes))


def element(builder: ir.IRBuilder, base: Any, index: Any, kind: ir.Type) -> Any:
    """A pointer to element `index` (a value or an int) of an array of `kind` at `base`."""
    if isinstance(index, int):
        index = I64(index)
    return builder.gep(base, [index], source_etype=kind)


def load(builder: ir.IRBuilder, pointer: Any, kind: ir.Type, align: int = 4) -> Any:
    """A typed load through an opaque pointer."""
    return builder.load(pointer, align=align, typ=kind)


def context_word(builder: ir.IRBuilder, context: Any, index: int, kind: ir.Type = I64) -> Any:
    """A 64-bit word of a launch context (`state.py`), as a number or a pointer."""
    return load(builder, element(builder, context, index, I64), kind, 8)
