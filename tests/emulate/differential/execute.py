"""One program on the target and on the host, and where they differ."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from random import Random
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from llvmlite import binding

from tests.emulate.differential.exchange import EXCHANGES, wave_lanes
from tests.emulate.differential.generate import OPERATIONS, pattern
from tests.emulate.differential.program import (
    Exchange,
    Program,
    Use,
    defined,
    element_bits,
    element_of,
    is_float,
    lanes_of,
    stored_bits,
    uses,
)
from tests.emulate.differential.text import HOST, Writer
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.compile.processor import load_object
from wavecast.emulate import engine
from wavecast.emulate.native import compile_kernel

SLOT = 16
"""Bytes of one value in memory."""
_INFINITY = {"half": 0x7C00, "bfloat": 0x7F80, "float": 0x7F800000, "double": 0x7FF0 << 48}
_TRIPLE = "amdgcn-amd-amdhsa"


class Uncompiled(Exception):
    """The compiler refuses the program."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Output, its type, thread, and both patterns."""

    output: int
    kind: str
    thread: int
    found: tuple[int, ...]
    expected: tuple[int, ...]

    def __str__(self) -> str:
        found, expected = ([hex(part) for part in parts] for parts in (self.found, self.expected))
        return f"{self.kind} %{self.output} thread {self.thread}: {found}, host {expected}"


# text


def kernel_text(program: Program, target: str) -> str:
    """The program as a kernel `k(in, out, uniforms…)`."""
    declarations: dict[str, str] = {}
    w = Writer(target, declarations)
    threads = 2 * wave_lanes(target)
    space = " addrspace(1)"
    lane = w.call("llvm.amdgcn.workitem.id.x", "i32")
    start = w.at("%in", w.set(f"mul i32 {lane}, {SLOT * len(program.inputs)}"), space)
    row = w.set(f"mul i32 {lane}, {SLOT * (len(program.outputs) + 1)}")
    w.do(f"%room = getelementptr i8, ptr{space} %out, i32 {row}")
    for index, (number, kind) in enumerate(program.inputs):
        w.names[number] = w.load(kind, w.at(start, SLOT * index, space), space, _align(kind))
    for number, _ in program.uniforms:
        w.names[number] = f"%u{number}"
    for node in program.nodes:
        if isinstance(node, Exchange):
            w.names[node.number] = EXCHANGES[node.operation].write(w, node)
        else:
            w.node(node, OPERATIONS_TEXT)
    for index, use in enumerate(program.outputs, 1):
        place = w.at("%room", SLOT * index, space)
        w.store(use.kind, w.operand(use), place, space, _align(use.kind))
    parameters = [f"ptr{space} %in", f"ptr{space} %out"]
    parameters += [f"{kind} %u{number}" for number, kind in program.uniforms]
    return "\n".join(
        [
            f'target triple = "{_TRIPLE}"',
            *w.globals,
            *declarations.values(),
            f"define amdgpu_kernel void @k({', '.join(parameters)}) #0 {{",
            "entry:",
            *w.allocas,
            *w.lines,
            "  ret void",
            "}",
            f'attributes #0 = {{ "amdgpu-flat-work-group-size"="{threads},{threads}" nounwind }}',
            "",
        ]
    )


def _align(kind: str) -> int:
    return min(SLOT, stored_bits(kind) // 8 * (lanes_of(kind) or 1))


OPERATIONS_TEXT = {name: operation.write for name, operation in OPERATIONS.items()}


def segments(program: Program) -> list[tuple[tuple[Any, ...], Exchange | None]]:
    """Nodes up to each exchange, with it; the last group has none."""
    found: list[tuple[tuple[Any, ...], Exchange | None]] = []
    group: list[Any] = []
    for node in program.nodes:
        if isinstance(node, Exchange):
            found.append((tuple(group), node))
            group = []
        else:
            group.append(node)
    found.append((tuple(group), None))
    return found


def frame_slots(program: Program) -> dict[int, int]:
    """The place in a lane's frame of every value known at the top level."""
    kinds = [pair for node in program.nodes for pair in defined(node)]
    return {number: index for index, (number, _) in enumerate(kinds)}


def host_text(program: Program) -> str:
    """The program as functions `run0`, `run1` … (in, uniforms, frames, lanes), one per segment."""
    declarations: dict[str, str] = {}
    slots = frame_slots(program)
    kinds = {number: kind for node in program.nodes for number, kind in defined(node)}
    needed = {use.number for use in program.outputs}
    for node in program.nodes:
        needed |= {use.number for use in uses(node) if isinstance(use, Use)}
    parts = []
    for index, (group, _) in enumerate(segments(program)):
        w = Writer(HOST, declarations)
        wanted = {use.number for node in group for use in uses(node) if isinstance(use, Use)}
        own = {number for node in group for number, _ in defined(node)}
        for place, (number, kind) in enumerate(program.inputs):
            w.names[number] = w.load(kind, w.at("%in", SLOT * place))
        for place, (number, kind) in enumerate(program.uniforms):
            w.names[number] = w.load(kind, w.at("%uniforms", SLOT * place))
        for number in sorted(wanted & set(slots) - own):
            w.names[number] = w.load(kinds[number], w.at("%frame", SLOT * slots[number]))
        w.nodes(group, OPERATIONS_TEXT)
        for number in sorted(own & needed):
            w.store(kinds[number], w.names[number], w.at("%frame", SLOT * slots[number]))
        parts += [
            f"define internal void @segment{index}(ptr %in, ptr %uniforms, ptr %frame) noinline {{",
            "entry:",
            *w.allocas,
            *w.lines,
            "  ret void",
            "}",
            _LOOP.format(index=index, row=SLOT * len(program.inputs), frame=SLOT * len(slots)),
        ]
    declarations["llvm.fabs.f64"] = "declare double @llvm.fabs.f64(double)"
    return "\n".join([*declarations.values(), _TO_BRAIN, *parts])


_TO_BRAIN = """\
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %last = and i32 %high, 1
  %half = add i32 %last, 32767
  %sum = add i32 %bits, %half
  %near = lshr i32 %sum, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, 0.0
  %chosen = select i1 %nan, i32 %quiet, i32 %near
  %cut = trunc i32 %chosen to i16
  %result = bitcast i16 %cut to bfloat
  ret bfloat %result
}
define bfloat @__truncdfbf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %bits = bitcast float %near to i32
  %odd = trunc i32 %bits to i1
  %even = xor i1 %odd, true
  %moves = and i1 %inexact, %even
  %size = call double @llvm.fabs.f64(double %x)
  %reached = call double @llvm.fabs.f64(double %back)
  %beyond = fcmp ogt double %reached, %size
  %step = select i1 %beyond, i32 -1, i32 1
  %moved = add i32 %bits, %step
  %chosen = select i1 %moves, i32 %moved, i32 %bits
  %single = bitcast i32 %chosen to float
  %result = call bfloat @__truncsfbf2(float %single)
  ret bfloat %result
}
"""
"""Roundings to bfloat LLVM calls for and few hosts have; from double by way of rounding to odd."""

_LOOP = """\
define void @run{index}(ptr %in, ptr %uniforms, ptr %frames, i32 %lanes) {{
entry:
  br label %next
next:
  %lane = phi i32 [ 0, %entry ], [ %following, %next ]
  %first = mul i32 %lane, {row}
  %second = mul i32 %lane, {frame}
  %row = getelementptr i8, ptr %in, i32 %first
  %frame = getelementptr i8, ptr %frames, i32 %second
  call void @segment{index}(ptr %row, ptr %uniforms, ptr %frame)
  %following = add i32 %lane, 1
  %done = icmp eq i32 %following, %lanes
  br i1 %done, label %end, label %next
end:
  ret void
}}
"""


# compilers


@cache
def _initialised() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


@cache
def _target_machine(target: str) -> binding.TargetMachine:
    _initialised()
    found = binding.Target.from_triple(_TRIPLE)
    return found.create_target_machine(cpu=target, opt=2)


def assembly(text: str, target: str, level: int) -> str:
    """The target's assembly; at `level` 2 the optimiser runs before the code generator."""
    machine = _target_machine(target)
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise Uncompiled(str(error)) from None
    if level:
        options = binding.create_pipeline_tuning_options(speed_level=level)
        builder = binding.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


def _host_machine() -> binding.TargetMachine:
    """The host without its conversions to bfloat, which flush denormals whatever IR says."""
    _initialised()
    features = binding.get_host_cpu_features()
    kept = [
        f"{'+' if on and 'bf16' not in name and 'fp16' not in name else '-'}{name}"
        for name, on in features.items()
    ]
    found = binding.Target.from_default_triple()
    return found.create_target_machine(
        cpu="", features=",".join(kept), opt=1, codemodel="jitdefault"
    )


@cache
def _libraries() -> None:
    """Conversions compilers call functions for."""
    for name in ("libgcc_s.so.1", "libm.so.6"):
        binding.load_library_permanently(name)


def _require(code: bytes) -> None:
    """Raise Uncompiled for a function the object calls and the host has not."""
    symbols = ELFFile(BytesIO(code)).get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    for symbol in symbols.iter_symbols():
        wanted = symbol["st_shndx"] == "SHN_UNDEF" and bool(symbol.name)
        if wanted and binding.address_of_symbol(symbol.name) is None:
            raise Uncompiled(f"the host has no {symbol.name}")


def host_results(
    program: Program, rows: np.ndarray, uniforms: np.ndarray, waves: int
) -> np.ndarray:
    """Frames `[thread][slot][16 bytes]` after all segments."""
    _libraries()
    try:
        module = binding.parse_assembly(host_text(program))
        module.verify()
    except RuntimeError as error:
        raise Uncompiled(str(error)) from None
    module.triple = binding.get_default_triple()
    code = _host_machine().emit_object(module)
    _require(code)
    owner = load_object(code)
    slots = frame_slots(program)
    threads = len(rows)
    frames = np.zeros((threads, max(len(slots), 1), SLOT), np.uint8)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int32)
    for index, (_, exchange) in enumerate(segments(program)):
        run = kind(owner.get_function_address(f"run{index}"))
        run(rows.ctypes.data, uniforms.ctypes.data, frames.ctypes.data, threads)
        if exchange is None:
            continue
        values = []
        for operand in exchange.arguments:
            if not isinstance(operand, Use):
                values.append(np.full((waves, threads // waves), operand.bits[0], np.uint32))
                continue
            column = _column(program, operand.number, rows, uniforms, frames, slots)
            values.append(column.reshape(waves, -1))
        result = EXCHANGES[exchange.operation].model(values, exchange.detail)
        frames[:, slots[exchange.number], :4] = (
            np.ascontiguousarray(result, np.uint32).reshape(-1, 1).view(np.uint8)
        )
    return frames


def _column(
    program: Program,
    number: int,
    rows: np.ndarray,
    uniforms: np.ndarray,
    frames: np.ndarray,
    slots: dict[int, int],
) -> np.ndarray:
    """A 32-bit value of every thread."""
    inputs = [item for item, _ in program.inputs]
    launch = [item for item, _ in program.uniforms]
    if number in inputs:
        data = rows[:, inputs.index(number), :4]
    elif number in launch:
        data = np.broadcast_to(uniforms[launch.index(number), :4], (len(rows), 4))
    else:
        data = frames[:, slots[number], :4]
    return np.ascontiguousarray(data).view(np.uint32)[:, 0]


# execution


def inputs_of(program: Program, seed: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows `[thread][input][16 bytes]` and uniforms `[uniform][16 bytes]`."""
    random = Random(seed ^ 0x5EED)
    rows = np.zeros((threads, max(len(program.inputs), 1), SLOT), np.uint8)
    uniforms = np.zeros((max(len(program.uniforms), 1), SLOT), np.uint8)
    for thread in range(threads):
        for index, (_, kind) in enumerate(program.inputs):
            _fill(random, rows[thread, index], kind)
    for index, (_, kind) in enumerate(program.uniforms):
        _fill(random, uniforms[index], kind)
    return rows, uniforms


def _fill(random: Random, place: np.ndarray, kind: str) -> None:
    size = stored_bits(kind) // 8
    for element in range(lanes_of(kind) or 1):
        data = pattern(random, kind).to_bytes(size, "little")
        place[element * size : (element + 1) * size] = np.frombuffer(data, np.uint8)


def kernarg(program: Program, rows: np.ndarray, out: np.ndarray, uniforms: np.ndarray) -> bytes:
    """The argument segment: pointers, then uniforms, each at its own alignment."""
    data = bytearray(np.array([rows.ctypes.data, out.ctypes.data], np.uint64).tobytes())
    for index, (_, kind) in enumerate(program.uniforms):
        size = stored_bits(kind) // 8
        data += bytes(-len(data) % size)
        data += uniforms[index, :size].tobytes()
    return bytes(data)


def target_results(
    program: Program,
    text: str,
    target: str,
    rows: np.ndarray,
    uniforms: np.ndarray,
    quick: bool = False,
) -> np.ndarray:
    """Outputs `[thread][output][16 bytes]` of the emulated kernel."""
    threads = len(rows)
    (code,) = load(text, target)
    out = np.zeros((threads, len(program.outputs) + 1, SLOT), np.uint8)
    launch = Launch(
        code=code,
        grid=(1, 1, 1),
        block=(threads, 1, 1),
        kernarg=kernarg(program, rows, out, uniforms),
    )
    ranges = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in (rows, out)]
    kernel = parse_kernel(code)
    native = compile_kernel(kernel, quick=quick).load(lambda: kernel)
    engine.run(native, launch, ranges, budget=1 << 20)
    return out[:, 1:]


def difference(
    program: Program, target: str, seed: int, level: int = 0, quick: bool = False
) -> Difference | None:
    """Run both; the first difference. `level` is the optimiser's, `quick` how the emulator
    translates. Raises Uncompiled, or what the emulator raises."""
    threads = 2 * wave_lanes(target)
    rows, uniforms = inputs_of(program, seed, threads)
    text = assembly(kernel_text(program, target), target, level)
    frames = host_results(program, rows, uniforms, 2)
    found = target_results(program, text, target, rows, uniforms, quick)
    slots = frame_slots(program)
    for index, use in enumerate(program.outputs):
        exact = use.number in program.settled
        place = _first(found[:, index], frames[:, slots[use.number]], use.kind, exact)
        if place is not None:
            thread, mine, theirs = place
            return Difference(use.number, use.kind, thread, mine, theirs)
    return None


def _first(
    found: np.ndarray, expected: np.ndarray, kind: str, exact: bool
) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    count = lanes_of(kind) or 1
    width = stored_bits(kind) // 8
    views = [
        np.ascontiguousarray(a[:, : count * width]).view(f"<u{width}") for a in (found, expected)
    ]
    equal = views[0] == views[1]
    if is_float(kind) and not exact:
        magnitude = (1 << element_bits(kind) - 1) - 1
        infinity = _INFINITY[element_of(kind)]
        nan = [(v & v.dtype.type(magnitude)) > v.dtype.type(infinity) for v in views]
        equal |= nan[0] & nan[1]
    wrong = np.flatnonzero(~equal.all(axis=1))
    if not len(wrong):
        return None
    thread = int(wrong[0])
    mine, theirs = (tuple(int(x) for x in view[thread]) for view in views)
    return thread, mine, theirs
