"""Options of everything that is predicted on machines, and the files with what runs in time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wavecast.api.result import ShownResult
from wavecast.errors import UsageError
from wavecast.options import Options, option
from wavecast.options.values import (
    FILE,
    OUTPUT_FILE,
    OUTPUT_FOLDER,
    Integers,
    NameList,
    OneOf,
    Several,
)

if TYPE_CHECKING:
    from wavecast.arch.systems import System
    from wavecast.report.systems.chakra import RankedRun
    from wavecast.report.systems.traces import TracedRun


@dataclass(frozen=True, kw_only=True)
class MachineOptions(Options):
    """The machines that something is predicted on."""

    system: tuple[str, ...] = option(
        ("8xMI300X",),
        "Machines: 8xMI300X, 4x8xMI300X, dgx-h100 …",
        values=NameList(),
        metavar="SYSTEM[,SYSTEM]",
    )
    arch_files: tuple[Path, ...] = option(
        (),
        "TOML with facts of a GPU, over those of the package.",
        "--arch-file",
        values=Several(FILE),
    )
    system_files: tuple[Path, ...] = option(
        (), "TOML with your machines: GPUs, links, nodes.", "--system-file", values=Several(FILE)
    )

    def machines(self) -> list[System]:
        """The machines. Raises UnknownName for one that is not known, UsageError without any."""
        from wavecast.arch.systems import system

        if not self.system:
            raise UsageError("no system", hint="--system 8xMI300X")
        return [system(name, self.arch_files, self.system_files) for name in self.system]


@dataclass(frozen=True, kw_only=True)
class ParallelOptions(MachineOptions):
    """How a model is divided among the GPUs of a machine, and the format of its weights."""

    tp: int | None = option(
        None,
        "Tensor parallelism: GPUs that divide every layer.",
        values=Integers(1),
        default_text="all GPUs",
    )
    pp: int = option(1, "Stages of a pipeline.", values=Integers(1))
    dp: int = option(1, "Replicas of the model.", values=Integers(1))
    ep: int = option(
        1, "GPUs that divide the experts: those of --tp or of all replicas.", values=Integers(1)
    )
    dtype: str = option(
        "", "Format of the weights: bf16, fp8, int8, mxfp4, int4; default: that of the checkpoint."
    )


@dataclass(frozen=True, kw_only=True)
class PageFile(Options):
    """The page of a result."""

    html: Path | None = option(
        None, "Write a page with plots; it needs no network.", values=OUTPUT_FILE
    )


@dataclass(frozen=True, kw_only=True)
class ReportFiles(PageFile):
    """Files that are written next to a result."""

    perfetto: Path | None = option(
        None, "Write what runs in time to this file, for Perfetto.", values=OUTPUT_FILE
    )
    chakra: Path | None = option(
        None,
        "Write Chakra execution traces to this folder, a file per rank.",
        values=OUTPUT_FOLDER,
    )


@dataclass(frozen=True, kw_only=True)
class Detail(Options):
    """How a result is shown."""

    detail: str = option(
        "normal", "How much the text format shows.", values=OneOf(("brief", "normal", "full"))
    )


class TimedResult(ShownResult):
    """A result that also has what runs in time."""

    __slots__ = ()

    @abstractmethod
    def timed_runs(self) -> list[TracedRun]:
        """What runs in time."""

    @abstractmethod
    def runs_of_ranks(self) -> list[RankedRun]:
        """What ranks do, for Chakra."""

    def perfetto(self) -> str:
        """What runs in time as a trace for Perfetto."""
        from wavecast.report.systems import traces

        return traces.dumps(self.timed_runs())

    def chakra(self, folder: str | Path) -> list[Path]:
        """Write Chakra execution traces, a file per rank (`docs/model.md`).

        Raises UsageError for too many ranks, MissingTool without protobuf, InputError for a folder
        that cannot be written.
        """
        from wavecast.report.systems import chakra

        return chakra.write(self.runs_of_ranks(), Path(folder))

    def write(self, files: ReportFiles) -> None:
        """Write the page, the trace, and traces of ranks into a folder. Raises InputError for files
        that cannot be written, and as `chakra`."""
        from wavecast.files import write_text

        if files.chakra is not None:
            self.chakra(files.chakra)
        for path, text in ((files.html, self.html), (files.perfetto, self.perfetto)):
            if path is not None:
                write_text(path, text())


__all__ = ["Detail", "MachineOptions", "PageFile", "ParallelOptions", "ReportFiles", "TimedResult"]
