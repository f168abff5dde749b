"""HIP C++ to code objects, one per kernel of the file."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.compile import device_library, lds_arrays, private_arrays, process, toolchain
from wavecast.compile.assembly import code_objects
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.digest import key
from wavecast.compile.signature import SourceSignature, signatures
from wavecast.compile.toolchain import Toolchain
from wavecast.errors import CompileError, InputError, UsageError
from wavecast.isa.metadata import descriptors_from_assembly
from wavecast.isa.targets import isa_target

_FORMAT = 5
_ERROR = re.compile(r"^(?P<where>[^\s:][^:\n]*:\d+):\d+: (?:fatal )?error: (?P<what>.*)$", re.M)
_MISSING_HEADER = re.compile(r"'([^']+)' file not found")
_DEPENDENCY = re.compile(r"(?:\\.|[^\s\\])+")
_OURS_TO_SET = ("-o", "-S", "-c", "-E", "--offload-arch", "--cuda-host-only")
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
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """Compile the device code of a HIP file for one AMD target.

    `flags` go to the compiler (`-D`, `-I`, `-std=`, `-O2`, `-mwavefrontsize64` …); the default is
    `-O3 -std=c++17`. `checked` code keeps private arrays in scratch (`private_arrays.OPTIONS`), and
    has its stack frames as the stage `frame`. Code of a `program` can print and allocate. Raises
    CompileError with the line of the first error and the whole log, NoKernel when the file has
    none, MissingTool where there is no compiler.
    """
    source = Path(path)
    text = files.read(source).decode("utf-8", "replace")
    store = cache or DiskCache()
    return _compile(text, target, tuple(flags), source, store, checked=checked, program=program)


def compile(
    text: str,
    target: str,
    flags: Sequence[str] = (),
    *,
    name: str = "kernel.hip",
    checked: bool = False,
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """Compile HIP source given as text; `name` is the file in source lines and errors, `checked` as
    in `compile_file`. Raises CompileError for source that does not compile, MissingTool without a
    compiler."""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source = Path(folder) / Path(name).name
        source.write_text(text, encoding="utf-8")
        try:
            found = _compile(
                text,
                target,
                tuple(flags),
                source,
                cache or DiskCache(),
                named=name,
                checked=checked,
            )
        except CompileError as error:
            shown = error.message.replace(f"{folder}/", "")
            log = error.log.replace(f"{folder}/", "")
            raise CompileError(shown, log=log, hint=error.hint) from None
    return found


def _compile(
    text: str,
    target: str,
    flags: tuple[str, ...],
    source: Path,
    cache: DiskCache,
    named: str = "",
    *,
    checked: bool,
    program: bool = False,
) -> list[CodeObject]:
    """Compile `source`; with `named`, it is a temporary copy of a file of that name."""
    isa_target(target)
    for flag in flags:
        if flag.split("=", 1)[0] in _OURS_TO_SET:
            raise UsageError(f"compiler flag {flag} cannot be given: wavecast sets it itself")
    tools = toolchain.find(target)
    if program:
        tools = toolchain.of_programs(tools)
    shown = named or str(source)
    signed = toolchain.version(tools.compiler)
    folder_key = "" if named else str(source.absolute())
    library = device_library.content_digest(tools.library) if tools.library else ""
    compiler = (tools.name, signed, tools.arguments, toolchain.headers_digest(), library)
    options = private_arrays.OPTIONS if checked else ()
    entry = key("hip", _FORMAT, compiler, target, flags, folder_key, text, options)
    stages = _cached(cache, entry)
    if stages is None:
        hide = (f"-ffile-prefix-map={source.parent}/=", "-fdebug-compilation-dir=.")
        stages, dependencies = _run(
            tools,
            target,
            flags + hide if named else flags,
            source,
            checked=checked,
            program=program,
        )
        cache.put(entry, {"stages": stages, "dependencies": dependencies})
    found = _codes(stages, target, shown, text, f"{tools.name}: {signed}", " ".join(flags))
    if not found:
        raise NoKernel(f"{shown}: no __global__ function in it")
    binary = stages.get("hsaco")
    if program and isinstance(binary, bytes):
        made = (target, shown, text, found[0].compiler, " ".join(flags))
        cache.put(_linked_key(binary), {"stages": stages, "made": made})
    return found


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
    stages: dict[str, str | bytes], target: str, shown: str, text: str, compiler: str, flags: str
) -> list[CodeObject]:
    """The kernels of one compilation."""
    found = code_objects(
        descriptors_from_assembly(_text(stages["amdgcn"]), target),
        target=target,
        origin="hip",
        stages=stages,
        source=shown,
        source_text=text,
        compiler=compiler,
        options={"flags": flags} if flags else {},
    )
    return [_named(code, signatures(text)) for code in found]


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
        output, listed = Path(folder) / "kernel.s", Path(folder) / "kernel.d"
        wave64 = ("-DWAVECAST_WAVE64",) if "-mwavefrontsize64" in flags else ()
        library: tuple[str, ...] = ()
        if tools.library is not None:
            made = Path(folder)
            library = device_library.arguments(tools.library, tools.compiler, target, flags, made)
        command = [
            *tools.compiler,
            *_COMMON,
            f"--offload-arch={target}",
            "-O3",
            "-std=c++17",
            *("-mllvm", f"-print-after={lds_arrays.PASS}"),
            *(private_arrays.OPTIONS if checked else ()),
            *tools.arguments,
            *library,
            *wave64,
            *flags,
            *_dependency_options(listed),
            *("-o", output),
            source,
        ]
        done = process.run(command)
        if done.status or not output.is_file():
            raise compile_error(done.log, done.status, tools)
        stages: dict[str, str | bytes] = {"amdgcn": output.read_text(encoding="utf-8")}
        module = lds_arrays.dumped(done.log)
        if module:
            stages["llir"] = module
        if checked:
            stages["frame"] = private_arrays.frame_remarks(done.log)
        linked = _link(tools, target, output, Path(folder), program=program)
        if linked is not None:
            stages["hsaco"] = linked
        return stages, _dependencies(listed, source)


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
    keep, kept = (("-Wa,-L",), ("--discard-none",)) if program else ((), ())
    assemble = ("-c", "-x", "assembler", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}")
    for command in (
        [*tools.compiler, *assemble, *keep, assembly, "-o", unlinked],
        [*tools.linker, "-shared", *kept, unlinked, "-o", linked],
    ):
        done = process.run(command)
        if done.status and program:
            raise compile_error(done.log, done.status, tools)
        if done.status:
            return None
    return linked.read_bytes()


def compile_error(log: str, status: int, tools: Toolchain) -> CompileError:
    """The first error in what a compiler printed, with a hint where a header is missing."""
    first = _ERROR.search(log)
    if first is None:
        lines = [line for line in log.strip().splitlines() if "error" in line]
        what = lines[0] if lines else f"{tools.name} failed with status {status}"
        return CompileError(what, log=log)
    hint = ""
    missing = _MISSING_HEADER.search(first["what"])
    if missing is not None:
        hint = f"add its folder with -I, or leave out {missing[1]} if only host code needs it"
        if tools.own_headers and missing[1].startswith(("hip", "roc", "ck/", "thrust")):
            hint = (
                "only HIP's core headers come with wavecast (docs/hip.md); "
                "install ROCm's hipcc or leave it out"
            )
    return CompileError(f"{first['where']}: {first['what']}", log=log, hint=hint)


def _dependency_options(listed: Path) -> tuple[str, ...]:
    """The driver refuses -MF for device code, so its frontend is asked. System headers, the
    compiler's and wavecast's own, are left out: their version is part of the cache key."""
    words = ("-dependency-file", str(listed), "-MT", "kernel")
    return tuple(part for word in words for part in ("-Xclang", word))


def _dependencies(listed: Path, source: Path) -> dict[str, str]:
    """path -> digest of every header that was read, from the compiler's dependency file. Raises
    InputError for one that is not a file."""
    text = listed.read_text(encoding="utf-8") if listed.is_file() else ""
    text = text.replace("\\\n", " ").partition(": ")[2]
    paths = {re.sub(r"\\(.)", r"\1", word) for word in _DEPENDENCY.findall(text)}
    paths.discard(str(source))
    try:
        return {path: hashlib.sha256(files.read(path)).hexdigest() for path in sorted(paths)}
    except InputError as error:
        raise InputError(f"{source} includes {error.message}", hint=error.hint) from None


def _file_digest(path: str) -> str:
    """The digest of a header as it is now; "" where it cannot be read."""
    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except InputError:
        return ""


def _cached(cache: DiskCache, entry: str) -> dict[str, str | bytes] | None:
    """The stages of an earlier compilation whose headers are all unchanged."""
    value: Any = cache.get(entry)
    if not isinstance(value, dict) or value.keys() != {"stages", "dependencies"}:
        return None
    for path, known in value["dependencies"].items():
        if _file_digest(path) != known:
            return None
    return value["stages"]


def _text(stage: str | bytes) -> str:
    assert isinstance(stage, str)
    return stage


def _named(code: CodeObject, known: Mapping[str, SourceSignature]) -> CodeObject:
    """The code object with parameter names and types where the source shows them."""
    signature = next((s for s in known.values() if s.matches(code.kernel, code.parameters)), None)
    if signature is None:
        return code
    parameters = tuple(
        replace(parameter, name=name, type=kind)
        for parameter, (kind, name) in zip(code.parameters, signature.parameters, strict=True)
    )
    return replace(code, parameters=parameters, source_line=signature.line)
