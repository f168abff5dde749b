"""One engine: which requests it admits, and what its next step computes.

With `mixed` steps, decoding sequences come first and chunks of prompts fill the budget of tokens;
otherwise a step of waiting prompts runs before the next step of decoding. Equal decode steps are
advanced together until something changes.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.systems.memory import MemoryUse
from wavecast.systems.speculation import Speculation
from wavecast.systems.step import StepModel

_TOGETHER: Final = 32
"""Most decode steps that are advanced at once."""


class Requests:
    """Requests by number; arrays have a value for each.

    `need` is the number of tokens that a prefill computes: those of the prompt that no earlier
    request left in the prefix cache (`hits`), and after a preemption the written ones. `stored` of
    them are in the cache, `written` tokens of the output exist.
    """

    def __init__(
        self,
        prompts: NDArray[np.int64],
        outputs: NDArray[np.int64],
        prefix: float,
        speculation: Speculation | None,
        random: np.random.Generator,
    ) -> None:
        self.prompts, self.outputs, self.random = prompts, outputs, random
        self.hits = np.floor(prefix * prompts).astype(np.int64)
        self.need = prompts - self.hits
        self.stored = np.zeros_like(prompts)
        self.written = np.zeros_like(prompts)
        self.speculation = speculation
        self.acceptance = speculation.drawn(random, prompts.size) if speculation else None


@dataclass(slots=True)
class StepOutcome:
    """What a step did: requests whose first token exists, whose prefill is over on an instance that
    does not decode, and that have all their tokens."""

    first: list[int] = field(default_factory=list)
    prefilled: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)


class Instance:
    """One engine with its GPUs. `begin` chooses a step, `finish` applies it."""

    def __init__(
        self,
        model: StepModel,
        memory: MemoryUse,
        ranks: int,
        requests: Requests,
        *,
        prefills: bool,
        decodes: bool,
    ) -> None:
        self.model, self.requests, self.engine = model, requests, model.builder.engine
        self.prefills, self.decodes = prefills, decodes
        # With data-parallel attention, a sequence is cached by one of the ranks.
        shared = memory.token * float(requests.hits.max())
        self.pool = memory.pool * ranks - shared
        self.token, self.sequence = memory.token, memory.sequence
        self.inbox: deque[int] = deque()
        self.waiting: deque[int] = deque()
        self.prefilling: deque[int] = deque()
        self.running = np.zeros(0, dtype=np.int64)
        self.used = 0.0
        self.busy = False
        self.unseen = 0  # decode steps since the engine looked for new requests
        self.postponed = 0  # decode steps for which prompts were left waiting for more of them
        self.chunks: list[tuple[int, int]] = []
        self.decoding = self.running
        self.times, self.each, self.last = 1, 0.0, math.nan
        self.steps = self.most = self.preemptions = 0
        self.seconds = self.prefill_seconds = 0.0
        self.gaps: list[tuple[float, float]] = []

    @property
    def load(self) -> int:
        """Requests that it has."""
        return len(self.inbox) + self.active + len(self.waiting)

    @property
    def active(self) -> int:
        """Requests that are admitted."""
        return len(self.prefilling) + self.running.size

    def receive(self, number: int) -> None:
        """A request arrives."""
        self.inbox.append(number)

    # --- choosing a step -----------------------------------------------------------------------

    def begin(self, now: float, horizon: float) -> float | None:
        """Start the next step; the next event elsewhere is at `horizon`. Its end in seconds, None
        where there is nothing to do."""
        if not self.running.size or self.unseen >= self.engine.poll:
            self.waiting.extend(self.inbox)
            self.inbox.clear()
            self.unseen = 0
        self._admit()
        self.busy = bool(self.active)
        if not self.busy:
            self.last = math.nan
            return None
        self.chunks, self.decoding = [], self.running
        if self.prefilling and not self._postponed():
            if not self.engine.mixed:
                self.decoding = self.running[:0]
            self.chunks = self._chunks(self.engine.batched_tokens - self.decoding.size)
        while not self._room():
            self._preempt()
        seconds = self._seconds(1)
        self.times = 1 if self.chunks else self._together(now, horizon, seconds)
        self.each = self._seconds(self.times) if self.times > 1 else seconds
        return now + self.each * self.times

    def _admit(self) -> None:
        """Waiting requests, in order, whose tokens fit with those that are already cached and with
        the share of the outputs to come that the engine reserves."""
        requests = self.requests
        while self.waiting and self.active < self.engine.sequences:
            number = self.waiting[0]
            active = np.concatenate([self.running, np.array(self.prefilling, dtype=np.int64)])
            missing = np.maximum(requests.need - requests.stored, 0)[active].sum()
            coming = (requests.outputs - requests.written)[active].sum()
            coming += requests.outputs[number] - requests.written[number]
            tokens = missing + requests.need[number] + self.engine.reserve * coming
            if self.active and self.used + self.sequence + tokens * self.token > self.pool:
                return
            self.waiting.popleft()
            self.used += self.sequence
            if self.prefills:
                self.prefilling.append(number)
            else:
                self._store(number, int(requests.need[number]))
                self.running = np.append(self.running, number)

    def _store(self, number: int, count: int) -> None:
        self.requests.stored[number] += count
        self.used += count * self.token

    def _postponed(self) -> bool:
        """Whether prompts wait for more of them, to be prefilled together."""
        engine, requests = self.engine, self.requests
        if not engine.wait_steps or not self.running.size:
            return False
        waiting = sum(int(requests.need[n] - requests.stored[n]) for n in self.prefilling)
        full = waiting + self.running.size >= engine.wait_share * engine.batched_tokens
        return not full and self.postponed < engine.wait_steps

    def _chunks(self, budget: int) -> list[tuple[int, int]]:
        """The next pieces of prompts, in order, and their tokens."""
        found = []
        for number in self.prefilling:
            left = int(self.requests.need[number] - self.requests.stored[number])
            count = min(left, budget)
            if count <= 0:
                break
            found.append((number, count))
            budget -= count
        return found

    def _room(self) -> bool:
        """Whether the tokens of the step fit, or there is nothing left to preempt."""
        tokens = sum(count for _, count in self.chunks) + self.decoding.size * self._queries
        return self.running.size <= 1 or self.used + tokens * self.token <= self.pool

    def _preempt(self) -> None:
        """The sequence that was admitted last loses its cache and waits to be computed again."""
        number = int(self.running[-1])
        self.running = self.running[:-1]
        if self.decoding.size:
            self.decoding = self.running
        requests = self.requests
        self.used -= self.sequence + int(requests.stored[number]) * self.token
        requests.stored[number] = 0
        requests.need[number] = (
            requests.prompts[number] - requests.hits[number] + requests.written[number]
        )
        self.waiting.appendleft(number)
        self.preemptions += 1

    @property
    def _queries(self) -> int:
        """Tokens that a decoding sequence computes in a step."""
        return 1 + self.requests.speculation.tokens if self.requests.speculation else 1

    def _seconds(self, times: int) -> float:
        requests, decoding = self.requests, self.decoding
        context = tokens = before = 0.0
        if decoding.size:
            context = float((requests.hits[decoding] + requests.stored[decoding]).mean())
            context += 1 + times / 2
        if self.chunks:
            tokens = sum(count for _, count in self.chunks) / len(self.chunks)
            numbers = [number for number, _ in self.chunks]
            before = float((requests.hits[numbers] + requests.stored[numbers]).mean())
        return self.model.seconds(decoding.size, context, len(self.chunks), tokens, before)

    def _together(self, now: float, horizon: float, seconds: float) -> int:
        """Decode steps until something changes."""
        if self.requests.speculation:
            return 1
        left = int((self.requests.outputs - self.requests.written)[self.running].min())
        times = min(left, _TOGETHER)
        if self.prefilling:
            times = min(times, self.engine.wait_steps - self.postponed)
        if self.engine.poll > 1:
            times = min(times, self.engine.poll - self.unseen)
        elif math.isfinite(horizon):
            times = min(times, math.ceil((horizon - now) / seconds))
        room = (self.pool - self.used) / (self.token * self.running.size) if self.token else times
        return max(1, min(times, int(room)))

    # --- applying it ---------------------------------------------------------------------------

    def finish(self, now: float) -> StepOutcome:
        """Apply the step that has ended at `now`."""
        outcome = StepOutcome()
        seconds = self.each * self.times
        self.steps += self.times
        self.most = max(self.most, self.decoding.size + len(self.chunks))
        self.seconds += seconds
        self.prefill_seconds += seconds if self.chunks else 0.0
        if self.decoding.size:
            self._decoded(now)
        if self.chunks:
            self.unseen, self.postponed = self.engine.poll, 0
        else:
            self.unseen += self.times
            self.postponed += self.times if self.prefilling else 0
        for number, count in self.chunks:
            self._store(number, count)
            if self.requests.stored[number] >= self.requests.need[number]:
                self.prefilling.remove(number)
                self._prefilled(number, outcome)
        self._retire(outcome)
        self.busy = False
        return outcome

    def _decoded(self, now: float) -> None:
        requests, numbers = self.requests, self.decoding
        if requests.speculation and requests.acceptance is not None:
            drawn = requests.speculation.accepted(requests.random, requests.acceptance[numbers])
            count = np.minimum(drawn, (requests.outputs - requests.written)[numbers])
        else:
            count = np.full(numbers.size, self.times)
        requests.written[numbers] += count
        requests.stored[numbers] += count
        self.used += int(count.sum()) * self.token
        gap = self.each if math.isnan(self.last) else now - self.last - self.each * (self.times - 1)
        self.gaps.append((gap, numbers.size))
        if self.times > 1:
            self.gaps.append((self.each, numbers.size * (self.times - 1)))
        self.last = now

    def _prefilled(self, number: int, outcome: StepOutcome) -> None:
        requests = self.requests
        if not requests.written[number]:
            outcome.first.append(number)
        requests.written[number] += 1
        if requests.written[number] >= requests.outputs[number] or self.decodes:
            self.running = np.append(self.running, number)
            return
        self.used -= self.sequence + int(requests.stored[number]) * self.token
        requests.stored[number] = 0
        outcome.prefilled.append(number)

    def _retire(self, outcome: StepOutcome) -> None:
        requests = self.requests
        over = requests.written[self.running] >= requests.outputs[self.running]
        if not over.any():
            return
        numbers = self.running[over]
        self.used -= float(requests.stored[numbers].sum()) * self.token
        self.used -= self.sequence * numbers.size
        outcome.ended.extend(int(number) for number in numbers)
        self.running = self.running[~over]


__all__ = ["Instance", "Requests", "StepOutcome"]
