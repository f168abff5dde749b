"""Results of `wavecast.model` and `wavecast.serve`, which show and store themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.documents import base
from wavecast.errors import UsageError
from wavecast.files import write_text
from wavecast.report import systems as systems_report
from wavecast.report.terminal_text import plain
from wavecast.systems.answer import ServingAnswer
from wavecast.systems.study import ModelStudy

if TYPE_CHECKING:
    from wavecast.pipeline.replacing import ReplacedModule
    from wavecast.report.chakra import RankedRun
    from wavecast.report.model_traces import TracedRun
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.training.answer import TrainingAnswer
    from wavecast.tune.model_search import ModelSearch


class ShownReport(ABC):
    """A result as text, JSON, a page and a trace. Notebooks show a part of the page."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""

    @abstractmethod
    def html(self) -> str:
        """The report as one page that needs no network."""

    @abstractmethod
    def _runs(self) -> list[TracedRun]:
        """What runs in time."""

    @abstractmethod
    def _repr_html_(self) -> str: ...

    @abstractmethod
    def __str__(self) -> str:
        """What `wavecast model` prints, without colours."""

    def json(self) -> str:
        """`to_dict` as JSON text."""
        return base.dumps(self.to_dict(), indent=2)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport(ModelStudy, ShownReport):
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

    def __str__(self) -> str:
        return plain(lambda console: systems_report.render(self, console))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedReport(ModelReport):
    """One load on one system. Times are `Interval`s in seconds, rates in tokens per second."""

    @property
    def serving(self) -> ServingAnswer:
        """The load with its steps, kernels, and latencies of requests."""
        return self.servings[0]


@dataclass(frozen=True, slots=True)
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

    def __str__(self) -> str:
        from wavecast.report import training

        return plain(lambda console: training.render_training(self.answers, console))


@dataclass(frozen=True, slots=True)
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

    def __str__(self) -> str:
        from wavecast.report import graphs

        return plain(lambda console: graphs.render(self.answers, console), 140)


@dataclass(frozen=True, slots=True)
class SearchReport(ShownReport):
    """A search of configurations under objectives (`search`): `ranked` and `frontier` of it. The
    document is `wavecast.system-search/1`; a search has no page of one system and no trace."""

    search: ModelSearch
    model: str
    slo: str

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import systems_search

        return systems_search.document(self.search, model=self.model, slo=self.slo)

    def html(self) -> str:
        """Raises UsageError."""
        raise UsageError("a search has no page", hint="predict one of its configurations")

    def _runs(self) -> list[TracedRun]:
        raise UsageError("a search has no trace", hint="predict one of its configurations")

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        from wavecast.report import systems_search

        return plain(lambda c: systems_search.render(self.search, c, slo=self.slo), 120)


__all__ = [
    "ModelReport",
    "ModuleReport",
    "SearchReport",
    "ServedReport",
    "ShownReport",
    "TrainingReport",
]
