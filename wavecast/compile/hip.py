"""HIP C++ to code objects, one per kernel of the file."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.compile import (
    dependencies,
    device_library,
    lds_arrays,
    private_arrays,
    process,
    toolchain,
)
from wavecast.compile.assembly import code_objects
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.digest import key
from wavecast.compile.kinds import is_cuda
from wavecast.compile.portable_assembly import link_portable
from wavecast.compile.signature import named_parameters, signatures
from wavecast.compile.toolchain import Toolchain
from wavecast.errors import CompileError, InputError, MissingTool, UsageError
from wavecast.extras import install_hint
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.targets import isa_target

_FORMAT = 6
_WAVE64 = "-mwavefrontsize64"
_STANDARD = re.compile(r"\bstd\s*::|\busing\s+namespace\s+std\b")
"""Source that may use the standard headers which ROCm's hip_runtime.h includes: <cmath>, <cstdint>,
<tuple>. Reading them takes half as long as compiling a kernel, so others go without."""
_WAVES_OF_64 = ".amdhsa_wavefront_size32 0"
"""What the assembly of a kernel has where it is compiled for waves of 64 on a target of 32."""
_ERROR = re.compile(r"^(?P<where>[^\s:][^:\n]*:\d+):\d+: (?:fatal )?error: (?P<what>.*)$", re.M)
_UNKNOWN_OPTION = re.compile(r"Unknown command line argument '([^']*)'")
_FROM_WAVECAST = re.compile(r"^wavecast: (?:error: )?(.*)$", re.M)
_INCLUDED = re.compile(r"^ *(?:In file included )?from (?P<where>[^\n]+:\d+):$", re.M)
_MISSING_HEADER = re.compile(r"'([^']+)' file not found")
_ASSEMBLER = re.compile(r"\basm\b|invalid (?:instruction|operand)|unrecognized instruction")
_PTX = "inline PTX is for NVIDIA GPUs: guard it with #ifndef __HIP_DEVICE_COMPILE__"
_INLINE = re.compile(
    r"^\s*;;?#ASMSTART\n(?!\s*;;?#ASMEND|[^\n]*; wavecast$)(?P<text>[^\n]+)$", re.M
)
_LOCATION = re.compile(r"^\s*\.loc\s+\d+ (\d+) ", re.M)
_SEVERAL_PROCESSES = ("mpi.h", "mpi/", "rccl", "nccl", "nvshmem", "rocshmem")
"""Beginnings of headers of programs that run as several processes."""
_ROCM_LIBRARIES = ("hip", "roc", "ck/", "ck_tile/", "thrust", "miopen", "migraphx")
_CUDA_LIBRARIES = ("cub/", "cute/", "cutlass/", "curand", "cublas", "cufft", "cusparse", "cusolver")
_OURS_TO_SET = ("-o", "-S", "-c", "-E", "--offload-arch", "--cuda-host-only")
_CHECKED = (*private_arrays.OPTIONS, "-DWAVECAST_CHECKED")
"""What checked code is compiled with: private arrays in scratch, and marks (`checked.h`)."""
_COMMON = ("-x", "hip", "--cuda-device-only", "-S", "-gline-tables-only", "-fuse-cuid=none")
"""Without an id of the compilation unit, which clang makes from its command line with the path of
a temporary folder in it: the same source gives the same code."""


class NoKernel(InputError):
    """A HIP file without a kernel."""


def compile_file(
    path: str | Path,
    target: str,
    flags: Sequence[str] = (),
    *,
    checked: bool = False,
    program: bool = False,
    cuda: bool | None = None,
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """Compile the device code of a HIP or CUDA file for one AMD target.

    `flags` go to the compiler (`-D`, `-I`, `-std=`, `-O2`, `-mwavefrontsize64` …); the default is
    `-O3 -std=c++17`. `checked` code keeps private arrays in scratch (`private_arrays.OPTIONS`),
    marks what headers limit (`include/wavecast/checked.h`), and has its stack frames as the stage
    `frame`. Code of a `program` can print and allocate. Raises CompileError with the line of the
    first error and the whole log, NoKernel when the file has none, MissingTool where there is no
    compiler.
    """
    source = Path(path)
    text = files.read(source).decode("utf-8", "replace")
    store = cache or DiskCache()
    return _compile(
        text, target, tuple(flags), source, store, checked=checked, program=program, cuda=cuda
    )


def compile(
    text: str,
    target: str,
    flags: Sequence[str] = (),
    *,
    name: str = "kernel.hip",
    headers: Mapping[str, str] | None = None,
    checked: bool = False,
    program: bool = False,
    generated: bool = False,
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """Compile HIP source given as text; `name` is the file in source lines and errors, `headers`
    are further files that it includes, by name; `checked` and `program` are as in `compile_file`.
    `generated` source comes from a compiler of another language and declares what it calls: nothing
    is included before it. Raises CompileError for source that does not compile, MissingTool without
    a compiler, and NoKernel."""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source = Path(folder) / Path(name).name
        source.write_text(text, encoding="utf-8")
        for header, content in (headers or {}).items():
            path = (Path(folder) / header).resolve()
            if not path.is_relative_to(Path(folder).resolve()):
                raise UsageError(f"the name of a header leads out of its folder: {header}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        try:
            codes = _compile(
                text,
                target,
                tuple(flags),
                source,
                cache or DiskCache(),
                file_name=name,
                checked=checked,
                program=program,
                generated=generated,
            )
        except CompileError as error:
            message = error.message.replace(f"{folder}/", "")
            log = error.log.replace(f"{folder}/", "")
            raise CompileError(message, log=log, hint=error.hint) from None
    return codes


def compile_with_log(
    path: str | Path, target: str, flags: Sequence[str], options: Sequence[str]
) -> tuple[str, str]:
    """What LLVM prints while it compiles a HIP file with these options of LLVM
    (`-print-after=…`), and the assembly. Raises CompileError, MissingTool."""
    source = Path(path)
    cuda = is_cuda(files.read(source).decode("utf-8", "replace"), source.suffix)
    tools = toolchain.find(target, cuda=cuda)
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        compilation, output = _compile_to_assembly(
            tools, target, tuple(flags), source, Path(folder), tuple(options)
        )
        return compilation.log, output.read_text(encoding="utf-8")


def assemble_program(text: str, target: str) -> bytes:
    """The code object of assembly, made by the assembler and linker of the compiler for a target.
    Raises CompileError where it is refused, MissingTool without an assembler."""
    tools = toolchain.find(target)

    def link(portable: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            source = Path(folder) / "kernel.s"
            source.write_text(portable, encoding="utf-8")
            linked = _link(tools, target, source, Path(folder), program=True)
        if linked is None:
            hint = f"{install_hint('hip')} has one"
            raise MissingTool(f"{tools.name} has no ld.lld here", hint=hint)
        return linked

    return link_portable(text, link)


def recompile(code: CodeObject, flags: Sequence[str]) -> CodeObject:
    """A kernel of a HIP file compiled with more flags. Raises CompileError where the file, which
    must be there still, has another kernel of that name then."""
    arguments = (*shlex.split(str(code.options.get("flags", ""))), *flags)
    by_name = {
        candidate.kernel: candidate
        for candidate in compile_file(code.source, code.target, arguments)
    }
    new_code = by_name.get(code.kernel)
    if new_code is None or new_code.parameters != code.parameters:
        raise CompileError(f"{code.source} has no such {code.kernel} with {shlex.join(flags)}")
    return new_code


def recompile_text(code: CodeObject, text: str, more_flags: Sequence[str] = ()) -> CodeObject:
    """A kernel of a HIP file compiled from other source in its folder, with more flags. Raises
    CompileError as `recompile`."""
    source = Path(code.source)
    flags = (*shlex.split(str(code.options.get("flags", ""))), *more_flags)
    flags = (*flags, "-I", str(source.absolute().parent))
    codes = {each.kernel: each for each in compile(text, code.target, flags, name=source.name)}
    new_code = codes.get(code.kernel)
    if new_code is None or new_code.parameters != code.parameters:
        raise CompileError(f"the changed source of {source.name} has no such {code.kernel}")
    return new_code


def _compile(
    text: str,
    target: str,
    flags: tuple[str, ...],
    source: Path,
    cache: DiskCache,
    file_name: str = "",
    *,
    checked: bool,
    program: bool = False,
    generated: bool = False,
    cuda: bool | None = None,
) -> list[CodeObject]:
    """Compile `source`; with `file_name`, it is a temporary copy of a file of that name."""
    isa_target(target)
    if cuda is None:
        cuda = is_cuda(text, Path(file_name or source).suffix)
    for flag in flags:
        if flag.split("=", 1)[0] in _OURS_TO_SET:
            raise UsageError(f"compiler flag {flag} cannot be given: wavecast sets it itself")
    tools = toolchain.find(target, cuda=cuda)
    if program:
        tools = toolchain.of_programs(tools)
    if generated:
        tools = toolchain.without_runtime_header(tools)
    if tools.own_headers and not cuda and _STANDARD.search(text):
        tools = replace(tools, arguments=(*tools.arguments, "-DWAVECAST_STD"))
    display_name = file_name or str(source)
    signed = toolchain.version(tools.compiler)
    folder_key = "" if file_name else str(source.absolute())
    library = device_library.content_digest(tools.library) if tools.library else ""
    compiler = (tools.name, signed, tools.arguments, toolchain.headers_digest(), library)
    options = _CHECKED if checked else ()
    entry = key("hip", _FORMAT, compiler, target, flags, folder_key, text, options)
    stages = dependencies.lookup(cache, entry)
    if stages is None:
        hide = (f"-ffile-prefix-map={source.parent}/=", "-fdebug-compilation-dir=.")
        stages, headers = _run(
            tools,
            target,
            flags + hide if file_name else flags,
            source,
            checked=checked,
            program=program,
        )
        dependencies.store(cache, entry, stages, headers)
    codes = _codes(stages, target, display_name, text, f"{tools.name}: {signed}", shlex.join(flags))
    if not codes:
        raise NoKernel(f"{display_name}: no __global__ function in it")
    binary = stages.get("hsaco")
    if program and isinstance(binary, bytes):
        build_inputs = (target, display_name, text, codes[0].compiler, shlex.join(flags))
        cache.put(_linked_key(binary), {"stages": stages, "made": build_inputs})
    return codes


def compiled_program(binary: bytes, cache: DiskCache | None = None) -> list[CodeObject]:
    """The kernels of a code object that was compiled here for a program, with their assembly and
    source; empty for another one."""
    value: Any = (cache or DiskCache()).get(_linked_key(binary))
    if not isinstance(value, dict) or value.keys() != {"stages", "made"}:
        return []
    return _codes(value["stages"], *value["made"])


def _linked_key(binary: bytes) -> str:
    return key("hip", _FORMAT, "linked", binary)


def _codes(
    stages: dict[str, str | bytes],
    target: str,
    display_name: str,
    text: str,
    compiler: str,
    flags: str,
) -> list[CodeObject]:
    """The kernels of one compilation."""
    codes = code_objects(
        descriptors_from_assembly(_text(stages["amdgcn"]), target),
        target=target,
        origin="hip",
        stages=stages,
        source=display_name,
        source_text=text,
        compiler=compiler,
        options={"flags": flags} if flags else {},
    )
    return [named_parameters(code, signatures(text)) for code in codes]


def _run(
    tools: Toolchain,
    target: str,
    flags: tuple[str, ...],
    source: Path,
    *,
    checked: bool,
    program: bool,
) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """(stages, digest of every file that was read) of one compilation."""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        options = (f"-print-after={lds_arrays.PASS}",)
        more = _CHECKED if checked else ()
        compilation, output = _compile_to_assembly(
            tools, target, flags, source, Path(folder), options, more
        )
        dependency_file = output.with_suffix(".d")
        assembly = output.read_text(encoding="utf-8")
        if toolchain.is_cuda(tools):
            _refuse_ptx(assembly, source)
        stages: dict[str, str | bytes] = {"amdgcn": assembly}
        module = lds_arrays.extract_module(compilation.log)
        if module:
            stages["llir"] = module
        if checked:
            stages["frame"] = private_arrays.frame_remarks(compilation.log)
        linked = _link(tools, target, output, Path(folder), program=program)
        if linked is not None:
            stages["hsaco"] = linked
        return stages, dependencies.read_by(dependency_file, source)


def _compile_to_assembly(
    tools: Toolchain,
    target: str,
    flags: tuple[str, ...],
    source: Path,
    folder: Path,
    options: tuple[str, ...],
    more: tuple[str, ...] = (),
) -> tuple[process.Finished, Path]:
    """The end of a compilation to assembly in a folder, with options of LLVM and `more` of the
    compiler; and the assembly. The list of files that were read is in the same folder (`.d`)."""
    output = folder / "kernel.s"
    if tools.own_headers:
        flags = toolchain.replace_rocm_folders(flags)
    wave64 = ("-DWAVECAST_WAVE64",) if _WAVE64 in flags else ()
    library: tuple[str, ...] = ()
    if tools.library is not None:
        library = device_library.arguments(tools.library, tools.compiler, target, flags, folder)
    command = [
        *tools.compiler,
        *_COMMON,
        f"--offload-arch={target}",
        "-O3",
        "-std=c++17",
        *(word for option in options for word in ("-mllvm", option)),
        *more,
        *tools.arguments,
        *library,
        *wave64,
        *flags,
        *_dependency_options(output.with_suffix(".d")),
        *("-o", output),
        source,
    ]
    compilation = process.run(command)
    if not compilation.status and not output.is_file():
        raise CompileError(
            f"{tools.name} wrote no code", hint="leave out options that stop it early"
        )
    if compilation.status:
        raise compile_error(compilation.log, compilation.status, tools)
    return compilation, output


def _refuse_ptx(assembly: str, source: Path) -> None:
    """Raises CompileError where inline assembly of CUDA source is part of the code: the compiler
    does not read what an `asm` says."""
    match = _INLINE.search(assembly)
    if match is not None:
        lines = _LOCATION.findall(assembly, 0, match.start())
        where = f"{source}:{lines[-1]}" if lines else str(source)
        raise CompileError(f"{where}: {match['text'].strip()!r} in asm", hint=_PTX)


def _link(
    tools: Toolchain, target: str, assembly: Path, folder: Path, *, program: bool
) -> bytes | None:
    """The code object, or None where there is no linker or it refuses.

    That of a program is needed: raises CompileError where it cannot be linked. Its symbols include
    those of constants without a name in the source, such as texts.
    """
    if not tools.linker or not tools.own_headers:
        return None
    unlinked, linked = folder / "kernel.o", folder / "kernel.hsaco"
    keep, discard_options = (("-Wa,-L",), ("--discard-none",)) if program else ((), ())
    wave64 = (_WAVE64,) if _WAVES_OF_64 in assembly.read_text(encoding="utf-8") else ()
    machine = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", *wave64)
    assemble = ("-c", "-x", "assembler", *machine)
    for command in (
        [*tools.compiler, *assemble, *keep, assembly, "-o", unlinked],
        [*tools.linker, "-shared", *discard_options, unlinked, "-o", linked],
    ):
        command_result = process.run(command)
        if command_result.status and program:
            raise compile_error(command_result.log, command_result.status, tools)
        if command_result.status:
            return None
    return linked.read_bytes()


def compile_error(log: str, status: int, tools: Toolchain) -> CompileError:
    """The first error in what a compiler printed, with a hint where a header is missing."""
    first = _ERROR.search(log)
    if first is None:
        lines = [line for line in log.strip().splitlines() if "error" in line]
        lines = _FROM_WAVECAST.findall(log) or lines  # a hipcc that calls wavecast again
        what = lines[0] if lines else f"{tools.name} failed with status {status}"
        unknown = _UNKNOWN_OPTION.search(log)
        if unknown is not None:
            what = f"{tools.name} has no option {unknown[1]} of LLVM"
        return CompileError(what, log=log)
    hint = ""
    if _ASSEMBLER.search(first["what"]) and toolchain.is_cuda(tools):
        hint = _PTX
    missing = _MISSING_HEADER.search(first["what"])
    if missing is not None:
        hint = f"add its folder with -I, or leave out {missing[1]} if only host code needs it"
        if missing[1].startswith(_SEVERAL_PROCESSES):
            hint = "wavecast runs programs of one process: MPI and RCCL are not supported"
        elif tools.own_headers and missing[1].startswith(_CUDA_LIBRARIES):
            hint = "CUDA's libraries are not translated to AMD GPUs (docs/hip.md)"
        elif tools.own_headers and missing[1].startswith(_ROCM_LIBRARIES):
            hint = (
                "wavecast has its own headers of HIP, and not this one (docs/hip.md); "
                "install ROCm's hipcc or leave it out"
            )
    where = _in_the_source(log, first)
    return CompileError(f"{where}: {first['what']}", log=log, hint=hint)


def _in_the_source(log: str, error: re.Match[str]) -> str:
    """The line of an error, for one in wavecast's own headers the line that includes them."""
    if not error["where"].startswith(str(toolchain.INCLUDE)):
        return error["where"]
    includes = [match["where"] for match in _INCLUDED.finditer(log, 0, error.start())]
    outside = [where for where in includes if not where.startswith((str(toolchain.INCLUDE), "<"))]
    return outside[-1] if outside else error["where"]


def _dependency_options(dependency_file: Path) -> tuple[str, ...]:
    """The driver refuses -MF for device code, so its frontend is asked. System headers, the
    compiler's and wavecast's own, are left out: their version is part of the cache key."""
    words = ("-dependency-file", str(dependency_file), "-MT", "kernel")
    return tuple(part for word in words for part in ("-Xclang", word))


def _text(stage: str | bytes) -> str:
    assert isinstance(stage, str)
    return stage
