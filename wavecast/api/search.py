"""`wavecast model --search`: the best configurations of a served model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.machines import PageFile
from wavecast.api.result import ShownResult
from wavecast.api.workload import DeploymentOptions
from wavecast.errors import UsageError
from wavecast.options import Progress, option, silent
from wavecast.options.values import OUTPUT_FILE, PROCESSES

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.tuning.model_search import ModelSearch, SearchedModel


@dataclass(frozen=True, kw_only=True)
class SearchOptions(PageFile, DeploymentOptions):
    """Options of a search of configurations."""

    search: str = option(
        "",
        "Search tp, pp, dp, ep, dtype, kv-dtype, engine, dp-attention and batch.",
        metavar="NAME[=V|V][,NAME]",
    )
    slo: str = option("", 'Objectives of --search: "ttft<2s,tpot.p99<40ms".')
    state: Path | None = option(
        None, "File of results of --search, which continues from there.", values=OUTPUT_FILE
    )
    jobs: int | None = option(
        None,
        "Processes of --search.",
        "-j",
        "--jobs",
        values=PROCESSES,
        default_text="one per processor",
    )
    ray: str = option("", "Search on a Ray cluster: HOST:PORT, auto, or local.", metavar="ADDRESS")


@dataclass(frozen=True, slots=True, repr=False)
class SearchReport(ShownResult):
    """A search of configurations under the objectives `slo`. The document is
    `wavecast.system-search/1`."""

    WIDTH = 120

    search: ModelSearch
    model: str
    slo: str

    @property
    def ranked(self) -> tuple[SearchedModel, ...]:
        """Configurations that meet the objectives, by throughput per GPU."""
        return self.search.ranked

    @property
    def frontier(self) -> tuple[SearchedModel, ...]:
        """The frontier of throughput per GPU and speed per user among all that run."""
        return self.search.frontier

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import search as systems_search

        top = {"brief": 3, "normal": 10, "full": len(self.ranked)}[detail]
        systems_search.render(self.search, console, slo=self.slo, top=top)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import search as systems_search

        return systems_search.document(self.search, model=self.model, slo=self.slo)

    def why_nothing(self) -> str:
        return "" if self.frontier else "no configuration can run"

    def subject(self) -> str:
        return f"{len(self.ranked)} configurations of {self.model}"


def search(name: str, options: SearchOptions, progress: Progress = silent) -> SearchReport:
    """Predict every configuration of the model `name` in `jobs` processes or on the cluster `ray`,
    and rank them under the objectives. `state` is a file that a search continues from.

    Raises UsageError for dimensions, objectives and loads that are none, and as `model`.
    """
    from wavecast.files import write_text
    from wavecast.limits import available_processors
    from wavecast.systems import huggingface
    from wavecast.tuning import model_space
    from wavecast.tuning.model_search import search as search_configurations

    loads = options.loads()
    if loads[0].rate:
        raise UsageError("--search has closed loops only: --rate is not searched")
    dimensions, objectives = (
        model_space.dimensions(options.search),
        model_space.objectives(options.slo),
    )
    deployments = options.deployments()
    configurations = [
        configuration
        for load in (loads if options.concurrency else loads[:1])
        for configuration in model_space.configurations(deployments, dimensions, load)
    ]
    ranked = search_configurations(
        *(huggingface.load(name), configurations, objectives),
        state=options.state,
        jobs=options.jobs or available_processors(),
        ray=options.ray,
        progress=progress,
    )
    report = SearchReport(ranked, name, options.slo)
    if options.html is not None:
        write_text(options.html, report.html())
    return report


__all__ = ["SearchOptions", "SearchReport", "search"]
