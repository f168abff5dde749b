"""Kernel descriptors: what assembly text or a code object says about each kernel.

Two sources, one result. Assembly text has `.amdhsa_*` directives and a YAML document between
`.amdgpu_metadata` and `.end_amdgpu_metadata`; a code object has the same document as a msgpack note
and the 64-byte descriptor `KERNEL.kd` (decoded in `wavecast.isa.kernel_code`). In both cases
`KernelDescriptor.directives` has the directive names without their `.amdhsa_` prefix as keys:
`next_free_vgpr`, `accum_offset`, `user_sgpr_count`, `kernarg_preload_length` …

Sources: LLVM "User Guide for AMDGPU Backend", sections "Code Object V5 Metadata" and "AMDHSA
Assembler Directives".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from wavecast.arch import capabilities
from wavecast.errors import InputError, ParseError
from wavecast.isa import elf, kernel_code, symbols
from wavecast.isa.program import KernelArgument, KernelDescriptor
from wavecast.isa.quoting import SYMBOL, unquote

NOTE_OWNER = "AMDGPU"
NOTE_METADATA = 32
"""NT_AMDGPU_METADATA: the msgpack note of code object versions 3 and later."""

_KERNELS = "amdhsa.kernels"
_PADDING = re.compile(r"_?pad(?:ding)?\d*|_p\d+")
"""Names that hand-written kernels (AITER) give to what fills an argument segment."""
_UNUSED = "hidden_none"
"""The kind of an argument that a launch leaves out."""
_SEGMENT = 1 << 32
"""Bytes of the largest argument segment: kernel descriptors state its size in 32 bits."""

_DIRECTIVES = re.compile(rf"\.amdhsa_kernel[ \t]+({SYMBOL})(.*?)\.end_amdhsa_kernel", re.DOTALL)
_FIELD_END = 1 << 32
"""Fields of the kernel descriptor have at most 32 bits."""
_DIRECTIVE = re.compile(r"^[ \t]*\.amdhsa_(\w+)[ \t]+([^;\n]+)", re.MULTILINE)
_TARGET = re.compile(r"\.amdgcn_target[ \t]+\"([^\"]+)\"")
_PROCESSOR = re.compile(r"gfx[0-9a-f]+(?:-[0-9]*-?generic)?(?::[a-z]+[+-])*")

Document = Mapping[str, Any]


def target_from_assembly(text: str) -> str:
    """The processor of the `.amdgcn_target` directive, features dropped; "" without one.

    Both spellings of the triple are understood: `amdgcn-amd-amdhsa--gfx942` and the subarch form
    of LLVM 24, `amdgpu9.42-amd-amdhsa-unknown-gfx942`.
    """
    match = _TARGET.search(text)
    return processor_of_triple(match[1]) if match else ""


def processor_of_triple(triple: str) -> str:
    """`gfx942` of `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`; "" when there is none."""
    match = _PROCESSOR.search(triple)
    return match[0].split(":", 1)[0] if match else ""


def descriptors_from_assembly(text: str, target: str = "") -> Mapping[str, KernelDescriptor]:
    """Every kernel of an assembly text, by symbol, in the order of the text.

    A kernel that only the directives or only the metadata name is included with what is known.
    `target` decides the default wave size; the `.amdgcn_target` directive is used when it is "".
    Raises ParseError for metadata that is not YAML or lacks what every kernel has.
    """
    return _descriptors(text, target or target_from_assembly(text))


@lru_cache(maxsize=8)
def _descriptors(text: str, processor: str) -> Mapping[str, KernelDescriptor]:
    """The kernels of a text for a processor. One text is asked several times: by its loader, its
    launcher and its parser, for each of its kernels."""
    documents = _kernel_documents(_yaml_metadata(text))
    directives = {
        unquote(match[1]): _integers(text, match[2]) for match in _DIRECTIVES.finditer(text)
    }
    descriptors = {}
    for name in dict.fromkeys((*directives, *documents)):
        exact = symbols.function_resource(text, name, "num_vgpr")
        descriptors[name] = _descriptor(
            name, documents.get(name, {}), directives.get(name, {}), exact, processor
        )
    return descriptors


def descriptors_from_elf(data: bytes) -> dict[str, KernelDescriptor]:
    """Every kernel of an AMD code object, by symbol. Raises as `descriptors_of`, and InputError
    for a damaged file."""
    return descriptors_of(elf.read(data))


def descriptors_of(
    image: elf.Elf, accepts: Callable[[str], object] | None = None
) -> dict[str, KernelDescriptor]:
    """The kernels of an AMD code object by symbol; with `accepts` those for whose symbol it is
    true.

    Raises InputError when the file is not an AMDGPU ELF, is damaged, or has neither metadata nor a
    kernel descriptor.
    """
    if image.machine != elf.MACHINE_AMDGPU:
        raise InputError(f"not an AMD GPU code object (ELF machine {image.machine})")
    document = metadata_of_elf(image)
    processor = processor_of_triple(str(document.get("amdhsa.target", "")))
    processor = processor or elf.processor(image)
    documents = _kernel_documents(document)
    descriptors = _descriptor_symbols(image)
    if not documents and not descriptors:
        raise InputError("AMD code object with no kernel in it")
    kernels = {}
    for name in dict.fromkeys((*documents, *descriptors)):
        if accepts is not None and not accepts(name):
            continue
        exact = image.symbols.get(f"{name}.num_vgpr")
        vgprs = exact.value if exact is not None and exact.absolute else None
        directives: dict[str, int] = {}
        if name in descriptors:
            directives = kernel_code.decode(image.content(descriptors[name]), processor)
        _refine_vgprs(directives, documents.get(name, {}), processor)
        kernels[name] = _descriptor(name, documents.get(name, {}), directives, vgprs, processor)
    return kernels


def kernel_symbols(image: elf.Elf) -> frozenset[str]:
    """The symbols of all kernels of a code object. Raises InputError for damaged metadata."""
    documents = _kernel_documents(metadata_of_elf(image))
    return frozenset(documents) | frozenset(_descriptor_symbols(image))


def _descriptor_symbols(image: elf.Elf) -> dict[str, elf.Symbol]:
    """The symbols of kernel descriptors, by the symbol of the kernel."""
    return {
        name: symbol
        for symbol in image.symbols.values()
        if symbol.size == kernel_code.SIZE
        and (name := symbol.name.removesuffix(".kd")) != symbol.name
    }


def _refine_vgprs(directives: dict[str, int], document: Document, processor: str) -> None:
    """Replace the granulated count by the metadata's exact one where both mean the same.

    They differ where the compiler allocates more than it uses, to keep to `waves_per_eu`.
    """
    exact, granulated = document.get(".vgpr_count"), directives.get("next_free_vgpr")
    if not isinstance(exact, int) or granulated is None:
        return
    wave32 = bool(directives.get("wavefront_size32"))
    granule = kernel_code.vgpr_granule(processor, wave32)
    if max(1, -(-exact // granule)) * granule == granulated:
        directives["next_free_vgpr"] = max(1, exact)


def metadata_of_elf(image: elf.Elf) -> Document:
    """The metadata document of a code object; empty when it has none. Linkers keep a note per
    linked object: all of them describe kernels. Raises InputError."""
    import msgspec

    merged_document: dict[str, Any] = {}
    for owner, kind, content in image.notes:
        if owner != NOTE_OWNER or kind != NOTE_METADATA:
            continue
        try:
            document = msgspec.msgpack.decode(content)
        except Exception as error:
            raise InputError("the code object's metadata note is damaged") from error
        if not isinstance(document, dict):
            continue
        first, more = merged_document.get(_KERNELS, []), document.get(_KERNELS, [])
        merged_document = {**document, **merged_document}
        if isinstance(first, list) and isinstance(more, list):
            merged_document[_KERNELS] = first + more
    return merged_document


def _yaml_metadata(text: str) -> Document:
    start = text.rfind(".amdgpu_metadata\n")
    if start < 0:
        return {}
    line = text.count("\n", 0, start) + 1
    end = text.find(".end_amdgpu_metadata", start)
    if end < 0:
        raise ParseError(".amdgpu_metadata is never closed", line=line)
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        body = text[start + len(".amdgpu_metadata\n") : text.rfind("\n", start, end) + 1]
        document = yaml.load(body, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = line + 1 + (mark.line if mark else 0)
        raise ParseError("kernel metadata is not valid YAML", line=where) from error
    if not isinstance(document, dict):
        raise ParseError("kernel metadata is not a mapping", line=line)
    return document


def _kernel_documents(document: Document) -> dict[str, Document]:
    kernels = document.get(_KERNELS, [])
    if not isinstance(kernels, list) or not all(
        isinstance(item, dict) and ".name" in item for item in kernels
    ):
        raise InputError("kernel metadata has no list of named kernels under 'amdhsa.kernels'")
    return {_symbol(item): item for item in kernels}


def _symbol(document: Document) -> str:
    return str(document.get(".symbol", document[".name"])).removesuffix(".kd")


def _integers(text: str, body: str) -> dict[str, int]:
    """The directives of one kernel whose value is an integer or an expression of `.set` symbols.
    Raises InputError for a value that no field of a kernel descriptor can have."""
    directives = {}
    for match in _DIRECTIVE.finditer(body):
        value = match[2].strip()
        try:
            directives[match[1]] = int(value, 0)
        except ValueError:
            number = symbols.evaluate(value, text)
            if number is not None:
                directives[match[1]] = number
        if not 0 <= directives.get(match[1], 0) < _FIELD_END:
            raise InputError(f".amdhsa_{match[1]} must be from 0 to 2^32 - 1, not {value:.40}")
    return directives


def _descriptor(
    name: str,
    document: Document,
    directives: Mapping[str, int],
    exact_vgprs: int | None,
    processor: str,
) -> KernelDescriptor:
    def number(key: str, directive: str = "", default: int = 0) -> int:
        value = document.get(key, directives.get(directive, default))
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
    sizes = document.get(key, [])
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


def _is_padding(item: Document) -> bool:
    return item.get(".value_kind") == "by_value" and bool(
        _PADDING.fullmatch(str(item.get(".name", "")))
    )


def _arguments(kernel: str, document: Document) -> tuple[KernelArgument, ...]:
    arguments = []
    for item in document.get(".args", ()) or ():
        try:
            argument = KernelArgument(
                name=str(item.get(".name", "")),
                offset=int(item[".offset"]),
                size=int(item[".size"]),
                kind=_UNUSED if _is_padding(item) else str(item[".value_kind"]),
                address_space=str(item.get(".address_space", "")),
                type_name=str(item.get(".type_name", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"kernel {kernel}: malformed argument in metadata") from error
        if min(argument.offset, argument.size) < 0 or argument.offset + argument.size > _SEGMENT:
            raise InputError(f"kernel {kernel}: malformed argument in metadata")
        arguments.append(argument)
    return tuple(arguments)
