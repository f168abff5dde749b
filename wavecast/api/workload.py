"""Options of what is served, how, and to whom: requests, the engine, formats, parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from wavecast.api.machines import ParallelOptions
from wavecast.errors import UsageError
from wavecast.options import Options, option
from wavecast.options.values import FILE, Counts, Integers, NameList, Numbers, OneOf

if TYPE_CHECKING:
    from wavecast.arch.systems import System
    from wavecast.systems.answer import Deployment
    from wavecast.systems.workload import Load

_TOKENS = Integers(1, 1 << 24)


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions(Options):
    """The requests that are served."""

    EXCLUSIVE: ClassVar = (("concurrency", "rate", "trace_file"),)

    prompt: int = option(1024, "Tokens of a prompt.", "--in", values=_TOKENS)
    output: int = option(1024, "Tokens of an output.", "--out", values=_TOKENS)
    concurrency: tuple[int, ...] | None = option(
        None, "Requests at once: 1,8,64 or 4..256 (doubling); default 1,16,64.", values=Counts()
    )
    rate: float | None = option(
        None,
        "Requests per second at random times, instead of --concurrency.",
        values=Numbers(0, 1e6, above=True),
    )
    requests: int | None = option(
        None,
        "Requests to simulate.",
        values=Integers(1, 1 << 20),
        default_text="ten per concurrent",
    )
    lengths: str = option(
        "uniform",
        "Distribution of the lengths of requests.",
        values=OneOf(("uniform", "lognormal")),
    )
    shortest: float = option(
        0.8,
        "Uniform lengths: the shortest over the nominal one.",
        values=Numbers(0, 1, above=True),
    )
    sigma: float = option(
        0.5,
        "Lognormal lengths: standard deviation of the logarithms.",
        values=Numbers(0, 4, above=True),
    )
    burstiness: float = option(
        1.0,
        "With --rate: shape of the gamma distribution of the times between arrivals; 1: a "
        "Poisson process.",
        values=Numbers(0, 1e3, above=True),
    )
    trace_file: Path | None = option(
        None,
        "CSV or JSON lines with arrival, input and output of every request, instead of "
        "--concurrency and --rate.",
        "--trace",
        values=FILE,
    )
    prefix: float = option(
        0.0,
        "Share of every prompt that is in the prefix cache.",
        values=Numbers(0, 1, below=True),
    )
    seed: int = option(0, "Seed of lengths and arrivals.", values=Integers(0, (1 << 32) - 1))

    def loads(self) -> tuple[Load, ...]:
        """The loads, one per concurrency. Raises UsageError and InputError."""
        from wavecast.systems.answer import loads
        from wavecast.systems.workload import Load, read_trace

        plain = loads(
            *(self.prompt, self.output),
            concurrency=self.concurrency or (),
            rate=self.rate,
            requests=self.requests,
        )
        if self.trace_file is not None:
            trace = read_trace(self.trace_file)
            middle = (
                sorted(lengths)[len(lengths) // 2] for lengths in (trace.prompts, trace.outputs)
            )
            return (Load(*middle, trace=trace, prefix=self.prefix, requests=plain[0].requests),)
        shared = {
            "distribution": self.lengths,
            "shortest": self.shortest,
            "sigma": self.sigma,
            "burstiness": self.burstiness,
            "prefix": self.prefix,
            "seed": self.seed,
        }
        return tuple(replace(load, **shared) for load in plain)


@dataclass(frozen=True, kw_only=True)
class DeploymentOptions(WorkloadOptions, ParallelOptions):
    """The model as it is deployed, and its requests."""

    EXCLUSIVE: ClassVar = (*WorkloadOptions.EXCLUSIVE, ("expert_load", "expert_skew"))
    NEEDS: ClassVar[Mapping[str, str]] = {
        "acceptance": "speculate",
        "prefill_tp": "disaggregate",
    }

    compare: tuple[str, ...] = option(
        (),
        "Instead of --system: ratios to the first, with intervals.",
        values=NameList(),
        metavar="SYSTEM,SYSTEM[,SYSTEM]",
    )
    expert_load: Path | None = option(
        None, "JSON with the tokens of each expert, for unequal GPUs of --ep.", values=FILE
    )
    expert_skew: float = option(
        0.0, "The same by a power law: its exponent; 0 is equal loads.", values=Numbers(0, 10)
    )
    redundant_experts: int = option(0, "Copies of popular experts on the GPUs of --ep.")
    dp_attention: bool = option(
        False, "Replicate attention on the GPUs of --tp; each has its sequences."
    )
    check_plan: bool = option(False, "Note modules that the plan of transformers does not divide.")
    attention_dtype: str = option("", "Format of the projections of attention, where it differs.")
    kv_dtype: str = option("", "Dtype of keys and values; default: the engine's.")
    engine: str = option(
        "vllm",
        "vllm, sglang, atom, atom-vllm, trtllm or wavecast: the newest release, or vllm@0.11.",
    )
    engine_settings: tuple[str, ...] = option(
        (),
        "A setting of the engine: batched_tokens, sequences, memory_fraction, captured, poll, "
        "wait_steps or wait_share, the library of its attention (attention=triton), and aiter=1 "
        "where vLLM runs with VLLM_ROCM_USE_AITER=1.",
        "--engine-setting",
        metavar="NAME=VALUE",
    )
    speculate: str = option(
        "", "Speculative decoding: mtp:3, eagle:5 or ngram:4.", metavar="METHOD:TOKENS"
    )
    acceptance: float | None = option(
        None,
        "Probability that a drafted token is accepted; default: that of --workload.",
        values=Numbers(0, 1),
    )
    workload: str = option(
        "coding", "Class of workload, for the acceptance.", values=OneOf(("coding", "general"))
    )
    disaggregate: str = option(
        "", "N instances prefill and M decode, each on --tp GPUs: 1p2d.", metavar="NpMd"
    )
    prefill_tp: int | None = option(
        None, "GPUs of an instance that prefills, where it is not --tp.", values=Integers(1)
    )
    transfer_bandwidth: float = option(
        50.0, "GB/s of every GPU from prefill to decode.", values=Numbers(0, 1e5, above=True)
    )

    def deployments(self) -> list[tuple[System, Deployment]]:
        """A system and how the model is deployed on it, for each system. Raises UsageError,
        UnknownName, and InputError for a load of experts that cannot be read."""
        machines = (replace(self, system=self.compare) if self.compare else self).machines()
        return [
            (machine, self._deployment(self._instance_gpus(machine.gpus))) for machine in machines
        ]

    def _instance_gpus(self, gpus: int) -> int:
        """The GPUs of a system that each instance has: all without disaggregation, else an equal
        part of those that `prefill_tp` leaves."""
        if not self.disaggregate:
            return gpus
        from wavecast.systems.disaggregation import disaggregation

        pools = disaggregation(self.disaggregate)
        if self.prefill_tp is None:
            return gpus // pools.instances
        return (gpus - pools.prefill * self.prefill_tp) // pools.decode

    def _deployment(self, gpus: int) -> Deployment:
        """The deployment whose instances have so many GPUs."""
        from wavecast.systems.answer import Deployment
        from wavecast.systems.disaggregation import disaggregation
        from wavecast.systems.experts import ExpertLoad, read_expert_load
        from wavecast.systems.parallel import Parallelism
        from wavecast.systems.speculation import speculation

        load = ExpertLoad(exponent=self.expert_skew)
        parallel = Parallelism.filling(
            gpus,
            tensor=self.tp,
            pipeline=self.pp,
            data=self.dp,
            expert=self.ep,
            attention_data=self.dp_attention,
            load=load if self.expert_load is None else read_expert_load(self.expert_load),
            redundant=self.redundant_experts,
        )
        prefill = None
        if self.prefill_tp is not None:
            expert = self.prefill_tp if parallel.expert > 1 else 1
            prefill = replace(parallel, tensor=self.prefill_tp, expert=expert)
        return Deployment(
            dtype=self.dtype,
            cache=self.kv_dtype,
            attention=self.attention_dtype,
            parallel=parallel,
            engine=self.engine,
            check_plan=self.check_plan,
            settings=tuple(map(_setting, self.engine_settings)),
            speculation=speculation(self.speculate, self.acceptance, self.workload)
            if self.speculate
            else None,
            disaggregation=disaggregation(self.disaggregate, self.transfer_bandwidth * 1e9, prefill)
            if self.disaggregate
            else None,
        )


def _setting(text: str) -> tuple[str, float | str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    try:
        return name.strip(), float(value)
    except ValueError:
        return name.strip(), value.strip()


__all__ = ["DeploymentOptions", "WorkloadOptions"]
