"""Code generators that compile LLVM IR as text: Triton's, and llc programs."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from wavecast.arch import Device
from wavecast.compile import process
from wavecast.errors import CompileError, MissingTool, UsageError
from wavecast.lab.older_intrinsics import compile_in_older_form, no_form

_TRIPLE: Final = re.compile(r'^target triple = ".*"$', re.MULTILINE)
_SINGLE: Final = re.compile(r"\bf0x([0-9A-Fa-f]{8})\b")
_DOUBLE: Final = re.compile(r"\bf0x([0-9A-Fa-f]{16})\b")
_NARROW: Final = re.compile(r"\b(?P<type>half|bfloat) f0x(?P<word>[0-9A-Fa-f]{4})\b")
_SPECIAL: Final = re.compile(
    r"\b(?P<type>half|bfloat|float|double) (?P<sign>[+-])"
    r"(?:(?P<inf>inf)|qnan|(?P<signal>s?)nan\((?P<payload>0x[0-9A-Fa-f]+)\))"
)
_OF_ONE_TYPE: Final = re.compile(
    r"^(?P<start>[^\n]* = (?:phi|fcmp|fadd|fsub|fmul|fdiv|frem)\b[a-z ]* "
    r"(?P<type>half|bfloat|float|double) )(?P<values>[^\n]*)$",
    re.MULTILINE,
)
"""Instructions that state the type of their operands once."""
_BARE: Final = re.compile(
    r"(?:(?<=\[ )|(?<=, )|^)(?P<value>f0x[0-9A-Fa-f]+|[+-]?\d+\.\d+e[+-]\d+"
    r"|[+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\)))"
)
_DECIMAL: Final = re.compile(r"\b(?P<type>half|bfloat|float) (?P<number>[+-]?\d+\.\d+e[+-]\d+)")
_FORMATS: Final = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}
"""Bits of the exponent and of the mantissa. Source: LLVM LangRef, floating-point types."""
_PREFIXES: Final = {"half": "0xH", "bfloat": "0xR"}
LLVM_VERSIONS: Final = range(30, 17, -1)
"""Versions in the names of LLVM's programs."""
_NEW_ATTRIBUTES: Final = re.compile(r"\bnocreateundeforpoison ?|, target_mem\d*: none")
"""Attributes of declared intrinsics that the LLVM of Triton 3.6 does not know, and kinds of memory
of LLVM 23."""
_KERNEL: Final = re.compile(r"^define [^\n]*\bamdgpu_kernel\b", re.MULTILINE)
_LLC: Final = ("llc", *(f"llc-{number}" for number in LLVM_VERSIONS))
_CLANG: Final = ("clang", *(f"clang-{number}" for number in LLVM_VERSIONS))


BROKEN: Final = "Broken module found"
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
        from wavecast.runtimes.triton.generate import CodeGeneratorCrash, generated_assembly

        kernels = len(_KERNEL.findall(text))
        if kernels != 1:
            raise CompileError(f"Triton compiles LLVM IR of one amdgpu_kernel, this has {kernels}")
        try:
            return generated_assembly(text, self.device)
        except CodeGeneratorCrash as error:
            if BROKEN in error.log:
                raise CompileError(BROKEN, log=error.log) from error
            raise CrashedCompiler(error.message, log=error.log) from error


@dataclass(frozen=True, slots=True)
class Llc:
    """An llc program with options."""

    program: str
    target: str
    options: Sequence[str] = ()
    machine: bool = False
    """Whether it compiles machine IR (MIR)."""

    @property
    def name(self) -> str:
        return Path(self.program).name

    @property
    def command(self) -> str:
        source = "reduced.mir" if self.machine else "reduced.ll"
        return " ".join([Path(self.program).name, *self._options, source, "-o", "-"])

    @property
    def _options(self) -> tuple[str, ...]:
        language = ("-x", "mir", "-mtriple=amdgcn-amd-amdhsa") if self.machine else ()
        return (f"-mcpu={self.target}", "-O3", *language, *self.options)

    def assembly(self, text: str) -> str:
        return self.compile(text).text

    def compile(self, text: str) -> process.Finished:
        """The assembly of a module, and what llc prints. Raises as `assembly`."""
        if self.machine:
            return self._checked(self._run(text))
        return _in_older_form(self.name, text, self.target, self._run, self._checked)

    def _run(self, text: str) -> process.Finished:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            source = Path(folder) / "module"
            source.write_text(text, encoding="utf-8")
            return process.run([self.program, *self._options, source, "-o", "-"])

    def _checked(self, compilation: process.Finished) -> process.Finished:
        crashed = (
            compilation.status < 0
            or "Assertion" in compilation.log
            or "PLEASE submit a bug" in compilation.log
        )
        if crashed and BROKEN not in compilation.log:
            raise CrashedCompiler(f"{self.name} crashed", log=compilation.log)
        if compilation.status:
            lines = compilation.log.strip().splitlines() or [f"exit code {compilation.status}"]
            raise CompileError(
                f"{self.name}: {lines[0].removeprefix(f'{self.program}: ')}", log=compilation.log
            )
        return compilation


@dataclass(frozen=True, slots=True)
class Clang:
    """A clang as a compiler of LLVM IR, which it optimises once more: the words of its command, and
    a name."""

    name: str
    words: tuple[str, ...]
    target: str

    @property
    def command(self) -> str:
        return " ".join([self.name, *self._options, "reduced.ll", "-o", "-"])

    @property
    def _options(self) -> tuple[str, ...]:
        target_options = (
            "-target",
            "amdgcn-amd-amdhsa",
            f"-mcpu={self.target}",
            "-nogpulib",
            "-O3",
        )
        return (*target_options, "-Wno-override-module", "-x", "ir", "-S")

    def assembly(self, text: str) -> str:
        return _in_older_form(self.name, text, self.target, self._run, self._checked).text

    def _checked(self, compilation: process.Finished) -> process.Finished:
        if compilation.status:
            lines = compilation.log.strip().splitlines() or [f"exit code {compilation.status}"]
            raise CompileError(f"{self.name}: {lines[0]}", log=compilation.log)
        return compilation

    def _run(self, text: str) -> process.Finished:
        return process.run([*self.words, *self._options, "-", "-o", "-"], stdin=text.encode())


def _in_older_form(
    name: str,
    text: str,
    target: str,
    run: Callable[[str], process.Finished],
    checked: Callable[[process.Finished], process.Finished],
) -> process.Finished:
    """What a program makes of a module, with the intrinsics that it refuses in an older form.
    Raises as `checked`, and CompileError for intrinsics without one."""

    def attempt(text: str) -> tuple[process.Finished, str]:
        compilation = run(text)
        return compilation, f"{compilation.log}\n{compilation.text}"

    compilation, unknown = compile_in_older_form(portable(text), target, attempt)
    if unknown:
        raise CompileError(no_form(name, unknown), log=compilation.log)
    return checked(compilation)


def generator_of(program: str, target: str) -> CodeGenerator:
    """The code generator of a program: llc, clang or zig, by its name. Raises UsageError for
    another one, MissingTool where there is none."""
    path = process.find_program([program])
    if not path:
        raise MissingTool(f"there is no program {program}")
    name = Path(program).name
    for start, generator in _BY_NAME.items():
        if name.startswith(start):
            return generator(path, target)
    raise UsageError(f"{program} is neither llc nor clang nor zig")


def _zig(program: str, target: str) -> Clang:
    version = process.run([program, "version"])
    return Clang(f"zig {version.text.strip()} clang", (program, "clang"), target)


_BY_NAME: Final[dict[str, Callable[[str, str], CodeGenerator]]] = {
    "llc": Llc,
    "clang": lambda program, target: Clang(Path(program).name, (program,), target),
    "zig": _zig,
}


def find_llc(name: str = "") -> str:
    """The llc program `name` for, or that of the newest LLVM in PATH. Raises MissingTool."""
    path = process.newest([name] if name else _LLC)
    if not path:
        raise MissingTool(f"there is no {name or 'llc'} in PATH", hint="install LLVM's tools")
    return path


def portable(text: str) -> str:
    """LLVM IR of LLVM 23 and 24 as LLVM 22 and older read it: the triple of AMD's HSA, and
    floating-point literals as their bits."""
    text = _TRIPLE.sub('target triple = "amdgcn-amd-amdhsa"', text)
    text = _NEW_ATTRIBUTES.sub("", text)
    text = _OF_ONE_TYPE.sub(_with_types, text)
    text = _SPECIAL.sub(_special, text)
    text = _DECIMAL.sub(_exact, text)
    text = _NARROW.sub(lambda match: _literal(match["type"], int(match["word"], 16)), text)
    text = _SINGLE.sub(_to_double, text)
    return _DOUBLE.sub(r"0x\1", text)


def _exact(match: re.Match[str]) -> str:
    """A decimal number as it is, or as its bits where its type does not have it exactly: LLVM 23
    and 24 round it, older ones refuse it."""
    number = float(match["number"])
    (word,) = struct.unpack("<I", struct.pack("<f", number))
    (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    if match["type"] == "half":
        (word,) = struct.unpack("<H", struct.pack("<e", number))
        (rounded,) = struct.unpack("<e", struct.pack("<e", number))
    elif match["type"] == "bfloat":
        word = (word + 0x7FFF + (word >> 16 & 1)) >> 16
        (rounded,) = struct.unpack("<f", struct.pack("<I", word << 16))
    if rounded == number:
        return match[0]
    if match["type"] == "float":
        (word,) = struct.unpack("<Q", struct.pack("<d", rounded))
        return f"float 0x{word:016X}"
    return _literal(match["type"], word)


def _with_types(match: re.Match[str]) -> str:
    """An instruction of one type with its literals as older LLVM reads them."""

    def literal(bare: re.Match[str]) -> str:
        kind = match["type"]
        text = _SPECIAL.sub(_special, f"{kind} {bare['value']}")
        text = _DECIMAL.sub(_exact, text)
        text = _NARROW.sub(lambda each: _literal(each["type"], int(each["word"], 16)), text)
        return text.removeprefix(f"{kind} ")

    return match["start"] + _BARE.sub(literal, match["values"])


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


def _to_double(match: re.Match[str]) -> str:
    (value,) = struct.unpack("<f", struct.pack("<I", int(match[1], 16)))
    (word,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{word:016X}"


def installed_generators(device: Device) -> list[CodeGenerator]:
    """The code generators of this machine for a device: Triton's, every llc and clang in PATH and
    of ROCm, and the clang of ziglang."""
    generators: list[CodeGenerator] = [TritonGenerator(device)]
    rocm = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "llvm" / "bin"
    names = (*_LLC, str(rocm / "llc"), *_CLANG, str(rocm / "clang"))
    programs: dict[Path, str] = {}
    for name in names:
        program = process.find_program([name])
        if program:
            programs.setdefault(Path(program).resolve(), program)
    generators += [generator_of(program, device.target) for program in programs.values()]
    spec = importlib.util.find_spec("ziglang")
    zig = Path(spec.origin).parent / "zig" if spec is not None and spec.origin else None
    if zig is not None and zig.is_file():
        generators.append(generator_of(str(zig), device.target))
    return generators


__all__ = [
    "BROKEN",
    "Clang",
    "CodeGenerator",
    "CrashedCompiler",
    "Llc",
    "TritonGenerator",
    "find_llc",
    "generator_of",
    "installed_generators",
    "portable",
]
