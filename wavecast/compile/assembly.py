"""AMDGCN assembly text to code objects, one per kernel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wavecast.arch.generic_targets import processor_of
from wavecast.compile.codeobject import CodeObject, Origin, Parameter
from wavecast.compile.digest import digest
from wavecast.errors import InputError
from wavecast.isa.assembly_metadata import descriptors_from_assembly, target_from_assembly
from wavecast.isa.program import KernelDescriptor
from wavecast.isa.targets import isa_target

_POINTER_KINDS = frozenset({"global_buffer", "dynamic_shared_pointer"})


def load(text: str, target: str = "", file: str | Path = "") -> list[CodeObject]:
    """One code object per kernel of `text`.

    The target is that of the `.amdgcn_target` directive; `target` supplies it for a text without
    the directive, and must agree with one. Raises InputError (unknown, missing, or
    contradicting target; no kernel) and ParseError (malformed metadata).
    """
    where = str(file)
    processor = resolve_target(target_from_assembly(text), target, where or "the assembly")
    descriptors = descriptors_from_assembly(text, processor)
    if not descriptors:
        raise InputError(
            f"{where or 'assembly'}: no kernel in the text",
            hint="a kernel needs an .amdhsa_kernel directive or .amdgpu_metadata",
        )
    return code_objects(
        descriptors,
        target=processor,
        origin="assembly",
        stages={"amdgcn": text},
        source=where,
        source_text=text,
        compiler="",
    )


def resolve_target(file_target: str, user_target: str, what: str) -> str:
    """The processor to use: what a file states, or what the user asked for.

    Processors that share an instruction set agree, and a generic target with its members. Raises
    InputError when neither is known or they contradict each other, UnknownName for one that is not
    supported.
    """
    user_target = user_target.split(":", 1)[0]
    stated, file_target = file_target, processor_of(file_target, user_target)
    if user_target.startswith("sm_"):
        raise InputError(f"{what} is AMD code, not code for {user_target}", hint="say a gfx target")
    if not file_target and not user_target:
        raise InputError(f"{what} names no target", hint="give one, such as --arch gfx942")
    if not file_target or not user_target:
        isa_target(file_target or user_target)
        return file_target or user_target
    if isa_target(file_target) != isa_target(user_target):
        raise InputError(
            f"{what} is for {stated}, not for {user_target}",
            hint=f"leave out the target or say {file_target}",
        )
    return file_target


def code_objects(
    descriptors: Mapping[str, KernelDescriptor],
    *,
    target: str,
    origin: Origin,
    stages: Mapping[str, str | bytes],
    source: str,
    source_text: str,
    compiler: str,
    options: Mapping[str, object] | None = None,
) -> list[CodeObject]:
    """One code object per described kernel, all sharing the stages of their module."""
    module = digest(target, {name: stages[name] for name in stages if name in ("amdgcn", "hsaco")})
    return [
        CodeObject(
            kernel=name,
            target=target,
            origin=origin,
            stages=stages,
            parameters=parameters(descriptor),
            options=options or {},
            workgroup_size=descriptor.required_threads,
            dynamic_lds=0,
            source=source,
            source_line=0,
            source_text=source_text,
            compiler=compiler,
            digest=digest(module, name),
        )
        for name, descriptor in descriptors.items()
    ]


def parameters(descriptor: KernelDescriptor) -> tuple[Parameter, ...]:
    """The visible kernel arguments; types are only known as pointer or `size` bytes by value."""
    return tuple(
        Parameter(
            name=argument.name,
            type=argument.type_name or ("*" if argument.kind in _POINTER_KINDS else ""),
            offset=argument.offset,
            size=argument.size,
        )
        for argument in descriptor.arguments
        if not argument.kind.startswith("hidden_")
    )
