"""Runs one matrix instruction natively over a numpy register file, and computes it by formula."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir

from wavecast.dtypes import Encoding, SpecialValues
from wavecast.emulate.matrix.detection import detect
from wavecast.emulate.matrix.formats import Integer
from wavecast.emulate.matrix.function import matrix_function
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.layouts import Placement
from wavecast.emulate.matrix.spec import MatrixSpec, matrix_spec
from wavecast.emulate.values import PTR
from wavecast.isa import table
from wavecast.isa.decode import Decoder, wave_lanes_of
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import Opcode

REGISTERS = 256


def _machine(level: int) -> binding.TargetMachine:
    """A new one each time: an execution engine takes its machine over."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=level,
    )


def compile_module(module: ir.Module, level: int = 2) -> binding.ExecutionEngine:
    """Optimised native code of a module. The caller keeps the engine alive."""
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    machine = _machine(level)
    builder = binding.create_pass_builder(machine, binding.PipelineTuningOptions(level))
    builder.getModulePassManager().run(parsed, builder)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine


def export(module: ir.Module, function: ir.Function, name: str) -> None:
    """A visible caller of an internal function."""
    kind = ir.FunctionType(ir.VoidType(), [PTR] * len(function.args))
    wrapper = ir.Function(module, kind, name)
    builder = ir.IRBuilder(wrapper.append_basic_block())
    builder.call(function, list(wrapper.args))
    builder.ret_void()


@dataclass(frozen=True)
class Program:
    """A compiled matrix instruction."""

    decoded: Decoded
    spec: MatrixSpec
    engine: binding.ExecutionEngine
    address: int

    def run(self, registers: np.ndarray) -> None:
        """Execute on `[row][lane] u32`, in place."""
        operands = self.decoded.operands
        by_name = {"d": operands[0], "a": operands[1], "b": operands[2]}
        by_name["index" if self.spec.shape.sparse else "c"] = operands[3]
        if self.spec.shape.scaled:
            by_name |= {"scale_a": operands[4], "scale_b": operands[5]}
        rows = [by_name[name].first for name in self.spec.parameters]
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(rows))(self.address)
        lane_bytes = registers.strides[0]
        call(*[registers.ctypes.data + row * lane_bytes for row in rows])


def compile_all(
    texts: Sequence[str], target: str, lanes: int, host: Host | None = None, level: int = 1
) -> list[Program]:
    """Native code of instructions of one target, in one module."""
    module = ir.Module("matrix")
    decoder = Decoder(target, lanes)
    decoded = [decoder.decode(text) for text in texts]
    for number, instruction in enumerate(decoded):
        function = matrix_function(module, instruction, target, lanes, host or detect())
        export(module, function, f"entry{number}")
    engine = compile_module(module, level)
    return [
        Program(
            instruction,
            matrix_spec(instruction, target, lanes),
            engine,
            engine.get_function_address(f"entry{number}"),
        )
        for number, instruction in enumerate(decoded)
    ]


def text_of(
    row: Opcode, target: str, modifiers: str = "", c: str = "", narrow: str = "", lanes: int = 0
) -> str:
    """An instruction of a row over registers that do not overlap; `c` replaces the C operand.

    D and C of a wave of 64 `lanes` take half the registers the table lists for 32.
    `narrow` gives the formats of an f8f6f4 instruction's A and B, `"fp4,bf6"`, so that their
    register counts fit.
    """
    first, texts = 0, []
    counts = [role.dwords for role in row.operands]
    if narrow:
        sizes = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
        for position, name in enumerate(narrow.split(","), 1):
            counts[position] = sizes[name] * counts[position] // 8
    if lanes == 64 and wave_lanes_of(target) == 32:
        counts[0] //= 2
    for count in counts:
        texts.append(f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]")
        first += (count + 1) // 2 * 2
    if c:
        texts[3] = c
    return f"{row.mnemonics[target]} {', '.join(texts)} {modifiers}".strip()


def matrix_rows(target: str) -> list[Opcode]:
    return [row for row in table.rows() if row.matrix is not None and target in row.mnemonics]


@cache
def values(kind: Encoding | Integer) -> np.ndarray:
    """The value of every encoding of a format of at most 16 bits, as float64."""
    raw = np.arange(1 << kind.bits)
    if isinstance(kind, Integer):
        top = 1 << (kind.bits - 1)
        return np.where(kind.signed & (raw >= top), raw - 2 * top, raw).astype(np.float64)
    exponent = (raw >> kind.mantissa) & ((1 << kind.exponent) - 1)
    mantissa = raw & ((1 << kind.mantissa) - 1)
    sign = np.where(raw >> (kind.bits - 1), -1.0, 1.0)
    normal = (1 + mantissa / (1 << kind.mantissa)) * 2.0 ** (exponent - kind.bias)
    denormal = mantissa / (1 << kind.mantissa) * 2.0 ** (1 - kind.bias)
    found = sign * np.where(exponent == 0, denormal, normal)
    top = (1 << kind.exponent) - 1
    if kind.specials is SpecialValues.IEEE:
        found = np.where(exponent == top, np.where(mantissa == 0, sign * np.inf, np.nan), found)
    elif kind.specials is SpecialValues.ONE_NAN:
        found = np.where(raw & (raw.size // 2 - 1) == raw.size // 2 - 1, np.nan, found)
    elif kind.specials is SpecialValues.FNUZ:
        found = np.where(raw == raw.size // 2, np.nan, found)
    return found


def encode(found: np.ndarray, element: str) -> np.ndarray:
    """Bits of values of a 16-, 32- or 64-bit type, rounded to nearest even, as uint64."""
    with np.errstate(all="ignore"):
        if element == "i32":
            return (found.astype(np.int64) & 0xFFFFFFFF).astype(np.uint64)
        if element == "f64":
            return found.astype(np.float64).view(np.uint64)
        if element == "f16":
            return found.astype(np.float16).view(np.uint16).astype(np.uint64)
        bits = found.astype(np.float32).view(np.uint32).astype(np.uint64)
    if element == "bf16":
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return bits


def small_values(
    random: np.random.Generator, kind: Encoding | Integer, shape: Any
) -> tuple[Any, Any]:
    """Random encodings with values that are multiples of 1/4 up to 6 in size, and the values."""
    if kind.bits >= 32:
        found = random.integers(-24, 25, shape) / 4.0
        return encode(found, "f64" if kind.bits == 64 else "f32"), found
    known = values(kind)
    with np.errstate(all="ignore"):
        fine = np.flatnonzero((np.abs(known) <= 6) & (known * 4 % 1 == 0))
    raw = random.choice(fine, shape)
    return raw.astype(np.uint64), known[raw]


def write(
    registers: np.ndarray,
    first: int,
    layout: Placement,
    raw: Any,
    row: Any,
    k: Any,
    b: Any,
    column: Any = 0,
    lanes: int = 64,
) -> None:
    """Put raw elements at (row, k, block) of the operand that starts at register `first`."""
    register, bit, lane = layout.position(row, k, b)
    register, bit, lane, raw = np.broadcast_arrays(register + first, bit, lane + column, raw)
    width = min(layout.width, 64)
    mask = np.uint64((1 << width) - 1) << bit.astype(np.uint64)
    shifted = raw.astype(np.uint64) << bit.astype(np.uint64)
    for part in range(2 if width == 64 or (bit + width > 32).any() else 1):
        low = (shifted >> np.uint64(32 * part)).astype(np.uint32)
        part_mask = (mask >> np.uint64(32 * part)).astype(np.uint32)
        used = part_mask != 0
        place = (register[used] + part, lane[used])
        np.bitwise_and.at(registers, place, ~part_mask[used])
        np.bitwise_or.at(registers, place, low[used] & part_mask[used])


def read(registers: np.ndarray, first: int, layout: Placement, shape: Any) -> np.ndarray:
    """Raw bits of D, `[block][row][column]`; 16-bit elements need masking by the caller."""
    block, row, column = np.ogrid[: shape.blocks, : shape.m, : shape.n]
    register, bit, lane = layout.position(row, 0, block)
    register, bit, lane = np.broadcast_arrays(register + first, bit, lane + column)
    found = registers[register, lane].astype(np.uint64) >> bit.astype(np.uint64)
    if layout.width == 64:
        found = found | registers[register + 1, lane].astype(np.uint64) << np.uint64(32)
    return found
