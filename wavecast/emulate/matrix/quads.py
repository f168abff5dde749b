"""Products of four pairs of 8-bit integers at a time, and when a host has them.

`vpdpbusd` adds the products of four unsigned and four signed bytes to an i32, modulo 2^32 (Intel 64
and IA-32 Architectures Software Developer's Manual, VPDPBUSD). Signed A becomes unsigned by adding
128 to each element; one more sum, of 128 times B, is subtracted at the end. Every step is exact.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import binding, ir

from wavecast.emulate.matrix.formats import Integer
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.layouts import Placement
from wavecast.emulate.matrix.spec import MatrixSpec
from wavecast.emulate.values import I8, I32

WIDTH: Final = 16
"""Sums of an instruction."""
FLIPPED: Final = 0x80808080
"""What adds 128 to four bytes, and four times 128."""
_INTRINSIC = "llvm.x86.avx512.vpdpbusd.512"
_SUMS = ir.VectorType(I32, WIDTH)
_BYTES = ir.VectorType(I8, 4 * WIDTH)
_OPERANDS = _BYTES if binding.llvm_version_info >= (22,) else _SUMS
"""The intrinsic's factors: bytes since LLVM 22, words of four before."""


def uses_quads(spec: MatrixSpec, host: Host) -> bool:
    """Whether products of an instruction are made of four bytes: B is signed, and the elements of a
    word lie next to each other."""
    if not (host.byte_dots and spec.chains and spec.integer):
        return False
    if min(spec.shape.m, spec.shape.n) < WIDTH:
        return False
    kinds = (spec.a.format, spec.b.format)
    bytes_ = all(isinstance(kind, Integer) and kind.bits == 8 for kind in kinds)
    layouts = (spec.a_layout, spec.b_layout)
    return bytes_ and is_signed(spec, "b") and all(_in_quads(layout) for layout in layouts)


def is_signed(spec: MatrixSpec, which: str) -> bool:
    """Whether the elements of A or B are signed."""
    kind = (spec.a if which == "a" else spec.b).format
    return isinstance(kind, Integer) and kind.signed


def _in_quads(layout: Placement) -> bool:
    return layout.depth[:2] == ((1, 0), (2, 0))


def add_products(builder: ir.IRBuilder, total: Any, left: Any, right: Any) -> Any:
    """`total` and the four products of each word: i32 sums, unsigned bytes, signed bytes."""
    module = builder.module
    function = module.globals.get(_INTRINSIC)
    if function is None:
        kind = ir.FunctionType(_SUMS, [_SUMS, _OPERANDS, _OPERANDS])
        function = ir.Function(module, kind, _INTRINSIC)
    factors = [builder.bitcast(value, _OPERANDS) for value in (left, right)]
    return builder.call(function, [total, *factors])


__all__ = ["FLIPPED", "WIDTH", "add_products", "is_signed", "uses_quads"]
