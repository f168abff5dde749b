"""`wavecast.model` and `wavecast.serve`: what `wavecast model` does, with results that show
themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from wavecast.arch.systems import system as find_system
from wavecast.errors import NothingAnalysed
from wavecast.report import systems as report
from wavecast.systems import answer as answers
from wavecast.systems.answer import Deployment, ServingAnswer
from wavecast.systems.changes import parse
from wavecast.systems.economy import Economy
from wavecast.systems.parallel import Parallelism
from wavecast.systems.study import ModelStudy, StudyQuestions, study

if TYPE_CHECKING:
    from wavecast.systems.sources.answer import ModuleAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport(ModelStudy):
    """A model on one system or several: `answers`, one per system, and what else was asked for.
    Notebooks show it."""

    @property
    def servings(self) -> tuple[ServingAnswer, ...]:
        """The loads on the first system."""
        return self.answers[0].servings

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values, schema `wavecast.system/1`."""
        return report.document(self)

    def json(self) -> str:
        """`to_dict` as JSON text."""
        return report.dumps(self)

    def _repr_html_(self) -> str:
        from wavecast.report import model_pages

        return model_pages.served_fragment(self.answers)

    def __str__(self) -> str:
        """What `wavecast model` prints, without colours."""
        from io import StringIO

        from rich.console import Console

        out = StringIO()
        report.render(self, Console(file=out, width=100))
        return out.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedReport(ModelReport):
    """One load on one system. Times are `Interval`s in seconds, rates in tokens per second."""

    @property
    def serving(self) -> ServingAnswer:
        """The load with its steps, kernels, and latencies of requests."""
        return self.servings[0]


def model(
    name: str,
    system: str | Sequence[str] = "8xMI300X",
    *,
    tp: int | None = None,
    dp: int = 1,
    ep: int = 1,
    dp_attention: bool = False,
    dtype: str = "",
    attention_dtype: str = "",
    kv_dtype: str = "",
    engine: str = "vllm",
    prompt: int = 1024,
    output: int = 1024,
    concurrency: int | Sequence[int] = (1, 16, 64),
    requests: int | None = None,
    what_if: str = "",
    findings: bool = False,
    power: float | None = None,
    price: float | None = None,
    arch_files: Sequence[str | Path] = (),
    system_files: Sequence[str | Path] = (),
) -> ModelReport:
    """Predict how a model is served on machines, without a GPU.

    `name` is a `config.json` of Hugging Face, a folder with one, or a name of `wavecast model
    --list`; `system` names machines (`"8xMI300X,8xH200"` or a list). `tp`, `dp` and `ep` are the
    GPUs that divide every layer (all that the replicas leave), the replicas, and the GPUs that
    divide the experts. `prompt` and `output` are tokens, `concurrency` requests at once. Formats
    are those of the checkpoint unless given. `what_if` names changes to predict as well:
    `"hbm*1.5; attention free; tp 4"`; `findings` looks for changes that make it faster. With
    `power` (watts) or `price` (per hour) of a GPU, the report has the cost of tokens. Several
    systems are compared with the first.

    A model that does not fit is an answer with `why_not` and without servings. Raises UnknownName
    for a name that is not known, UsageError for sizes that do not divide or a field of the
    configuration that is missing, MissingFact where the memory of a GPU is not known.
    """
    at_once = (concurrency,) if isinstance(concurrency, int) else tuple(concurrency)
    asked = answers.loads(prompt, output, concurrency=at_once, requests=requests)
    deployments = []
    for selector in system.split(",") if isinstance(system, str) else system:
        machine = find_system(selector, arch_files, system_files)
        parallel = Parallelism.filling(
            machine.gpus, tensor=tp, data=dp, expert=ep, attention_data=dp_attention
        )
        deployment = Deployment(
            dtype=dtype, cache=kv_dtype, attention=attention_dtype, parallel=parallel, engine=engine
        )
        deployments.append((machine, deployment))
    questions = StudyQuestions(
        changes=parse(what_if) if what_if else (),
        compare=len(deployments) > 1,
        findings=findings,
        economy=None if power is None and price is None else Economy(power, price),
    )
    found = study(name, deployments, asked, questions)
    return ModelReport(**{f.name: getattr(found, f.name) for f in fields(ModelStudy)})


def serve(
    name: str,
    system: str = "8xMI300X",
    *,
    concurrency: int | None = None,
    rate: float | None = None,
    prompt: int = 1024,
    output: int = 1024,
    requests: int | None = None,
    tp: int | None = None,
    dp: int = 1,
    ep: int = 1,
    dp_attention: bool = False,
    dtype: str = "",
    attention_dtype: str = "",
    kv_dtype: str = "",
    engine: str = "vllm",
    arch_files: Sequence[str | Path] = (),
) -> ServedReport:
    """Simulate one load of a served model: `concurrency` requests at once (16 where nothing is
    given), or `rate` requests per second at random times. Other arguments are those of `model`.

    Raises NothingAnalysed where the model does not fit, and as `model`.
    """
    at_once = () if concurrency is None else (concurrency,)
    if rate is None and concurrency is None:
        at_once = (16,)
    (load,) = answers.loads(prompt, output, concurrency=at_once, rate=rate, requests=requests)
    machine = find_system(system, arch_files)
    parallel = Parallelism.filling(
        machine.gpus, tensor=tp, data=dp, expert=ep, attention_data=dp_attention
    )
    deployment = Deployment(
        dtype=dtype, cache=kv_dtype, attention=attention_dtype, parallel=parallel, engine=engine
    )
    found = answers.answer(name, machine, deployment, (load,))
    if found.why_not:
        raise NothingAnalysed(found.why_not)
    return ServedReport(answers=(found,))


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """A module on one GPU or several: `answers`, one per GPU. Notebooks show it."""

    answers: tuple[ModuleAnswer, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values, schema `wavecast.graph/1`."""
        from wavecast.report import graphs

        return graphs.document(self.answers)

    def json(self) -> str:
        """`to_dict` as JSON text."""
        from wavecast.report import graphs

        return graphs.dumps(self.answers)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        """What `wavecast model` prints, without colours."""
        from io import StringIO

        from rich.console import Console

        from wavecast.report import graphs

        out = StringIO()
        graphs.render(self.answers, Console(file=out, width=140))
        return out.getvalue()


def module(
    source: Any,
    inputs: Any = None,
    system: str | Sequence[str] = "mi300x",
    *,
    engine: str = "eager",
    train: bool = False,
    optimizer: str = "",
    arch_files: Sequence[str | Path] = (),
) -> ModuleReport:
    """Predict how long a module of PyTorch takes on GPUs, without a GPU, weights or values.

    `source` is an `nn.Module` (of any device, also meta or fake) with its `inputs` (a tensor, a
    tuple, or a mapping by name), an `ExportedProgram`, or a text like `script.py:factory`,
    `program.pt2` or `kernels.yaml`. `system` names GPUs (`"mi300x,h200"` or a list), `engine` is
    `eager`, `torch.compile` or `wavecast` (the forward calls that `wavecast.ops` answers, by its
    kernels, compiled for the GPU). With `train` the backward pass follows, and a step of
    `optimizer` (`sgd`, `momentum`, `adam`, `adamw`, `fused_adamw`).

    Raises UsageError for arguments that do not fit, UnknownName for names, InputError for files,
    CaptureError where the module does not run on tensors without values, MissingTool without
    PyTorch.
    """
    from wavecast.pipeline.replacing import ENGINE, replaced
    from wavecast.pipeline.sources import graph
    from wavecast.systems.sources.answer import answer
    from wavecast.systems.sources.framework import framework

    selectors = system.split(",") if isinstance(system, str) else system
    machines = [find_system(selector, arch_files) for selector in selectors]
    library = framework(engine).name == ENGINE
    found = graph(source, inputs, train=train, optimizer=optimizer)
    if library:
        return ModuleReport(tuple(replaced(found, machine).after for machine in machines))
    return ModuleReport(tuple(answer(found, machine, engine) for machine in machines))


@overload
def any_model(
    name: str, system: str | Sequence[str] = "8xMI300X", **options: Any
) -> ModelReport: ...
@overload
def any_model(
    source: Any, inputs: Any = None, system: str | Sequence[str] = "mi300x", **options: Any
) -> ModuleReport: ...
def any_model(*arguments: Any, **options: Any) -> ModelReport | ModuleReport:
    """`module` for a module, a program or a file of either; `model` for the name of a model."""
    from wavecast.pipeline.sources import is_source

    named = not arguments or not is_source(arguments[0])
    predict: Any = model if named else module
    return predict(*arguments, **options)


__all__ = ["ModelReport", "ModuleReport", "ServedReport", "any_model", "model", "module", "serve"]
