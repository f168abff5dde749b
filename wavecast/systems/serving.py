"""Serving: requests that arrive, wait, are prefilled and decoded, step by step.

`instances.Instance` chooses the steps of one engine. A client sends requests, a process of the
server takes them apart one after the other, and events are handled in the order of time. With
`Disaggregation`, some instances prefill and others decode.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.errors import UsageError
from wavecast.systems.disaggregation import Disaggregation
from wavecast.systems.instances import Instance, Requests
from wavecast.systems.memory import MemoryUse
from wavecast.systems.step import StepModel
from wavecast.systems.workload import Load

_ARRIVED, _STEPPED, _MOVED = range(3)
_QUANTILES: Final = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of all requests, in seconds: mean, median, 90 % and 99 % quantile."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class Served:
    """A simulated run: time to first token (`ttft`), time per output token after it (`tpot`), time
    between tokens of a request as the client receives them (`itl`), whole requests (`end_to_end`);
    `seconds` from the first arrival to the last token; tokens that were read and written; `steps`;
    the most sequences that ran at once on an instance, the share of time in steps that had prompts,
    and how often a sequence lost its cache and was computed again."""

    ttft: Latencies
    tpot: Latencies
    itl: Latencies
    end_to_end: Latencies
    seconds: float
    prompt_tokens: int
    output_tokens: int
    requests: int
    steps: int
    running: int
    prefill_share: float
    preemptions: int

    @property
    def output_rate(self) -> float:
        """Output tokens per second."""
        return self.output_tokens / self.seconds


class _Run:
    """The state of a simulation: events by time, instances, and the client."""

    def __init__(
        self, model: StepModel, memory: MemoryUse, load: Load, pools: Disaggregation | None
    ) -> None:
        self.load, self.pools, self.engine = load, pools, model.builder.engine
        self.arrival, prompts, outputs = load.drawn()
        parallel = model.builder.parallel
        ranks = parallel.tensor if parallel.attention_data else 1
        random = np.random.default_rng([load.seed, 1])
        self.requests = Requests(prompts, outputs, load.prefix, model.speculation, random)
        self._check(memory, ranks)
        self.first, self.end = np.zeros(prompts.size), np.zeros(prompts.size)

        def instances(count: int, *, prefills: bool, decodes: bool) -> list[Instance]:
            return [
                Instance(model, memory, ranks, self.requests, prefills=prefills, decodes=decodes)
                for _ in range(count)
            ]

        if pools is None:
            self.entry = self.decoders = instances(1, prefills=True, decodes=True)
            self.all = self.entry
        else:
            self.entry = instances(pools.prefill, prefills=True, decodes=False)
            self.decoders = instances(pools.decode, prefills=False, decodes=True)
            self.all = self.entry + self.decoders
        self.token = memory.token
        self.events: list[tuple[float, int, int, int]] = []
        self.order = self.sent = self.ended = 0
        self.server_free = self.now = 0.0

    def _check(self, memory: MemoryUse, ranks: int) -> None:
        needed = (self.requests.need + self.requests.outputs).max()
        if needed * memory.token + memory.sequence > memory.pool * ranks:
            number = int((self.requests.need + self.requests.outputs).argmax())
            tokens = int(self.requests.prompts[number] + self.requests.outputs[number])
            raise UsageError(
                f"a request of {tokens:,} tokens does not fit: the cache holds "
                f"{max(0, int(memory.pool * ranks / max(1.0, memory.token))):,}"
            )

    def run(self) -> Served:
        """Until every request has its tokens."""
        count = self.arrival.size
        first = min(count, self.load.concurrency) if self.load.concurrency else count
        for _ in range(first):
            self._send(float(self.arrival[self.sent]))
        while self.ended < count:
            self.now, _, kind, index = heapq.heappop(self.events)
            if kind == _ARRIVED:
                self._route(self.entry, index)
            elif kind == _MOVED:
                self.first[index] = self.now
                self._route(self.decoders, index)
            else:
                self._stepped(self.all[index])
        return self._result()

    def _push(self, time: float, kind: int, index: int) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, kind, index))

    def _send(self, time: float) -> None:
        """The client sends the next request; one process of the server reads it."""
        number, engine = self.sent, self.engine
        self.sent += 1
        self.arrival[number] = time
        prompt = int(self.requests.prompts[number])
        begin = max(time, self.server_free)
        self.server_free = begin + engine.admission + engine.tokenise * prompt
        self._push(self.server_free + engine.request, _ARRIVED, number)

    def _route(self, instances: list[Instance], number: int) -> None:
        """To the instance with the least to do."""
        chosen = min(instances, key=lambda instance: instance.load)
        chosen.receive(number)
        if not chosen.busy:
            self._start(chosen)

    def _start(self, instance: Instance) -> None:
        horizon = self.events[0][0] if self.events else math.inf
        end = instance.begin(self.now, horizon)
        if end is not None:
            self._push(end, _STEPPED, self.all.index(instance))

    def _stepped(self, instance: Instance) -> None:
        outcome = instance.finish(self.now)
        self.first[outcome.first] = self.now
        for number in outcome.prefilled:
            assert self.pools is not None
            size = self.token * int(self.requests.prompts[number])
            self._push(self.now + self.pools.seconds(size), _MOVED, number)
        for number in outcome.ended:
            self.end[number] = self.now
            self.ended += 1
            if self.load.concurrency and self.sent < self.arrival.size:
                self._send(self.now)
        self._start(instance)

    def _result(self) -> Served:
        outputs = self.requests.outputs
        several = outputs > 1
        tpot = (self.end - self.first)[several] / (outputs[several] - 1)
        start = float(self.arrival.min())
        seconds = self.now - start
        busy = sum(instance.seconds for instance in self.all)
        prefills = sum(instance.prefill_seconds for instance in self.all)
        gaps = np.concatenate([np.asarray(i.gaps).reshape(-1, 2) for i in self.decoders])
        return Served(
            ttft=_latencies(self.first - self.arrival),
            tpot=_latencies(tpot if tpot.size else np.zeros(1)),
            itl=_weighted(gaps[:, 0], gaps[:, 1]) if len(gaps) else _latencies(np.zeros(1)),
            end_to_end=_latencies(self.end - self.arrival),
            seconds=seconds,
            prompt_tokens=int(self.requests.prompts.sum()),
            output_tokens=int(outputs.sum()),
            requests=outputs.size,
            steps=sum(instance.steps for instance in self.all),
            running=max(instance.most for instance in self.decoders),
            prefill_share=prefills / busy,
            preemptions=sum(instance.preemptions for instance in self.all),
        )


def serve(
    model: StepModel, memory: MemoryUse, load: Load, pools: Disaggregation | None = None
) -> Served:
    """Simulate a load. Raises UsageError where not even one request fits the memory."""
    return _Run(model, memory, load, pools).run()


def _latencies(values: NDArray[np.float64]) -> Latencies:
    p50, p90, p99 = np.quantile(values, _QUANTILES)
    return Latencies(float(values.mean()), float(p50), float(p90), float(p99))


def _weighted(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Latencies:
    """Of values that occurred `weights` times."""
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    p50, p90, p99 = (float(values[order][np.searchsorted(share, q)]) for q in _QUANTILES)
    return Latencies(float(np.average(values, weights=weights)), p50, p90, p99)


__all__ = ["Disaggregation", "Latencies", "Load", "Served", "serve"]
