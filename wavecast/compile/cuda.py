"""CUDA C++ to NVIDIA code objects, by nvcc: of a CUDA toolkit, or of the PyPI packages of the extra
`cuda`. For AMD targets `hip` compiles the same source with headers that translate it."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from wavecast.compile import dependencies, nvidia, process
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.digest import key
from wavecast.compile.signature import named_parameters, signatures
from wavecast.errors import CompileError, MissingTool, UsageError
from wavecast.extras import install_hint

VARIABLE: Final = "WAVECAST_NVCC"
_FORMAT: Final = 1
_PACKAGE: Final = "cu13"
"""The folder of the PyPI packages of CUDA 13, in the namespace package `nvidia`."""
_ERROR = re.compile(
    r"^(?P<where>[^\s(][^(\n]*)\((?P<line>\d+)\): (?:fatal )?error:? (?P<what>.*)$", re.M
)
_HOST_ERROR = re.compile(
    r"^(?P<where>[^\s:][^:\n]*:\d+):\d+: (?:fatal )?error: (?P<what>.*)$", re.M
)
_OURS_TO_SET: Final = ("-o", "-c", "-cubin", "-ptx", "-arch", "-gencode", "--gpu-architecture")
_SPECIFIC: Final = 90
"""The first compute capability with special instructions, which code for `sm_90a` may use."""


def compile(
    text: str,
    target: str,
    flags: Sequence[str] = (),
    *,
    path: Path = Path("kernel.cu"),
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """The kernels of CUDA source for one NVIDIA target, one code object each.

    `path` is the file of the text; where there is none of that name, the text is compiled from a
    copy. `flags` go to nvcc; the default is `-O3 -std=c++17`. Code for sm_90 and later may use what
    only that GPU has (`sm_90a`). Raises CompileError with the line of the first error and the whole
    log, MissingTool without nvcc or a C++ compiler for the host.
    """
    for flag in flags:
        if flag.split("=", 1)[0] in _OURS_TO_SET:
            raise UsageError(f"compiler flag {flag} cannot be given: wavecast sets it itself")
    store, nvcc = cache or DiskCache(), find()
    made_from = str(path.absolute()) if path.is_file() else ""
    entry = key("cuda", _FORMAT, version(nvcc), target, tuple(flags), made_from, path.name, text)
    stages = dependencies.lookup(store, entry)
    if stages is None:
        stages, headers = _run(nvcc, text, target, flags, path)
        dependencies.store(store, entry, stages, headers)
    binary, log = stages["cubin"], stages["log"]
    assert isinstance(binary, bytes)
    assert isinstance(log, str)
    codes = nvidia.load_cubin(binary, target, path, log=log, cache=store)
    options = {"flags": " ".join(flags)} if flags else {}
    kernel_signatures = signatures(text)
    return [
        named_parameters(
            replace(
                code,
                origin="cuda",
                options={**code.options, **options},
                source_text=text,
                compiler=version(nvcc),
            ),
            kernel_signatures,
        )
        for code in codes
    ]


def find() -> str:
    """The path of nvcc: `$WAVECAST_NVCC`, in PATH, of a toolkit, or of the PyPI package. Raises
    MissingTool."""
    program = process.find_program(("nvcc",), variable=VARIABLE, folders=_folders())
    if program:
        return program
    if os.environ.get(VARIABLE):
        raise MissingTool(f"{VARIABLE} names no program: {os.environ[VARIABLE]!r}")
    raise MissingTool("compiling CUDA for NVIDIA GPUs needs nvcc", hint=install_hint("cuda"))


def _folders() -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    folders = [
        f"{os.environ[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ
    ]
    return [*folders, "/usr/local/cuda/bin", *(f"{root}/{_PACKAGE}/bin" for root in roots)]


@lru_cache(maxsize=4)
def version(nvcc: str) -> str:
    """The compiler's name and version: `nvcc 13.5.37`."""
    printed = process.run([nvcc, "--version"]).text
    number = re.search(r"\bV(\d+(?:\.\d+)+)", printed)
    return f"nvcc {number[1]}" if number else "nvcc"


def _run(
    nvcc: str, text: str, target: str, flags: Sequence[str], path: Path
) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """(cubin and log, digest of every header that was read) of one compilation."""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        output, dependency_file = Path(folder) / "kernel.cubin", Path(folder) / "kernel.d"
        source = path
        if not path.is_file():
            source = Path(folder) / Path(path.name).with_suffix(".cu")
            source.write_text(text, encoding="utf-8")
        command = [
            *(nvcc, "-x", "cu", "-cubin", f"-arch={_gpu(target)}", "-lineinfo", "-Xptxas", "-v"),
            *("-O3", "-std=c++17", "-MD", "-MF", dependency_file, *flags, source, "-o", output),
        ]  # fmt: skip
        compilation = process.run(command)
        log = (compilation.text + compilation.log).replace(f"{folder}/", "")
        if compilation.status or not output.is_file():
            raise _error(log, compilation.status)
        return {"cubin": output.read_bytes(), "log": log}, dependencies.read_by(
            dependency_file, source
        )


def _gpu(target: str) -> str:
    """`sm_90` -> `sm_90a`: with the instructions that only this GPU has."""
    number = target.removeprefix("sm_")
    return f"{target}a" if number.isdigit() and int(number) >= _SPECIFIC else target


def _error(log: str, status: int) -> CompileError:
    """The first error in what nvcc printed."""
    first = _ERROR.search(log)
    if first is not None:
        return CompileError(f"{first['where']}:{first['line']}: {first['what']}", log=log)
    host = _HOST_ERROR.search(log)
    if host is not None:
        return CompileError(f"{host['where']}: {host['what']}", log=log)
    lines = [line for line in log.strip().splitlines() if "error" in line or "fatal" in line]
    what = lines[0].strip() if lines else f"nvcc failed with status {status}"
    hint = (
        "nvcc needs a C++ compiler: apt-get install g++"
        if "g++" in what or "host compiler" in what
        else ""
    )
    return CompileError(what, log=log, hint=hint)


__all__ = ["VARIABLE", "compile", "find", "version"]
