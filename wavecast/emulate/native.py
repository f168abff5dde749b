"""Native code of kernels: made from their machine code, and kept on disk.

An entry of the cache (kind `emulate`) holds object code, the layout of a wave, the kernel's
descriptor, and the names of the outlined functions it calls. The assembly is parsed again only when
someone asks for instructions, to word an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from llvmlite import binding, ir

from wavecast.compile import digest
from wavecast.compile.cache import Cache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.kernel import KernelLowering
from wavecast.emulate.lower.mode import machine_of
from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.mode import Mode
from wavecast.emulate.processor import load_object, processor
from wavecast.isa.program import Kernel, KernelArgument, KernelDescriptor, first_block
from wavecast.isa.registers import AGPRS, VGPRS

_FUNCTION = "wave"
_LEVEL = 1
_DYNAMIC_STACK = 16384
"""Bytes of scratch per lane for a stack of unknown depth; hardware takes what the runtime set."""


@dataclass(frozen=True)
class NativeKernel:
    """Machine code of one kernel for this host. Keeps the engine that owns it alive."""

    target: str
    descriptor: KernelDescriptor
    layout: WaveLayout
    address: int
    owner: Any
    parse: Callable[[], Kernel]

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel's program, parsed when it is first asked for."""
        return self.parse()


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is kept of a translation: an object file that defines `wave`, the outlined functions it
    is linked against, and what a launch must know of the kernel."""

    target: str
    descriptor: KernelDescriptor
    layout: WaveLayout
    code: bytes
    outlined: tuple[str, ...]

    def load(self, parse: Callable[[], Kernel]) -> NativeKernel:
        """Bring the code into this process. Raises runtime.Missing."""
        runtime.provide(self.outlined)
        owner = load_object(self.code)
        address = owner.get_function_address(_FUNCTION)
        return NativeKernel(self.target, self.descriptor, self.layout, address, owner, parse)

    def packed(self) -> dict[str, object]:
        """As plain values for the cache."""
        return asdict(self)

    @classmethod
    def unpacked(cls, value: object) -> Compiled | None:
        """From plain values; None where they are not those of a translation."""
        if not isinstance(value, dict):
            return None
        try:
            fields = dict(value["descriptor"])
            arguments = tuple(KernelArgument(**argument) for argument in fields.pop("arguments"))
            return cls(
                value["target"],
                KernelDescriptor(arguments=arguments, **fields),
                WaveLayout(**value["layout"]),
                value["code"],
                tuple(value["outlined"]),
            )
        except (KeyError, TypeError):
            return None


def layout_of(kernel: Kernel) -> WaveLayout:
    """Rows for every vector register the program names."""
    used = 0
    for instruction in kernel.program.instructions:
        used |= instruction.reads | instruction.writes
    vgprs = max((used & VGPRS).bit_length(), 1)
    agprs = ((used & AGPRS) >> VGPRS.bit_length()).bit_length()
    return WaveLayout(kernel.descriptor.wave_size, vgprs, agprs)


def translate(kernel: Kernel, mode: Mode | None = None) -> NativeKernel:
    """Compile a kernel for the host, plain or for a mode, without the cache of kernels.

    Raises Unsupported naming what has no meaning yet.
    """
    return compile_kernel(kernel, mode).load(lambda: kernel)


def native_kernel(code: CodeObject, mode: Mode | None = None) -> NativeKernel:
    """Native code of a code object, from the cache where it is there.

    Raises Unsupported naming what has no meaning yet, and InputError for code without a kernel.
    """

    def parse() -> Kernel:
        return parse_kernel(code, link=True)

    if mode is not None:
        return translate(parse(), mode)
    store = Cache()
    key = digest.key("emulate", runtime.basis(), code.target, code.kernel, code.assembly)
    known = Compiled.unpacked(store.get(key))
    if known is not None:
        try:
            return known.load(parse)
        except runtime.Missing:
            known = None
    kernel = parse()
    made = compile_kernel(kernel)
    store.put(key, made.packed())
    return made.load(lambda: kernel)


def compile_kernel(kernel: Kernel, mode: Mode | None = None) -> Compiled:
    """Lower a kernel and compile it. Raises Unsupported."""
    host = processor()
    machine = host.machine(_LEVEL)
    module = ir.Module(kernel.name, context=ir.Context())
    module.triple = host.triple
    module.data_layout = str(machine.target_data)
    layout = layout_of(kernel)
    observer = mode.observer(kernel) if mode is not None else None
    KernelLowering(
        kernel.program,
        layout,
        machine_of(kernel.program.target, kernel.descriptor),
        module,
        host.strip_lanes,
        _FUNCTION,
        observer,
        first_block(kernel.program, kernel.descriptor),
    ).build()
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    _optimise(parsed, machine)
    return Compiled(
        kernel.program.target,
        _with_stack(kernel.descriptor),
        layout,
        machine.emit_object(parsed),
        tuple(runtime.names_in(module)),
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


__all__ = ["Compiled", "NativeKernel", "compile_kernel", "native_kernel", "translate"]
