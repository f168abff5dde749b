"""What kind of kernel file some bytes are, from their content and, last, the file's name."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Final

from wavecast.compile import containers
from wavecast.compile.nvidia import looks_like_ptx, looks_like_sass
from wavecast.errors import InputError
from wavecast.isa import elf
from wavecast.isa.elf import Content


class FileKind(Enum):
    """The kinds `load` reads; the value names one in messages."""

    HIP = "HIP source"
    CUDA = "CUDA source"
    ASSEMBLY = "AMDGCN assembly"
    AMD_OBJECT = "a code object"
    PTX = "PTX"
    CUBIN = "a cubin"
    SASS = "SASS"


_ASSEMBLY = re.compile(r"^\s*\.(?:amdgcn_target|amdhsa_kernel|amdgpu_metadata)\b", re.MULTILINE)
_HIP = re.compile(r"\b__global__\b|#\s*include\s*[<\"]hip/")
_HIP_NAME = re.compile(r"#\s*include\s*[<\"](?:hip|roc)\w*/|\bhip[A-Z]\w*")
_CUDA_NAME = re.compile(
    r"#\s*include\s*[<\"](?:cuda|cuComplex|cooperative_groups|mma\.h)|\bcuda[A-Z]\w*"
)
_LLVM_IR = re.compile(r"^(?:target (?:triple|datalayout) =|define .*\bamdgpu_kernel\b)", re.M)
_MLIR = re.compile(r"^\s*(?:module\b.*\{|tt\.func\b|func\.func\b)", re.MULTILINE)
_PYTHON = re.compile(r"^(?:import|from)\s+\w|^@triton\.jit", re.MULTILINE)

_ASSEMBLY_NAMES: Final = frozenset({".s", ".asm", ".amdgcn", ".isa"})
HIP_SUFFIXES: Final = frozenset({".hip", ".cu", ".cpp", ".cc", ".cxx", ".hpp", ".h", ".cuh", ".c"})
_CUDA_NAMES: Final = frozenset({".cu", ".cuh"})

_FOREIGN: Final[tuple[tuple[bytes, str, str], ...]] = (
    (containers.THIN_ARCHIVE, "a thin archive", "give the objects that it names"),
    (b"BC\xc0\xde", "LLVM bitcode", "compile it with llc -march=amdgcn -mcpu=… first"),
    (b"\x50\xed\x55\xba", "an NVIDIA fat binary", "extract the cubin with cuobjdump -xelf all"),
    (b"MZ", "a Windows program", "give a code object or source"),
    (b"\x1f\x8b", "a gzip archive", "unpack it first"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first"),
)


def is_cuda(text: str, suffix: str = "") -> bool:
    """Whether a C++ source is CUDA and not HIP: by the names and headers that it uses and, where it
    uses neither's, by the suffix of its file."""
    if _HIP_NAME.search(text):
        return False
    return suffix.lower() in _CUDA_NAMES or _CUDA_NAME.search(text) is not None


def kind_of(data: Content, path: Path) -> FileKind:
    """The kind of a file's content. Raises InputError, saying what it is instead."""
    if elf.is_elf(data):
        try:
            cuda = elf.machine(data) == elf.MACHINE_CUDA
        except InputError as error:
            raise InputError(f"{path}: {error.message}", hint=error.hint) from error
        return FileKind.CUBIN if cuda else FileKind.AMD_OBJECT
    if containers.is_container(data):
        return FileKind.AMD_OBJECT
    for magic, name, advice in _FOREIGN:
        if data[: len(magic)] == magic:
            raise InputError(f"{path} is {name}", hint=advice)
    if b"\0" in data[:4096]:
        raise InputError(f"{path} is a binary file of no known kind", hint=_WHAT_IS_READ)
    return _text_kind(bytes(data).decode("utf-8", "replace"), path)


_WHAT_IS_READ: Final = (
    "read are HIP and CUDA source, AMDGCN assembly, hsaco, offload bundles, programs and archives "
    "with device code, PTX, cubin, and SASS"
)


def _text_kind(text: str, path: Path) -> FileKind:
    suffix = path.suffix.lower()
    if looks_like_ptx(text):
        return FileKind.PTX
    if _ASSEMBLY.search(text):
        return FileKind.ASSEMBLY
    if looks_like_sass(text):
        return FileKind.SASS
    if suffix == ".py" or (suffix not in HIP_SUFFIXES and _PYTHON.search(text)):
        raise InputError(f"{path} is a Python script", hint="wavecast explain runs it as one")
    if _LLVM_IR.search(text):
        raise InputError(f"{path} is LLVM IR", hint="compile it with llc -mcpu=… to assembly first")
    if _HIP.search(text) or suffix in HIP_SUFFIXES:
        return FileKind.CUDA if is_cuda(text, suffix) else FileKind.HIP
    if suffix in _ASSEMBLY_NAMES:
        return FileKind.ASSEMBLY
    if _MLIR.search(text):
        raise InputError(f"{path} is MLIR", hint="give the amdgcn stage, or the script itself")
    raise InputError(f"{path} is text of no known kind", hint=_WHAT_IS_READ)
