"""The decisions that alternatives change (`axes.toml`), and which of them a kernel has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final

from wavecast import files
from wavecast.arch import capabilities
from wavecast.arch.capability import Capabilities
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.parsing import parse_kernel

_FILE = Path(__file__).with_name("axes.toml")


class AxisKind(Enum):
    """Where a decision is made, and how a program asks for it."""

    OPTION = "option"
    ATTRIBUTE = "attribute"
    FLAG = "flag"
    ENVIRONMENT = "environment"
    IR = "ir"
    COMPILER = "compiler"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Axis:
    """One decision of the compiler. `axes.toml` says what each field means."""

    name: str
    kind: AxisKind
    values: tuple[Any, ...]
    what: str
    source: str
    rounding: bool = False
    matrix: bool = False
    needs: Mapping[str, tuple[Any, ...]] | None = None
    words: str = ""
    threads: bool = False

    def applies(self, code: CodeObject) -> bool:
        """Whether the compiler of this code makes the decision for it."""
        target = capabilities(code.target)
        if any(getattr(target, name) not in values for name, values in (self.needs or {}).items()):
            return False
        if self.matrix and not has_matrix(code):
            return False
        if (code.origin in MACHINE_CODE) is not (self.kind is AxisKind.CODE):
            return False
        if self.kind is AxisKind.CODE:
            return True
        if code.origin == "hip":
            return self.kind is AxisKind.FLAG or bool(self.words)
        if self.kind in (AxisKind.OPTION, AxisKind.COMPILER):
            return self.name in code.options
        return self.kind is not AxisKind.ATTRIBUTE or ATTRIBUTES in code.options


ATTRIBUTES = "llvm_fn_attrs"
"""Triton's option for LLVM function attributes, from 3.9 on."""
_MATRIX = ("llvm.amdgcn.mfma", "llvm.amdgcn.wmma", "llvm.amdgcn.swmmac", "llvm.amdgcn.smfmac")


MACHINE_CODE: Final = ("assembly", "elf")
"""Origins of code that no compiler is asked for."""


def has_matrix(code: CodeObject) -> bool:
    """Whether a kernel has matrix instructions: its LLVM IR, or its machine code where there is no
    IR."""
    if code.origin in MACHINE_CODE:
        instructions = parse_kernel(code).program.instructions
        return any(each.decoded.opcode.matrix is not None for each in instructions)
    text = code.stages.get("llir", "")
    return isinstance(text, str) and any(name in text for name in _MATRIX)


@cache
def axes() -> Mapping[str, Axis]:
    """The axes by name. Raises ValueError for a row with an unknown or missing field, or one that
    needs a capability there is not."""
    return read(_FILE)


def read(path: Path) -> Mapping[str, Axis]:
    """The axes of a file. Raises ValueError as `axes`."""
    capability_names = {field.name for field in fields(Capabilities)}
    axes_by_name: dict[str, Axis] = {}
    for name, row in files.parse_toml(files.read_text(path)).items():
        try:
            needs = {
                key: tuple(capability_values)
                for key, capability_values in row.pop("needs", {}).items()
            }
            kind, values = AxisKind(row.pop("kind")), tuple(row.pop("values"))
            axes_by_name[name] = Axis(name, kind, values, needs=needs or None, **row)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path.name}: {name}: {error}") from None
        if not values or not capability_names.issuperset(needs):
            raise ValueError(f"{path.name}: {name}: no values, or needs an unknown capability")
    return axes_by_name


def applicable(code: CodeObject) -> Iterator[tuple[Axis, Any]]:
    """Every axis with every value that differs from what the code was compiled with."""
    for axis in axes().values():
        if axis.applies(code):
            for value in axis.values:
                same = axis.kind is AxisKind.OPTION and code.options.get(axis.name) == value
                if not same and not (axis.threads and value < code.workgroup_size):
                    yield axis, value


__all__ = [
    "ATTRIBUTES",
    "MACHINE_CODE",
    "Axis",
    "AxisKind",
    "applicable",
    "axes",
    "has_matrix",
    "read",
]
