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
def append(own, queue, requests, number):  # pragma: no cover
    """A request to the end of a queue."""
    tail = own.tail[queue]
    requests[number].previous, requests[number].next = tail, NOTHING
    if tail == NOTHING:
        own.head[queue] = number
    else:
        requests[tail].next = number
    own.tail[queue] = number
    own.count[queue] += 1


@loop
def _put_first(own, queue, requests, number):  # pragma: no cover
    head = own.head[queue]
    requests[number].previous, requests[number].next = NOTHING, head
    if head == NOTHING:
        own.tail[queue] = number
    else:
        requests[head].previous = number
    own.head[queue] = number
    own.count[queue] += 1


@loop
def remove(own, queue, requests, number):  # pragma: no cover
    """A request from a queue it is in."""
    before, after = requests[number].previous, requests[number].next
    if before == NOTHING:
        own.head[queue] = after
    else:
        requests[before].next = after
    if after == NOTHING:
        own.tail[queue] = before
    else:
        requests[after].previous = before
    own.count[queue] -= 1


@loop
def choose(own, requests, engine, load, now):  # pragma: no cover
    """What the next step computes. Returns 0 where there is nothing to do."""
    if own.count[RUNNING] == 0 or own.unseen >= engine.poll:
        while own.count[INBOX] > 0:
            number = own.head[INBOX]
            if own.count[RUNNING] > 0 and requests[number].ready > own.steps:
                break
            remove(own, INBOX, requests, number)
            append(own, WAITING, requests, number)
        own.unseen = 0
    _admit(own, requests, engine, now)
    own.chunks, own.decoding = 0, 1
    if own.count[RUNNING] + own.count[PREFILLING] == 0:
        own.busy, own.last = 0, math.nan
        return 0
    own.busy = 1
    if own.count[PREFILLING] > 0 and not _postponed(own, requests, engine):
        own.decoding = engine.mixed
        _cut(own, requests, engine.batched_tokens - own.decoding * own.count[RUNNING])
    while not _room(own, requests, load):
        _preempt(own, requests)
    return 1


@loop
def _admit(own, requests, engine, now):  # pragma: no cover
    """Waiting requests, in order, whose tokens fit with those that are already cached and with
    the share of the outputs to come that the engine reserves, where it decodes. The client gets
    the first token of a request that was prefilled elsewhere when its cache has room here."""
    if own.count[WAITING] == 0:
        return
    missing = coming = 0
    for queue in (RUNNING, PREFILLING):
        number = own.head[queue]
        while number != NOTHING:
            request = requests[number]
            missing += max(request.need - request.stored, 0)
            coming += request.output - request.written
            number = request.next
    while own.count[WAITING] > 0:
        active = own.count[RUNNING] + own.count[PREFILLING]
        if active >= engine.sequences:
            return
        number = own.head[WAITING]
        request = requests[number]
        left = request.output - request.written
        tokens = missing + request.need + own.decodes * engine.reserve * (coming + left)
        if active > 0 and own.used + own.sequence + tokens * own.token > own.pool:
            return
        remove(own, WAITING, requests, number)
        own.used += own.sequence
        coming += left
        if own.prefills > 0:
            append(own, PREFILLING, requests, number)
            missing += max(request.need - request.stored, 0)
        else:
            if request.written == 1:
                request.first = now
            request.stored += request.need
            own.used += request.need * own.token
            append(own, RUNNING, requests, number)


@loop
def _postponed(own, requests, engine):  # pragma: no cover
    """Whether prompts wait for more of them, to be prefilled together."""
    if engine.wait_steps == 0 or own.count[RUNNING] == 0:
        return False
    waiting = own.count[RUNNING]
    number = own.head[PREFILLING]
    while number != NOTHING:
        waiting += requests[number].need - requests[number].stored
        number = requests[number].next
    full = waiting >= engine.wait_share * engine.batched_tokens
    return not full and own.postponed < engine.wait_steps


@loop
def _cut(own, requests, budget):  # pragma: no cover
    """The next pieces of prompts, in order, and their tokens."""
    number = own.head[PREFILLING]
    while number != NOTHING:
        count = min(requests[number].need - requests[number].stored, budget)
        if count <= 0:
            return
        requests[number].chunk = count
        own.chunks += 1
        budget -= count
        number = requests[number].next


@loop
def _room(own, requests, load):  # pragma: no cover
    """Whether the tokens of the step fit, or there is nothing left to preempt."""
    if own.count[RUNNING] <= 1:
        return True
    tokens = own.decoding * own.count[RUNNING] * (1 + load.drafted)
    number = own.head[PREFILLING]
    for _ in range(own.chunks):
        tokens += requests[number].chunk
        number = requests[number].next
    return own.used + tokens * own.token <= own.pool


@loop
def _preempt(own, requests):  # pragma: no cover
    """The sequence that was admitted last loses its cache and waits to be computed again."""
    number = own.tail[RUNNING]
    remove(own, RUNNING, requests, number)
    request = requests[number]
    own.used -= own.sequence + request.stored * own.token
    request.stored = 0
    request.need = request.prompt - request.hits + request.written
    _put_first(own, WAITING, requests, number)
    own.preemptions += 1


@loop
def schedule(own, requests, engine, captures, load, grids, now, horizon):  # pragma: no cover
    """Seconds until the end of the chosen step, or of several equal ones: the next event elsewhere
    is at `horizon`. NaN where a cell of the grid is unknown."""
    seconds = _seconds(own, requests, engine, captures, grids, 1)
    if math.isnan(seconds):
        return seconds
    times = 1
    if own.chunks == 0 and load.drafted == 0:
        times = _together(own, requests, engine, now, horizon, seconds)
    if times > 1:
        seconds = _seconds(own, requests, engine, captures, grids, times)
    own.times, own.each = times, seconds
    return seconds * times


@loop
def _seconds(own, requests, engine, captures, grids, times):  # pragma: no cover
    context = tokens = before = 0.0
    decode = own.decoding * own.count[RUNNING]
    if decode > 0:
        number = own.head[RUNNING]
        while number != NOTHING:
            context += requests[number].hits + requests[number].stored
            number = requests[number].next
        context = context / decode + 1 + times / 2
    if own.chunks > 0:
        number = own.head[PREFILLING]
        for _ in range(own.chunks):
            tokens += requests[number].chunk
            before += requests[number].hits + requests[number].stored
            number = requests[number].next
        tokens, before = tokens / own.chunks, before / own.chunks
    return grid_seconds(engine, captures, grids, decode, context, own.chunks, tokens, before)


@loop
def _together(own, requests, engine, now, horizon, seconds):  # pragma: no cover
    """Decode steps until something changes."""
    times = _TOGETHER
    number = own.head[RUNNING]
    while number != NOTHING:
        times = min(times, requests[number].output - requests[number].written)
        number = requests[number].next
    if own.count[PREFILLING] > 0:
        times = min(times, engine.wait_steps - own.postponed)
    if engine.poll > 1:
        times = min(times, engine.poll - own.unseen)
    elif math.isfinite(horizon):
        times = min(times, math.ceil(min(float(_TOGETHER), (horizon - now) / seconds)))
    if own.count[INBOX] > 0:
        times = min(times, max(1, requests[own.head[INBOX]].ready - own.steps))
    if own.token > 0:
        room = (own.pool - own.used) / (own.token * own.count[RUNNING])
        times = min(times, int(min(float(_TOGETHER), room)))
    return max(1, times)


@loop
def decoded(own, requests, load, now):  # pragma: no cover
    """The running sequences have the tokens of the steps that have ended at `now`. Returns the time
    since their last token."""
    number = own.head[RUNNING]
    while number != NOTHING:
        request = requests[number]
        count = own.times
        if load.drafted > 0:
            count = min(_accepted(request, load, number), request.output - request.written)
        request.written += count
        request.stored += count
        own.used += count * own.token
        number = request.next
    gap = own.each
    if not math.isnan(own.last):
        gap = now - own.last - own.each * (own.times - 1)
    own.last = now
    return gap


@loop
def _accepted(request, load, number):  # pragma: no cover
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


__all__ = ["append", "choose", "decoded", "remove", "schedule"]
