"""`wavecast.model` and `wavecast.serve`: what `wavecast model` does, with results that show
themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from wavecast.arch.systems import System
from wavecast.arch.systems import system as find_system
from wavecast.errors import NothingAnalysed, UnknownName, UsageError
from wavecast.model_reports import (
    ModelReport,
    ModuleReport,
    SearchReport,
    ServedReport,
    TrainingReport,
)
from wavecast.systems import answer as answers
from wavecast.systems.answer import Deployment
from wavecast.systems.changes import parse
from wavecast.systems.economy import Economy
from wavecast.systems.experts import ExpertLoad, measured
from wavecast.systems.load_options import WorkloadOptions
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load
from wavecast.systems.study import ModelStudy, StudyQuestions, study

File = str | Path
Files = Sequence[File]
Names = str | Sequence[str]


def _names(text: Names) -> list[str]:
    return text.split(",") if isinstance(text, str) else list(text)


def _workload(options: dict[str, Any]) -> WorkloadOptions:
    known = WorkloadOptions.__dataclass_fields__
    for name in options:
        if name not in known:
            raise UnknownName("argument of a served model", name, known)
    return WorkloadOptions(**options)


def _deployed(
    systems: Names,
    arch_files: Files,
    system_files: Files,
    workload: WorkloadOptions,
    parallel: dict[str, Any],
    deployment: Deployment,
) -> list[tuple[System, Deployment]]:
    """A system and how the model is deployed on it, for each of `systems`."""
    found = []
    for selector in _names(systems):
        machine = find_system(selector, arch_files, system_files)
        divided = Parallelism.filling(workload.share(machine.gpus), **parallel)
        found.append((machine, workload.deployment(replace(deployment, parallel=divided))))
    return found


def named_model(
    name: str,
    system: Names = "8xMI300X",
    *,
    compare: Names = (),
    tp: int | None = None,
    pp: int = 1,
    dp: int = 1,
    ep: int = 1,
    dp_attention: bool = False,
    expert_load: File | None = None,
    expert_skew: float = 0.0,
    redundant_experts: int = 0,
    check_plan: bool = False,
    dtype: str = "",
    attention_dtype: str = "",
    kv_dtype: str = "",
    engine: str = "vllm",
    prompt: int = 1024,
    output: int = 1024,
    concurrency: int | Sequence[int] | None = None,
    rate: float | None = None,
    requests: int | None = None,
    what_if: str = "",
    findings: bool = False,
    search: str = "",
    slo: str = "",
    state: File | None = None,
    jobs: int = 1,
    ray: str = "",
    power: float | None = None,
    price: float | None = None,
    html: File | None = None,
    perfetto: File | None = None,
    chakra: File | None = None,
    arch_files: Files = (),
    system_files: Files = (),
    **workload: Any,
) -> ModelReport | SearchReport:
    """Predict how a model is served on machines, without a GPU.

    `name` is a `config.json` of Hugging Face, a folder with one, or a name of `wavecast model
    --list`; `system` names machines (`"8xMI300X,8xH200"` or a list), `compare` the same with
    ratios to the first; several systems are always compared. `tp`, `pp`, `dp` and `ep` are the GPUs
    that divide every layer (all that replicas and stages leave), the stages of the pipeline, the
    replicas, and the GPUs that divide the experts. `prompt` and `output` are tokens, `concurrency`
    requests at once (1, 16 and 64), `rate` requests per second instead. Formats are those of the
    checkpoint unless given. `what_if` names changes to predict as well: `"hbm*1.5; attention free;
    tp 4"`; `findings` looks for changes that make it faster. With `power` (watts) or `price` (per
    hour) of a GPU, the report has the cost of tokens. `html` and `perfetto` are files to write,
    `chakra` is a folder for a Chakra trace per rank. `workload` are the fields of
    `WorkloadOptions`: `speculate="mtp:3"`, `prefix=0.9`, `disaggregate="1p2d"` …

    With `search` (dimensions, `"tp,dtype,batch=16|64"`), configurations are predicted in `jobs`
    processes, or on the cluster `ray`, and ranked under the objectives `slo`
    (`"ttft<2s,tpot.p99<40ms"`); `state` is a file that a search continues from. The result is a
    `SearchReport`.

    A model that does not fit is an answer with `why_not` and without servings. Raises UnknownName
    for a name that is not known, UsageError for sizes that do not divide, arguments that exclude
    each other or a field of the configuration that is missing, MissingFact where the memory of a
    GPU is not known.
    """
    options = _workload(workload)
    if expert_load is not None and expert_skew:
        raise UsageError("expert_load and expert_skew exclude each other")
    if options.trace_file is not None and (rate is not None or concurrency is not None):
        raise UsageError("trace_file, rate and concurrency exclude each other")
    at_once = (concurrency,) if isinstance(concurrency, int) else tuple(concurrency or ())
    asked = answers.loads(prompt, output, concurrency=at_once, rate=rate, requests=requests)
    asked = options.loads(asked)
    load = measured(Path(expert_load)) if expert_load else ExpertLoad(exponent=expert_skew)
    deployments = _deployed(
        compare or system,
        arch_files,
        system_files,
        options,
        {
            "tensor": tp,
            "pipeline": pp,
            "data": dp,
            "expert": ep,
            "attention_data": dp_attention,
            "load": load,
            "redundant": redundant_experts,
        },
        Deployment(
            dtype=dtype,
            cache=kv_dtype,
            attention=attention_dtype,
            engine=engine,
            check_plan=check_plan,
        ),
    )
    if search:
        if any(file is not None for file in (perfetto, chakra)):
            raise UsageError("a search has no trace", hint="predict one of its configurations")
        loads = asked if at_once else asked[:1]
        found = _searched(name, deployments, loads, search, slo, state, jobs, ray)
        found.write(html)
        return found
    if slo or state is not None or ray:
        raise UsageError("slo, state and ray belong to search")
    questions = StudyQuestions(
        changes=parse(what_if) if what_if else (),
        compare=len(deployments) > 1 or bool(compare),
        findings=findings,
        economy=None if power is None and price is None else Economy(power, price),
    )
    found = study(name, deployments, asked, questions)
    report = ModelReport(**{f.name: getattr(found, f.name) for f in fields(ModelStudy)})
    report.write(html, perfetto, chakra)
    return report


def _searched(
    name: str,
    deployments: Sequence[tuple[System, Deployment]],
    loads: Sequence[Load],
    dimensions: str,
    slo: str,
    state: File | None,
    jobs: int,
    ray: str,
) -> SearchReport:
    from wavecast.tune import model_space
    from wavecast.tune.model_search import search

    if loads[0].rate:
        raise UsageError("a search has closed loops only: the rate is not searched")
    asked = model_space.dimensions(dimensions)
    every = [one for load in loads for one in model_space.configurations(deployments, asked, load)]
    objectives = model_space.objectives(slo)
    path = None if state is None else Path(state)
    found = search(name, every, objectives, state=path, jobs=jobs, ray=ray)
    return SearchReport(found, name, slo)


def serve(
    name: str,
    system: str = "8xMI300X",
    *,
    concurrency: int | None = None,
    rate: float | None = None,
    **options: Any,
) -> ServedReport:
    """Simulate one load of a served model: `concurrency` requests at once (16 where nothing is
    given), or `rate` requests per second at random times. Other arguments are those of `model`.

    Raises NothingAnalysed where the model does not fit, and as `model`.
    """
    several = concurrency is not None and not isinstance(concurrency, int)
    if several or options.get("search"):
        raise UsageError("serve simulates one load", hint="wavecast.model takes several")
    if rate is None and concurrency is None and "trace_file" not in options:
        concurrency = 16
    found = model(name, system, concurrency=concurrency, rate=rate, **options)
    assert isinstance(found, ModelReport)
    if found.answers[0].why_not:
        raise NothingAnalysed(found.answers[0].why_not)
    return ServedReport(**{f.name: getattr(found, f.name) for f in fields(ModelStudy)})


def trained(
    name: str,
    system: Names = "8xMI300X",
    *,
    batch: int,
    seq: int,
    tokens: float = 0.0,
    html: File | None = None,
    perfetto: File | None = None,
    chakra: File | None = None,
    arch_files: Files = (),
    system_files: Files = (),
    **options: Any,
) -> TrainingReport:
    """Predict a training step of a model: `batch` sequences of `seq` tokens. `options` are those of
    `wavecast model --train` without dashes (`TrainingOptions`): `fsdp=True`, `tp=2`, `pp=4`,
    `recompute="full"`, `lora=16` …; `tokens` are those of the whole training,
    `html` and `perfetto` files to write, `chakra` a folder for a Chakra trace per rank.

    A training that does not fit is an answer with `why_not`. Raises UnknownName, UsageError,
    MissingFact and Unpredictable as `systems.training.answer.train`.
    """
    from wavecast.systems.training.answer import train
    from wavecast.systems.training.options import TrainingOptions

    known = TrainingOptions.__dataclass_fields__
    for option in options:
        if option not in known:
            raise UnknownName("argument of a training", option, known)
    asked = TrainingOptions(batch=batch, sequence=seq, **options)
    machines = [find_system(one, arch_files, system_files) for one in _names(system)]
    found = (train(name, one, asked.setup(one.gpus), tokens=tokens) for one in machines)
    report = TrainingReport(tuple(found))
    report.write(html, perfetto, chakra)
    return report


def module(
    source: Any,
    inputs: Any = None,
    system: Names = "mi300x",
    *,
    engine: str = "eager",
    train: bool = False,
    optimizer: str = "",
    jobs: int = 1,
    html: File | None = None,
    perfetto: File | None = None,
    chakra: File | None = None,
    arch_files: Files = (),
) -> ModuleReport:
    """Predict how long a module of PyTorch takes on GPUs, without a GPU, weights or values.

    `source` is an `nn.Module` (of any device, also meta or fake) with its `inputs` (a tensor, a
    tuple, or a mapping by name), an `ExportedProgram`, or a text like `script.py:factory`,
    `program.pt2` or `kernels.yaml`. `system` names GPUs (`"mi300x,h200"` or a list), `engine` is
    `eager`, `torch.compile` (the kernels that Inductor generates for the GPU), `fusion-rule` (a
    rule for what it fuses), or `wavecast` (the forward calls that `wavecast.ops` answers, by its
    kernels, compiled for the GPU in `jobs` processes). With `train` the backward pass follows, and
    a step of `optimizer` (`sgd`, `momentum`, `adam`, `adamw`, `fused_adamw`).

    Raises UsageError for arguments that do not fit, UnknownName for names, InputError for files,
    CaptureError where the module does not run on tensors without values, MissingTool without
    PyTorch.
    """
    from wavecast.pipeline.module_answers import module_answers

    machines = [find_system(selector, arch_files) for selector in _names(system)]
    report = ModuleReport(
        *module_answers(
            source,
            inputs,
            machines,
            engine=engine,
            train=train,
            optimizer=optimizer,
            jobs=jobs,
        )
    )
    report.write(html, perfetto, chakra)
    return report


def model(*arguments: Any, **options: Any) -> Any:
    """`module` for a module, a program or a file of either. For the name of a model `trained` with
    `train=True`, else `named_model`, whose result is a `SearchReport` with `search`."""
    from wavecast.pipeline.sources import is_source

    named = not arguments or not is_source(arguments[0])
    if not named:
        return module(*arguments, **options)
    training = options.pop("train", False)
    return (trained if training else named_model)(*arguments, **options)


__all__ = ["model", "module", "named_model", "serve", "trained"]
