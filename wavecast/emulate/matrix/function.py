"""Native functions of matrix instructions, one per distinct meaning in a module.

Instructions whose results may stay unrounded between two of them (`MatrixSpec.chains`) are made of
parts: `source_function` reads A or B into an array, `chain_function` adds products of such
arrays to D. Code that executes several in a row calls the parts and reads each operand once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from wavecast.emulate.matrix import dots, quads
from wavecast.emulate.matrix.byte_tables import TableDecoder, by_tables
from wavecast.emulate.matrix.detection import detect
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.loops import counted_loop
from wavecast.emulate.matrix.operands import (
    SourceConverter,
    SourceJob,
    convert_index,
    strip_width,
)
from wavecast.emulate.matrix.product import Arrays, Links, Product
from wavecast.emulate.matrix.results import Results
from wavecast.emulate.matrix.spec import MatrixSource, MatrixSpec, matrix_spec
from wavecast.emulate.values import I8, I32, I64, PTR, element, load
from wavecast.isa.instruction import Decoded

ALIGNMENT = 64
"""Bytes every array is aligned to: the widest vector of any host."""
_COPY_WIDTH = 16


def matrix_function(
    module: ir.Module, decoded: Decoded, target: str, lanes: int, host: Host | None = None
) -> ir.Function:
    """The function that executes `decoded`, added to `module` unless an equal one is there.

    It returns nothing and takes the pointers `matrix_spec(…).parameters` names: d, a, b, then c
    (unless C is a constant) or a sparse index, then scale_a and scale_b of scaled instructions.
    Each points to the first 32-bit register row `[row][lanes] u32` of its operand, aligned to
    4 bytes; the operand's further registers follow. D may be the same registers as any source,
    and where the operands of `decoded` make D overlap C elsewhere, results are buffered. EXEC is
    not consulted. Raises UnsupportedMatrix.
    """
    spec = matrix_spec(decoded, target, lanes)
    return spec_function(module, spec, host or detect())


def spec_function(module: ir.Module, spec: MatrixSpec, host: Host) -> ir.Function:
    """As `matrix_function`, from a spec."""
    declaration = module.globals.get(function_name(spec))
    if declaration is not None:
        return declaration
    function = _function(module, function_name(spec), spec_type(spec), spec.parameters)
    body = _Body(function, spec, host)
    if spec.chains:
        body.emit_parts()
    else:
        body.emit()
    return function


def source_function(module: ir.Module, spec: MatrixSpec, which: str, host: Host) -> ir.Function:
    """`void f(ptr array, ptr rows[, ptr scale])`: reads A or B (`which`) into `source_bytes` bytes
    of an array aligned to ALIGNMENT, for `chain_function`.

    With products of pairs the array begins with them, and what `PairsArray` describes follows: f32
    are only written where some element is not fit.
    """
    name = source_name(spec, which, host)
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    scaled = ("scale",) if spec.shape.scaled else ()
    function = _function(module, name, source_type(spec), ("array", "rows", *scaled))
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    array, rows, *scales = function.args
    job = _source_job(spec, which, *scales)
    if dots.uses_dots(spec, host):
        _pairs_and_floats(builder, spec, job, rows, array, host)
    else:
        _converter(builder, spec, which, host).convert(rows, job, array)
    builder.ret_void()
    return function


def _converter(builder: ir.IRBuilder, spec: MatrixSpec, which: str, host: Host) -> SourceConverter:
    """The converter of A or B for chains, but for pairs of bf16."""
    if not quads.uses_quads(spec, host):
        return SourceConverter(builder, spec, host)
    flips = quads.FLIPPED if which == "a" and quads.is_signed(spec, "a") else 0
    return SourceConverter(builder, spec, host, quads=True, flips=flips)


def _pairs_and_floats(
    builder: ir.IRBuilder, spec: MatrixSpec, job: SourceJob, rows: Any, array: Any, host: Host
) -> None:
    """Write the pairs of an operand, and f32 where some element is not fit."""
    decoder = TableDecoder if by_tables(job.source, host) else dots.FactorGuard
    guard, parts = decoder(builder, job.source), _pairs_array(job)
    SourceConverter(builder, spec, host, guard).convert(rows, job, array)
    unfit = guard.unfit()
    state = I32(dots.FIT)
    if unfit is not None:
        state = builder.select(unfit, I32(dots.UNFIT), state)
    builder.store(state, element(builder, array, parts.state, I8), align=4)
    if unfit is not None:
        with builder.if_then(unfit, likely=False):
            floats = element(builder, array, parts.floats, I8)
            SourceConverter(builder, spec, host).convert(rows, job, floats)


def _pairs_array(job: SourceJob) -> dots.PairsArray:
    return dots.PairsArray(job.blocks * job.depth * job.rows // 2)


def source_bytes(spec: MatrixSpec, which: str, host: Host) -> int:
    """Bytes of the array `source_function` writes, a multiple of its alignment."""
    if dots.uses_dots(spec, host):
        return -(-_pairs_array(_source_job(spec, which)).bytes // ALIGNMENT) * ALIGNMENT
    converter = _converter(ir.IRBuilder(), spec, which, host)
    size = converter.size(_source_job(spec, which)) * (8 if spec.double else 4)
    return -(-size // ALIGNMENT) * ALIGNMENT


def chain_function(module: ir.Module, spec: MatrixSpec, host: Host) -> ir.Function:
    """`void f(ptr d[, ptr c], ptr room, ptr links, i64 count)`: D = C + the products of every link
    in order. D may be C.

    `links` points to what `links_table` makes of `count` >= 1 links.
    """
    name = chain_name(spec, host)
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    addend = () if spec.c.constant is not None else ("c",)
    function = _function(module, name, chain_type(spec), ("d", *addend, "room", "links"))
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    d, *c, room, pointer, count = function.args
    jobs = [_source_job(spec, which) for which in "ab"]
    depth = jobs[0].depth // _converter(builder, spec, "a", host).step
    pairs = None
    if dots.uses_dots(spec, host):
        pairs = _pairs_array(jobs[0]), _pairs_array(jobs[1])
    results = Results(builder, spec, host, strip_width(spec, host), c[0] if c else None, d)
    Product(builder, spec, host, Links(room, pointer, count, depth, pairs), results).emit()
    builder.ret_void()
    return function


def spec_type(spec: MatrixSpec) -> ir.FunctionType:
    """The type of `spec_function`."""
    return ir.FunctionType(ir.VoidType(), [PTR] * len(spec.parameters))


def source_type(spec: MatrixSpec) -> ir.FunctionType:
    """The type of `source_function`."""
    return ir.FunctionType(ir.VoidType(), [PTR] * (3 if spec.shape.scaled else 2))


def chain_type(spec: MatrixSpec) -> ir.FunctionType:
    """The type of `chain_function`."""
    pointers = 3 if spec.c.constant is not None else 4
    return ir.FunctionType(ir.VoidType(), [PTR] * pointers + [I64])


def chain_name(spec: MatrixSpec, host: Host) -> str:
    """The name of `chain_function`, which stands for all it depends on but the host."""
    addend = "c" if spec.c.constant is None else f"c{spec.c.constant:x}"
    return f"matrix.chain.{chain_key(spec, host)}.{addend}"


def chain_key(spec: MatrixSpec, host: Host) -> str:
    """Instructions with equal keys may be links of one chain: their sums, D and arrays are
    alike."""
    shape = spec.shape
    sizes = f"{shape.m}x{shape.n}x{shape.k}x{shape.blocks}"
    blocks = "_".join(map(str, spec.a.blocks))
    words = _words_name(spec, host)
    if words == ".quads" and not quads.is_signed(spec, "a"):
        words += "-unsigned"
    return f"{spec.target}.w{spec.lanes}.{sizes}.{spec.d_type}.{blocks}{words}"


def _words_name(spec: MatrixSpec, host: Host) -> str:
    """What the names of functions end in where several k share a word."""
    if dots.uses_dots(spec, host):
        return ".pairs"
    return ".quads" if quads.uses_quads(spec, host) else ""


def links_table(module: ir.Module, links: Sequence[tuple[int, int]]) -> Any:
    """A constant with the byte offsets of A's and of B's array in a chain's room, by link."""
    offsets = [offset for link in links for offset in link]
    kind = ir.ArrayType(I32, len(offsets))
    table: Any = ir.GlobalVariable(module, kind, module.get_unique_name("matrix.links"))
    table.initializer = ir.Constant(kind, [I32(offset) for offset in offsets])
    table.global_constant = True
    table.linkage = "private"
    table.type = PTR
    return table


def _function(
    module: ir.Module, name: str, kind: ir.FunctionType, pointers: tuple[str, ...]
) -> ir.Function:
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    for argument, text in zip(function.args, pointers, strict=False):
        argument.name = text
    return function


def _source_job(spec: MatrixSpec, which: str, scale: Any = None) -> SourceJob:
    """How A or B is read."""
    shape = spec.shape
    if which == "a":
        depth = shape.k // 2 if shape.sparse else shape.k
        return SourceJob(spec.a, spec.a_layout, shape.m, depth, shape.blocks, scale)
    return SourceJob(spec.b, spec.b_layout, shape.n, shape.k, shape.blocks, scale)


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


def source_name(spec: MatrixSpec, which: str, host: Host) -> str:
    """The name of `source_function`, which stands for all it depends on but the host."""
    job = _source_job(spec, which)
    sizes = f"{job.rows}x{job.depth}x{job.blocks}"
    kind = _source_name(job.source, broadcast=False)
    scaled = ".scaled" if spec.shape.scaled else ""
    words = _words_name(spec, host)
    side = f"-{which}" if words == ".quads" else ""
    return f"matrix.source.{spec.target}.w{spec.lanes}.{sizes}.{kind}{scaled}{words}{side}"


def _source_name(source: MatrixSource, *, broadcast: bool = True) -> str:
    parts = [source.type, _scale_name(source)]
    parts += ["n" if sign else "p" for sign in source.negate]
    parts.append("s" if getattr(source.format, "signed", False) else "")
    parts.append("_".join(map(str, source.blocks if broadcast else ())))
    parts.append("_".join(map(str, source.groups)))
    return "-".join(parts)


def _scale_name(source: MatrixSource) -> str:
    scale = source.scale
    if scale is None:
        return "0"
    if scale.byte is not None:
        return f"{scale.byte}"
    return f"l{scale.first_lane}r{scale.run}" + ("" if source.scale_format is None else "fp8")


class _Body:
    def __init__(self, function: ir.Function, spec: MatrixSpec, host: Host) -> None:
        self.spec = spec
        self.host = host
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.arguments = dict(zip(spec.parameters, function.args, strict=True))

    def emit_parts(self) -> None:
        """A chain of one link."""
        builder, module, spec = self.builder, self.builder.module, self.spec
        sizes = [source_bytes(spec, which, self.host) for which in "ab"]
        room = self._scratch(I32, sum(sizes) // 4)
        offsets = (0, sizes[0])
        for offset, which in zip(offsets, "ab", strict=True):
            array = element(builder, room, offset // 4, I32)
            scale = [self.arguments[f"scale_{which}"]] if spec.shape.scaled else []
            function = source_function(module, spec, which, self.host)
            builder.call(function, [array, self.arguments[which], *scale])
        addend = [self.arguments["c"]] if "c" in self.arguments else []
        links = links_table(module, [offsets])
        chain = chain_function(module, spec, self.host)
        builder.call(chain, [self.arguments["d"], *addend, room, links, I64(1)])
        builder.ret_void()

    def emit(self) -> None:
        """Sources into scratch arrays, then tiles: nothing is stored before A and B are read."""
        spec, shape = self.spec, self.spec.shape
        converter = SourceConverter(self.builder, spec, self.host)
        a = _source_job(spec, "a", self.arguments.get("scale_a"))
        b = _source_job(spec, "b", self.arguments.get("scale_b"))
        a_array = self._scratch(converter.item, converter.size(a))
        b_array = self._scratch(converter.item, converter.size(b))
        offsets = self._scratch(I32, converter.size(a)) if shape.sparse else None
        stage = self._scratch(I32, spec.result_rows * spec.lanes) if spec.staged else None
        converter.convert(self.arguments["a"], a, a_array)
        converter.convert(self.arguments["b"], b, b_array)
        width = strip_width(spec, self.host)
        if offsets is not None:
            convert_index(self.builder, spec, self.arguments["index"], offsets, width)
        depth = a.depth // converter.step
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
        array.align = ALIGNMENT
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
