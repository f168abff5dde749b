"""`wavecast.vllm_report`: which layers of vLLM the kernel library serves, and in what time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import PROCESSES, Integers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.pipeline.models.engine_kernels import EngineReport


@dataclass(frozen=True, kw_only=True)
class VllmOptions(Options):
    """Options of the kernels of a model in vLLM."""

    arch: str = option(
        "gfx942", "A GPU by name (mi300x) or target (gfx942).", "-a", "--arch", metavar="GPU"
    )
    tp: int = option(1, "GPUs that divide every layer.", values=Integers(1, 64))
    dtype: str = option(
        "", "Format of the weights: bf16, fp8, int8, mxfp4, int4; default: that of the checkpoint."
    )
    attention_dtype: str = option("", "Format of the projections of attention, where it differs.")
    kv_dtype: str = option("", "Dtype of keys and values: bf16, fp8.")
    prompt: int = option(
        1024, "Tokens of the prompt of the prefill step.", "--in", values=Integers(1, 1 << 20)
    )
    concurrency: int = option(16, "Sequences of the decode step.", values=Integers(1, 1 << 16))
    context: int | None = option(
        None,
        "Tokens that each has before the decode step.",
        values=Integers(1, 1 << 24),
        default_text="that of --in",
    )
    jobs: int = option(1, "Processes that compile.", "-j", "--jobs", values=PROCESSES)


@dataclass(frozen=True, slots=True, repr=False)
class VllmKernels(ShownResult):
    """The kernels of a model in vLLM, their times, and the operators of the library that serve
    them. The document is `wavecast.engine/1`."""

    WIDTH = 220
    report: EngineReport

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import engine

        return engine.document(self.report)

    def render(self, console: Console) -> None:
        from wavecast.report.systems import engine

        engine.render(self.report, console)

    def markdown(self) -> str:
        """A table per step, for a pull request."""
        from wavecast.report.systems import engine

        return engine.markdown(self.report)

    def why_nothing(self) -> str:
        served = any(step.covered for step in self.report.steps)
        return "" if served else "the library serves none of the model's kernels"

    def subject(self) -> str:
        from wavecast.report.systems import engine

        return engine.title(self.report)


def vllm_report(model: str | Path, *, progress: Progress = silent, **options: Any) -> VllmKernels:
    """The kernels of a model in vLLM: layer, launches per step, the predicted time of vLLM's
    default, and that of the operators of `wavecast.ops` which serve it. vLLM need not be installed.

    `model` is a config.json of Hugging Face, a folder with one, or a name of `wavecast model
    --list`. `options` are those of the command line, by the names of `VllmOptions`.

    Raises UnknownName for names, UsageError for sizes that do not divide, MissingFact for a GPU
    without memory or rates, MissingTool without PyTorch or Triton.
    """
    from wavecast.pipeline.models.engine_kernels import engine_report, steps, vllm_deployment

    stated = VllmOptions.of(options)
    return VllmKernels(
        engine_report(
            str(model),
            stated.arch,
            vllm_deployment(stated.tp, stated.dtype, stated.kv_dtype, stated.attention_dtype),
            steps(stated.prompt, stated.concurrency, stated.context or stated.prompt),
            jobs=stated.jobs,
            update=progress,
        )
    )


__all__ = ["VllmKernels", "VllmOptions", "vllm_report"]
