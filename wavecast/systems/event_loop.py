"""The events of a simulation of serving in the order of time, as compiled code.

A client sends requests, a process of the server takes them apart one after the other, instances
(`scheduler`) run steps, and with pools caches move between them.
"""

from __future__ import annotations

import math
from typing import Final

from wavecast.compile.loops import loop
from wavecast.systems.scheduler import append, choose, finish_decode, remove, schedule
from wavecast.systems.serving_state import INBOX, NOTHING, PREFILLING, RUNNING, WAITING

ENDED, PRICE, GROW = range(3)
"""Why `run` returned: every request has its tokens, a cell of the grid is unknown, `gaps` is full.
After the other two it continues where it was when it is called again."""
_ARRIVED: Final = 0
_STEPPED: Final = 1
_MOVED: Final = 2


@loop
def run(state, grids, prefill_grids):  # pragma: no cover
    """Simulate until every request has its tokens; see `ENDED`. Steps of instances that only
    prefill take their times from `prefill_grids`."""
    load, client = state.load[0], state.client[0]
    requests, instances, events = state.requests, state.instances, state.events
    entry = state.engine[instances[0].profile]
    if client.sent == 0:
        first = len(requests)
        if load.concurrency > 0:
            first = min(first, load.concurrency)
        for number in range(first):
            _send(requests, events, client, entry, requests[number].arrival)
    while client.ended < len(requests):
        if client.pending < 0:
            if client.gaps + 2 > len(state.gaps):
                return GROW
            event = events[0]
            client.now, kind, index = event.time, event.kind, event.index
            _pop(events, client)
            if kind == _STEPPED:
                _finish(state, index)
                client.pending = index
            else:
                first, end = 0, load.entries
                if kind == _MOVED:
                    first, end = load.first_decoder, len(instances)
                target = _least(instances, first, end)
                if kind == _MOVED:
                    instance = instances[target]
                    requests[index].ready = instance.steps + state.engine[instance.profile].handover
                append(instances[target], INBOX, requests, index)
                client.pending = -1 if instances[target].busy > 0 else target
            client.scheduled = 0
        if client.pending >= 0:
            instance = instances[client.pending]
            engine = state.engine[instance.profile]
            if client.scheduled == 0 and choose(instance, requests, engine, load, client.now) == 0:
                client.pending = -1
                continue
            client.scheduled = 1
            horizon = events[0].time if client.events > 0 else math.inf
            times = grids if instance.profile == 0 else prefill_grids
            seconds = schedule(
                instance, requests, engine, state.captures, load, times, client.now, horizon
            )
            if math.isnan(seconds):
                return PRICE
            _push(events, client, client.now + seconds, _STEPPED, client.pending)
            client.pending = -1
    return ENDED


@loop
def _send(requests, events, client, engine, time):  # pragma: no cover
    """The client sends the next request; one process of the server reads it."""
    number = client.sent
    client.sent += 1
    requests[number].arrival = time
    begin = max(time, client.server_free)
    client.server_free = begin + engine.admission + engine.tokenise * requests[number].prompt
    _push(events, client, client.server_free + engine.request, _ARRIVED, number)


@loop
def _least(instances, first, end):  # pragma: no cover
    """The instance with the fewest requests."""
    least_busy = first
    for index in range(first + 1, end):
        if _requests(instances[index]) < _requests(instances[least_busy]):
            least_busy = index
    return least_busy


@loop
def _requests(instance):  # pragma: no cover
    return (
        instance.count[INBOX]
        + instance.count[WAITING]
        + instance.count[PREFILLING]
        + instance.count[RUNNING]
    )


@loop
def _finish(state, index):  # pragma: no cover
    """Apply the step of an instance that ends now."""
    load, client = state.load[0], state.client[0]
    requests, events, instance, now = (
        state.requests,
        state.events,
        state.instances[index],
        client.now,
    )
    engine, entry = state.engine[instance.profile], state.engine[state.instances[0].profile]
    seconds = instance.each * instance.times
    decoding = instance.decoding * instance.count[RUNNING]
    instance.steps += instance.times
    instance.most = max(instance.most, decoding + instance.chunks)
    instance.seconds += seconds
    if decoding > 0:
        gap = finish_decode(instance, requests, load, now)
        if index >= load.first_decoder:
            state.gaps[client.gaps, 0], state.gaps[client.gaps, 1] = gap, decoding
            client.gaps += 1
            if instance.times > 1:
                state.gaps[client.gaps, 0] = instance.each
                state.gaps[client.gaps, 1] = decoding * (instance.times - 1)
                client.gaps += 1
    if instance.chunks > 0:
        instance.prefill_seconds += seconds
        instance.unseen, instance.postponed = engine.poll, 0
        _finish_prefill(instance, requests, events, client, load)
    else:
        instance.unseen += instance.times
        if instance.count[PREFILLING] > 0:
            instance.postponed += instance.times
    number = instance.head[RUNNING]
    while number != NOTHING:
        after = requests[number].next
        if requests[number].written >= requests[number].output:
            remove(instance, RUNNING, requests, number)
            instance.used -= requests[number].stored * instance.token + instance.sequence
            requests[number].end = now
            client.ended += 1
            if load.concurrency > 0 and client.sent < len(requests):
                _send(requests, events, client, entry, now)
        number = after
    instance.busy = 0


@loop
def _finish_prefill(instance, requests, events, client, load):  # pragma: no cover
    """Chunks are in the cache; prompts that are complete have a token more."""
    number = instance.head[PREFILLING]
    for _ in range(instance.chunks):
        request, after = requests[number], requests[number].next
        request.stored += request.chunk
        instance.used += request.chunk * instance.token
        if request.stored >= request.need:
            remove(instance, PREFILLING, requests, number)
            if request.written == 0:
                request.first = client.now
            request.written += 1
            if request.written >= request.output or instance.decodes > 0:
                append(instance, RUNNING, requests, number)
            else:
                instance.used -= instance.sequence + request.stored * instance.token
                request.stored = 0
                size = instance.token * request.prompt
                _push(
                    events, client, client.now + load.setup + size / load.bandwidth, _MOVED, number
                )
        number = after


# --- events by time, a binary heap ------------------------------------------------------------


@loop
def _push(events, client, time, kind, index):  # pragma: no cover
    client.order += 1
    at = client.events
    client.events += 1
    while at > 0:
        above = (at - 1) // 2
        if events[above].time <= time:
            break
        _copy(events, at, above)
        at = above
    events[at].time, events[at].order = time, client.order
    events[at].kind, events[at].index = kind, index


@loop
def _pop(events, client):  # pragma: no cover
    """Remove the first event."""
    client.events -= 1
    last, at = client.events, 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and _before(events, below + 1, below):
            below += 1
        if not _before(events, below, last):
            break
        _copy(events, at, below)
        at = below
    _copy(events, at, last)


@loop
def _before(events, first, second):  # pragma: no cover
    if events[first].time != events[second].time:
        return events[first].time < events[second].time
    return events[first].order < events[second].order


@loop
def _copy(events, to, source):  # pragma: no cover
    events[to].time, events[to].order = events[source].time, events[source].order
    events[to].kind, events[to].index = events[source].kind, events[source].index


__all__ = ["ENDED", "GROW", "PRICE", "run"]
