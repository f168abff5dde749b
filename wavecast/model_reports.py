"""Results of `wavecast.model` and `wavecast.serve`, which show and store themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from wavecast.errors import UsageError
from wavecast.files import write_text
from wavecast.report import systems as systems_report
from wavecast.report.shown import ShownResult, few
from wavecast.report.terminal_text import plain
from wavecast.systems.answer import ModelAnswer, ServingAnswer
from wavecast.systems.study import ModelStudy

if TYPE_CHECKING:
    from wavecast.pipeline.replacing import ReplacedModule
    from wavecast.report.chakra import RankedRun
    from wavecast.report.model_traces import TracedRun
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.training.answer import TrainingAnswer
    from wavecast.tune.model_search import ModelSearch


class ShownReport(ShownResult):
    """A result that also has a trace. Notebooks show a part of the page."""

    __slots__ = ()

    @abstractmethod
    def _runs(self) -> list[TracedRun]:
        """What runs in time."""

    def perfetto(self) -> str:
        """What runs in time as a trace for Perfetto."""
        from wavecast.report import model_traces

        return model_traces.dumps(self._runs())

    def _ranked(self) -> list[RankedRun]:
        """What ranks do, for Chakra. Raises UsageError for a report without kernels in time."""
        raise UsageError("a search has no Chakra trace", hint="predict one of its configurations")

    def chakra(self, folder: str | Path) -> list[Path]:
        """Write Chakra execution traces, a file per rank (`docs/model.md`).

        Raises UsageError for a search and for too many ranks, MissingTool without protobuf,
        InputError for a folder that cannot be written.
        """
        from wavecast.report import chakra

        return chakra.write(self._ranked(), Path(folder))

    def write(
        self,
        html: str | Path | None = None,
        perfetto: str | Path | None = None,
        chakra: str | Path | None = None,
    ) -> None:
        """Write the page, the trace, and traces of ranks into a folder. Raises InputError for files
        that cannot be written, and as `chakra`."""
        if chakra is not None:
            self.chakra(chakra)
        for path, text in ((html, self.html), (perfetto, self.perfetto)):
            if path is not None:
                write_text(Path(path), text())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelReport(ShownReport, ModelStudy):
    """A served model on one system or several: `answers`, one per system, and what else was asked
    for. The document is `wavecast.system/1`."""

    @property
    def servings(self) -> tuple[ServingAnswer, ...]:
        """The loads on the first system."""
        return self.answers[0].servings

    def to_dict(self) -> dict[str, Any]:
        return systems_report.document(self)

    def html(self) -> str:
        from wavecast.report import model_pages

        return model_pages.served(self.answers)

    def _runs(self) -> list[TracedRun]:
        from wavecast.report import model_traces

        return model_traces.served(self.answers)

    def _ranked(self) -> list[RankedRun]:
        from wavecast.report import chakra

        return chakra.served(self.answers)

    def _repr_html_(self) -> str:
        from wavecast.report import model_pages

        return model_pages.served_fragment(self.answers)

    def render(self, console: Console) -> None:
        systems_report.render(self, console)

    def subject(self) -> str:
        return _on_systems(self.answers)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServedReport(ModelReport):
    """One load on one system. Times are `Interval`s in seconds, rates in tokens per second."""

    @property
    def serving(self) -> ServingAnswer:
        """The load with its steps, kernels, and latencies of requests."""
        return self.servings[0]


@dataclass(frozen=True, slots=True, repr=False)
class TrainingReport(ShownReport):
    """A training on one system or several: `answers`, one per system. The document is
    `wavecast.training/1`."""

    answers: tuple[TrainingAnswer, ...]

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import training

        return training.training_document(self.answers)

    def html(self) -> str:
        from wavecast.report import model_pages

        return model_pages.trained(self.answers)

    def _runs(self) -> list[TracedRun]:
        from wavecast.report import model_traces

        return model_traces.trained(self.answers)

    def _ranked(self) -> list[RankedRun]:
        from wavecast.report import chakra

        return chakra.trained(self.answers)

    def _repr_html_(self) -> str:
        from wavecast.report import model_pages

        return model_pages.trained_fragment(self.answers)

    def render(self, console: Console) -> None:
        from wavecast.report import training

        training.render_training(self.answers, console)

    def subject(self) -> str:
        return _on_systems(self.answers)


@dataclass(frozen=True, slots=True, repr=False)
class ModuleReport(ShownReport):
    """A module on one GPU or several: `answers`, one per GPU. With the engine `wavecast`
    `replaced` has what the kernel library changes on each. The document is `wavecast.graph/1`."""

    answers: tuple[ModuleAnswer, ...]
    replaced: tuple[ReplacedModule, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import graphs

        return graphs.document(self.answers)

    def html(self) -> str:
        from wavecast.report import model_pages

        return model_pages.modules(self.answers)

    def _runs(self) -> list[TracedRun]:
        from wavecast.report import model_traces

        return model_traces.modules(self.answers)

    def _ranked(self) -> list[RankedRun]:
        from wavecast.report import chakra

        return chakra.modules(self.answers)

    def _repr_html_(self) -> str:
        from wavecast.report import model_pages

        return model_pages.modules_fragment(self.answers)

    def render(self, console: Console) -> None:
        from wavecast.report import graphs

        graphs.render(self.answers, console)

    def subject(self) -> str:
        devices = few([one.device.name for one in self.answers])
        return f"{self.answers[0].graph.name} on {devices}"

    def __str__(self) -> str:
        return plain(self.render, 140)


@dataclass(frozen=True, slots=True, repr=False)
class SearchReport(ShownReport):
    """A search of configurations under objectives (`search`): `ranked` and `frontier` of it. The
    document is `wavecast.system-search/1`; a search has no trace."""

    search: ModelSearch
    model: str
    slo: str

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import systems_search

        return systems_search.document(self.search, model=self.model, slo=self.slo)

    def _runs(self) -> list[TracedRun]:
        raise UsageError("a search has no trace", hint="predict one of its configurations")

    def render(self, console: Console) -> None:
        from wavecast.report import systems_search

        systems_search.render(self.search, console, slo=self.slo)

    def subject(self) -> str:
        return f"{len(self.search.ranked)} configurations of {self.model}"

    def __str__(self) -> str:
        return plain(self.render, 120)


def _on_systems(answers: Sequence[ModelAnswer | TrainingAnswer]) -> str:
    return f"{answers[0].architecture.name} on {few([one.system.name for one in answers])}"


__all__ = [
    "ModelReport",
    "ModuleReport",
    "SearchReport",
    "ServedReport",
    "ShownReport",
    "TrainingReport",
]
