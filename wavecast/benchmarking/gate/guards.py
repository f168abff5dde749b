"""What is under guard: an operator, a function, a script or a profile, at one point of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from wavecast.benchmarking.gate.thresholds import Thresholds
from wavecast.benchmarking.records import Scalar
from wavecast.json_objects import JsonObject

GuardKind = Literal["operator", "callable", "kernel"]
"""As `records.Subject.kind`: each kernel of a script is a subject."""


@dataclass(frozen=True, slots=True)
class Guard:
    """One entry of the settings at one point of its axes. It is pickled for other processes.

    `name` is the operator's, `module:function`, or a script's path below the project's folder;
    `devices` are ids. `arguments`, `kernels` (a regular expression) and `timeout` (seconds) are of
    scripts. `reference` is a `module:function` that returns what gives the right result, with
    `ulps` and `accumulated` of `kernels.operator.Tolerance`. `execute` runs the machine code,
    `checks` watches it. `profile`: `name` is a file of a profiler, and its times are the figures.
    """

    kind: GuardKind
    name: str
    devices: tuple[str, ...]
    axes: Mapping[str, Scalar] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    kernels: str = ""
    timeout: float | None = None
    reference: str = ""
    ulps: float = 1.0
    accumulated: float = 2e-6
    execute: bool = False
    checks: bool = False
    thresholds: Thresholds = field(default_factory=Thresholds)
    profile: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """No two guards of a device have the same."""
        return self.kind, self.line

    @property
    def line(self) -> str:
        """The guard in one line."""
        return " ".join([self.name, *(f"{n}={v}" for n, v in self.axes.items()), *self.arguments])


class KernelLocation(JsonObject):
    """Where a kernel is written."""

    file: str = ""
    line: int = 0


NOWHERE: Final = KernelLocation()


def family(kind: str, name: str) -> tuple[str, str]:
    """What the entries of one guard have in common: kind and name, of a kernel the script's."""
    return kind, name.partition(":")[0] if kind == "kernel" else name


__all__ = ["NOWHERE", "Guard", "GuardKind", "KernelLocation", "family"]
