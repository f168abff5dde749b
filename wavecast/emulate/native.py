"""Native code of kernels: made from their machine code, and kept on disk.

An entry of the cache (kind `emulate`) holds object code, the layout of a wave, the kernel's
descriptor, and the names of the outlined functions it calls. The assembly is parsed again only when
someone asks for instructions, to word an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import binding, ir

from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.parsing import parse_kernel
from wavecast.compile.processor import processor
from wavecast.emulate.compiled import FUNCTION, Compiled, Improvement, NativeKernel
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.emitter import KernelInput
from wavecast.emulate.lower.kernel import KernelLowering
from wavecast.emulate.lower.mode import machine_of
from wavecast.emulate.lower.operands import uses_apertures
from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.mode import Mode
from wavecast.isa.program import Kernel, KernelDescriptor, first_block
from wavecast.isa.registers import AGPRS, VGPRS

_LEVEL = 1
_SECONDS = 0.0004
"""Seconds it takes to compile an instruction well, about."""
_WATCHED_SECONDS = 0.0016
"""The same for an instruction of a mode."""
_DYNAMIC_STACK = 16384
"""Bytes of scratch per lane for a stack of unknown depth; hardware takes what the runtime set."""


def layout_of(kernel: Kernel) -> WaveLayout:
    """Rows for every vector register the program names."""
    registers = 0
    for instruction in kernel.program.instructions:
        registers |= instruction.reads | instruction.writes
    vgprs = max((registers & VGPRS).bit_length(), 1)
    agprs = ((registers & AGPRS) >> VGPRS.bit_length()).bit_length()
    return WaveLayout(kernel.descriptor.wave_size, vgprs, agprs)


def translate(kernel: Kernel, mode: Mode | None = None) -> NativeKernel:
    """Compile a kernel for the host, plain or for a mode, without the cache of kernels.

    Raises Unsupported naming what has no meaning yet.
    """
    return compile_kernel(kernel, mode).load(lambda: kernel)


def native_kernel(code: CodeObject, mode: Mode | None = None) -> NativeKernel:
    """Native code of a code object, from the cache where it is there.

    Code is translated quickly at first. When it has run about as long as it takes to compile it
    well, that is done in the background, and kept; code of a mode without a key is compiled well
    at once, and not kept. Raises Unsupported naming what has no meaning yet, and InputError for
    code without a kernel.
    """

    def parse() -> Kernel:
        return parse_kernel(code, link=True)

    depends = mode.key(code.target) if mode is not None else "plain"
    if not depends:
        return translate(parse(), mode)
    store = DiskCache()
    basis = (runtime.basis(), *_machine_code(code), depends)
    best, first = digest.key("emulate", *basis, "best"), digest.key("emulate", *basis, "first")
    translation = _load_kernel(store, best, parse)
    if translation is not None:
        return translation
    translation = _load_kernel(store, first, parse)
    if translation is None:
        kernel = parse()
        binary = compile_kernel(kernel, mode, quick=True)
        translation = binary.load(lambda: kernel)
        store.put(first, binary.pack())

    def improve(native: NativeKernel) -> None:
        binary = compile_kernel(native.kernel, mode)
        native.replace_code(binary)
        store.put(best, binary.pack())

    seconds = _SECONDS if mode is None else _WATCHED_SECONDS
    translation.improvement = Improvement(translation, improve, seconds * translation.instructions)
    return translation


def _machine_code(code: CodeObject) -> tuple[digest.Part, ...]:
    """All of a code object that a translation depends on. The digest of Triton's code names the
    attributes of its arguments too, which seldom change what it compiles."""
    binary = code.stages.get("hsaco") if code.origin == "triton" else None
    names = code.target, code.kernel, code.origin, code.source, code.moved_files
    return *names, code.assembly, binary if isinstance(binary, bytes) else code.digest


def _load_kernel(store: DiskCache, key: str, parse: Callable[[], Kernel]) -> NativeKernel | None:
    """The kernel of a cache entry, None where there is none or what it calls is missing."""
    binary = Compiled.unpack(store.get(key))
    if binary is None:
        return None
    try:
        return binary.load(parse)
    except runtime.Missing:
        return None


def compile_kernel(kernel: Kernel, mode: Mode | None = None, *, quick: bool = False) -> Compiled:
    """Lower a kernel and compile it, `quick` to translate or quick to run. Raises Unsupported."""
    host = processor()
    machine = host.emitter(0 if quick else _LEVEL)
    module = ir.Module(kernel.name, context=ir.Context())
    module.triple = host.triple
    module.data_layout = str(machine.target_data)
    layout = layout_of(kernel)
    observer = mode.observer(kernel) if mode is not None else None
    kernel_input = KernelInput(
        program=kernel.program,
        layout=layout,
        strip=min(host.strip_lanes, layout.lanes),
        first=first_block(kernel.program, kernel.descriptor),
        quick=quick,
        apertures=uses_apertures(kernel.program),
    )
    mode_register = machine_of(kernel.program.target, kernel.descriptor)
    KernelLowering(kernel_input, mode_register, module, FUNCTION, observer).build()
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    if not quick:
        _optimise(parsed, machine)
    data = kernel.program.data
    return Compiled(
        kernel.program.target,
        _with_stack(kernel.descriptor),
        layout,
        machine.emit_object(parsed),
        tuple(runtime.names_in(module)),
        len(kernel.program.instructions),
        data.content if data is not None else b"",
        data.addresses if data is not None else (),
    )


def _with_stack(descriptor: KernelDescriptor) -> KernelDescriptor:
    """The descriptor with room for the stack of recursive code, whose size compilers leave open."""
    if not descriptor.uses_dynamic_stack:
        return descriptor
    return replace(descriptor, scratch_bytes=max(descriptor.scratch_bytes, _DYNAMIC_STACK))


def _optimise(module: binding.ModuleRef, machine: binding.TargetMachine) -> None:
    """The few passes that pay: locals to registers, simplification, common subexpressions."""
    options = binding.create_pipeline_tuning_options(speed_level=1)
    builder = binding.create_pass_builder(machine, options)
    passes = binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


__all__ = ["compile_kernel", "native_kernel", "translate"]
