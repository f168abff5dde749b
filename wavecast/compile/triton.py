"""A kernel Triton compiled, as a `CodeObject`.

Nothing here imports Triton: what comes in is Triton's `CompiledKernel`, read by attribute. Its
kernel argument segment holds, in order, every parameter of the signature that is not a constant
(tuples flattened, tensor descriptors expanded), then scratch pointers Triton adds on its own.
Offsets are the compiler's: `.amdgpu_metadata` on AMD, the cubin's attributes on NVIDIA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wavecast.compile import cubin
from wavecast.compile.codeobject import CodeObject, Parameter
from wavecast.compile.digest import digest
from wavecast.compile.triton_sources import moved_files
from wavecast.dtypes import Spelling, element_bytes, is_dtype
from wavecast.errors import CompileError
from wavecast.isa import elf
from wavecast.isa.assembly_metadata import descriptors_from_assembly

Path = tuple[int, ...]
"""Position of a value in the arguments: parameter number, then positions inside tuples."""

_DESCRIPTOR = re.compile(r"tensordesc(?:_im2col)?<([^\[>]*)\[([^\]]*)\]")
_INPUT_RANK = re.compile(r",input_rank=(\d+)")
_NOT_OPTIONS = frozenset(
    {"hash", "target", "name", "shared", "triton_version", "tensordesc_meta", "extern_libs"}
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One entry of the kernel argument segment: which argument, which part of it, where.

    `part` is "" for the argument itself, else the piece of a tensor descriptor: `base`,
    `shape.0`, `stride.1`, `nan_padding`, `round_to_tf32`, or `descriptor`.
    """

    path: Path
    part: str
    type: str
    offset: int
    size: int


def code_object(kernel: Any, version: str) -> CodeObject:
    """The `CodeObject` of a `triton.compiler.CompiledKernel` compiled by Triton `version`.

    Raises CompileError when the argument segment does not hold what the signature says.
    """
    target = target_name(kernel.metadata.target)
    function = getattr(kernel.src, "fn", None)
    parameters = _parameters(kernel.src, slots(kernel))
    stages = {name: kernel.asm[name] for name in list(kernel.asm) if name != "source"}
    shared = int(kernel.metadata.shared)
    workgroup = int(kernel.metadata.num_warps) * int(kernel.metadata.target.warp_size)
    options = _options(kernel.metadata._asdict())
    return CodeObject(
        kernel=kernel.name,
        target=target,
        origin="triton",
        stages=stages,
        parameters=parameters,
        options=options,
        workgroup_size=workgroup,
        dynamic_lds=shared,
        source=str(function.fn.__code__.co_filename) if function else "",
        source_line=int(function.starting_line_number) if function else 0,
        source_text="".join(function.raw_src) if function else "",
        compiler=f"triton {version}",
        digest=digest(target, kernel.name, kernel.kernel, repr(parameters), workgroup, shared),
        moved_files=moved_files(kernel),
    )


def compiled_again(kernel: Any, code: CodeObject) -> CodeObject:
    """`code` with the machine code and options of another compilation of its kernel.

    Raises CompileError where the argument segment is another one.
    """
    offsets = [p.offset for p in code.parameters if p.offset is not None]
    if offsets and len(_offsets(kernel)) < len(offsets):
        raise CompileError(f"{code.kernel}: compiled again, it takes other arguments")
    shared = int(kernel.metadata.shared)
    workgroup = int(kernel.metadata.num_warps) * int(kernel.metadata.target.warp_size)
    return replace(
        code,
        stages={name: kernel.asm[name] for name in list(kernel.asm) if name != "source"},
        options=_options(kernel.metadata._asdict()),
        workgroup_size=workgroup,
        dynamic_lds=shared,
        digest=digest(
            code.target, code.kernel, kernel.kernel, repr(code.parameters), workgroup, shared
        ),
    )


def target_name(target: Any) -> str:
    """`gfx942` or `sm_90` of Triton's GPUTarget."""
    return f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch).split(":")[0]


def slots(kernel: Any) -> tuple[Slot, ...]:
    """Every argument the kernel takes, with its offset in the kernel argument segment. Raises
    CompileError where the compiled kernel takes fewer arguments than its signature."""
    signature_leaves = list(_expected_slots(kernel.src, kernel.metadata))
    offered = _offsets(kernel)
    if len(offered) < len(signature_leaves):
        raise CompileError(
            f"{kernel.name}: the compiled kernel takes {len(offered)} arguments, "
            f"its signature needs {len(signature_leaves)}"
        )
    kernel_slots = []
    for (path, part, kind), (offset, size) in zip(signature_leaves, offered, strict=False):
        kind_bytes = _bytes(kind) or size
        if kind_bytes != size:
            raise CompileError(
                f"{kernel.name}: argument {len(kernel_slots)} ({kind}) has {size} bytes, not "
                f"{kind_bytes}"
            )
        kernel_slots.append(Slot(path, part, kind, offset, size))
    return tuple(kernel_slots)


def _bytes(kind: str) -> int:
    """Bytes of an argument of a type of Triton's signature, 0 where the type does not say."""
    if kind.startswith("*"):
        return 8
    return int(element_bytes(kind)) if is_dtype(kind, Spelling.TRITON) else 0


def segment_bytes(kernel: Any) -> int:
    """Size of the kernel argument segment, scratch pointers included."""
    return max((offset + size for offset, size in _offsets(kernel)), default=0)


def scratch_offsets(kernel: Any) -> tuple[int, ...]:
    """Offsets of the pointers to global and to profile scratch, of those the kernel takes."""
    return tuple(offset for offset, _ in _offsets(kernel)[len(slots(kernel)) :])


def leaves(signature: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Every value of a signature in order, tuples flattened: its path and Triton type name."""

    def visit(path: Path, kind: Any) -> Iterator[tuple[Path, str]]:
        if isinstance(kind, tuple):
            for index, inner in enumerate(kind):
                yield from visit((*path, index), inner)
        else:
            yield path, kind

    for index, kind in enumerate(signature.values()):
        yield from visit((index,), kind)


def plain(value: object) -> object:
    """A constant as a plain value: numbers, strings, None and tuples stay, others are named."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(plain(item) for item in value)
    inner = getattr(value, "value", None)
    if type(value).__name__ == "constexpr":
        return plain(inner)
    return getattr(value, "__name__", None) or str(value)


def _expected_slots(source: Any, details: Any) -> Iterator[tuple[Path, str, str]]:
    opaque = bool(getattr(details, "tensordesc_meta", None))
    for path, kind in leaves(source.signature):
        if kind.startswith("tensordesc"):
            for part, piece in _descriptor_parts(kind, opaque):
                yield path, part, piece
        elif kind != "constexpr":
            yield path, "", kind


def _descriptor_parts(kind: str, opaque: bool) -> Iterator[tuple[str, str]]:
    """What a host tensor descriptor becomes: a hardware descriptor where the target has one
    (`opaque`), else its base pointer, extents and flags; shape and strides follow in both cases."""
    match = _DESCRIPTOR.match(kind)
    if match is None:
        raise CompileError(f"tensor descriptor type {kind!r} is not understood")
    ranked = _INPUT_RANK.search(kind)
    rank = int(ranked[1]) if ranked else match[2].count(",") + 1
    if opaque:
        yield "descriptor", "descriptor"
    else:
        yield "base", "*" + match[1]
        for name in ("shape", "stride"):
            for axis in range(rank):
                yield f"{name}.{axis}", "i64"
        yield "nan_padding", "i1"
        if _rounds_to_tf32():
            yield "round_to_tf32", "i1"
    for name, size in (("shape", "i32"), ("stride", "i64")):
        for axis in range(rank):
            yield f"{name}.{axis}", size


def _rounds_to_tf32() -> bool:
    """Newer Triton passes one more flag with a descriptor."""
    import sys

    module = sys.modules.get("triton.tools.tensor_descriptor")
    fields = getattr(getattr(module, "TensorDescriptor", None), "__dataclass_fields__", {})
    return "round_f32_to_tf32" in fields


def _offsets(kernel: Any) -> list[tuple[int, int]]:
    if kernel.metadata.target.backend == "cuda":
        kernels = {info.name: info for info in cubin.kernels(elf.read(kernel.asm["cubin"]))}
        return list(kernels[kernel.name].parameters)
    text = kernel.asm["amdgcn"]
    arguments = descriptors_from_assembly(text)[kernel.name].arguments
    return [(item.offset, item.size) for item in arguments if not item.kind.startswith("hidden")]


def _parameters(source: Any, kernel_slots: tuple[Slot, ...]) -> tuple[Parameter, ...]:
    by_path: dict[Path, list[Slot]] = {}
    for slot in kernel_slots:
        by_path.setdefault(slot.path, []).append(slot)
    names = list(source.signature)
    parameters = []
    for path, kind in leaves(source.signature):
        leaf_slots = by_path.get(path, [])
        first = leaf_slots[0].offset if leaf_slots else None
        parameters.append(
            Parameter(
                name=".".join([str(names[path[0]]), *map(str, path[1:])]),
                type=kind,
                offset=first,
                size=leaf_slots[-1].offset + leaf_slots[-1].size - first
                if first is not None
                else None,
                constant=plain(getattr(source, "constants", {}).get(path)),
                attributes=_attributes(getattr(source, "attrs", {}).get(path, ())),
            )
        )
    return tuple(parameters)


def _attributes(pairs: Any) -> tuple[str, ...]:
    return tuple(f"{name.removeprefix('tt.')}={value}" for name, value in pairs)


def _options(details: Mapping[str, Any]) -> dict[str, object]:
    """Compiler options out of Triton's metadata, which also holds environment variables."""
    return {
        name: plain(value)
        for name, value in details.items()
        if name not in _NOT_OPTIONS and not name.isupper() and not isinstance(value, dict)
    }
