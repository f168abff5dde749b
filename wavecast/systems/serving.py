"""Serving: requests that arrive, wait, are prefilled and decoded, step by step.

A step is chosen as the engine's scheduler does. With `mixed` steps, decoding sequences come first
and chunks of prompts fill the budget of tokens; otherwise a step of waiting prompts runs before
the next step of decoding. Between two events (a sequence ends, a request is admitted) equal steps
are advanced together.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.errors import UsageError
from wavecast.systems.memory import MemoryUse
from wavecast.systems.step import StepModel

_TOGETHER: Final = 32
"""Most decode steps that are advanced at once."""
_PER_SLOT: Final = 10
"""Requests per concurrent one where their number is not given, as serving benchmarks send them."""
_FEWEST: Final = 200
"""Requests of an open loop where their number is not given."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of `prompt` and `output` tokens: at most `concurrency` at once (a closed loop), or
    `rate` per second at random times (an open one; 0: closed).

    Lengths are uniform between `shortest` times the nominal ones and those.
    """

    prompt: int
    output: int
    concurrency: int = 0
    rate: float = 0.0
    requests: int = 0
    shortest: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("prompt", "output"):
            if not 1 <= getattr(self, name) <= 1 << 24:
                raise UsageError(f"{name} is {getattr(self, name)} tokens, not 1 to {1 << 24}")
        if not 0 < self.shortest <= 1:
            raise UsageError(f"lengths from {self.shortest:g} times the nominal ones")
        if not (self.concurrency > 0) ^ (self.rate > 0):
            raise UsageError("a load has either a concurrency or a rate of requests")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of all requests, in seconds: mean, median, 90 % and 99 % quantile."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class Served:
    """A simulated run: time to first token (`ttft`), time per output token after it (`tpot`), whole
    requests (`end_to_end`); `seconds` from the first arrival to the last token; tokens that were
    read and written; `steps`; the most sequences that ran at once, and the share of time in steps
    that had prompts."""

    ttft: Latencies
    tpot: Latencies
    end_to_end: Latencies
    seconds: float
    prompt_tokens: int
    output_tokens: int
    requests: int
    steps: int
    running: int
    prefill_share: float

    @property
    def output_rate(self) -> float:
        """Output tokens per second."""
        return self.output_tokens / self.seconds


class _Run:
    """The state of a simulation. Requests are numbered by arrival; arrays have a value for each."""

    def __init__(self, model: StepModel, memory: MemoryUse, load: Load) -> None:
        self.model, self.memory, self.load = model, memory, load
        self.engine = model.builder.engine
        random = np.random.default_rng(load.seed)
        self.count = load.requests or (
            _PER_SLOT * load.concurrency if load.concurrency else _FEWEST
        )
        self.prompt = _lengths(random, load.prompt, load.shortest, self.count)
        self.output = _lengths(random, load.output, load.shortest, self.count)
        self.arrival = np.zeros(self.count)
        if load.rate:
            self.arrival = np.cumsum(random.exponential(1 / load.rate, self.count))
        parallel = model.builder.parallel
        ranks = parallel.tensor if parallel.attention_data else 1
        # With data-parallel attention, a sequence is cached by one of the ranks.
        self.size = ((self.prompt + self.output) * memory.token + memory.sequence) / ranks
        self.cached = np.zeros(self.count, dtype=np.int64)  # tokens of the prompt
        self.written = np.zeros(self.count, dtype=np.int64)  # tokens of the output
        self.first, self.end = np.zeros(self.count), np.zeros(self.count)
        self.now, self.taken = 0.0, 0.0
        self.arrived = self.admitted = 0
        self.prefilling: deque[int] = deque()
        self.running = np.zeros(0, dtype=np.int64)
        self.steps, self.most, self.prefill_seconds, self.ended = 0, 0, 0.0, 0

    def run(self) -> Served:
        """Until every request has its tokens."""
        while self.ended < self.count:
            self._arrive()
            self._admit()
            if self.prefilling or self.running.size:
                self._step()
            else:
                self.now = float(self.arrival[self.arrived])
        return self._result()

    def _arrive(self) -> None:
        """Requests that are there by now; in a closed loop one for each that has ended."""
        before = self.arrived
        if self.load.rate:
            self.arrived = int(np.searchsorted(self.arrival, self.now, side="right"))
        else:
            self.arrived = min(self.count, self.ended + self.load.concurrency)
            self.arrival[before : self.arrived] = self.now

    def _admit(self) -> None:
        """Waiting requests whose whole context fits with that of the admitted ones."""
        active = len(self.prefilling) + self.running.size
        while self.admitted < self.arrived and active < self.engine.sequences:
            number = self.admitted
            if self.taken + self.size[number] > self.memory.pool:
                if not active:
                    tokens = int(self.prompt[number] + self.output[number])
                    raise UsageError(
                        f"a request of {tokens:,} tokens does not fit: the cache holds "
                        f"{max(0, int(self.memory.pool / max(1.0, self.memory.token))):,}"
                    )
                return
            self.taken += float(self.size[number])
            self.prefilling.append(number)
            self.admitted += 1
            active += 1

    def _step(self) -> None:
        running = self.running
        if self.prefilling and not self.engine.mixed:
            running = running[:0]
        chunks = self._chunks(self.engine.batched_tokens - running.size)
        context = 0.0
        if running.size:
            context = float((self.prompt[running] + self.written[running]).mean())
        tokens = sum(count for _, count in chunks) / max(1, len(chunks))
        before = sum(int(self.cached[n]) for n, _ in chunks) / max(1, len(chunks))
        times = 1 if chunks else self._together()
        seconds = self.model.seconds(running.size, context + times / 2, len(chunks), tokens, before)
        self.now += seconds * times
        self.steps += times
        self.most = max(self.most, running.size + len(chunks))
        self.prefill_seconds += seconds if chunks else 0.0
        self.written[running] += times
        for number, count in chunks:
            self.cached[number] += count
            if self.cached[number] == self.prompt[number]:
                self.first[number], self.written[number] = self.now, 1
                self.prefilling.popleft()
                self.running = np.append(self.running, number)
        self._retire()

    def _chunks(self, budget: int) -> list[tuple[int, int]]:
        """The next pieces of prompts, in order, and their tokens."""
        found = []
        for number in self.prefilling:
            count = min(int(self.prompt[number] - self.cached[number]), budget)
            if count <= 0:
                break
            found.append((number, count))
            budget -= count
        return found

    def _together(self) -> int:
        """Decode steps until something changes."""
        if self.load.rate and self.arrived < self.count:
            return 1
        left = self.output[self.running] - self.written[self.running]
        return max(1, min(int(left.min()), _TOGETHER))

    def _retire(self) -> None:
        over = self.written[self.running] >= self.output[self.running]
        if not over.any():
            return
        numbers = self.running[over]
        self.end[numbers] = self.now
        self.taken -= float(self.size[numbers].sum())
        self.ended += numbers.size
        self.running = self.running[~over]

    def _result(self) -> Served:
        request = self.engine.request
        several = self.output > 1
        tpot = (self.end - self.first)[several] / (self.output[several] - 1)
        return Served(
            ttft=_latencies(self.first - self.arrival + request),
            tpot=_latencies(tpot if tpot.size else np.zeros(1)),
            end_to_end=_latencies(self.end - self.arrival + request),
            seconds=self.now,
            prompt_tokens=int(self.prompt.sum()),
            output_tokens=int(self.output.sum()),
            requests=self.count,
            steps=self.steps,
            running=self.most,
            prefill_share=self.prefill_seconds / self.now,
        )


def serve(model: StepModel, memory: MemoryUse, load: Load) -> Served:
    """Simulate a load. Raises UsageError where not even one request fits the memory."""
    return _Run(model, memory, load).run()


def _lengths(
    random: np.random.Generator, nominal: int, shortest: float, count: int
) -> NDArray[np.int64]:
    """Uniform lengths up to the nominal one."""
    return random.integers(max(1, round(shortest * nominal)), nominal + 1, count)


def _latencies(values: NDArray[np.float64]) -> Latencies:
    p50, p90, p99 = np.quantile(values, [0.5, 0.9, 0.99])
    return Latencies(float(values.mean()), float(p50), float(p90), float(p99))


__all__ = ["Latencies", "Load", "Served", "serve"]
