"""Loads: when requests arrive, and how many tokens they read and write.

A closed loop (`concurrency`) sends a request when one ends, an open loop (`rate`) at random times,
and a trace at the times it gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wavecast import files
from wavecast.errors import UsageError

LONGEST: Final = 1 << 24
"""Most tokens of a prompt or an output."""
_PER_SLOT: Final = 10
"""Requests per concurrent one where their number is not given, as serving benchmarks send them."""
_FEWEST: Final = 200
"""Requests of an open loop where their number is not given."""
_MOST_REQUESTS: Final = 1 << 20
_TRACE_COLUMNS: Final = (
    ("arrival", "timestamp", "time"),
    ("input", "prompt", "in", "input_length"),
    ("output", "out", "output_length"),
)
"""Names that a column of a trace may have, in lower case."""


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """Requests in the order they arrive: `arrivals` in seconds from the first, tokens of the
    prompts and of the outputs."""

    arrivals: tuple[float, ...]
    prompts: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.arrivals:
            raise UsageError("the trace has no requests")
        if len(self.arrivals) > _MOST_REQUESTS:
            raise UsageError(f"the trace has more than {_MOST_REQUESTS:,} requests")
        for number, lengths in enumerate(zip(self.prompts, self.outputs, strict=True), 1):
            if not all(1 <= length <= LONGEST for length in lengths):
                raise UsageError(f"request {number} of the trace has {lengths} tokens")


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of `prompt` and `output` tokens: at most `concurrency` at once, or `rate` per second
    (0: not an open loop), or those of a `trace`.

    `distribution` is that of lengths: `uniform` between `shortest` times the nominal ones and
    those, or `lognormal` with the nominal means and the standard deviation `sigma` of logarithms.
    Times between arrivals of an open loop are gamma distributed with the shape `burstiness` (1: a
    Poisson process, less: bursts). `prefix` is the share of every prompt that an earlier request
    left in the prefix cache.
    """

    prompt: int
    output: int
    concurrency: int = 0
    rate: float = 0.0
    requests: int = 0
    shortest: float = 0.8
    seed: int = 0
    distribution: str = "uniform"
    sigma: float = 0.5
    burstiness: float = 1.0
    prefix: float = 0.0
    trace: RequestTrace | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "output"):
            if not 1 <= getattr(self, name) <= LONGEST:
                raise UsageError(f"{name} is {getattr(self, name)} tokens, not 1 to {LONGEST}")
        if not 0 < self.shortest <= 1:
            raise UsageError(f"lengths from {self.shortest:g} times the nominal ones")
        if self.distribution not in ("uniform", "lognormal"):
            raise UsageError(f"lengths are uniform or lognormal, not {self.distribution}")
        if not 0 < self.sigma <= 4:
            raise UsageError(f"a standard deviation of {self.sigma:g} of logarithms of lengths")
        if not 0 < self.burstiness < math.inf:
            raise UsageError(f"a burstiness of {self.burstiness:g}: it is the shape of a gamma law")
        if not 0 <= self.prefix < 1:
            raise UsageError(f"a share {self.prefix:g} of the prompt in the prefix cache")
        if (self.concurrency > 0) + (self.rate > 0) + (self.trace is not None) != 1:
            raise UsageError("a load has either a concurrency, a rate of requests or a trace")
        if self.count > _MOST_REQUESTS:
            raise UsageError(
                f"{self.count:,} requests, the most that are simulated are {_MOST_REQUESTS:,}",
                hint="--requests sets their number",
            )

    @property
    def count(self) -> int:
        """The number of requests."""
        if self.trace:
            return min(len(self.trace.arrivals), self.requests or _MOST_REQUESTS)
        return self.requests or (_PER_SLOT * self.concurrency if self.concurrency else _FEWEST)

    def share(self, replicas: int) -> Load:
        """What one of several replicas gets."""
        if replicas == 1:
            return self
        trace = self.trace
        if trace:
            trace = RequestTrace(
                trace.arrivals[::replicas], trace.prompts[::replicas], trace.outputs[::replicas]
            )
        return replace(
            self,
            concurrency=math.ceil(self.concurrency / replicas),
            rate=self.rate / replicas,
            requests=math.ceil(self.requests / replicas),
            trace=trace,
        )

    def sample(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Arrivals in seconds (zeros in a closed loop, which sends at the end of a request), tokens
        of the prompts and of the outputs; an element per request."""
        if self.trace:
            end = self.count
            return (
                np.asarray(self.trace.arrivals[:end], dtype=np.float64),
                np.asarray(self.trace.prompts[:end], dtype=np.int64),
                np.asarray(self.trace.outputs[:end], dtype=np.int64),
            )
        random = np.random.default_rng(self.seed)
        prompts, outputs = (self._lengths(random, n) for n in (self.prompt, self.output))
        arrivals = np.zeros(self.count)
        if self.rate:
            scale = 1 / (self.rate * self.burstiness)
            arrivals = np.cumsum(random.gamma(self.burstiness, scale, self.count))
        return arrivals, prompts, outputs

    def _lengths(self, random: np.random.Generator, nominal: int) -> NDArray[np.int64]:
        if self.distribution == "uniform":
            low = max(1, round(self.shortest * nominal))
            return random.integers(low, nominal + 1, self.count)
        mean = math.log(nominal) - self.sigma**2 / 2
        lengths = np.rint(random.lognormal(mean, self.sigma, self.count))
        return np.clip(lengths, 1, LONGEST).astype(np.int64)


def read_trace(path: Path) -> RequestTrace:
    """A CSV with a header, or JSON lines, with the columns arrival (seconds), input and output
    (tokens); other common names are accepted. Raises InputError for a file that cannot be read,
    UsageError for another content."""
    lines = [line for line in files.read_text(path).splitlines() if line.strip()]
    if len(lines) > _MOST_REQUESTS + 1:
        raise UsageError(f"{path} has more than {_MOST_REQUESTS:,} requests")
    try:
        if lines and lines[0].lstrip().startswith("{"):
            records = map(files.parse_json, lines)
        else:
            header, *cells = files.csv_rows(lines) if lines else [[]]
            records = (dict(zip(header, row, strict=False)) for row in cells)
        rows = sorted(_row(row, number) for number, row in enumerate(records, 1))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    first = rows[0][0] if rows else 0.0
    return RequestTrace(
        tuple(time - first for time, _, _ in rows),
        tuple(prompt for _, prompt, _ in rows),
        tuple(output for _, _, output in rows),
    )


def _row(row: object, number: int) -> tuple[float, int, int]:
    """Raises ValueError for a column that is missing or not a number."""
    if not isinstance(row, Mapping):
        raise ValueError(f"request {number} is not an object")
    lower: dict[str, Any] = {str(key).strip().lower(): value for key, value in row.items()}
    values = []
    for names in _TRACE_COLUMNS:
        name = next((name for name in names if lower.get(name) not in (None, "")), None)
        if name is None:
            raise ValueError(f"request {number} has no {names[0]}")
        value = _finite(lower[name])
        if value is None:
            raise ValueError(f"{name} of request {number} is {lower[name]}, not a finite number")
        values.append(value)
    return values[0], int(values[1]), int(values[2])


def _finite(value: object) -> float | None:
    """None for what is not a finite number."""
    if not isinstance(value, (int, float, str)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


__all__ = ["LONGEST", "Load", "RequestTrace", "read_trace"]
