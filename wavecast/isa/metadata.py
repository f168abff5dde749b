"""Kernel descriptors: what metadata and directives say about a kernel.

Two sources, one result. Assembly text has `.amdhsa_*` directives and a YAML document
(`wavecast.isa.assembly_metadata`); a code object has the same document as a msgpack note and the
64-byte descriptor `KERNEL.kd` (`wavecast.isa.elf_metadata`). In both cases
`KernelDescriptor.directives` has the directive names without their `.amdhsa_` prefix as keys:
`next_free_vgpr`, `accum_offset`, `user_sgpr_count`, `kernarg_preload_length` …

Sources: LLVM "User Guide for AMDGPU Backend", sections "Code Object V5 Metadata" and "AMDHSA
Assembler Directives".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from wavecast.arch import capabilities
from wavecast.errors import InputError
from wavecast.isa.program import KernelArgument, KernelDescriptor

KERNELS = "amdhsa.kernels"
"""The key of the list of kernels."""
_PADDING = re.compile(r"_?pad(?:ding)?\d*|_p\d+")
"""Names that hand-written kernels (AITER) give to what fills an argument segment."""
_UNUSED = "hidden_none"
"""The kind of an argument that a launch leaves out."""
_SEGMENT = 1 << 32
"""Bytes of the largest argument segment: kernel descriptors state its size in 32 bits."""

_PROCESSOR = re.compile(r"gfx[0-9a-f]+(?:-[0-9]*-?generic)?(?::[a-z]+[+-])*")

Document = Mapping[str, Any]


def processor_of_triple(triple: str) -> str:
    """`gfx942` of `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`; "" when there is none."""
    match = _PROCESSOR.search(triple)
    return match[0].split(":", 1)[0] if match else ""


def kernel_documents(document: Document) -> dict[str, Document]:
    """What a metadata document says of each kernel, by symbol. Raises InputError."""
    kernels = document.get(KERNELS, [])
    if not isinstance(kernels, list) or not all(
        isinstance(item, dict) and ".name" in item for item in kernels
    ):
        raise InputError("kernel metadata has no list of named kernels under 'amdhsa.kernels'")
    return {_symbol(item): item for item in kernels}


def _symbol(document: Document) -> str:
    return str(document.get(".symbol", document[".name"])).removesuffix(".kd")


def descriptor(
    name: str,
    document: Document,
    directives: Mapping[str, int],
    exact_vgprs: int | None,
    processor: str,
) -> KernelDescriptor:
    """The descriptor of a kernel from its part of a metadata document and its directives, either of
    which may be empty; `exact_vgprs` is the count of architectural VGPRs where it is stated.
    Raises InputError for metadata that is malformed."""

    def number(key: str, directive: str = "", default: int = 0) -> int:
        value = document[key] if key in document else directives.get(directive, default)
        if not isinstance(value, int):
            raise InputError(f"kernel {name}: metadata {key} is not a number: {value!r}")
        return int(value)

    agprs = number(".agpr_count")
    total = number(".vgpr_count", "next_free_vgpr")
    offset = directives.get("accum_offset")
    if not document and offset is not None:
        agprs = max(0, total - offset)
    return KernelDescriptor(
        vgprs=_architectural(total, agprs, offset, exact_vgprs),
        agprs=agprs,
        sgprs=number(".sgpr_count", "next_free_sgpr"),
        lds_bytes=number(".group_segment_fixed_size", "group_segment_fixed_size"),
        scratch_bytes=number(".private_segment_fixed_size", "private_segment_fixed_size"),
        vgpr_spills=number(".vgpr_spill_count"),
        sgpr_spills=number(".sgpr_spill_count"),
        wave_size=number(".wavefront_size") or _wave_size(directives, processor),
        max_workgroup_size=number(".max_flat_workgroup_size", default=1024),
        kernarg_bytes=number(".kernarg_segment_size", "kernarg_size"),
        arguments=_arguments(name, document),
        uses_dynamic_stack=bool(number(".uses_dynamic_stack", "uses_dynamic_stack")),
        directives=dict(directives),
        required_threads=math.prod(_sizes(name, document, ".reqd_workgroup_size") or [0]),
        cluster=_cluster(name, document),
        language=str(document.get(".language", "")),
    )


def _sizes(name: str, document: Document, key: str) -> list[int]:
    if key not in document:
        return []
    sizes = document[key]
    if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
        raise InputError(f"kernel {name}: malformed {key} in metadata")
    return sizes


def _cluster(name: str, document: Document) -> tuple[int, int, int]:
    """Zeros say that there are none, 1024 that a launch states them. Source: LLVM "User Guide for
    AMDGPU Backend", `amdgpu-cluster-dims`."""
    sizes = _sizes(name, document, ".cluster_dims")
    if len(sizes) not in (0, 3):
        raise InputError(f"kernel {name}: malformed .cluster_dims in metadata")
    x, y, z = (1 if size in (0, 1024) else size for size in sizes or (1, 1, 1))
    return x, y, z


def _architectural(total: int, agprs: int, offset: int | None, exact: int | None) -> int:
    """Architectural VGPRs. With accumulation registers the total counts both files, the first
    rounded up to `accum_offset`; the exact count is then only known from the `num_vgpr` symbol."""
    if exact is not None:
        return exact
    if agprs and offset is not None:
        return min(offset, total - agprs)
    return total


def _wave_size(directives: Mapping[str, int], processor: str) -> int:
    if "wavefront_size32" in directives:
        return 32 if directives["wavefront_size32"] else 64
    return capabilities(processor).default_wave_size


@lru_cache(maxsize=1 << 14)
def _argument(*items: tuple[str, object]) -> KernelArgument:
    """An argument from the items of its document; kernels of a library have a few different ones.
    Raises KeyError, TypeError or ValueError where they are malformed."""
    item: Document = dict(items)
    name, kind = str(item.get(".name", "")), item[".value_kind"]
    argument = KernelArgument(
        name,
        int(item[".offset"]),
        int(item[".size"]),
        _UNUSED if kind == "by_value" and _PADDING.fullmatch(name) else str(kind),
        str(item.get(".address_space", "")),
        str(item.get(".type_name", "")),
    )
    if min(argument.offset, argument.size) < 0 or argument.offset + argument.size > _SEGMENT:
        raise ValueError(f"no argument of a segment: {argument}")
    return argument


def _arguments(kernel: str, document: Document) -> tuple[KernelArgument, ...]:
    try:
        return tuple([_argument(*item.items()) for item in document.get(".args", ()) or ()])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"kernel {kernel}: malformed argument in metadata") from error


__all__ = ["KERNELS", "Document", "descriptor", "kernel_documents", "processor_of_triple"]
