"""AMD's math library for device code (`ocml.bc`), which Triton's wheel contains.

It is LLVM bitcode that reads constants which the driver of ROCm links: whether infinities matter,
whether divisions are exact, the target. `arguments` makes these constants and links both.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from wavecast.compile import process
from wavecast.errors import CompileError

MACRO: Final = "WAVECAST_DEVICE_LIBRARY"
"""Defined where `wavecast/math.h` declares the library's functions."""
_FAST: Final = ("-ffast-math", "-Ofast")
_OLDEST_CLANG: Final = 19
"""The library is written by clang 20; clang 19 is the oldest that is known to read it."""


def find(clang: int) -> Path | None:
    """The library, None where Triton is not installed or a clang of this version cannot read it."""
    if clang < _OLDEST_CLANG:
        return None
    return next((path for path in bitcode() if path.stem == "ocml"), None)


def bitcode() -> tuple[Path, ...]:
    """The libraries of AMD's device code that Triton's wheel contains; none where Triton is not
    installed."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return ()
    return tuple(sorted((Path(spec.origin).parent / "backends" / "amd" / "lib").glob("*.bc")))


@lru_cache(maxsize=4)
def content_digest(path: Path) -> str:
    """Names the content of a library."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def arguments(
    library: Path, compiler: Sequence[str], target: str, flags: Sequence[str], folder: Path
) -> tuple[str, ...]:
    """Arguments that link the library for a target. `flags` are those of the compilation, `folder`
    is for the constants. Raises CompileError where the compiler refuses them."""
    source, compiled = folder / "constants.c", folder / "constants.bc"
    source.write_text(_constants(target, flags), encoding="utf-8")
    make = ("-x", "c", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c")
    compilation = process.run([*compiler, *make, source, "-o", compiled])
    if compilation.status:
        raise CompileError(
            "the constants of AMD's device library do not compile", log=compilation.log
        )
    files = (str(library), str(compiled))
    return tuple(w for f in files for w in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", f))


def _constants(target: str, flags: Sequence[str]) -> str:
    """The C source of what ROCm's `oclc_*.bc` files define (README of the device libraries)."""
    fast = any(flag in _FAST for flag in flags)
    exact = not fast and "-fno-hip-fp32-correctly-rounded-divide-sqrt" not in flags
    values = (
        ("unsigned char", "unsafe_math_opt", fast or "-funsafe-math-optimizations" in flags),
        ("unsigned char", "finite_only_opt", fast or "-ffinite-math-only" in flags),
        ("unsigned char", "correctly_rounded_sqrt32", exact),
        ("int", "ISA_version", _version(target)),
    )
    return "".join(
        f"__attribute__((address_space(4))) const {type} __oclc_{name} = {int(value)};\n"
        for type, name, value in values
    )


def _version(target: str) -> int:
    """`gfx90a` -> 9010, `gfx1201` -> 12001: major, minor, stepping, the last two hexadecimal."""
    digits = target.split(":", 1)[0].removeprefix("gfx")
    major, minor, stepping = int(digits[:-2]), int(digits[-2], 16), int(digits[-1], 16)
    return 1000 * major + 100 * minor + stepping


__all__ = ["MACRO", "arguments", "content_digest", "find"]
