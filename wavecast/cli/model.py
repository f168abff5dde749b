"""`wavecast model`: a whole model on a machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli import streams
from wavecast.cli import workload as workloads
from wavecast.cli.collectives import NAMES as COLLECTIVE_OPTIONS
from wavecast.cli.collectives import check_collectives, collective_options, run_collectives
from wavecast.cli.model_search import run_search
from wavecast.cli.module import ModelCommand
from wavecast.cli.opening import opening
from wavecast.cli.outputs import file_options, taken
from wavecast.cli.training import check_options, run_training, training_options
from wavecast.cli.types import PROCESSES, Counts, NumberRange, count, not_an_option
from wavecast.errors import NothingAnalysed, UsageError

if TYPE_CHECKING:
    from wavecast.systems.load_options import WorkloadOptions


@click.command(
    "model",
    cls=ModelCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast model Llama-3.3-70B --system 8xMI300X --tp 8 --dtype fp8 --concurrency 4..256

    wavecast model ./config.json --system 8xMI355X,8xH200 --tp 8 --in 8192 --out 1024

    wavecast model gpt-oss-120b --system 8xMI355X --what-if "hbm*1.5; attention free; tp 4"

    wavecast model Llama-3.1-8B --system 8xMI300X --train --batch 64 --seq 8192 --fsdp

    wavecast model DeepSeek-R1 --compare 8xMI300X,8xMI355X,8xH200 --price 2.5

    wavecast model --collectives all_reduce:64M --system 128x8xMI300X --oversubscription 2

    wavecast model script.py:factory --system mi300x,h200   (see wavecast model x.py:f --help)

    wavecast model --list
    """,
)
@click.argument("name", metavar="MODEL", required=False)
@click.option("--list", "list_", is_flag=True, help="List the models that are known by name.")
@click.option("--system", "systems", metavar="SYSTEM[,SYSTEM]", default="8xMI300X",
              show_default=True, help="Machines: 8xMI300X, 4x8xMI300X, dgx-h100 …")  # fmt: skip
@click.option("--arch-file", "arch_files", multiple=True, type=click.Path(path_type=Path),
              help="TOML with facts of a GPU, over those of the package.")  # fmt: skip
@click.option("--system-file", "system_files", multiple=True, type=click.Path(path_type=Path),
              help="TOML with your machines: GPUs, links, nodes.")  # fmt: skip
@click.option("--tp", type=count(1), default=None, show_default="all GPUs",
              help="Tensor parallelism: GPUs that divide every layer.")  # fmt: skip
@click.option("--dp", type=count(1), default=1, show_default=True, help="Replicas of the model.")
@click.option("--ep", type=count(1), default=1, show_default=True,
              help="GPUs that divide the experts: those of --tp or of all replicas.")  # fmt: skip
@click.option("--expert-load", type=click.Path(path_type=Path), default=None,
              help="JSON with the tokens of each expert, for unequal GPUs of --ep.")  # fmt: skip
@click.option("--expert-skew", type=NumberRange(0, 10), default=0.0, show_default=True,
              help="The same by a power law: its exponent; 0 is equal loads.")  # fmt: skip
@click.option("--redundant-experts", type=count(0), default=0, show_default=True,
              help="Copies of popular experts on the GPUs of --ep.")  # fmt: skip
@click.option("--dp-attention", is_flag=True,
              help="Replicate attention on the GPUs of --tp; each has its sequences.")  # fmt: skip
@click.option("--check-plan", is_flag=True,
              help="Note modules that the plan of transformers does not divide.")  # fmt: skip
@click.option("--dtype", default="", help="Format of the weights: bf16, fp8, int8, mxfp4, int4; "
              "default: that of the checkpoint.")  # fmt: skip
@click.option("--attention-dtype", default="", help="Format of the projections of attention, "
              "where it differs.")  # fmt: skip
@click.option("--kv-dtype", default="", help="Dtype of keys and values; default: the engine's.")
@click.option(
    "--engine", default="vllm", show_default=True, help="vllm, sglang, atom, atom-vllm or trtllm."
)
@click.option("--in", "prompt", type=count(1, 1 << 24), default=1024, show_default=True,
              help="Tokens of a prompt.")  # fmt: skip
@click.option("--out", "output", type=count(1, 1 << 24), default=1024, show_default=True,
              help="Tokens of an output.")  # fmt: skip
@click.option("--concurrency", type=Counts(), default=None,
              help="Requests at once: 1,8,64 or 4..256 (doubling); default 1,16,64.")  # fmt: skip
@click.option("--rate", type=NumberRange(0, 1e6, min_open=True), default=None,
              help="Requests per second at random times, instead of --concurrency.")  # fmt: skip
@click.option("--requests", type=count(1, 1 << 20), default=None, show_default="ten per concurrent",
              help="Requests to simulate.")  # fmt: skip
@click.option("--what-if", "changes", default="", metavar="CHANGE[;CHANGE]",
              help='Predict changes: "hbm*1.5; attention free; tp 4; host 0".')  # fmt: skip
@click.option("--compare", default="", metavar="SYSTEM,SYSTEM[,SYSTEM]",
              help="Instead of --system: ratios to the first, with intervals.")  # fmt: skip
@click.option(
    "--search",
    "dimensions",
    default="",
    metavar="NAME[=V|V][,NAME]",
    callback=not_an_option,
    help="Search tp, pp, dp, ep, dtype, kv-dtype, engine, dp-attention and batch.",
)
@click.option("--slo", default="", help='Objectives of --search: "ttft<2s,tpot.p99<40ms".')
@click.option("--state", type=click.Path(path_type=Path, dir_okay=False), default=None,
              help="File of results of --search, which continues from there.")  # fmt: skip
@click.option("-j", "--jobs", type=PROCESSES, default=None,
              help="Processes of --search. [default: one per processor]")  # fmt: skip
@click.option("--ray", default="", metavar="ADDRESS",
              help="Search on a Ray cluster: HOST:PORT, auto, or local.")  # fmt: skip
@click.option("--findings", is_flag=True,
              help="Look for changes that make it faster, and modules to optimise.")  # fmt: skip
@click.option("--power", type=NumberRange(0, 1e6, min_open=True), default=None, metavar="WATTS",
              help="Power of a GPU, for the energy of tokens.")  # fmt: skip
@click.option("--price", type=NumberRange(0, 1e6, min_open=True), default=None,
              help="Price of a GPU per hour, for the cost of tokens.")  # fmt: skip
@file_options
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
@training_options
@workloads.options
@collective_options
@opening
def command(
    name: str | None,
    list_: bool,
    systems: str,
    arch_files: tuple[Path, ...],
    system_files: tuple[Path, ...],
    tp: int | None,
    dp: int,
    ep: int,
    expert_load: Path | None,
    expert_skew: float,
    redundant_experts: int,
    dp_attention: bool,
    check_plan: bool,
    dtype: str,
    attention_dtype: str,
    kv_dtype: str,
    engine: str,
    prompt: int,
    output: int,
    concurrency: tuple[int, ...] | None,
    rate: float | None,
    requests: int | None,
    changes: str,
    compare: str,
    dimensions: str,
    slo: str,
    state: Path | None,
    jobs: int | None,
    ray: str,
    findings: bool,
    power: float | None,
    price: float | None,
    detail: str,
    format_: str,
    workload: WorkloadOptions,
    **training: Any,
) -> int:
    """Predict how a model is served, or trained with --train, on a machine, without a GPU.

    MODEL is a config.json of Hugging Face, a folder with one, or a name (--list).
    """
    from wavecast.report import systems as report

    if list_:
        _list()
        return 0
    check_collectives(click.get_current_context())
    simulated = {key: training.pop(key) for key in COLLECTIVE_OPTIONS}
    if simulated["collectives"]:
        return run_collectives(
            *(systems, arch_files, system_files),
            options=simulated, changes=changes, detail=detail, format_=format_,
        )  # fmt: skip
    if name is None:
        raise UsageError("no MODEL", hint="wavecast model --list names the known ones")
    check_options(click.get_current_context())
    written = taken(training)
    if training["train"]:
        return run_training(
            *(name, systems, arch_files, system_files),
            tp=tp, dp=dp, ep=ep, dtype=dtype, options=training, detail=detail, format_=format_,
            written=written,
        )  # fmt: skip
    if (rate is not None) + (concurrency is not None) + (workload.trace_file is not None) > 1:
        raise UsageError("--concurrency, --rate and --trace exclude each other")
    from wavecast.arch.systems import system
    from wavecast.systems.answer import Deployment, loads
    from wavecast.systems.changes import parse
    from wavecast.systems.economy import Economy
    from wavecast.systems.experts import ExpertLoad, measured
    from wavecast.systems.parallel import Parallelism
    from wavecast.systems.study import StudyQuestions, study

    if expert_load is not None and expert_skew:
        raise UsageError("--expert-load and --expert-skew exclude each other")
    load = measured(expert_load) if expert_load else ExpertLoad(exponent=expert_skew)
    asked = loads(prompt, output, concurrency=concurrency or (), rate=rate, requests=requests)
    asked = workload.loads(asked)
    questions = StudyQuestions(
        changes=parse(changes) if changes else (),
        compare=bool(compare),
        findings=findings,
        economy=None if power is None and price is None else Economy(power, price),
    )
    deployments = []
    for selector in (compare or systems).split(","):
        machine = system(selector, arch_files, system_files)
        parallel = Parallelism.filling(
            workload.share(machine.gpus),
            tensor=tp,
            pipeline=training["pp"] or 1,
            data=dp,
            expert=ep,
            attention_data=dp_attention,
            load=load,
            redundant=redundant_experts,
        )
        deployment = Deployment(
            dtype=dtype,
            cache=kv_dtype,
            attention=attention_dtype,
            parallel=parallel,
            engine=engine,
            check_plan=check_plan,
        )
        deployment = workload.deployment(deployment)
        deployments.append((machine, deployment))
    if dimensions:
        if written.perfetto or written.chakra:
            raise UsageError("--perfetto and --chakra do not apply to --search")
        return run_search(
            *(name, deployments, asked if concurrency else asked[:1]),
            dimensions=dimensions, slo=slo, state=state, jobs=jobs, ray=ray, format_=format_,
            html=written.html,
        )  # fmt: skip
    if slo or state is not None or ray:
        raise UsageError("--slo, --state and --ray belong to --search")
    found = study(name, deployments, asked, questions)
    written.write("served", found.answers)
    if format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(report.dumps(found))
    else:
        report.render(found, streams.console(highlight=False), detail=detail)
    if not any(answer.servings for answer in found.answers):
        raise NothingAnalysed("the model fits none of the systems")
    return 0


def _list() -> None:
    from wavecast.systems import huggingface

    for known, values in huggingface.models().items():
        size = huggingface.read(values, known).parameters / 1e9
        click.echo(f"{known:24}{size:9,.1f} B  {values['model_type']}")
