"""A setting: a value for some axes. How a kernel is compiled with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wavecast.arch import Device
from wavecast.compile import hip
from wavecast.compile.codeobject import CodeObject
from wavecast.errors import CompileError
from wavecast.lab.axes import ATTRIBUTES, Axis, AxisKind, axes
from wavecast.lab.edits import EDITS

_FLAGS: Final = "DISABLE_LLVM_OPT"
"""The variable with which Triton sets boolean LLVM options. Source: triton 3.9.0,
backends/amd/compiler.py, make_amdgcn; python/src/llvm.cc, optimize_module."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Values by axis, in the order of `axes.toml`; () is how the program compiles its kernel."""

    items: tuple[tuple[str, Any], ...] = ()

    @staticmethod
    def of(values: Mapping[str, Any]) -> Setting:
        """From values by axis. Raises KeyError for an axis there is not."""
        order = {name: number for number, name in enumerate(axes())}
        return Setting(tuple(sorted(values.items(), key=lambda item: order[item[0]])))

    def with_(self, axis: str, value: Any) -> Setting:
        """The setting with one more value."""
        return Setting.of({**dict(self.items), axis: value})

    def without(self, axis: str) -> Setting:
        """The setting without an axis."""
        return Setting(tuple(item for item in self.items if item[0] != axis))

    @property
    def rounding(self) -> bool:
        """Whether floating-point results may differ in their last digits."""
        return any(axes()[name].rounding for name, _ in self.items)

    def options(self, code: CodeObject) -> dict[str, Any]:
        """Triton's options of a launch of the kernel that the setting changes; none of others."""
        if code.origin != "triton":
            return {}
        options = dict(self._of(AxisKind.OPTION))
        attributes = dict(self._of(AxisKind.ATTRIBUTE))
        if attributes:
            before = code.options.get(ATTRIBUTES)
            code_attributes = dict(before) if isinstance(before, (tuple, list)) else {}
            options[ATTRIBUTES] = ",".join(
                f"{k}={v}" for k, v in {**code_attributes, **attributes}.items()
            )
        return options

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that Triton reads when it compiles."""
        variables = {name: str(value) for name, value in self._of(AxisKind.ENVIRONMENT)}
        flags = [name for name, _ in self._of(AxisKind.FLAG)]
        if flags:
            before = os.environ.get(_FLAGS, "")
            variables[_FLAGS] = ",".join([*([before] if before else ()), *flags])
        return variables

    @property
    def edits(self) -> tuple[tuple[str, Any], ...]:
        """Changes of the LLVM IR."""
        return tuple(self._of(AxisKind.IR))

    @property
    def words(self) -> tuple[str, ...]:
        """Options of the compiler of HIP files."""
        options: list[str] = []
        for name, value in self.items:
            axis = axes()[name]
            words = axis.words.format(value) if axis.words else f"-mllvm -{name}"
            options += words.split()
        return tuple(options)

    def _of(self, kind: AxisKind) -> Iterator[tuple[str, Any]]:
        return ((name, value) for name, value in self.items if axes()[name].kind is kind)

    def __str__(self) -> str:
        return (
            ", ".join(_item_text(axes()[name], value) for name, value in self.items) or "(as it is)"
        )


def _item_text(axis: Axis, value: Any) -> str:
    return axis.name if axis.kind is AxisKind.FLAG else f"{axis.name}={value}"


def compile_with_setting(code: CodeObject, setting: Setting, device: Device) -> CodeObject:
    """A captured Triton kernel compiled with a setting, from its TTIR; or a kernel of a HIP file,
    from its file.

    Raises CompileError where the compiler refuses it, and for code without TTIR (Gluon).
    """
    if code.origin == "hip":
        return hip.recompile(code, setting.words)
    from wavecast.runtimes.triton.generate import compile_llir
    from wavecast.runtimes.triton.recompile import recompile_kernel

    text = code.stages.get("ttir")
    if not isinstance(text, str):
        raise CompileError(f"{code.kernel}: it has no TTIR to compile again")
    with _environment(setting.environment):
        new_code = recompile_kernel(code, text, setting.options(code), device)
        llir = new_code.stages.get("llir")
        if not setting.edits or not isinstance(llir, str):
            return new_code
        for name, value in setting.edits:
            llir = EDITS[name](llir, value)
        return compile_llir(new_code, llir, device)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


__all__ = ["Setting", "compile_with_setting"]
