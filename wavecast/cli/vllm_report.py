"""`wavecast vllm-report`: which layers of vLLM the kernel library serves, and in what time."""

from __future__ import annotations

import sys

import click

from wavecast.cli import streams
from wavecast.cli.types import PROCESSES, count
from wavecast.errors import NothingAnalysed


@click.command(
    "vllm-report",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast vllm-report Llama-3.1-8B --arch gfx942

    wavecast vllm-report ./config.json --arch mi300x --dtype fp8 --kv-dtype fp8 --concurrency 64

    wavecast vllm-report DeepSeek-R1 --arch gfx942 --tp 8 --jobs 2 --format markdown
    """,
)
@click.argument("model", metavar="MODEL")
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU",
              help="A GPU by name (mi300x) or target (gfx942).")  # fmt: skip
@click.option("--tp", type=count(1, 64), default=1, show_default=True,
              help="GPUs that divide every layer.")  # fmt: skip
@click.option("--dtype", default="", help="Format of the weights: bf16, fp8, int8, mxfp4, int4; "
              "default: that of the checkpoint.")  # fmt: skip
@click.option("--attention-dtype", default="", help="Format of the projections of attention, "
              "where it differs.")  # fmt: skip
@click.option("--kv-dtype", default="", help="Dtype of keys and values: bf16, fp8.")
@click.option("--in", "prompt", type=count(1, 1 << 20), default=1024, show_default=True,
              help="Tokens of the prompt of the prefill step.")  # fmt: skip
@click.option("--concurrency", type=count(1, 1 << 16), default=16, show_default=True,
              help="Sequences of the decode step.")  # fmt: skip
@click.option("--context", type=count(1, 1 << 24), default=None, show_default="that of --in",
              help="Tokens that each has before the decode step.")  # fmt: skip
@click.option("-j", "--jobs", type=PROCESSES, default=1, show_default=True,
              help="Processes that compile.")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json", "markdown"]),
              default="text", show_default=True)  # fmt: skip
def command(
    model: str,
    arch: str,
    tp: int,
    dtype: str,
    attention_dtype: str,
    kv_dtype: str,
    prompt: int,
    concurrency: int,
    context: int | None,
    jobs: int,
    form: str,
) -> int:
    """List the kernels of a model in vLLM: layer, launches per step, the predicted time of vLLM's
    default, and that of the operators of wavecast.ops which serve it. vLLM need not be installed.

    MODEL is a config.json of Hugging Face, a folder with one, or a name (wavecast model --list).
    Operators are compiled for the GPU, the defaults are predicted from sizes.
    """
    from wavecast.documents import base
    from wavecast.pipeline.engine_kernels import deployed, engine_report, steps
    from wavecast.report import engine as report

    deployment = deployed(tp, dtype, kv_dtype, attention_dtype)
    asked = steps(prompt, concurrency, context or prompt)
    with streams.progress() as update:
        found = engine_report(model, arch, deployment, asked, jobs=jobs, update=update)
    if form == "json":
        streams.as_document(sys.stdout)
        click.echo(base.dumps(report.document(found), indent=2))
    elif form == "markdown":
        click.echo(report.markdown(found), nl=False)
    else:
        width = None if sys.stdout.isatty() else 220
        report.render(found, streams.console(width, highlight=False))
    if not any(step.covered for step in found.steps):
        raise NothingAnalysed("the library serves none of the model's kernels")
    return 0


__all__ = ["command"]
