"""Results of a search on disk: one JSON line each, written and synced before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from wavecast import files
from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.errors import InputError
from wavecast.json_objects import checked_object
from wavecast.lab.comparing import ExecutionResult
from wavecast.lab.figures import CodeFigures
from wavecast.lab.setting import Setting


@dataclass(frozen=True, slots=True)
class LabProblem:
    """One launch on one device: what a search is about. `launch` is a digest of the code, the grid
    and the sizes of the arguments; `grid` in workgroups; `arguments` are the arguments that are not
    constants, as text; `configuration` as in `Launch`."""

    kernel: str
    target: str
    device: str
    compiler: str
    launch: str
    grid: tuple[int, int, int]
    arguments: str
    configuration: str = ""


def problem_of(launch: Launch, device: Device) -> LabProblem:
    """What names a launch on a device in a journal."""
    arguments = []
    for item in launch.arguments:
        if item.kind in ("tensor", "descriptor"):
            arguments.append(f"{_named(item.name)}{item.dtype}{list(item.shape)}")
        elif item.kind == "scalar":
            arguments.append(f"{_named(item.name)}{item.value}")
    text = ", ".join(arguments)
    name = digest.digest(launch.code.digest, launch.grid, text)
    return LabProblem(
        launch.code.kernel, launch.code.target, device.id, launch.code.compiler, name, launch.grid,
        text, launch.configuration,
    )  # fmt: skip


def _named(name: str) -> str:
    """Before the value of an argument; assembly has no names."""
    return f"{name}=" if name else ""


@dataclass(frozen=True, slots=True)
class LabResult:
    """What one setting gives. `figures` is None where `refused` says why there is no code.

    `stage` is `base`, `alone`, `together`, `without` (the best setting with one value less),
    `executed` (its time is from an executed sample) or `verified` (`execution` has what the
    comparison on the emulator showed).
    """

    setting: Setting
    stage: str
    figures: CodeFigures | None = None
    refused: str = ""
    execution: ExecutionResult | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    llir: str = ""
    """The changed LLVM IR of a setting that changes it."""
    words: tuple[str, ...] = ()
    """Options of the compiler of a HIP file."""
    assembly: str = ""
    """The new code of assembly or of a code object."""

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "setting": dict(self.setting.items),
            "stage": self.stage,
            "figures": self.figures.to_json() if self.figures else None,
            "refused": self.refused,
            "execution": asdict(self.execution) if self.execution else None,
            "options": dict(self.options),
            "llir": self.llir,
            "words": list(self.words),
            "assembly": self.assembly,
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> LabResult:
        """The result that `to_json` was called on. Raises KeyError, TypeError, ValueError."""
        figures, execution = document["figures"], document["execution"]
        setting = Setting.of(document["setting"])
        hash(setting)  # values that are lists or tables are none of a setting
        parts = {
            "setting": setting,
            "figures": CodeFigures.from_json(figures) if figures else None,
            "execution": ExecutionResult.from_json(execution) if execution else None,
        }
        return checked_object(LabResult, {**document, **parts})


class JournalResult(Protocol):
    """What a journal stores."""

    def to_json(self) -> Mapping[str, Any]: ...


Result = TypeVar("Result")


class LabJournal(files.AppendedLines):
    """A file of results, one per line."""

    def add(self, problem: LabProblem, result: JournalResult) -> None:
        """Append one result. Raises OSError when the disk is full."""
        self.append({"problem": asdict(problem), "result": result.to_json()})


def read(path: Path) -> Iterator[tuple[LabProblem, LabResult]]:
    """The results of a search in order. Raises InputError for a file that is not a journal."""
    return records(path, LabResult.from_json)


def records(
    path: Path, convert: Callable[[Mapping[str, Any]], Result]
) -> Iterator[tuple[LabProblem, Result]]:
    """The results of a journal in order, made from JSON by `convert`, which may raise ValueError,
    KeyError and TypeError. Raises InputError for a file that is not such a journal."""
    for number, line in enumerate(files.read_text(path).split("\n")[:-1], 1):
        try:
            document = files.parse_json(line)
            problem = document["problem"]
            yield checked_object(LabProblem, problem), convert(document["result"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}:{number}: not a journal of wavecast lab ({error})") from None


__all__ = ["LabJournal", "LabProblem", "LabResult", "problem_of", "read", "records"]
