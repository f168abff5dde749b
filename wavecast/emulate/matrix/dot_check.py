"""Whether this host's products of pairs of bf16 have the bits of fused multiply-adds.

Processors differ in how they round such products; manuals leave room for it. So the instruction
runs next to two fused multiply-adds on seeded operands, once per machine: the answer is cached.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import llvmlite
import numpy as np
from llvmlite import binding, ir

from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.processor import Processor, load_object
from wavecast.emulate.matrix import dots
from wavecast.emulate.matrix.loops import counted_loop
from wavecast.emulate.values import I32, I64, PTR, VOID, element, load

_NAMES: Final = ("by_dots", "by_multiply_adds")
_VECTORS: Final = 1024
_KEY: Final = "functions"
"""The kind of cache entry: a property of native code."""


def dots_are_exact(host: Processor) -> bool:
    """Whether `dots.add_products` gives the bits of two fused multiply-adds here."""
    module = _module(host)
    store, text = DiskCache(), str(module)
    key = digest.key(_KEY, "dots", host.identity, llvmlite.__version__, text)
    answer = store.get(key)
    if not isinstance(answer, bool):
        answer = _equal(_compile(host, text))
        store.put(key, answer)
    return answer


def _module(host: Processor) -> ir.Module:
    """Functions `void f(ptr sums, ptr left, ptr right)` that add the products of all vectors."""
    module = ir.Module("dots", context=ir.Context())
    module.triple = host.triple
    words, floats = (ir.VectorType(kind, dots.WIDTH) for kind in (I32, ir.FloatType()))
    for name in _NAMES:
        function = ir.Function(module, ir.FunctionType(VOID, [PTR] * 3), name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        with counted_loop(builder, _VECTORS) as index:
            at = builder.mul(index, I64(dots.WIDTH))
            sums, *factors = (element(builder, base, at, I32) for base in function.args)
            total = load(builder, sums, floats)
            left, right = (load(builder, factor, words) for factor in factors)
            add = dots.add_products if name == _NAMES[0] else _add_singly
            builder.store(add(builder, total, left, right), sums, align=4)
        builder.ret_void()
    return module


def _add_singly(builder: ir.IRBuilder, total: Any, left: Any, right: Any) -> Any:
    """As `dots.add_products`, by two fused multiply-adds."""
    kind = total.type
    name = f"llvm.fma.v{dots.WIDTH}f32"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    sides = (dots.halves(builder, side) for side in (left, right))
    for factors in zip(*sides, strict=True):
        total = builder.call(function, [*factors, total])
    return total


def _compile(host: Processor, text: str) -> bytes:
    parsed = binding.parse_assembly(text)
    parsed.verify()
    return host.emitter(1).emit_object(parsed)


def _equal(code: bytes) -> bool:
    """Whether both functions give the same."""
    engine = load_object(code)
    left, right = (_factors(seed) for seed in (1, 2))
    answers = []
    for name in _NAMES:
        sums = _addends()
        address = engine.get_function_address(name)
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)
        call(sums.ctypes.data, left.ctypes.data, right.ctypes.data)
        answers.append(sums)
    return bool(np.array_equal(*answers))


def _factors(seed: int) -> np.ndarray:
    """Fit pairs of bf16, u32: half of them of magnitudes near 1, some of them zero."""
    random = np.random.default_rng(seed)
    shape = (_VECTORS, dots.WIDTH, 2)
    low, high = np.array([[120], [71]]), np.array([[136], [183]])
    exponents = random.integers(low, high, (2, shape[0] // 2 * shape[1] * 2)).reshape(shape)
    bits = random.integers(0, 2, shape) << 15 | exponents << 7 | random.integers(0, 128, shape)
    bits = np.where(random.random(shape) < 0.05, 0, bits)
    return (bits[..., 0] << 16 | bits[..., 1]).astype(np.uint32)


def _addends() -> np.ndarray:
    """Fit f32 bits, u32, with infinities and a NaN."""
    random = np.random.default_rng(3)
    shape = (_VECTORS, dots.WIDTH)
    low, high = np.array([[110], [24]]), np.array([[140], [255]])
    exponents = random.integers(low, high, (2, shape[0] // 2 * shape[1])).reshape(shape)
    bits = random.integers(0, 2, shape) << 31 | exponents << 23 | random.integers(0, 1 << 23, shape)
    bits[::16, 0], bits[1::16, 1], bits[2::16, 2], bits[3::16, 3] = (
        0, 0x7F800000, 0xFFC12345, 0x7F812345
    )  # fmt: skip
    return bits.astype(np.uint32)


__all__ = ["dots_are_exact"]
