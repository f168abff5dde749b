"""PTX, cubin and SASS to code objects, with the tools of Triton's wheel or of a CUDA toolkit.

`CodeObject.options` of an NVIDIA kernel holds its resource usage (each key only where known):

- `registers`: 32-bit registers per thread
- `static_shared`: bytes of shared memory the code declares (`cuobjdump --dump-resource-usage`;
  from sm_90 on, this counts the 1024 bytes the system reserves)
- `stack_bytes`, `local_bytes`: stack frame and local memory per thread
- `barriers`: named barriers per block
- `max_threads`: threads per block the kernel was compiled for
- `spill_store_bytes`, `spill_load_bytes`: what ptxas reported, for PTX input
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from wavecast.compile import cubin, nvidia_tools
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject, Parameter
from wavecast.compile.digest import digest
from wavecast.errors import InputError
from wavecast.isa import elf
from wavecast.isa.program import KernelArgument, KernelDescriptor

_PTX_VERSION = re.compile(r"^\s*\.version\s+\d+\.\d+", re.MULTILINE)
_PTX_TARGET = re.compile(r"^\s*\.target\s+(sm_(\d+)([af]?))", re.MULTILINE)
_SASS_TARGET = re.compile(r"\.target\s+(sm_\d+)|EF_CUDA_SM(\d+)|arch = (sm_\d+)")
_SASS_SECTION = re.compile(r"^//-+ \.text\.(\S+)\s+-+$", re.MULTILINE)
_SASS_NEXT = re.compile(r"^//-+ \.\S+\s+-+$", re.MULTILINE)
_SASS_FUNCTION = re.compile(r"^\s*Function : (\S+)\s*$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\S", re.MULTILINE)
_USAGE = re.compile(r"Function (\S+):\s*\n\s*(.*)")
_SPILLS = re.compile(
    r"Function properties for (\S+)\s*\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
)
_SM: Final = re.compile(r"sm_(\d+)([af]?)")
_USAGE_KEYS: Final[Mapping[str, str]] = {
    "REG": "registers",
    "SHARED": "static_shared",
    "STACK": "stack_bytes",
    "LOCAL": "local_bytes",
}
_OF_DESCRIPTOR: Final = ("registers", "static_shared", "stack_bytes", "max_threads")
_WARP: Final = 32
_MOST_THREADS: Final = 1024
"""Threads of a block, on every compute capability (CUDA C++ Programming Guide, table 30)."""


def looks_like_ptx(text: str) -> bool:
    """True for text with PTX's version and target directives."""
    return bool(_PTX_VERSION.search(text) and _PTX_TARGET.search(text))


def looks_like_sass(text: str) -> bool:
    """True for a listing of nvdisasm or `cuobjdump -sass`."""
    return bool(_SASS_TARGET.search(text) and _INSTRUCTION.search(text))


def load_cubin(
    data: bytes,
    target: str = "",
    file: str | Path = "",
    *,
    log: str = "",
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """One code object per kernel of a cubin, with its SASS and resource usage; its spills are in
    the `log` of `ptxas -v`.

    Raises InputError for a damaged file or one of another architecture, MissingTool without a
    disassembler.
    """
    return _cubin_objects(data, target, str(file), cache or DiskCache(), {}, _spills(log))


def with_sass(code: CodeObject) -> CodeObject:
    """An NVIDIA code object with its disassembly and resource usage, from its cubin.

    Raises MissingTool without nvdisasm, InputError for code with neither SASS nor cubin.
    """
    if "sass" in code.stages:
        return code
    cubin = code.stages.get("cubin")
    if not isinstance(cubin, bytes):
        raise InputError(f"{code.kernel}: no machine code for {code.target}")
    for loaded in load_cubin(cubin, code.target, code.source):
        if loaded.kernel == code.kernel:
            stages = {**code.stages, "sass": loaded.stages["sass"]}
            return replace(code, stages=stages, options={**loaded.options, **code.options})
    raise InputError(f"{code.kernel}: not in its own cubin")


def load_ptx(
    text: str, target: str = "", file: str | Path = "", *, cache: DiskCache | None = None
) -> list[CodeObject]:
    """Assemble PTX for `target` (its own when "") and load the result.

    Raises CompileError with ptxas's message, InputError when the PTX cannot run on `target`.
    """
    cache = cache or DiskCache()
    gpu = ptx_gpu(text, target, str(file) or "the PTX")
    data, log = nvidia_tools.assemble(text, gpu, cache, str(file))
    return _cubin_objects(data, gpu, str(file), cache, {"ptx": text}, _spills(log))


def descriptor(code: CodeObject) -> KernelDescriptor:
    """What a launch of an NVIDIA kernel must respect, and its arguments: pointers where the source
    shows one, else values."""
    resources = {name: int(str(code.options.get(name, 0))) for name in _OF_DESCRIPTOR}
    arguments = tuple(
        KernelArgument(p.name, p.offset, p.size, _kind(p.type), type_name=p.type)
        for p in code.parameters
        if p.offset is not None and p.size is not None
    )
    return KernelDescriptor(
        vgprs=resources["registers"],
        agprs=0,
        sgprs=0,
        lds_bytes=resources["static_shared"],
        scratch_bytes=resources["stack_bytes"],
        vgpr_spills=0,
        sgpr_spills=0,
        wave_size=_WARP,
        max_workgroup_size=resources["max_threads"] or _MOST_THREADS,
        kernarg_bytes=max((a.offset + a.size for a in arguments), default=0),
        arguments=arguments,
        required_threads=code.workgroup_size,
    )


def _kind(type_name: str) -> str:
    return "global_buffer" if type_name.endswith("*") else "by_value"


def _spills(log: str) -> dict[str, dict[str, int]]:
    """What `ptxas -v` reported, by kernel."""
    return {
        name: {"spill_store_bytes": int(stores), "spill_load_bytes": int(loads)}
        for name, stores, loads in _SPILLS.findall(log)
    }


def load_sass(text: str, target: str = "", file: str | Path = "") -> list[CodeObject]:
    """One code object per kernel of a SASS listing, with the facts that the listing prints. Raises
    InputError for a listing without a kernel, or for another target."""
    sass_target = _sass_target(text)
    _check_target(sass_target, target, str(file) or "the SASS listing")
    sections = _sass_sections(text)
    if not sections:
        raise InputError(f"{file or 'SASS listing'}: no kernel in it")
    return [
        _code_object(name, sass_target, {"sass": body}, str(file), _listing_resources(body), None)
        for name, body in sections.items()
    ]


def ptx_gpu(text: str, target: str, what: str = "the PTX") -> str:
    """The gpu-name for ptxas: `sm_90a` when PTX for sm_90a meets target sm_90.

    PTX of a plain target also runs on later ones; PTX with an `a` or `f` suffix does not. Raises
    InputError for PTX without a target, or one that `target` does not run.
    """
    match = _PTX_TARGET.search(text)
    if match is None:
        raise InputError(f"{what} has no .target directive")
    gpu_name, number, suffix = match.groups()
    if not target:
        return gpu_name
    target_match = _SM.fullmatch(target)
    if target_match is None:
        raise InputError(f"{what} is for {gpu_name}, not for {target}")
    if int(target_match[1]) == int(number):
        return gpu_name if suffix else target
    if suffix or int(target_match[1]) < int(number):
        raise InputError(f"{what} is for {gpu_name} and does not run on {target}")
    return target


def _cubin_objects(
    data: bytes,
    target: str,
    file: str,
    cache: DiskCache,
    stages: Mapping[str, str | bytes],
    spills: Mapping[str, Mapping[str, int]],
) -> list[CodeObject]:
    image = elf.read(data)
    if image.machine != elf.MACHINE_CUDA:
        raise InputError(
            f"{file or 'the file'} is not an NVIDIA cubin (ELF machine {image.machine})"
        )
    listing, usage_text = nvidia_tools.disassemble(data, cache, file)
    sass_target = _sass_target(listing)
    _check_target(sass_target, target, file or "the cubin")
    usage = dict(_USAGE.findall(usage_text))
    infos = {info.name: info for info in cubin.kernels(image)}
    codes = []
    for name, body in _sass_sections(listing).items():
        if name not in infos:
            continue  # a device function with a separate section
        options: dict[str, object] = {**_listing_resources(body), **_usage(usage.get(name, ""))}
        if infos[name].barriers:
            options["barriers"] = infos[name].barriers
        options.update(spills.get(name, {}))
        every = {**stages, "cubin": data, "sass": body}
        codes.append(_code_object(name, sass_target, every, file, options, infos[name]))
    if not codes:
        raise InputError(f"{file or 'cubin'}: no kernel in it")
    return codes


def _code_object(
    name: str,
    target: str,
    stages: Mapping[str, str | bytes],
    file: str,
    options: Mapping[str, object],
    info: cubin.KernelInfo | None,
) -> CodeObject:
    threads = (info.required_threads or info.max_threads) if info else 0
    properties = {**options, "max_threads": threads} if threads else dict(options)
    parameters = info.parameters if info else ()
    return CodeObject(
        kernel=name,
        target=target,
        origin="elf" if "ptx" not in stages and info else "assembly",
        stages=stages,
        parameters=tuple(Parameter("", "", offset, size) for offset, size in parameters),
        options=properties,
        workgroup_size=info.required_threads if info else 0,
        dynamic_lds=0,
        source=file,
        source_line=0,
        source_text="",
        compiler="",
        digest=digest(target, name, stages.get("cubin", stages["sass"])),
    )


def _sass_target(listing: str) -> str:
    match = _SASS_TARGET.search(listing)
    if match is None:
        raise InputError("the SASS listing names no sm_ target")
    return match[1] or match[3] or f"sm_{match[2]}"


def _check_target(code_target: str, user_target: str, what: str) -> None:
    match = _SM.fullmatch(user_target)
    if user_target and (match is None or f"sm_{match[1]}" != code_target):
        raise InputError(
            f"{what} is for {code_target}, not for {user_target}", hint=f"say {code_target}"
        )


def _sass_sections(listing: str) -> dict[str, str]:
    """The listing of each function."""
    starts = list(_SASS_SECTION.finditer(listing))
    ends = [match.start() for match in _SASS_NEXT.finditer(listing)]
    if not starts:
        starts = list(_SASS_FUNCTION.finditer(listing))
        ends = [match.start() for match in starts]
    sections = {}
    for match in starts:
        end = min((start for start in ends if start > match.start()), default=len(listing))
        sections[match[1]] = listing[match.start() : end]
    return sections


def _listing_resources(body: str) -> dict[str, object]:
    """Resources a listing of nvdisasm prints for targets before sm_90."""
    resources: dict[str, object] = {}
    for name, flag in (("registers", "SHI_REGISTERS"), ("barriers", "SHF_BARRIERS")):
        match = re.search(flag + r"=(\d+)", body)
        if match is not None:
            resources[name] = int(match[1])
    return resources


def _usage(line: str) -> dict[str, object]:
    """`REG:255 STACK:400 …` as options."""
    pairs = (item.split(":", 1) for item in line.split() if ":" in item)
    return {_USAGE_KEYS[name]: int(value) for name, value in pairs if name in _USAGE_KEYS}
