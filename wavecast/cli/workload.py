"""Options of `wavecast model` that describe the load and what the engine does with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from wavecast.cli.types import NumberRange, count

_OPTIONS = (
    click.option("--lengths", type=click.Choice(["uniform", "lognormal"]), default="uniform",
                 show_default=True, help="Distribution of the lengths of requests."),
    click.option("--shortest", type=NumberRange(0, 1, min_open=True), default=0.8,
                 show_default=True, help="Uniform lengths: the shortest over the nominal one."),
    click.option("--sigma", type=NumberRange(0, 4, min_open=True), default=0.5, show_default=True,
                 help="Lognormal lengths: standard deviation of the logarithms."),
    click.option("--burstiness", type=NumberRange(0, 1e3, min_open=True), default=1.0,
                 show_default=True, help="With --rate: shape of the gamma distribution of the "
                 "times between arrivals; 1: a Poisson process."),
    click.option("--trace", "trace_file", type=click.Path(path_type=Path), default=None,
                 help="CSV or JSON lines with arrival, input and output of every request, instead "
                 "of --concurrency and --rate."),
    click.option("--prefix", type=NumberRange(0, 1, max_open=True), default=0.0, show_default=True,
                 help="Share of every prompt that is in the prefix cache."),
    click.option("--speculate", metavar="METHOD:TOKENS", default="",
                 help="Speculative decoding: mtp:3, eagle:5 or ngram:4."),
    click.option("--acceptance", type=NumberRange(0, 1), default=None,
                 help="Probability that a drafted token is accepted; default: that of --workload."),
    click.option("--workload", type=click.Choice(["coding", "general"]), default="coding",
                 show_default=True, help="Class of workload, for the acceptance."),
    click.option("--disaggregate", metavar="NpMd", default="",
                 help="N instances prefill and M decode, each on --tp GPUs: 1p2d."),
    click.option("--prefill-tp", type=count(1), default=None,
                 help="GPUs of an instance that prefills, where it is not --tp."),
    click.option("--transfer-bandwidth", type=NumberRange(0, 1e5, min_open=True), default=50.0,
                 show_default=True, help="GB/s of every GPU from prefill to decode."),
    click.option("--engine-setting", "engine_settings", metavar="NAME=VALUE", multiple=True,
                 help="A number of the engine: batched_tokens, sequences, memory_fraction, "
                 "captured, poll, wait_steps or wait_share."),
)  # fmt: skip


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options, and one argument with their values."""

    def wrapped(**values: Any) -> Any:
        from wavecast.systems.load_options import WorkloadOptions

        names = WorkloadOptions.__dataclass_fields__
        own = {name: values.pop(name) for name in names}
        return command(**values, workload=WorkloadOptions(**own))

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    if hasattr(command, "__click_params__"):
        wrapped.__click_params__ = command.__click_params__  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


__all__ = ["options"]
