"""What a measurement is: of what, where, how, and the figures.

Everything here is frozen and made of plain values, so that a store, a file and a process boundary
keep it as it is. Times are seconds, sizes bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from wavecast import files
from wavecast.json_objects import checked_object

Scalar = str | int | float | bool

Origin = Literal["measured", "predicted", "executed", "static", "imported"]
"""Where a figure comes from: a GPU's clock, the model, a run on the emulator, the code, or a file
of another tool."""


@dataclass(frozen=True, slots=True)
class BenchSubject:
    """What was measured.

    `kind` is `kernel` (a launch of a script or file), `operator` (of the library) or `callable`
    (a Python function); `name` the kernel's, operator's or `module:function`; `axes` the values it
    was measured at (`{"rows": 8192, "dtype": "bfloat16"}`); `part` a kernel of an operator or
    callable, "" for all of it. Runs are compared subject by subject: two are the same when their
    `key` is.
    """

    kind: str
    name: str
    axes: Mapping[str, Scalar] = field(default_factory=dict)
    part: str = ""

    @property
    def key(self) -> str:
        """`operator rms_norm columns=4096 rows=8192`, axes in alphabetical order."""
        axes = [f"{name}={value}" for name, value in sorted(self.axes.items())]
        return " ".join([self.kind, self.name, *([f"[{self.part}]"] if self.part else []), *axes])


@dataclass(frozen=True, slots=True)
class Conditions:
    """How it was measured; runs whose conditions differ are not compared.

    `cache` is `cold` (buffers rotate, so that nothing is left in L2 and MALL) or `warm`; `timing`
    is `events`, `graph`, `predicted`, `profiler` or what an importer names; `inputs` says what the
    data was (`random`, `given`); `clocks` is the state of the clocks (`default`, `locked 2100 MHz`,
    "" where nobody knows).
    """

    cache: str = ""
    timing: str = ""
    inputs: str = ""
    clocks: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a run was measured. Unknown entries are "".

    `device` is the id of a device of `wavecast.arch` ("" for one that is not known), `board` the
    name its driver gives, `target` `gfx942` or `sm_90`; `emulated` says that no GPU was used.
    `runtime` is `ROCm 7.1` or `CUDA 13.0`; `commit` the checkout's, `dirty` whether it had changes.
    """

    device: str
    target: str
    emulated: bool
    board: str = ""
    driver: str = ""
    runtime: str = ""
    triton: str = ""
    llvm: str = ""
    torch: str = ""
    python: str = ""
    wavecast: str = ""
    host: str = ""
    commit: str = ""
    dirty: bool = False
    more: Mapping[str, Scalar] = field(default_factory=dict)
    """Anything else worth keeping: power limit, number of GPUs, container."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One KPI (`kpis.KPIS`) of a subject. `low` and `high` bound a prediction (80 % interval);
    `samples` are single measurements in the order they were taken."""

    value: float
    origin: Origin
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """The figures of one subject on one device in one run.

    `figures` are by name of their KPI. `digest` names the machine code that ran (of several
    kernels: of all together). `floor_seconds` is the least time its work needs on the device, where
    that is known, for comparisons across chips. `refused` says why its times cannot be true
    (`physics`); such a record is kept, and nothing is derived from it. `notes` are lines for the
    reader; `sensors` what clocks, power and temperature were before and after.
    """

    subject: BenchSubject
    environment: Environment
    conditions: Conditions
    figures: Mapping[str, Figure]
    digest: str = ""
    floor_seconds: float | None = None
    refused: str = ""
    notes: tuple[str, ...] = ()
    sensors: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` was called on. Raises KeyError, TypeError, ValueError for anything else.
        Entries of newer versions that are not known here are dropped by the caller's choice, not
        here: they are a TypeError."""
        document = files.parse_json(text)
        if not isinstance(document, dict):
            raise TypeError("it is not an object")
        kinds = {"subject": BenchSubject, "environment": Environment, "conditions": Conditions}
        parts: dict[str, Any] = {
            name: checked_object(kind, _object(document[name]), finite=True)
            for name, kind in kinds.items()
        }
        parts["figures"] = {
            name: checked_object(Figure, _object(figure), finite=True)
            for name, figure in _object(document["figures"]).items()
        }
        return checked_object(cls, {**document, **parts}, finite=True)


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.40} is not an object")
    return value


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One invocation that measured: `started` is UTC in ISO 8601, `label` what the user calls it
    (`main`, `pr-17`), `command` how it was called. `finished` is "" for one that was interrupted:
    what it had measured until then counts all the same."""

    id: str
    started: str
    label: str = ""
    command: str = ""
    commit: str = ""
    dirty: bool = False
    finished: str = ""


__all__ = [
    "BenchRecord",
    "BenchRun",
    "BenchSubject",
    "Conditions",
    "Environment",
    "Figure",
    "Origin",
    "Scalar",
]
