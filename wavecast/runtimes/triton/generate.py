"""Machine code from LLVM IR by Triton's own code generator, in a fork."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import CodeObject
from wavecast.emulate.errors import Unsupported
from wavecast.errors import CompileError
from wavecast.runtimes.devices import facts_of
from wavecast.sampling.isolation import run_in_fork

_CRASHED: Final = "the code generator crashed"


def compile_llir(code: CodeObject, text: str, device: Device) -> CodeObject:
    """A captured kernel with the machine code of other LLVM IR of it.

    `text` is what the stage `llir` has, changed. Parameters, options and LDS stay. Raises
    CompileError where Triton refuses the text or its process dies.
    """
    try:
        artifacts = run_in_fork(partial(_generate_stages, text, code.options, device))
    except Unsupported as error:
        raise CompileError(f"{code.kernel}: {_CRASHED}") from error
    return with_machine_code(code, artifacts["amdgcn"], artifacts["hsaco"], text)


def assemble(code: CodeObject, text: str, device: Device) -> CodeObject:
    """A captured kernel with other assembly, assembled by Triton. Raises CompileError."""
    try:
        artifacts = run_in_fork(partial(_assemble_binary, text, code.options, device))
    except Unsupported as error:
        raise CompileError(f"{code.kernel}: {_CRASHED}") from error
    return with_machine_code(code, text, artifacts["hsaco"])


def with_machine_code(code: CodeObject, assembly: str, binary: bytes, llir: str = "") -> CodeObject:
    """The kernel with other machine code; with other LLVM IR where `llir` is given."""
    stages = {**code.stages, "amdgcn": assembly, "hsaco": binary}
    if llir:
        stages["llir"] = llir
    name = digest.digest(
        code.target, code.kernel, binary, repr(code.parameters), code.workgroup_size,
        code.dynamic_lds,
    )  # fmt: skip
    return replace(code, stages=stages, digest=name)


class CodeGeneratorCrash(CompileError):
    """The process of Triton's code generator died. `log` is what it printed."""


def generated_assembly(text: str, device: Device) -> str:
    """The assembly of LLVM IR with one kernel. Raises CodeGeneratorCrash, and CompileError where
    Triton refuses the text."""
    with tempfile.TemporaryFile() as file:

        def run() -> dict[str, object]:
            os.dup2(file.fileno(), 2)
            stages = _stages({}, device)
            try:
                return {"amdgcn": stages["amdgcn"](text, {})}
            except Exception as error:  # of Triton's passes: any type
                raise CompileError(" ".join(str(error).split()) or type(error).__name__) from error

        try:
            return run_in_fork(run)["amdgcn"]
        except Unsupported as error:
            file.seek(0)
            log = file.read().decode(errors="replace")
            raise CodeGeneratorCrash(_CRASHED, log=log) from error


def _stages(options: Mapping[str, object], device: Device) -> dict[str, Any]:
    from triton.backends.compiler import Language
    from triton.compiler.compiler import make_backend

    from wavecast.runtimes.triton.driver import gpu_target

    importlib.import_module("triton._C.libtriton").llvm.init_targets()
    backend = make_backend(gpu_target(facts_of(device)))
    stages: dict[str, Any] = {}
    backend.add_stages(stages, backend.parse_options(dict(options)), Language.TRITON)
    return stages


def _generate_stages(text: str, options: Mapping[str, object], device: Device) -> dict[str, object]:
    stages = _stages(options, device)
    metadata: dict[str, object] = {}
    try:
        assembly = stages["amdgcn"](text, metadata)
        return {"amdgcn": assembly, "hsaco": stages["hsaco"](assembly, metadata)}
    except Exception as error:  # of Triton's passes: any type
        raise CompileError(" ".join(str(error).split()) or type(error).__name__) from error


def _assemble_binary(text: str, options: Mapping[str, object], device: Device) -> dict[str, object]:
    stages = _stages(options, device)
    try:
        return {"hsaco": stages["hsaco"](text, {})}
    except Exception as error:  # of LLVM's assembler: any type
        raise CompileError(" ".join(str(error).split()) or type(error).__name__) from error


__all__ = [
    "CodeGeneratorCrash",
    "assemble",
    "compile_llir",
    "generated_assembly",
    "with_machine_code",
]
