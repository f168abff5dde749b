"""The compiled loop: waves of one compute unit, slot by slot.

Time is in clocks. Each SIMD looks every `period` clocks at its waves, the ones of highest priority
and then the oldest first, and issues what is ready: at most one instruction per wave and category.
A wave's next instruction is ready when

- the instruction before it has issued (and a no-op's or a taken branch's slots have passed),
- its registers are (for a matrix accumulator earlier than for others),
- the counters it waits for have fallen, or there is room in the counter it counts in,
- its pipe is free, and the queue of the LDS or of the address path is not full.

Memory is a chain of servers: tag lookups, then this unit's share of L2, memory-side cache and
memory, each in the order of requests; a request is done when the last of its bytes is, plus the
latency of the levels it came from, weighted by the bytes of each. What memory adds to the latency
of the level before it is exponentially distributed around its mean: waves that wait for many
requests, or for each other at a barrier, wait for the slowest. The draws are those of a sequence
that fills the distribution evenly, the same in every run. Waiting of a wave is charged,
clock by clock, to its next instruction and to a cause (`CAUSES`).

A step of a wave represents `weight` executions: loops are cut to some iterations (`fold`). Charges,
counts and busy clocks are weighted; times are those of the shortened waves.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from wavecast.compile.loops import always_inline, loop
from wavecast.perfmodel import streams as r
from wavecast.perfmodel.cu import code as c
from wavecast.perfmodel.cu.state import RING
from wavecast.perfmodel.simulation import causes as k

ADDRESSES: Final = 256.0
"""Bytes of addresses that share the LDS port with the data of a store: 64 lanes of 4 (AMD, ROCm
Compute Profiler, "Local data share")."""
FETCH_BUFFER: Final = 64.0
"""Clocks of code a wave's instruction buffers hold ahead."""
_NEVER: Final = 1e30
_GOLDEN: Final = (5**0.5 - 1) / 2
"""Multiples of it, without their whole part, fill the interval from 0 to 1 evenly."""
_WAITS: Final = 8
"""The bit of a wave's `level` that says it waits at a barrier. The other bits are its priority, 0
to 3."""


@loop
def simulate(
    program, executed, state, account, template, begins, finish, events
):  # pragma: no cover
    """Run workgroups `template` (i32[n], in order of dispatch, not before `begins`, f64[n]) of the
    streams `executed` of a `program` on an idle unit (the tuples of `state`).

    Writes when each ended to `finish` (f64[n]), what waves did to `account`, and the first m issues
    to `events` (f64[m, 5]): time, SIMD, wave slot, instruction, clocks. Returns how many of those.
    """
    records, spans, limits = program
    per_group, steps, weights, start, rows, rows_start = executed
    machines, units, simds, order, groups, waves, ready, completions, reason = state
    stalls, counts, busy, plain = account
    machine, unit = machines[0], units[0]
    period, shared_slot = machine.period, machine.shared_slot > 0
    logged = next_group = finished = 0
    t = 0.0
    while finished < len(template):
        soonest = _NEVER
        for g in range(len(groups)):
            if groups[g].number >= 0 or next_group >= len(template):
                continue
            moment = max(begins[next_group], groups[g].freed)
            if moment > t:
                soonest = min(soonest, moment)
                continue
            _begin(groups[g], next_group, per_group, t)
            for member in range(per_group):
                w, stream = g * per_group + member, template[next_group] * per_group + member
                _enter(waves[w], start[stream], start[stream + 1], rows_start[stream], t)
                ready[w, :, :] = 0.0
                simd = (next_group * per_group + member) % len(simds)
                order[simd, simds[simd].waves] = w
                simds[simd].waves += 1
            next_group += 1

        any_issue = False
        for number in range(len(simds)):
            simd = simds[number]
            now = t + (number if period > 1 else 0)
            category_mask = 0
            top = 3 if unit.prioritised > 0 else 0
            for rank in range(top, -1, -1):
                position = 0
                while position < simd.waves:
                    w = order[number, position]
                    wave = waves[w]
                    position += 1
                    if top > 0 and wave.level != rank:
                        continue
                    if wave.blocked > now:
                        soonest = min(soonest, wave.blocked)
                        continue
                    i, weight = steps[wave.at], weights[wave.at]
                    it = records[i]
                    earliest, why = wave.after, k.ISSUE
                    if it.category > 0 and (
                        category_mask & (1 << it.category) or (shared_slot and category_mask != 0)
                    ):
                        earliest, why = now + period, k.ARBITRATION
                    earliest, why = _registers(it, spans, ready, w, earliest, why)
                    earliest, why = _counters(
                        it, wave, limits, completions, reason, w, earliest, why
                    )
                    earliest, why = _pipes(it, simd, unit, machine, earliest, why)
                    _charge(wave, stalls, i, plain, weight, now)
                    if earliest > now:
                        wave.cause, wave.blocked = why, earliest
                        soonest = min(soonest, earliest)
                        continue

                    any_issue = True
                    wave.cause = k.ISSUE
                    _charge(wave, stalls, i, plain, weight, now + period)
                    counts[i] += weight
                    busy[k.ISSUE_WORK] += weight
                    if it.category > 0 or shared_slot:
                        category_mask |= 1 << it.category
                    length = _occupy(it, simd, unit, machine, busy, weight, now)
                    if logged < len(events):
                        events[logged, 0], events[logged, 1] = now, number
                        events[logged, 2], events[logged, 3] = w, i
                        events[logged, 4] = length
                        logged += 1
                    ends, why = now + it.latency, k.SCALAR_WAIT
                    if it.pipe == c.LDS:
                        pair = simds[number & ~1]
                        ends, why = _lds(it, wave, rows, pair, unit, machine, busy, weight, now)
                    elif it.pipe == c.VMEM or it.pipe == c.SMEM:
                        ends, why = _memory(it, wave, rows, unit, machine, busy, weight, now)
                    ends = _count(it, wave, completions, reason, w, ends, why)
                    for n in range(it.writes[0], it.writes[1]):
                        for register in range(spans[n, 0], spans[n, 1]):
                            ready[w, register, 0] = ends
                            ready[w, register, 1] = now + it.chained
                    if it.pipe == c.PRIORITY:
                        unit.prioritised += (it.priority > 0) - (wave.level > 0)
                        wave.level = it.priority
                    wave.at += 1
                    over = wave.at >= wave.end
                    is_taken = it.pipe == c.BRANCH and not over and steps[wave.at] != i + 1
                    soonest = min(
                        soonest, _go_on(it, wave, machine, stalls, i, plain, weight, now, is_taken)
                    )
                    if not over and it.pipe != c.BARRIER:
                        continue
                    g = w // per_group
                    if over:
                        position -= 1
                        unit.prioritised -= wave.level > 0
                        simd.waves -= 1
                        for later in range(position, simd.waves):
                            order[number, later] = order[number, later + 1]
                    _meet(wave, groups[g], over)
                    if groups[g].living == 0:
                        finish[groups[g].number] = now + period
                        groups[g].number, groups[g].freed = -1, now + period
                        finished += 1
                        soonest = min(soonest, now + period)
                    elif groups[g].arrived == groups[g].living:
                        _release(waves, groups[g], g * per_group, per_group, now + machine.barrier)
                        soonest = min(soonest, now + machine.barrier)
        if any_issue:
            t += period
        else:
            reach = period * np.floor((soonest - (len(simds) - 1)) / period)
            t = max(t + period, reach)
    return logged


@always_inline
def _begin(group, number, waves, t):  # pragma: no cover
    """A workgroup takes a room."""
    group.number, group.living, group.arrived, group.freed = number, waves, 0, t


@always_inline
def _enter(wave, at, end, row, t):  # pragma: no cover
    """A wave takes a slot."""
    wave.at, wave.end, wave.row = at, end, row
    wave.after = wave.blocked = wave.charged = t
    wave.cause, wave.level = k.STARTING, 0
    wave.issued[:] = 0


@always_inline
def _registers(it, spans, ready, w, earliest, why):  # pragma: no cover
    """When an instruction's operands are there, if that is later than `earliest`."""
    for n in range(it.reads[0], it.reads[1]):
        for register in range(spans[n, 0], spans[n, 1]):
            if ready[w, register, 0] > earliest:
                earliest, why = ready[w, register, 0], k.DEPENDENCY
    for n in range(it.accumulators[0], it.accumulators[1]):
        for register in range(spans[n, 0], spans[n, 1]):
            if ready[w, register, 1] > earliest:
                earliest, why = ready[w, register, 1], k.DEPENDENCY
    return earliest, why


@always_inline
def _counters(it, wave, limits, completions, reason, w, earliest, why):  # pragma: no cover
    """When the counters it waits for have fallen and those it counts in have room, if later."""
    for counter in range(c.COUNTERS):
        threshold = it.waits[counter]
        if threshold >= 0:
            last = wave.issued[counter] - threshold - 1
            if last >= 0 and wave.issued[counter] - last <= RING:
                moment = completions[w, counter, last % RING]
                if moment > earliest:
                    earliest, why = moment, reason[w, counter, last % RING]
    for side in range(2):
        counter = it.counters[side]
        if counter >= 0:
            last = wave.issued[counter] - limits[counter]
            if last >= 0 and completions[w, counter, last % RING] > earliest:
                earliest, why = completions[w, counter, last % RING], k.COUNTER_FULL
    return earliest, why


@always_inline
def _pipes(it, simd, unit, machine, earliest, why):  # pragma: no cover
    """When its pipe, or room in its queue, is free, if that is later."""
    if it.pipe == c.MATRIX and simd.matrix > earliest:
        earliest, why = simd.matrix, k.MATRIX_BUSY
    if (it.pipe == c.VALU or it.pipe == c.MATRIX) and simd.valu > earliest:
        earliest, why = simd.valu, k.VALU_BUSY
    elif it.pipe == c.TRANS and simd.trans > earliest:
        earliest, why = simd.trans, k.TRANS_BUSY
    elif it.pipe == c.LDS and unit.lds - machine.queue_lds > earliest:
        earliest, why = unit.lds - machine.queue_lds, k.LDS_BUSY
    elif it.pipe == c.VMEM and unit.address - machine.queue_vmem > earliest:
        earliest, why = unit.address - machine.queue_vmem, k.ADDRESS_BUSY
    if unit.fetch - FETCH_BUFFER > earliest:
        earliest, why = unit.fetch - FETCH_BUFFER, k.FETCHING
    return earliest, why


@always_inline
def _charge(wave, stalls, i, plain, weight, until):  # pragma: no cover
    """Charge a wave's time since it was charged last to its cause."""
    if until > wave.charged:
        stalls[i, wave.cause] += weight * (until - wave.charged)
        plain[0] += until - wave.charged
        wave.charged = until


@always_inline
def _occupy(it, simd, unit, machine, busy, weight, now):  # pragma: no cover
    """Take the pipe of an instruction. Clocks it is taken; a slot for pipes of one slot."""
    unit.fetch = max(unit.fetch, now) + it.size / machine.fetch
    if it.pipe == c.VALU:
        simd.valu = now + it.issue
        busy[k.VECTOR_WORK] += weight * it.issue
    elif it.pipe == c.MATRIX:
        simd.matrix = now + it.issue
        simd.valu = now + machine.period
        busy[k.MATRIX_WORK] += weight * it.issue
    elif it.pipe == c.TRANS:
        simd.trans = now + it.issue
        busy[k.TRANS_WORK] += weight * it.issue
    else:
        return machine.period
    return float(it.issue)


@always_inline
def _lds(it, wave, rows, pair, unit, machine, busy, weight, now):  # pragma: no cover
    """When the LDS has served an instruction and why then: passes of its banks, and the port two
    SIMDs share."""
    work = it.lds_bytes / machine.lds_bytes
    if it.slots > 0:
        work = rows[wave.row, r.PASSES] * machine.lds_pass
        wave.row += 1
    work *= machine.lds_rate
    port_bytes = it.lds_bytes + (ADDRESSES if it.kind != c.LOAD else 0.0)
    pair.port = max(pair.port, now) + port_bytes / machine.lds_port * machine.lds_rate
    unit.lds = max(unit.lds, now) + work
    busy[k.LDS_WORK] += weight * work
    through = max(unit.lds, pair.port)
    late = through - now > machine.latency_lds
    return through + machine.latency_lds, k.LDS_BUSY if late else k.LDS_LATENCY


@always_inline
def _memory(it, wave, rows, unit, machine, busy, weight, now):  # pragma: no cover
    """When memory has served an instruction and why then: the scalar cache, or addresses and tags
    of the vector L1, the way between it and registers, and what they pass on. Nobody waits for the
    caches a store passes, but for the slowest of them to take what the L2 evicts of it."""
    row, asks = wave.row, it.slots > 0
    wave.row += asks
    if it.pipe == c.SMEM:
        unit.scalar = queue = max(unit.scalar, now) + machine.scalar
        ends, why = queue + machine.latency_scalar, k.SCALAR_WAIT
    else:
        work = machine.period
        if asks and rows[row, r.TAGS] > 0:
            work = max(work, rows[row, r.TAGS] * machine.tag, it.moved / machine.returned)
        unit.address = queue = max(unit.address, now) + work
        busy[k.ADDRESS_WORK] += weight * work
        late = queue - now > machine.latency_l1
        ends, why = queue + machine.latency_l1, k.ADDRESS_BUSY if late else k.L1_LATENCY
    if it.kind == c.TO_LDS:
        unit.lds = max(unit.lds, now) + it.lds_bytes / machine.lds_bytes
        busy[k.LDS_WORK] += weight * (it.lds_bytes / machine.lds_bytes)
    if not asks or rows[row, r.L2] <= 0:
        return ends, why
    store = it.kind == c.STORE
    work = rows[row, r.L2] / (machine.l2_stores if store else machine.l2) + rows[row, r.SERIAL]
    eviction_factor = machine.evicted if store else 1.0
    unit.l2 = last = max(unit.l2, queue) + work
    busy[k.L2_WORK] += weight * work
    store_end, late = last + machine.latency_store, k.L2_BANDWIDTH
    # sectors come from several levels: the wait is the mean of their latencies, named after the
    # farthest level that half of them come from
    wait, waiting = machine.latency_l2, k.L2_LATENCY
    if rows[row, r.MALL] > 0:
        work = eviction_factor * rows[row, r.MALL] / machine.mall
        unit.mall = max(unit.mall, queue) + work
        busy[k.MALL_WORK] += weight * work
        if unit.mall > last:
            last, late = unit.mall, k.MALL_BANDWIDTH
    share = min(1.0, (rows[row, r.MALL] + rows[row, r.LATE_MALL]) / rows[row, r.L2])
    if share > 0:
        wait += share * (machine.latency_mall - machine.latency_l2)
        if share >= 0.5:
            waiting = k.MALL_LATENCY
    if rows[row, r.HBM] > 0:
        work = eviction_factor * rows[row, r.HBM] / machine.hbm
        unit.hbm = max(unit.hbm, queue) + work
        busy[k.HBM_WORK] += weight * work
        if unit.hbm > last:
            last, late = unit.hbm, k.HBM_BANDWIDTH
    share = min(1.0, (rows[row, r.HBM] + rows[row, r.LATE_HBM]) / rows[row, r.L2])
    if share > 0:
        wait += share * (machine.latency_hbm - machine.latency_mall) * _draw(unit)
        if share >= 0.5:
            waiting = k.HBM_LATENCY
    if store:
        return (last, late) if last > store_end else (store_end, k.L2_LATENCY)
    if it.pipe == c.SMEM:
        return last + wait, k.SCALAR_WAIT
    return last + wait, late if last - now > wait else waiting


@always_inline
def _draw(unit):  # pragma: no cover
    """The next number of an exponential distribution of mean 1."""
    unit.draws += 1.0
    drawn = unit.draws * _GOLDEN
    return -np.log(1.0 - (drawn - np.floor(drawn)))


@always_inline
def _count(it, wave, completions, reason, w, ends, why):  # pragma: no cover
    """When an instruction's counters fall: they do in the order of their instructions."""
    for side in range(2):
        counter = it.counters[side]
        if counter >= 0:
            number = wave.issued[counter]
            if number > 0 and completions[w, counter, (number - 1) % RING] > ends:
                ends = completions[w, counter, (number - 1) % RING]
                why = reason[w, counter, (number - 1) % RING]
            completions[w, counter, number % RING] = ends
            reason[w, counter, number % RING] = why
            wave.issued[counter] = number + 1
    return ends


@always_inline
def _go_on(it, wave, machine, stalls, i, plain, weight, now, is_taken):  # pragma: no cover
    """When a wave's next instruction may issue: after a no-op's slots, or a `is_taken` branch."""
    following = now + machine.period
    if it.idle > 0:
        following = now + machine.period * it.idle
        wave.cause = k.IDLE
        _charge(wave, stalls, i, plain, weight, following)
    if is_taken:
        following = now + max(machine.period, machine.branch)
        wave.cause = k.BRANCHING
        _charge(wave, stalls, i, plain, weight, following)
    wave.cause = k.ISSUE
    wave.after = wave.blocked = following
    return following


@always_inline
def _meet(wave, group, over):  # pragma: no cover
    """A wave ended or waits at a barrier."""
    wave.blocked = _NEVER
    if over:
        group.living -= 1
    else:
        group.arrived += 1
        wave.cause = k.BARRIER_WAIT
        wave.level |= _WAITS


@always_inline
def _release(waves, group, first, number, moment):  # pragma: no cover
    """All waves left have arrived at a barrier and continue."""
    group.arrived = 0
    for w in range(first, first + number):
        if waves[w].level & _WAITS:
            waves[w].level &= ~_WAITS
            waves[w].after = waves[w].blocked = moment


__all__ = ["simulate"]
