"""Source that a HIP program compiles while it runs (hipRTC)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from wavecast.compile import hip, hip_program
from wavecast.errors import CompileError, MissingTool

_NAMED: Final = "__wc_name_"
"""Variables with the addresses of expressions: they instantiate templates, and their initial values
name symbols. Their section is none of those that programs have as data."""
_SETS_TARGET: Final = ("--gpu-architecture=", "--offload-arch=", "-arch=")
_IGNORED: Final = ("-fno-gpu-rdc", "-default-device")


def compile_source(
    text: str,
    target: str,
    options: Sequence[str] = (),
    *,
    name: str = "",
    headers: Mapping[str, str] | None = None,
    expressions: Sequence[str] = (),
    checked: bool = False,
) -> tuple[bytes, list[str]]:
    """The code of a source as modules load it, and the symbols of `expressions`, such as
    `scale<float>`, which become part of it. `options` are hipRTC's; `headers` are files by name.

    Raises CompileError with the compiler's log, MissingTool, NoKernel, UsageError for an option
    that cannot be given.
    """
    flags = [option for option in options if not option.startswith((*_SETS_TARGET, *_IGNORED))]
    lines = [
        f'__attribute__((section(".wc_names"))) __device__ const void *{_NAMED}{number} = '
        f"(const void *)({expression});"
        for number, expression in enumerate(expressions)
    ]
    whole = text + '\n#line 1 "name expressions"\n' + "\n".join(lines) + "\n" if lines else text
    codes = hip.compile(
        whole, target, flags, name=name or "program.hip", headers=headers, checked=checked,
        program=True,
    )  # fmt: skip
    binary = codes[0].stages.get("hsaco")
    if not isinstance(binary, bytes):
        raise MissingTool("linking device code needs ld.lld", hint="install lld")
    assembly = codes[0].stages["amdgcn"]
    assert isinstance(assembly, str)
    return hip_program.make_bundle(binary, target), [
        _symbol(assembly, number, expression) for number, expression in enumerate(expressions)
    ]


def _symbol(assembly: str, number: int, expression: str) -> str:
    """What the variable that names an expression is initialised with."""
    match = re.search(rf"^{_NAMED}{number}:\s*\n\s*\.quad\s+(\S+)", assembly, re.MULTILINE)
    if match is None:
        raise CompileError(f"{expression} names no kernel and no variable")
    return match[1]


__all__ = ["compile_source"]
