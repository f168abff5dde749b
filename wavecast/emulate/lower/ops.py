"""Instruction semantics as LLVM IR: `Ops` over llvmlite values.

`lanes` is 0 for scalar code and the strip width for vector code; every value is then `iN` or
`<lanes x iN>`. Operations on the whole wave (reading other lanes) are lowered elsewhere and are
refused here.
"""

# ruff: noqa: ARG002 - LLVM values know their widths, which the interface passes all the same
from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.values import I1, constant, integer, splat
from wavecast.isa.semantics.formats import FloatFormat
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Direction, Ops

_TYPES = {"f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType()}
_ROUND = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "even": "roundeven"}


class WaveWide(Exception):
    """A row reads other lanes: it cannot be lowered strip by strip."""


class LlvmOps(Ops[Any]):
    """Emits LLVM IR through `builder`; replace `builder` to emit elsewhere."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        lanes: int,
        machine: FloatMode,
        wave: int = 64,
        lane_numbers: Any = None,
    ) -> None:
        self.builder = builder
        self.lanes = lanes
        self.wave = wave
        self.lane_numbers = lane_numbers
        self._machine = machine
        self.overflow: Any = None
        """MODE.FP16_OVFL where the program changes it: a single condition."""
        self._pairs: dict[int, tuple[Any, Any, Any]] = {}
        """64-bit values by identity with their halves."""
        self._floats: dict[int, tuple[Any, Any]] = {}
        """Patterns known as floats too, by identity: bit casts need not be repeated."""

    @property
    def machine(self) -> FloatMode:
        return self._machine

    def saturates(self) -> Any:
        if self.overflow is None:
            return super().saturates()
        return splat(self.builder, self.overflow, self.lanes) if self.lanes else self.overflow

    def _call(
        self, name: str, result: ir.Type, *arguments: Any, source: ir.Type | None = None
    ) -> Any:
        """Call an intrinsic overloaded on its result (or `source`) type."""
        types = [argument.type for argument in arguments]
        suffix = _mangle(source or result)
        function = self.builder.module.globals.get(f"{name}.{suffix}")
        if function is None:
            kind = ir.FunctionType(result, types)
            function = ir.Function(self.builder.module, kind, f"{name}.{suffix}")
        return self.builder.call(function, arguments)

    def const(self, value: int, bits: int) -> Any:
        return constant(value, bits, self.lanes)

    def add(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.add(a, b)

    def sub(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.sub(a, b)

    def mul(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.mul(a, b)

    def mul_high(self, a: Any, b: Any, bits: int) -> Any:
        wide = integer(2 * bits, self.lanes)
        product = self.builder.mul(self.builder.zext(a, wide), self.builder.zext(b, wide))
        shifted = self.builder.lshr(product, constant(bits, 2 * bits, self.lanes))
        return self.builder.trunc(shifted, integer(bits, self.lanes))

    def and_(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.and_(a, b)

    def or_(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.or_(a, b)

    def xor(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.xor(a, b)

    def shl(self, a: Any, amount: Any, bits: int) -> Any:
        return self.builder.shl(a, amount)

    def lshr(self, a: Any, amount: Any, bits: int) -> Any:
        result = self.builder.lshr(a, amount)
        pair = self._pairs.get(id(a))
        if pair is not None and bits == 64 and amount is constant(32, 64, self.lanes):
            self._pairs[id(result)] = (result, pair[2], None)
        return result

    def join(self, low: Any, high: Any) -> Any:
        """Remembers its halves: taking one of them needs no code."""
        result = super().join(low, high)
        self._pairs[id(result)] = (result, low, high)
        return result

    def ashr(self, a: Any, amount: Any, bits: int) -> Any:
        return self.builder.ashr(a, amount)

    def eq(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.icmp_unsigned("==", a, b)

    def less_unsigned(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.icmp_unsigned("<", a, b)

    def less_signed(self, a: Any, b: Any, bits: int) -> Any:
        return self.builder.icmp_signed("<", a, b)

    def select(self, condition: Any, a: Any, b: Any, bits: int) -> Any:
        return self.builder.select(condition, a, b)

    def zero_extend(self, a: Any, bits: int, wider: int) -> Any:
        return self.builder.zext(a, integer(wider, self.lanes)) if wider > bits else a

    def sign_extend(self, a: Any, bits: int, wider: int) -> Any:
        return self.builder.sext(a, integer(wider, self.lanes)) if wider > bits else a

    def truncate(self, a: Any, bits: int, narrower: int) -> Any:
        pair = self._pairs.get(id(a))
        if pair is not None and pair[1] is not None and (bits, narrower) == (64, 32):
            return pair[1]
        return self.builder.trunc(a, integer(narrower, self.lanes)) if narrower < bits else a

    def popcount(self, a: Any, bits: int) -> Any:
        return self._call("llvm.ctpop", a.type, a)

    def leading_zeros(self, a: Any, bits: int) -> Any:
        return self._call("llvm.ctlz", a.type, a, I1(0))

    def trailing_zeros(self, a: Any, bits: int) -> Any:
        return self._call("llvm.cttz", a.type, a, I1(0))

    def reverse_bits(self, a: Any, bits: int) -> Any:
        return self._call("llvm.bitreverse", a.type, a)

    # floating point: formats LLVM has a type for

    def _type(self, fmt: FloatFormat) -> ir.Type:
        single = _TYPES[fmt.name]
        return ir.VectorType(single, self.lanes) if self.lanes else single

    def _float(self, a: Any, fmt: FloatFormat) -> Any:
        entry = self._floats.get(id(a))
        if entry is not None and entry[0] is a:
            return entry[1]
        value = self.builder.bitcast(a, self._type(fmt))
        self._floats[id(a)] = (a, value)
        return value

    def _pattern(self, a: Any, fmt: FloatFormat) -> Any:
        pattern = self.builder.bitcast(a, integer(fmt.bits, self.lanes))
        self._floats[id(pattern)] = (pattern, a)
        return pattern

    def _unary(self, name: str, a: Any, fmt: FloatFormat) -> Any:
        kind = self._type(fmt)
        return self._pattern(self._call(name, kind, self._float(a, fmt)), fmt)

    def f_add(self, a: Any, b: Any, fmt: FloatFormat) -> Any:
        return self._pattern(self.builder.fadd(self._float(a, fmt), self._float(b, fmt)), fmt)

    def f_mul(self, a: Any, b: Any, fmt: FloatFormat) -> Any:
        return self._pattern(self.builder.fmul(self._float(a, fmt), self._float(b, fmt)), fmt)

    def f_fma(self, a: Any, b: Any, c: Any, fmt: FloatFormat) -> Any:
        kind = self._type(fmt)
        values = [self._float(value, fmt) for value in (a, b, c)]
        return self._pattern(self._call("llvm.fma", kind, *values), fmt)

    def f_div(self, a: Any, b: Any, fmt: FloatFormat) -> Any:
        return self._pattern(self.builder.fdiv(self._float(a, fmt), self._float(b, fmt)), fmt)

    def f_sqrt(self, a: Any, fmt: FloatFormat) -> Any:
        return self._unary("llvm.sqrt", a, fmt)

    def f_round(self, a: Any, fmt: FloatFormat, direction: Direction) -> Any:
        return self._unary(f"llvm.{_ROUND[direction]}", a, fmt)

    def f_less(self, a: Any, b: Any, fmt: FloatFormat) -> Any:
        return self.builder.fcmp_ordered("<", self._float(a, fmt), self._float(b, fmt))

    def f_equal(self, a: Any, b: Any, fmt: FloatFormat) -> Any:
        return self.builder.fcmp_ordered("==", self._float(a, fmt), self._float(b, fmt))

    def f_convert(self, a: Any, source: FloatFormat, result: FloatFormat) -> Any:
        value = self._float(a, source)
        convert = self.builder.fpext if result.bits > source.bits else self.builder.fptrunc
        return self._pattern(convert(value, self._type(result)), result)

    def f_from_int(self, a: Any, bits: int, signed: bool, fmt: FloatFormat) -> Any:
        convert = self.builder.sitofp if signed else self.builder.uitofp
        return self._pattern(convert(a, self._type(fmt)), fmt)

    def f_to_int(self, a: Any, fmt: FloatFormat, bits: int, signed: bool) -> Any:
        result = integer(bits, self.lanes)
        name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{_mangle(result)}"
        return self._call(name, result, self._float(a, fmt), source=self._type(fmt))

    def wave_lanes(self) -> int:
        return self.wave

    def shuffle(self, a: Any, lane: Any) -> Any:
        raise WaveWide("shuffle")

    def lane_active(self, lane: Any) -> Any:
        raise WaveWide("lane_active")

    def lane(self) -> Any:
        if self.lane_numbers is None:
            raise WaveWide("lane")
        return self.lane_numbers

    def first_active_lane(self, a: Any) -> Any:
        raise WaveWide("first_active_lane")

    def read_lane(self, a: Any, lane: Any) -> Any:
        raise WaveWide("read_lane")

    def write_lane(self, old: Any, value: Any, lane: Any) -> Any:
        raise WaveWide("write_lane")

    def gather(self, a: Any, lane: Any) -> Any:
        raise WaveWide("gather")


def _mangle(kind: ir.Type) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_mangle(kind.element)}"
    if isinstance(kind, ir.IntType):
        return f"i{kind.width}"
    if isinstance(kind, ir.HalfType):
        return "f16"
    return "f32" if isinstance(kind, ir.FloatType) else "f64"
