"""One native function per distinct matrix instruction of a module."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower.values import I32, PTR, element, load
from wavecast.emulate.matrix.host import Host, detect
from wavecast.emulate.matrix.loops import counted_loop
from wavecast.emulate.matrix.operands import (
    SourceConverter,
    SourceJob,
    convert_index,
    strip_width,
)
from wavecast.emulate.matrix.product import Arrays, Product
from wavecast.emulate.matrix.results import Results
from wavecast.emulate.matrix.spec import MatrixSpec, Source, matrix_spec
from wavecast.isa.instruction import Decoded

_ALIGNMENT = 64
_COPY_WIDTH = 16


def matrix_function(
    module: ir.Module, decoded: Decoded, target: str, lanes: int, host: Host | None = None
) -> ir.Function:
    """The function that executes `decoded`, added to `module` unless an equal one is there.

    It returns nothing and takes the pointers `matrix_spec(…).parameters` names: d, a, b, then c
    (unless C is a constant) or a sparse index, then scale_a and scale_b of scaled instructions.
    Each points to the first 32-bit register row `[row][lanes] u32` of its operand, aligned to
    4 bytes; the operand's further registers follow. D may be the same registers as any source,
    and where the operands of `decoded` make D overlap C elsewhere, results are held back. EXEC is
    not consulted. Raises UnsupportedMatrix.
    """
    spec = matrix_spec(decoded, target, lanes)
    return spec_function(module, spec, host or detect())


def spec_function(module: ir.Module, spec: MatrixSpec, host: Host) -> ir.Function:
    """As `matrix_function`, from a spec."""
    name = function_name(spec)
    known = module.globals.get(name)
    if known is not None:
        return known
    kind = ir.FunctionType(ir.VoidType(), [PTR] * len(spec.parameters))
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    for argument, text in zip(function.args, spec.parameters, strict=True):
        argument.name = text
    _Body(function, spec, host).emit()
    return function


def function_name(spec: MatrixSpec) -> str:
    """A name that equal specs, and only they, share."""
    parts = [spec.target, f"w{spec.lanes}", spec.name, _source_name(spec.a), _source_name(spec.b)]
    c = spec.c
    parts.append("c" if c.constant is None else f"c{c.constant:x}")
    flags = {
        "neg": c.negate,
        "abs": c.absolute,
        "clamp": spec.clamp,
        "staged": spec.staged,
        f"half{spec.half}": spec.half is not None,
        f"key{spec.index_key}": spec.shape.sparse,
    }
    parts += [name for name, present in flags.items() if present]
    return "matrix." + ".".join(parts)


def _source_name(source: Source) -> str:
    parts = [source.type, f"{source.scale_byte}"]
    parts += ["n" if sign else "p" for sign in source.negate]
    parts.append("s" if getattr(source.format, "signed", False) else "")
    parts.append("_".join(map(str, source.blocks)))
    parts.append("_".join(map(str, source.groups)))
    return "-".join(parts)


class _Body:
    def __init__(self, function: ir.Function, spec: MatrixSpec, host: Host) -> None:
        self.spec = spec
        self.host = host
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.arguments = dict(zip(spec.parameters, function.args, strict=True))

    def emit(self) -> None:
        """Sources into scratch arrays, then tiles: nothing is stored before A and B are read."""
        spec, shape = self.spec, self.spec.shape
        converter = SourceConverter(self.builder, spec, self.host)
        a = SourceJob(
            spec.a,
            spec.a_layout,
            shape.m,
            shape.k // 2 if shape.sparse else shape.k,
            shape.blocks,
            self.arguments.get("scale_a"),
        )
        b = SourceJob(
            spec.b, spec.b_layout, shape.n, shape.k, shape.blocks, self.arguments.get("scale_b")
        )
        a_array = self._scratch(converter.item, converter.size(a))
        b_array = self._scratch(converter.item, converter.size(b))
        offsets = self._scratch(I32, converter.size(a)) if shape.sparse else None
        stage = self._scratch(I32, spec.result_rows * spec.lanes) if spec.staged else None
        converter.convert(self.arguments["a"], a, a_array)
        converter.convert(self.arguments["b"], b, b_array)
        width = strip_width(spec, self.host)
        if offsets is not None:
            convert_index(self.builder, spec, self.arguments["index"], offsets, width)
        depth = a.depth // 2 if converter.paired else a.depth
        self._product(Arrays(a_array, b_array, depth, offsets), width, stage)
        self.builder.ret_void()

    def _product(self, arrays: Arrays, width: int, stage: Any) -> None:
        spec = self.spec
        d = self.arguments["d"]
        if stage is not None and spec.half is not None:
            self._copy(d, stage)
        c = d if spec.shape.sparse else self.arguments.get("c")
        target = d if stage is None else stage
        results = Results(self.builder, spec, self.host, width, c, target)
        Product(self.builder, spec, self.host, arrays, results).emit()
        if stage is not None:
            self._copy(stage, d)

    def _scratch(self, item: ir.Type, count: int) -> Any:
        array: Any = self.builder.alloca(ir.ArrayType(item, count))
        array.align = _ALIGNMENT
        array.type = (
            PTR  # llvmlite types an alloca by what it holds; code here uses opaque pointers
        )
        return array

    def _copy(self, source: Any, target: Any) -> None:
        kind = ir.VectorType(I32, _COPY_WIDTH)
        words = self.spec.result_rows * self.spec.lanes
        with counted_loop(self.builder, words, _COPY_WIDTH) as word:
            value = load(self.builder, element(self.builder, source, word, I32), kind)
            self.builder.store(value, element(self.builder, target, word, I32), align=4)
