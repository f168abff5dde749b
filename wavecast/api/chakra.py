"""`wavecast model --from-chakra`: execution traces of ranks as runs on machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.machines import MachineOptions
from wavecast.api.result import ShownResult, few
from wavecast.options import Progress, option, silent
from wavecast.options.values import FILE, Files, OneOf

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.systems.chakra.replay import ReplayAnswer


@dataclass(frozen=True, kw_only=True)
class ChakraOptions(MachineOptions):
    """Options of execution traces that are simulated instead of a model."""

    from_chakra: Path | None = option(
        None,
        "Simulate Chakra execution traces instead of a model: a folder, FOLDER/NAME or a file.",
        values=Files(),
    )
    comm_groups: Path | None = option(
        None,
        "--from-chakra: JSON with the ranks of groups.",
        values=FILE,
        default_text="comm_groups.json or NAME.json next to the traces",
    )
    dependencies: str = option(
        "all",
        "--from-chakra: all dependencies, or those of data: converters of PyTorch's traces state "
        "the caller as control dependency.",
        values=OneOf(("all", "data")),
    )
    collective_times: str = option(
        "library",
        "--from-chakra: collectives by the formula of their library, by the fastest simulated "
        "schedule, or as recorded.",
        values=OneOf(("library", "schedules", "recorded")),
    )
    compute_times: str = option(
        "recorded",
        "--from-chakra: recorded durations, or predictions where num_ops or tensor_size is stated.",
        values=OneOf(("recorded", "predicted")),
    )
    num_ops_dtype: str = option("bf16", "--from-chakra: dtype of num_ops.", metavar="DTYPE")


@dataclass(frozen=True, slots=True, repr=False)
class ReplayReport(ShownResult):
    """Execution traces on machines: `answers`. The document is `wavecast.chakra/1`."""

    WIDTH = 110

    answers: Sequence[ReplayAnswer]

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import replay

        replay.render(self.answers, console, full=detail == "full")

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import replay

        return replay.document(self.answers)

    def subject(self) -> str:
        machines = dict.fromkeys(str(answer.system) for answer in self.answers)
        return f"{few([answer.name for answer in self.answers])} on {few([*machines])}"


def replay_traces(options: ChakraOptions, progress: Progress = silent) -> ReplayReport:
    """Simulate execution traces on machines. Raises UnknownName for a machine or a dtype,
    InputError for files that are damaged or contradict each other, UsageError for ranks without a
    GPU, MissingTool without protobuf."""
    from wavecast.dtypes import lookup
    from wavecast.systems.chakra import read
    from wavecast.systems.chakra.replay import replay

    assert options.from_chakra is not None
    machines, dtype = options.machines(), lookup(options.num_ops_dtype).short
    answers = []
    control = options.dependencies == "all"
    for trace in read.read(options.from_chakra, options.comm_groups, control=control):
        for machine in machines:
            progress(f"{trace.name} on {machine}")
            answers.append(
                replay(
                    trace,
                    machine,
                    method=options.collective_times,
                    times=options.compute_times,
                    dtype=dtype,
                )
            )
    return ReplayReport(answers)


__all__ = ["ChakraOptions", "ReplayReport", "replay_traces"]
