"""What Triton's pass managers print between passes, of one compilation in a fork.

MLIR's passes print through Triton's MLIR_ENABLE_DUMP. LLVM's passes print through LLVM's own
options, set by the C function LLVMParseCommandLineOptions that Triton's library exports; this is
Triton's core LLVM. From 3.9 on AMD code comes from another LLVM, in a library without options.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject
from wavecast.emulate.errors import Unsupported
from wavecast.errors import CompileError
from wavecast.runtimes.devices import facts_of
from wavecast.sampling.isolation import run_in_fork


def mlir_dump(code: CodeObject, device: Device) -> str:
    """The module before every pass from TTIR to TTGIR. Raises CompileError."""
    text = code.stages.get("ttir")
    if not isinstance(text, str):
        raise CompileError(f"{code.kernel}: it has no TTIR to compile again")
    try:
        return _capture_stderr(partial(_to_ttgir, code.kernel, text, code.options, device))[0]
    except CompileError as error:
        raise CompileError(f"{code.kernel}: {error.message}") from error


def machine_dump(code: CodeObject, device: Device, options: Sequence[str]) -> tuple[str, str]:
    """What LLVM prints while it compiles the kernel's LLVM IR with these options of its command
    line, and the assembly. Raises CompileError."""
    text = code.stages.get("llir")
    if not isinstance(text, str):
        raise CompileError(f"{code.kernel}: it has no LLVM IR")
    try:
        return machine_text(text, code.options, device, options)
    except CompileError as error:
        raise CompileError(f"{code.kernel}: {error.message}") from error


def machine_text(
    text: str, options: Mapping[str, object], device: Device, flags: Sequence[str]
) -> tuple[str, str]:
    """What LLVM prints while it compiles IR with `flags` of its command line, and the assembly;
    `options` are those of Triton's compilation. Raises CompileError."""
    return _capture_stderr(partial(_to_assembly, text, options, device, tuple(flags)))


def _capture_stderr(work: Callable[[], str]) -> tuple[str, str]:
    with tempfile.TemporaryFile() as file:

        def run() -> str:
            os.dup2(file.fileno(), 2)
            return work()

        try:
            output = run_in_fork(run)
        except Unsupported as error:
            raise CompileError("the compiler crashed") from error
        file.seek(0)
        return file.read().decode(errors="replace"), output


class _Reached(Exception):
    """The passes of interest have run."""


def _to_ttgir(kernel: str, text: str, options: Any, device: Device) -> str:
    import triton
    from triton.compiler.compiler import make_backend

    from wavecast.runtimes.triton import isolation
    from wavecast.runtimes.triton.driver import gpu_target

    def stop(*_: object) -> None:
        raise _Reached

    target = gpu_target(facts_of(device))
    backend: Any = type(make_backend(target))
    backend.make_llir = staticmethod(stop)  # this process is a fork
    os.environ.update(MLIR_ENABLE_DUMP="1", TRITON_ALWAYS_COMPILE="1")
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source = Path(folder) / f"{kernel}.ttir"
        source.write_text(text, encoding="utf-8")
        try:
            with isolation.in_this_process():
                triton.compile(str(source), target, dict(options))
        except _Reached:
            return ""
        except Exception as error:  # of Triton's passes: any type
            raise CompileError(" ".join(str(error).split()) or type(error).__name__) from error
    return ""


def _to_assembly(text: str, options: Any, device: Device, flags: tuple[str, ...]) -> str:
    from triton._C import libtriton

    from wavecast.runtimes.triton import compat

    words = [b"wavecast", *(flag.encode() for flag in flags)]
    parse = getattr(ctypes.CDLL(libtriton.__file__), "LLVMParseCommandLineOptions", None)
    if parse is None:  # 3.6 does not export it
        raise CompileError(f"{compat.compiler()} has no options of LLVM")
    parse(len(words), (ctypes.c_char_p * len(words))(*words), None)
    fuse = bool(options.get("enable_fp_fusion", True))
    return compat.translated_to_assembly(text, device.target, fuse=fuse)


__all__ = ["machine_dump", "mlir_dump"]
