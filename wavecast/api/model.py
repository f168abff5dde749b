"""`wavecast.model` and `wavecast.serve`: a whole model on machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wavecast.api.chakra import ChakraOptions, replay_traces
from wavecast.api.collectives import CollectivesOptions, collectives
from wavecast.api.machines import ReportFiles, TimedResult
from wavecast.api.module import ModuleOptions, module
from wavecast.api.result import few
from wavecast.api.search import SearchOptions, search
from wavecast.api.train import TrainOptions, train
from wavecast.api.workload import DeploymentOptions
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import Numbers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.report.systems.chakra import RankedRun
    from wavecast.report.systems.traces import TracedRun
    from wavecast.systems.answer import ModelAnswer, ServingAnswer
    from wavecast.systems.comparison import ComparedSystem
    from wavecast.systems.economy import TokenCost
    from wavecast.systems.findings import ModelFindings
    from wavecast.systems.study import ModelStudy
    from wavecast.systems.whatif import ModelWhatIf


@dataclass(frozen=True, kw_only=True)
class ServingOptions(ReportFiles, DeploymentOptions):
    """Options of a served model."""

    what_if: str = option(
        "", 'Predict changes: "hbm*1.5; attention free; tp 4; host 0".', metavar="CHANGE[;CHANGE]"
    )
    findings: bool = option(False, "Look for changes that make it faster, and modules to optimise.")
    power: float | None = option(
        None,
        "Power of a GPU, for the energy of tokens.",
        metavar="WATTS",
        values=Numbers(0, 1e6, above=True),
    )
    price: float | None = option(
        None,
        "Price of a GPU per hour, for the cost of tokens.",
        values=Numbers(0, 1e6, above=True),
    )


MODES: Final[dict[str, type[Options]]] = {
    "collectives": CollectivesOptions,
    "from_chakra": ChakraOptions,
    "train": TrainOptions,
    "search": SearchOptions,
}
"""The option that changes what is predicted of a model -> the options that go with it."""


@dataclass(frozen=True, slots=True, repr=False)
class ModelReport(TimedResult):
    """A served model on one system or several, and what else was asked for (`ModelStudy`). The
    document is `wavecast.system/1`."""

    study: ModelStudy

    @property
    def answers(self) -> tuple[ModelAnswer, ...]:
        """What is predicted for each system."""
        return self.study.answers

    @property
    def servings(self) -> tuple[ServingAnswer, ...]:
        """The loads on the first system."""
        return self.answers[0].servings

    @property
    def what_ifs(self) -> tuple[ModelWhatIf, ...]:
        """The changes of `what_if` on each system."""
        return self.study.what_ifs

    @property
    def compared(self) -> tuple[ComparedSystem, ...]:
        """Several systems in comparison with the first."""
        return self.study.compared

    @property
    def findings(self) -> tuple[ModelFindings, ...]:
        """What makes the model faster on each system."""
        return self.study.findings

    @property
    def costs(self) -> tuple[tuple[TokenCost, ...], ...]:
        """The cost of tokens on each system, one per load."""
        return self.study.costs

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import serving as systems

        systems.render(self.study, console, detail=detail)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import serving as systems

        return systems.document(self.study)

    def html(self) -> str:
        from wavecast.report.systems import model_pages

        return model_pages.serving_page(self.answers)

    def timed_runs(self) -> list[TracedRun]:
        from wavecast.report.systems import traces

        return traces.serving_runs(self.answers)

    def runs_of_ranks(self) -> list[RankedRun]:
        from wavecast.report.systems import chakra

        return chakra.serving_runs(self.answers)

    def _repr_html_(self) -> str:
        from wavecast.report.systems import model_pages

        return model_pages.served_fragment(self.answers)

    def why_nothing(self) -> str:
        fits = any(answer.servings for answer in self.answers)
        return "" if fits else "the model fits none of the systems"

    def subject(self) -> str:
        systems = few([answer.system.name for answer in self.answers])
        return f"{self.answers[0].architecture.name} on {systems}"


class ServedReport(ModelReport):
    """One load on one system. Times are `Interval`s in seconds, rates in tokens per second."""

    __slots__ = ()

    @property
    def serving(self) -> ServingAnswer:
        """The load with its steps, kernels, and latencies of requests."""
        return self.servings[0]


def model(source: Any = None, *arguments: Any, progress: Progress = silent, **options: Any) -> Any:
    """Predict a whole model on machines, without a GPU: a `ModelReport`.

    `source` is a `config.json` of Hugging Face, a folder with one, or a name of `wavecast model
    --list`; `system` names machines (`"8xMI300X,8xH200"` or a list) and may follow it. The other
    `options` are those of the command line, by the names of `ServingOptions`. With `search` they
    are `SearchOptions` (the result is a `SearchReport`), with `train=True` `TrainOptions`
    (`TrainingReport`); with `collectives` there is no source (`CollectivesOptions`,
    `CollectivesReport`), nor with `from_chakra` (`ChakraOptions`, `ReplayReport`). OptionValues are
    those of the options, or their text.

    `source` can also be a module of PyTorch, an exported program, or a text like
    `script.py:factory` (`module`, `ModuleOptions`, `ModuleReport`); its `inputs` and `system` may
    follow it.

    A model that does not fit is an answer with `why_not` and without servings. Raises UnknownName
    for a name that is not known, UsageError for sizes that do not divide, options that exclude each
    other or a field of the configuration that is missing, MissingFact where the memory of a GPU is
    not known.
    """
    if _is_module(source):
        inputs = options.pop("inputs", arguments[0] if arguments else None)
        options = dict(_on_system(arguments[1:], options))
        return module(source, inputs, ModuleOptions.of(options), progress)
    selected = ServingOptions.among(MODES, _on_system(arguments, options))
    if isinstance(selected, CollectivesOptions):
        if source is not None:
            raise UsageError(f"collectives are simulated without a model: {source}")
        return collectives(selected, progress)
    if isinstance(selected, ChakraOptions):
        if source is not None:
            raise UsageError(f"execution traces are simulated without a model: {source}")
        return replay_traces(selected, progress)
    if source is None:
        raise UsageError("no MODEL", hint="wavecast model --list names the known ones")
    if isinstance(selected, TrainOptions):
        return train(source, selected, progress)
    if isinstance(selected, SearchOptions):
        return search(source, selected, progress)
    assert isinstance(selected, ServingOptions)
    return ModelReport(_study(source, selected))


def _on_system(arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The options, and the system where it follows the model. Raises UsageError."""
    if len(arguments) > 1 or (arguments and "system" in options):
        raise UsageError(f"a model by name takes no argument {arguments[-1]!r}")
    return {**options, "system": arguments[0]} if arguments else options


def _is_module(source: Any) -> bool:
    if source is None:
        return False
    from wavecast.pipeline.models.sources import is_source

    return is_source(source)


def _study(name: str, options: ServingOptions) -> ModelStudy:
    from wavecast.systems import huggingface
    from wavecast.systems.changes import parse
    from wavecast.systems.economy import Economy
    from wavecast.systems.study import StudyQuestions, study

    config = huggingface.load(name)
    deployments = options.deployments()
    costs = options.power is not None or options.price is not None
    questions = StudyQuestions(
        changes=parse(options.what_if) if options.what_if else (),
        compare=len(deployments) > 1 or bool(options.compare),
        findings=options.findings,
        economy=Economy(options.power, options.price) if costs else None,
    )
    result = study(config, deployments, options.loads(), questions)
    ModelReport(result).write(options)
    return result


def serve(name: str, *arguments: Any, **options: Any) -> ServedReport:
    """Simulate one load of a served model: `concurrency` requests at once (16 where nothing is
    stated), or `rate` requests per second at random times. Other arguments are those of `model`.

    Raises NothingAnalysed where the model does not fit, and as `model`.
    """
    options = _on_system(arguments, options)
    if not any(options.get(name) is not None for name in ("concurrency", "rate", "trace_file")):
        options["concurrency"] = 16
    served = ServingOptions.of(options)
    if len(served.concurrency or ()) > 1:
        raise UsageError("serve simulates one load", hint="wavecast.model takes several")
    report = ServedReport(_study(name, served))
    if report.answers[0].why_not:
        raise NothingAnalysed(report.answers[0].why_not)
    return report


__all__ = ["MODES", "ModelReport", "ServedReport", "ServingOptions", "model", "serve"]
