"""One engine, as compiled code: which requests it admits, and what its next step computes.

With `mixed` steps, decoding sequences come first and chunks of prompts fill the budget of tokens;
otherwise a step of waiting prompts runs before the next step of decoding. Equal decode steps are
advanced together until something changes. Records are those of `serving_state`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from wavecast.compile.loops import loop
from wavecast.systems.serving_state import INBOX, NOTHING, PREFILLING, RUNNING, WAITING
from wavecast.systems.step_grid import grid_seconds

_TOGETHER: Final = 32
"""Most decode steps that are advanced at once."""
_MIX_1: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_2: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_3: Final = np.uint64(0x94D049BB133111EB)
_30: Final = np.uint64(30)
_27: Final = np.uint64(27)
_31: Final = np.uint64(31)
_11: Final = np.uint64(11)
"""SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""


@loop
def append(instance, queue, requests, number):  # pragma: no cover
    """A request to the end of a queue."""
    tail = instance.tail[queue]
    requests[number].previous, requests[number].next = tail, NOTHING
    if tail == NOTHING:
        instance.head[queue] = number
    else:
        requests[tail].next = number
    instance.tail[queue] = number
    instance.count[queue] += 1


@loop
def _put_first(instance, queue, requests, number):  # pragma: no cover
    head = instance.head[queue]
    requests[number].previous, requests[number].next = NOTHING, head
    if head == NOTHING:
        instance.tail[queue] = number
    else:
        requests[head].previous = number
    instance.head[queue] = number
    instance.count[queue] += 1


@loop
def remove(instance, queue, requests, number):  # pragma: no cover
    """A request from a queue it is in."""
    before, after = requests[number].previous, requests[number].next
    if before == NOTHING:
        instance.head[queue] = after
    else:
        requests[before].next = after
    if after == NOTHING:
        instance.tail[queue] = before
    else:
        requests[after].previous = before
    instance.count[queue] -= 1


@loop
def choose(instance, requests, engine, load, now):  # pragma: no cover
    """What the next step computes. Returns 0 where there is nothing to do."""
    if instance.count[RUNNING] == 0 or instance.unseen >= engine.poll:
        while instance.count[INBOX] > 0:
            number = instance.head[INBOX]
            if instance.count[RUNNING] > 0 and requests[number].ready > instance.steps:
                break
            remove(instance, INBOX, requests, number)
            append(instance, WAITING, requests, number)
        instance.unseen = 0
    _admit(instance, requests, engine, now)
    instance.chunks, instance.decoding = 0, 1
    if instance.count[RUNNING] + instance.count[PREFILLING] == 0:
        instance.busy, instance.last = 0, math.nan
        return 0
    instance.busy = 1
    if instance.count[PREFILLING] > 0 and not _is_prefill_deferred(instance, requests, engine):
        instance.decoding = engine.mixed
        _cut(
            instance, requests, engine.batched_tokens - instance.decoding * instance.count[RUNNING]
        )
    while not _room(instance, requests, load):
        _preempt(instance, requests)
    return 1


@loop
def _admit(instance, requests, engine, now):  # pragma: no cover
    """Waiting requests, in order, whose tokens fit with those that are already cached and with
    the share of the outputs to come that the engine reserves, where it decodes. The client gets
    the first token of a request that was prefilled elsewhere when its cache has room here."""
    if instance.count[WAITING] == 0:
        return
    missing = coming = 0
    for queue in (RUNNING, PREFILLING):
        number = instance.head[queue]
        while number != NOTHING:
            request = requests[number]
            missing += max(request.need - request.stored, 0)
            coming += request.output - request.written
            number = request.next
    while instance.count[WAITING] > 0:
        active = instance.count[RUNNING] + instance.count[PREFILLING]
        if active >= engine.sequences:
            return
        number = instance.head[WAITING]
        request = requests[number]
        output_tokens = request.output - request.written
        tokens = (
            missing + request.need + instance.decodes * engine.reserve * (coming + output_tokens)
        )
        if (
            active > 0
            and instance.used + instance.sequence + tokens * instance.token > instance.pool
        ):
            return
        remove(instance, WAITING, requests, number)
        instance.used += instance.sequence
        coming += output_tokens
        if instance.prefills > 0:
            append(instance, PREFILLING, requests, number)
            missing += max(request.need - request.stored, 0)
        else:
            if request.written == 1:
                request.first = now
            request.stored += request.need
            instance.used += request.need * instance.token
            append(instance, RUNNING, requests, number)


@loop
def _is_prefill_deferred(instance, requests, engine):  # pragma: no cover
    """Whether prompts wait for more of them, to be prefilled together."""
    if engine.wait_steps == 0 or instance.count[RUNNING] == 0:
        return False
    waiting = instance.count[RUNNING]
    number = instance.head[PREFILLING]
    while number != NOTHING:
        waiting += requests[number].need - requests[number].stored
        number = requests[number].next
    full = waiting >= engine.wait_share * engine.batched_tokens
    return not full and instance.postponed < engine.wait_steps


@loop
def _cut(instance, requests, budget):  # pragma: no cover
    """The next pieces of prompts, in order, and their tokens."""
    number = instance.head[PREFILLING]
    while number != NOTHING:
        count = min(requests[number].need - requests[number].stored, budget)
        if count <= 0:
            return
        requests[number].chunk = count
        instance.chunks += 1
        budget -= count
        number = requests[number].next


@loop
def _room(instance, requests, load):  # pragma: no cover
    """Whether the tokens of the step fit, or there is nothing left to preempt."""
    if instance.count[RUNNING] <= 1:
        return True
    tokens = instance.decoding * instance.count[RUNNING] * (1 + load.drafted)
    number = instance.head[PREFILLING]
    for _ in range(instance.chunks):
        tokens += requests[number].chunk
        number = requests[number].next
    return instance.used + tokens * instance.token <= instance.pool


@loop
def _preempt(instance, requests):  # pragma: no cover
    """The sequence that was admitted last loses its cache and waits to be computed again."""
    number = instance.tail[RUNNING]
    remove(instance, RUNNING, requests, number)
    request = requests[number]
    instance.used -= instance.sequence + request.stored * instance.token
    request.stored = 0
    request.need = request.prompt - request.hits + request.written
    _put_first(instance, WAITING, requests, number)
    instance.preemptions += 1


@loop
def schedule(instance, requests, engine, captures, load, grids, now, horizon):  # pragma: no cover
    """Seconds until the end of the chosen step, or of several equal ones: the next event elsewhere
    is at `horizon`. NaN where a cell of the grid is unknown."""
    seconds = _seconds(instance, requests, engine, captures, grids, 1)
    if math.isnan(seconds):
        return seconds
    times = 1
    if instance.chunks == 0 and load.drafted == 0:
        times = _together(instance, requests, engine, now, horizon, seconds)
    if times > 1:
        seconds = _seconds(instance, requests, engine, captures, grids, times)
    instance.times, instance.each = times, seconds
    return seconds * times


@loop
def _seconds(instance, requests, engine, captures, grids, times):  # pragma: no cover
    context = tokens = before = 0.0
    decode = instance.decoding * instance.count[RUNNING]
    if decode > 0:
        number = instance.head[RUNNING]
        while number != NOTHING:
            context += requests[number].hits + requests[number].stored
            number = requests[number].next
        context = context / decode + 1 + times / 2
    if instance.chunks > 0:
        number = instance.head[PREFILLING]
        for _ in range(instance.chunks):
            tokens += requests[number].chunk
            before += requests[number].hits + requests[number].stored
            number = requests[number].next
        tokens, before = tokens / instance.chunks, before / instance.chunks
    return grid_seconds(engine, captures, grids, decode, context, instance.chunks, tokens, before)


@loop
def _together(instance, requests, engine, now, horizon, seconds):  # pragma: no cover
    """Decode steps until something changes."""
    times = _TOGETHER
    number = instance.head[RUNNING]
    while number != NOTHING:
        times = min(times, requests[number].output - requests[number].written)
        number = requests[number].next
    if instance.count[PREFILLING] > 0:
        times = min(times, engine.wait_steps - instance.postponed)
    if engine.poll > 1:
        times = min(times, engine.poll - instance.unseen)
    elif math.isfinite(horizon):
        times = min(times, math.ceil(min(float(_TOGETHER), (horizon - now) / seconds)))
    if instance.count[INBOX] > 0:
        times = min(times, max(1, requests[instance.head[INBOX]].ready - instance.steps))
    if instance.token > 0:
        room = (instance.pool - instance.used) / (instance.token * instance.count[RUNNING])
        times = min(times, int(min(float(_TOGETHER), room)))
    return max(1, times)


@loop
def finish_decode(instance, requests, load, now):  # pragma: no cover
    """The running sequences have the tokens of the steps that have ended at `now`. Returns the time
    since their last token."""
    number = instance.head[RUNNING]
    while number != NOTHING:
        request = requests[number]
        count = instance.times
        if load.drafted > 0:
            count = min(_accepted_tokens(request, load, number), request.output - request.written)
        request.written += count
        request.stored += count
        instance.used += count * instance.token
        number = request.next
    gap = instance.each
    if not math.isnan(instance.last):
        gap = now - instance.last - instance.each * (instance.times - 1)
    instance.last = now
    return gap


@loop
def _accepted_tokens(request, load, number):  # pragma: no cover
    """Tokens that a verifying step yields. Whether a drafted token agrees depends on the request
    and on its position in the output only."""
    count = 1
    while count <= load.drafted:
        position = request.written + count - 1
        if _uniform(load.seed, number, position) >= request.acceptance:
            return count
        count += 1
    return count


@loop
def _uniform(seed, number, position):  # pragma: no cover
    """A number from 0 to 1 (exclusive) that depends on three integers."""
    mixed = np.uint64(seed)
    for value in (number, position):
        mixed = (mixed ^ np.uint64(value)) * _MIX_2 + _MIX_1
        mixed = (mixed ^ (mixed >> _30)) * _MIX_2
        mixed = (mixed ^ (mixed >> _27)) * _MIX_3
        mixed = mixed ^ (mixed >> _31)
    return np.float64(mixed >> _11) * 2.0**-53


__all__ = ["append", "choose", "finish_decode", "remove", "schedule"]
