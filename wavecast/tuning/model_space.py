"""The configurations of a served model that a search tries, and the objectives it must meet."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wavecast.arch.systems import System
from wavecast.errors import UnknownName, UsageError
from wavecast.systems.answer import Deployment, ServingAnswer
from wavecast.systems.changes import SETTINGS, together
from wavecast.systems.changes import parse as parse_changes
from wavecast.systems.engine import engines
from wavecast.systems.serving import Load

_LARGEST_BATCH: Final = 1024
_MOST_REQUESTS: Final = 1 << 20
_MOST: Final = 100_000
"""Configurations of a search."""
_SLO: Final = re.compile(r"(ttft|tpot)(?:\.(p50|p90|p99))?\s*<=?\s*([\d.]+)\s*(s|ms|us)")
_UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True)
class ModelConfiguration:
    """One point of a search: values by dimension on a system."""

    system: System
    deployment: Deployment
    load: Load
    values: tuple[tuple[str, str], ...]


def _doubling(most: int) -> tuple[str, ...]:
    return tuple(str(1 << power) for power in range(most.bit_length()))


DIMENSIONS: Final[Mapping[str, Callable[[System], tuple[str, ...]]]] = {
    "tp": lambda system: _doubling(system.gpus),
    "pp": lambda system: _doubling(system.gpus),
    "dp": lambda system: _doubling(system.gpus),
    "ep": lambda system: _doubling(system.gpus),
    "dp-attention": lambda _: ("off", "on"),
    "dtype": lambda _: ("bf16", "fp8", "mxfp4"),
    "kv-dtype": lambda _: ("bf16", "fp8"),
    "engine": lambda _: tuple(engines()),
    "batch": lambda _: _doubling(_LARGEST_BATCH),
}
"""Dimensions of a search and the values of each where none are given; batch is the number of
requests at once."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A latency objective: `metric` (ttft or tpot), its mean or a quantile of the requests
    (`statistic`), less than `seconds`."""

    metric: str
    statistic: str
    seconds: float

    def is_met(self, serving: ServingAnswer) -> bool:
        """Whether a predicted load meets it."""
        return getattr(getattr(serving.served, self.metric), self.statistic) < self.seconds


def objectives(text: str) -> tuple[Objective, ...]:
    """Those of `ttft<2s,tpot.p99<40ms`; without a quantile the mean. Raises UsageError."""
    terms = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _SLO.fullmatch(part.lower())
        if match is None:
            raise UsageError(f"{part!r} is not an objective", hint="ttft<2s, tpot.p99<40ms")
        try:
            limit = float(match[3]) * _UNITS[match[4]]
        except ValueError:
            raise UsageError(f"{part!r}: {match[3]} is not a number") from None
        terms.append(Objective(match[1], match[2] or "mean", limit))
    return tuple(terms)


def dimensions(text: str) -> dict[str, tuple[str, ...]]:
    """Values by dimension of `tp,batch=16|64,dtype`; () where the default ones are tried. What
    follows a value without naming a dimension is a further value: `batch=16,64`.

    Raises UnknownName for a dimension, UsageError where none or no value is named.
    """
    by_name: dict[str, tuple[str, ...]] = {}
    name = ""
    for part in filter(None, (part.strip() for part in text.split(","))):
        if by_name.get(name) and "=" not in part and part not in DIMENSIONS:
            by_name[name] += tuple(value.strip() for value in part.split("|") if value.strip())
            continue
        name, separator, values = (word.strip() for word in part.partition("="))
        if name not in DIMENSIONS:
            raise UnknownName("dimension of a search", name, DIMENSIONS)
        choices = tuple(value.strip() for value in values.split("|") if value.strip())
        if separator and not choices:
            raise UsageError(f"{part!r} names no value", hint="batch=16|64")
        by_name[name] = choices
    if not by_name:
        raise UsageError("a search needs a dimension", hint="--search tp,dtype,batch")
    return by_name


def configurations(
    systems: Sequence[tuple[System, Deployment]],
    choices: Mapping[str, tuple[str, ...]],
    load: Load,
) -> Iterator[ModelConfiguration]:
    """Every combination on every system; dimensions that are not asked for keep the values of the
    deployment and the load. Raises UsageError for more than 100,000, and for wrong values."""
    count = 0
    for system, deployment in systems:
        axes = {name: values or DIMENSIONS[name](system) for name, values in choices.items()}
        for values in itertools.product(*axes.values()):
            count += 1
            if count > _MOST:
                raise UsageError(f"the search has more than {_MOST:,} configurations")
            yield _configuration(system, deployment, load, dict(zip(axes, values, strict=True)))


def _batch(text: str) -> int:
    """Raises UsageError."""
    try:
        batch = int(text)
    except ValueError:
        batch = 0
    if not 0 < batch <= _MOST_REQUESTS:
        raise UsageError(f"batch {text!r} is not a number from 1 to {_MOST_REQUESTS:,}")
    return batch


def _configuration(
    system: System, deployment: Deployment, load: Load, values: dict[str, str]
) -> ModelConfiguration:
    batch = load.concurrency
    settings = {name: value for name, value in values.items() if name in SETTINGS}
    if "batch" in values:
        batch = _batch(values["batch"])
    if settings:
        if "tp" in settings:  # what all GPUs divided was chosen for another number of them
            settings = {"dp": "1", "ep": "1"} | settings
        change = together(parse_changes("; ".join(f"{n} {v}" for n, v in settings.items())))
        _, deployment = change.apply(system, deployment)
        if "ep" in settings:  # after tp, which changes it as well
            parallel = replace(deployment.parallel, expert=int(settings["ep"]))
            deployment = replace(deployment, parallel=parallel)
    batch_load = replace(load, concurrency=batch)
    return ModelConfiguration(system, deployment, batch_load, tuple(values.items()))


__all__ = [
    "DIMENSIONS",
    "ModelConfiguration",
    "Objective",
    "configurations",
    "dimensions",
    "objectives",
]
