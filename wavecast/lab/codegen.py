"""Code generators that compile LLVM IR as text: Triton's, and llc programs."""

from __future__ import annotations

import importlib.util
import re
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from wavecast.arch import Device
from wavecast.compile import process
from wavecast.errors import CompileError, MissingTool

_TRIPLE: Final = re.compile(r'^target triple = ".*"$', re.MULTILINE)
_SINGLE: Final = re.compile(r"\bf0x([0-9A-Fa-f]{8})\b")
_DOUBLE: Final = re.compile(r"\bf0x([0-9A-Fa-f]{16})\b")
_NARROW: Final = re.compile(r"\b(?P<type>half|bfloat) f0x(?P<word>[0-9A-Fa-f]{4})\b")
_SPECIAL: Final = re.compile(
    r"\b(?P<type>half|bfloat|float|double) (?P<sign>[+-])"
    r"(?:(?P<inf>inf)|qnan|(?P<signal>s?)nan\((?P<payload>0x[0-9A-Fa-f]+)\))"
)
_FORMATS: Final = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}
"""Bits of the exponent and of the mantissa. Source: LLVM LangRef, floating-point types."""
_PREFIXES: Final = {"half": "0xH", "bfloat": "0xR"}
_LLC: Final = ("llc", *(f"llc-{number}" for number in range(30, 17, -1)))


_VERSION: Final = re.compile(r"LLVM version (\d+)")
_BROKEN: Final = "Broken module found"
"""What LLVM's verifier prints of IR that is not valid."""


class CodeGenerator(Protocol):
    """Compiles LLVM IR to AMDGCN assembly. `name` and `command` are for reports."""

    @property
    def name(self) -> str: ...

    @property
    def command(self) -> str: ...

    def assembly(self, text: str) -> str:
        """The assembly of a module. Raises CrashedCompiler, and CompileError for a refusal."""
        ...


class CrashedCompiler(CompileError):
    """The compiler's process ended by a signal or an assertion."""


@dataclass(frozen=True, slots=True)
class TritonGenerator:
    """Triton's own code generator, in a fork."""

    device: Device
    compiler: str = "triton"

    @property
    def name(self) -> str:
        return self.compiler

    @property
    def command(self) -> str:
        return f"the stage amdgcn of {self.compiler} for {self.device.target}"

    def assembly(self, text: str) -> str:
        from wavecast.integrations.triton.generate import CodeGeneratorCrash, generated_assembly

        try:
            return generated_assembly(text, self.device)
        except CodeGeneratorCrash as error:
            if _BROKEN in error.log:
                raise CompileError(_BROKEN, log=error.log) from error
            raise CrashedCompiler(error.message, log=error.log) from error


@dataclass(frozen=True, slots=True)
class Llc:
    """An llc program with options."""

    program: str
    target: str
    options: Sequence[str] = ()

    @property
    def name(self) -> str:
        return Path(self.program).name

    @property
    def command(self) -> str:
        return " ".join([Path(self.program).name, *self._options, "reduced.ll", "-o", "-"])

    @property
    def _options(self) -> tuple[str, ...]:
        return (f"-mcpu={self.target}", "-O3", *self.options)

    def assembly(self, text: str) -> str:
        return self.compiled(text).text

    def compiled(self, text: str) -> process.Finished:
        """The assembly of a module, and what llc prints. Raises as `assembly`."""
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            source = Path(folder) / "module.ll"
            source.write_text(portable(text), encoding="utf-8")
            done = process.run([self.program, *self._options, source, "-o", "-"])
        crashed = done.status < 0 or "Assertion" in done.log or "PLEASE submit a bug" in done.log
        if crashed and _BROKEN not in done.log:
            raise CrashedCompiler(f"{self.program} crashed", log=done.log)
        if done.status:
            lines = done.log.strip().splitlines() or [f"exit code {done.status}"]
            raise CompileError(f"{self.program}: {lines[0]}", log=done.log)
        return done


@dataclass(frozen=True, slots=True)
class ZigClang:
    """The clang of the `ziglang` package."""

    program: str
    target: str

    @property
    def name(self) -> str:
        return "ziglang's clang"

    @property
    def command(self) -> str:
        return " ".join(["zig", "clang", *self._options, "reduced.ll", "-o", "-"])

    @property
    def _options(self) -> tuple[str, ...]:
        own = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={self.target}", "-nogpulib", "-O3")
        return (*own, "-Wno-override-module", "-x", "ir", "-S")

    def assembly(self, text: str) -> str:
        done = process.run(
            [self.program, "clang", *self._options, "-", "-o", "-"], stdin=portable(text).encode()
        )
        if done.status:
            lines = done.log.strip().splitlines() or [f"exit code {done.status}"]
            raise CompileError(f"{self.name}: {lines[0]}", log=done.log)
        return done.text


def find_llc(asked: str = "") -> str:
    """The llc program `asked` for, or that of the newest LLVM in PATH. Raises MissingTool."""
    names = [asked] if asked else _LLC
    found = [program for name in names if (program := process.find_program([name]))]
    if not found:
        raise MissingTool(f"there is no {asked or 'llc'} in PATH", hint="install LLVM's tools")
    return max(found, key=_version) if len(found) > 1 else found[0]


def _version(program: str) -> int:
    """The major version of an LLVM program, 0 where it says none."""
    said = _VERSION.search(process.run([program, "--version"]).text)
    return int(said[1]) if said is not None else 0


def portable(text: str) -> str:
    """LLVM IR of LLVM 23 and 24 as LLVM 22 and older read it: the triple of AMD's HSA, and
    floating-point literals as their bits."""
    text = _TRIPLE.sub('target triple = "amdgcn-amd-amdhsa"', text)
    text = _SPECIAL.sub(_special, text)
    text = _NARROW.sub(lambda match: _literal(match["type"], int(match["word"], 16)), text)
    text = _SINGLE.sub(_doubled, text)
    return _DOUBLE.sub(r"0x\1", text)


def _special(match: re.Match[str]) -> str:
    """An infinity or NaN as the bits of its type; `nan(p)` is quiet, `snan(p)` is not."""
    exponent, mantissa = _FORMATS[match["type"]]
    word = ((1 << exponent) - 1) << mantissa | (match["sign"] == "-") << (exponent + mantissa)
    if not match["inf"]:
        word |= int(match["payload"] or "0", 16)
        word |= 0 if match["signal"] else 1 << (mantissa - 1)
    return _literal(match["type"], word)


def _literal(name: str, word: int) -> str:
    """The bits of a number as a literal with its type."""
    if name in _PREFIXES:
        return f"{name} {_PREFIXES[name]}{word:04X}"
    exponent, mantissa = _FORMATS[name]
    if name == "float":  # written as the double with its sign, exponent and mantissa
        top, fraction = word >> mantissa, word & ((1 << mantissa) - 1)
        word = (top >> exponent) << 63 | 0x7FF << 52 | fraction << (52 - mantissa)
    return f"{name} 0x{word:016X}"


def _doubled(match: re.Match[str]) -> str:
    (value,) = struct.unpack("<f", struct.pack("<I", int(match[1], 16)))
    (word,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{word:016X}"


def installed(device: Device) -> list[CodeGenerator]:
    """The code generators of this machine for a device: Triton's, every llc in PATH, and the clang
    of ziglang."""
    found: list[CodeGenerator] = [TritonGenerator(device)]
    programs = {process.find_program([name]): name for name in _LLC}
    known: dict[Path, str] = {}
    for program in programs:
        if program:
            known.setdefault(Path(program).resolve(), program)
    found += [Llc(program, device.target) for program in known.values()]
    spec = importlib.util.find_spec("ziglang")
    zig = Path(spec.origin).parent / "zig" if spec is not None and spec.origin else None
    if zig is not None and zig.is_file():
        found.append(ZigClang(str(zig), device.target))
    return found


__all__ = [
    "CodeGenerator",
    "CrashedCompiler",
    "Llc",
    "TritonGenerator",
    "ZigClang",
    "find_llc",
    "installed",
    "portable",
]
