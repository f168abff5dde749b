"""Options that describe requests and what the engine does with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from wavecast.errors import UsageError
from wavecast.systems.answer import Deployment
from wavecast.systems.disaggregation import disaggregation
from wavecast.systems.speculation import speculation
from wavecast.systems.workload import Load, read_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """What requests are like, and what the engine does with them, as a user names it: options of
    `wavecast model` without dashes. `trace_file` is that of `--trace`, `engine_settings` are
    `NAME=VALUE`, `transfer_bandwidth` GB/s, `prefill_tp` the GPUs of an instance that prefills."""

    lengths: str = "uniform"
    shortest: float = 0.8
    sigma: float = 0.5
    burstiness: float = 1.0
    trace_file: str | Path | None = None
    prefix: float = 0.0
    speculate: str = ""
    acceptance: float | None = None
    workload: str = "coding"
    disaggregate: str = ""
    prefill_tp: int | None = None
    transfer_bandwidth: float = 50.0
    engine_settings: tuple[str, ...] = ()

    def share(self, gpus: int) -> int:
        """The GPUs of a system that each instance has: all without disaggregation, else an equal
        part of those that `prefill_tp` leaves. Raises UsageError."""
        if not self.disaggregate:
            if self.prefill_tp is not None:
                raise UsageError("--prefill-tp is that of --disaggregate")
            return gpus
        pools = disaggregation(self.disaggregate)
        if self.prefill_tp is None:
            return gpus // pools.instances
        return (gpus - pools.prefill * self.prefill_tp) // pools.decode

    def loads(self, loads: tuple[Load, ...]) -> tuple[Load, ...]:
        """The loads with the distribution of lengths and arrivals, or the trace."""
        if self.trace_file is not None:
            trace = read_trace(Path(self.trace_file))
            middle = (sorted(lengths)[len(lengths) // 2] for lengths in
                      (trace.prompts, trace.outputs))  # fmt: skip
            return (Load(*middle, trace=trace, prefix=self.prefix, requests=loads[0].requests),)
        return tuple(
            replace(
                load,
                distribution=self.lengths,
                shortest=self.shortest,
                sigma=self.sigma,
                burstiness=self.burstiness,
                prefix=self.prefix,
            )
            for load in loads
        )

    def deployment(self, deployment: Deployment) -> Deployment:
        """The deployment with speculation, pools and settings of the engine."""
        if self.acceptance is not None and not self.speculate:
            raise UsageError("--acceptance is that of --speculate")
        prefill = None
        if self.prefill_tp is not None:
            parallel = deployment.parallel
            expert = self.prefill_tp if parallel.expert > 1 else 1
            prefill = replace(parallel, tensor=self.prefill_tp, expert=expert)
        return replace(
            deployment,
            settings=tuple(map(_setting, self.engine_settings)),
            speculation=speculation(self.speculate, self.acceptance, self.workload)
            if self.speculate
            else None,
            disaggregation=disaggregation(self.disaggregate, self.transfer_bandwidth * 1e9, prefill)
            if self.disaggregate
            else None,
        )


def _setting(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise UsageError(f"{text!r} is not NAME=VALUE" if not equals else
                         f"{name} is {value!r}, not a number") from None  # fmt: skip


__all__ = ["WorkloadOptions"]
