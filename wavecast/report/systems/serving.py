"""Models on systems as text and JSON: does it fit, what serving reaches, where a step goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.system import (
    EngineStepJson,
    MemoryJson,
    ModelJson,
    ServingJson,
    StepKernelJson,
    SystemDocument,
)
from wavecast.report.kit import kernel_tables, units
from wavecast.report.kit.terminal import safe
from wavecast.report.systems import changes, serving_words
from wavecast.report.systems import comparison as systems_comparison
from wavecast.report.systems import findings as systems_findings
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer, ServingAnswer
    from wavecast.systems.step import LayerKernel
    from wavecast.systems.study import ModelStudy

_KERNELS = 8
"""Kernels of a step that the text shows unless asked for all."""


def document(study: ModelStudy) -> dict[str, Any]:
    """The study as plain dicts, lists, strings and numbers."""
    return json_objects.values(
        SystemDocument(
            wavecast=__version__,
            models=[_model(answer) for answer in study.answers],
            what_if=[changes.entry(what_if) for what_if in study.what_ifs],
            comparison=[systems_comparison.entry(comparison) for comparison in study.compared],
            findings=[systems_findings.entry(findings) for findings in study.findings],
            costs=[
                [systems_comparison.cost(token_cost) for token_cost in costs]
                for costs in study.costs
            ],
        )
    )


def render(study: ModelStudy, console: Console, *, detail: str = "normal") -> None:
    """Print the answers; `brief` stops after the figures of serving, `full` shows every kernel."""
    for number, answer in enumerate(study.answers):
        _answer(answer, console, detail)
        if study.costs:
            systems_comparison.render_costs(answer, study.costs[number], console)
        console.print()
        if study.what_ifs:
            changes.render(study.what_ifs[number], console, detail=detail)
        if study.findings:
            systems_findings.render(study.findings[number], console)
    if study.compared:
        systems_comparison.render(study.compared, console, detail=detail)


def _answer(answer: ModelAnswer, console: Console, detail: str) -> None:
    _head(answer, console)
    if detail == "full":
        console.print(Text(serving_words.engine_profile(answer), style="dim"))
    if answer.why_not:
        console.print(Text(f"  does not fit: {safe(answer.why_not)}", style="red"))
    if detail != "brief" or answer.why_not:
        _memory(answer, console)
    if answer.servings:
        console.print()
        console.print(_servings(answer))
        basis = f"  80% intervals from {serving_words.bases(answer)}"
        console.print(Text(basis, style="dim"))
    if answer.servings and detail != "brief":
        servings = answer.servings if detail == "full" else answer.servings[-1:]
        for serving in servings:
            _step(serving, console, full=detail == "full")
    for note in answer.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))


def _head(answer: ModelAnswer, console: Console) -> None:
    title = f"{safe(answer.architecture.name)} on {safe(answer.system.name)}"
    console.print(Rule(Text(title, "bold cyan"), align="left"))
    console.print(Text(serving_words.deployment_text(answer), style="dim"))


def _memory(answer: ModelAnswer, console: Console) -> None:
    memory = answer.memory
    pool = {"left for the cache": max(0.0, memory.pool)}
    console.print()
    console.print(kernel_tables.memory("memory of one GPU", memory.parts, pool))
    if memory.fits and memory.token:
        tokens = int(memory.pool / memory.token)
        console.print(
            Text(f"  a token takes {units.size(memory.token)}: {tokens:,} tokens", style="dim")
        )


def _servings(answer: ModelAnswer) -> Table:
    load = answer.servings[0].load
    table = kernel_tables.columns(
        (f"  {load.prompt} in, {load.output} out", "right"),
        ("TTFT", "right"),
        ("TPOT", "right"),
        ("80% interval", "left"),
        ("tok/s", "right"),
        ("80% interval", "left"),
    )
    for serving in answer.servings:
        load, rate = serving.load, serving.output_rate
        table.add_row(
            serving_words.load(load),
            units.seconds(serving.ttft.value),
            Text(units.seconds(serving.tpot.value), style="bold"),
            serving_words.times(serving.tpot),
            Text(serving_words.rate(rate.value), style="bold"),
            serving_words.rates(rate),
        )
    return table


def _step(serving: ServingAnswer, console: Console, *, full: bool) -> None:
    step, load = serving.decode, serving.load
    console.print()
    console.print(
        Text.assemble(
            ("  decode step ", "bold"),
            f"of {serving.served.running:,} sequences, {load.prompt} in, {load.output} out: ",
            (units.seconds(step.seconds), "bold"),
        )
    )
    console.print(
        Text(
            f"  {step.kernels:,} kernels {units.seconds(step.device)}, "
            f"host {units.seconds(step.host)}",
            style="dim",
        )
    )
    rows = serving_words.rows(serving.kernels)
    most = None if full else _KERNELS
    kernel_tables.print_kernels(rows, step.device, console, most=most, operation=full)


# --- JSON -------------------------------------------------------------------------------------


def _model(answer: ModelAnswer) -> ModelJson:
    model, precision = answer.architecture, answer.precision
    return ModelJson(
        model=model.name,
        parameters=model.parameters,
        active_parameters=model.active_parameters,
        system=answer.system.name,
        device_id=answer.system.device.id,
        gpus=answer.parallel.gpus,
        parallelism=str(answer.parallel),
        engine=answer.engine.name,
        engine_version=answer.engine.version,
        weights={role: getattr(precision, role).weights for role in serving_words.ROLES},
        cache=precision.cache,
        memory=MemoryJson.of(answer.memory, parts=dict(answer.memory.parts)),
        servings=[_serving(serving) for serving in answer.servings],
        why_not=answer.why_not,
        notes=list(answer.notes),
    )


def _serving(serving: ServingAnswer) -> ServingJson:
    load, served = serving.load, serving.served
    return ServingJson(
        prompt=load.prompt,
        output=load.output,
        concurrency=load.concurrency,
        rate=load.rate,
        requests=served.requests,
        ttft=serving.ttft,
        tpot=serving.tpot,
        output_rate=serving.output_rate,
        ttft_of_requests=served.ttft,
        tpot_of_requests=served.tpot,
        itl_of_tokens=served.itl,
        end_to_end=served.end_to_end,
        running=served.running,
        prefill_share=served.prefill_share,
        preemptions=served.preemptions,
        decode=EngineStepJson.of(serving.decode, modules=dict(serving.decode.modules)),
        prefill=EngineStepJson.of(serving.prefill, modules=dict(serving.prefill.modules)),
        kernels=[_kernel(kernel) for kernel in serving.kernels],
    )


def _kernel(kernel: LayerKernel) -> StepKernelJson:
    priced = kernel.priced
    return StepKernelJson.of(
        priced,
        name=priced.node.name,
        module=priced.node.module,
        operation=str(priced.node.op),
        count=kernel.count,
    )


__all__ = ["document", "render"]
