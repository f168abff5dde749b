"""Kernels in any form to `CodeObject`s: HIP, CUDA, assembly, code objects, PTX, cubin, SASS.

`load` takes a file and decides by its content. Triton kernels come through their own JIT
(`wavecast.compile.triton`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wavecast import files
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.kinds import FileKind, kind_of
from wavecast.errors import InputError, UsageError, WavecastError
from wavecast.isa.elf import Content

__all__ = [
    "CodeObject",
    "DiskCache",
    "FileKind",
    "kind_of",
    "load",
    "loads",
    "map_file",
    "stated_target",
]

_SOURCES = (FileKind.HIP, FileKind.CUDA)
_TARGETS_OF = {FileKind.HIP: "an AMD target", FileKind.CUDA: "a target"}
_HEAD = 4096
"""Bytes that are looked at first to tell whether a file is empty."""


def load(
    path: str | Path,
    target: str = "",
    options: Sequence[str] = (),
    *,
    hip_target: str = "",
    checked: bool = False,
    kernels: str = "",
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """The kernels of a file, one code object each; of AMD code objects those whose symbol the
    regular expression `kernels` occurs in.

    `target` is `gfx942` or `sm_90`; source needs one (`hip_target` where it names none), every
    other kind knows its own, and a contradicting one is an error. `options` go to the compiler of
    HIP and CUDA, which keeps private arrays in scratch for `checked` code (`hip.compile_file`).
    Raises InputError for a file that is missing, empty, damaged, or of a kind that is not read,
    CompileError, and MissingTool.
    """
    file = Path(path)
    data = map_file(file)
    # A pipe is empty after it has been read: the compiler gets its text.
    readable = file if file.is_file() else None
    return _load(data, readable, str(path), target, options, hip_target, checked, kernels, cache)


def stated_target(path: str | Path) -> str:
    """The target that all kernels of a code file are for; "" for source, for a file with code for
    several targets, and for what `load` refuses or can read only once (a pipe)."""
    file = Path(path)
    try:
        if not file.is_file() or file.suffix == ".py":
            return ""
        data = map_file(file)
        kind = kind_of(data, file)
        if kind in _SOURCES:
            return ""
        if kind is FileKind.AMD_OBJECT:
            from wavecast.compile import elf

            targets = set(elf.targets(data))
        else:
            targets = {code.target for code in load(file)}
    except WavecastError:
        return ""
    return targets.pop() if len(targets) == 1 else ""


def loads(
    data: bytes,
    target: str = "",
    options: Sequence[str] = (),
    *,
    hip_target: str = "",
    checked: bool = False,
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """The kernels of a file's content; see `load`. Raises InputError for content that is not a
    kernel, CompileError for source that does not compile."""
    if not data.strip(b"\0 \t\r\n"):
        raise InputError("the code is empty")
    return _load(data, None, "the code", target, options, hip_target, checked, "", cache)


def _load(
    data: Content,
    path: Path | None,
    label: str,
    target: str,
    options: Sequence[str],
    hip_target: str,
    checked: bool,
    kernels: str,
    cache: DiskCache | None,
) -> list[CodeObject]:
    """`path` is the file the data come from, None without one; `label` names them in messages."""
    kind = kind_of(data, path or Path(label))
    file = path or ""
    if options and kind not in _SOURCES:
        raise UsageError(f"compiler options are for HIP and CUDA source; {label} is {kind.value}")
    if kind is FileKind.AMD_OBJECT:
        from wavecast.compile import elf

        return elf.load(data, target, file, kernels=kernels, cache=cache)
    data = bytes(data)
    if kind is FileKind.CUBIN:
        from wavecast.compile import nvidia

        return nvidia.load_cubin(data, target, file, cache=cache)
    text = data.decode("utf-8", "replace")
    if kind is FileKind.ASSEMBLY:
        from wavecast.compile import assembly

        return assembly.load(text, target, file)
    if kind is FileKind.PTX:
        from wavecast.compile import nvidia

        return nvidia.load_ptx(text, target, file, cache=cache)
    if kind is FileKind.SASS:
        from wavecast.compile import nvidia

        return nvidia.load_sass(text, target, file)
    target = target or hip_target
    if kind is FileKind.CUDA and target.startswith("sm_"):
        from wavecast.compile import cuda

        name = path or Path(label)
        return cuda.compile(text, target, options, path=name, cache=cache)
    if not target.startswith("gfx"):
        raise InputError(
            f"{label} is {kind.value} and needs {_TARGETS_OF[kind]}", hint="such as --arch gfx942"
        )
    from wavecast.compile import hip

    if path is None:
        return hip.compile(text, target, options, checked=checked, cache=cache)
    return hip.compile_file(path, target, options, checked=checked, cache=cache)


def map_file(path: str | Path) -> Content:
    """The content of a file, as `files.map_file`. Raises InputError when it is missing, a folder, a
    device, empty, or huge."""
    data = files.map_file(path)
    if not data[:_HEAD].strip(b"\0 \t\r\n") and not data[:].strip(b"\0 \t\r\n"):
        raise InputError(f"{path} is empty")
    return data
