"""The compiled loop: waves of one compute unit, slot by slot.

Time is in clocks. Each SIMD looks every `period` clocks at its waves, the ones of highest priority
and then the oldest first, and issues what is ready: at most one instruction per wave and category.
A wave's next instruction is ready when

- the instruction before it has issued (and a no-op's or a taken branch's slots have passed),
- its registers are (`ready`, `chained` for a matrix accumulator),
- the counters it waits for have fallen, or there is room in the counter it counts in,
- its pipe is free, and the queue of the LDS or of the address path is not full.

Memory is a chain of servers: tag lookups, then this unit's share of L2, memory-side cache and
memory, each in the order of requests; a request is done when the last of its bytes is, plus the
latency of the level it came from. What a wave waits for is charged, clock by clock, to the
instruction it stands at and to a cause (`CAUSES`).

A step of a wave stands for `weight` executions: loops are cut to some iterations (`fold`). Charges,
counts and busy clocks are weighted; times are those of the shortened waves.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np

from wavecast.model.cu import code as c
from wavecast.model.cu import streams as r

CAUSES: Final = (
    "issue", "dependency", "vector pipe", "matrix pipe", "transcendental pipe", "arbitration",
    "LDS pipe", "address path", "LDS latency", "L1 latency", "L2 latency",
    "memory-side cache latency", "memory latency", "L2 bandwidth", "memory-side cache bandwidth",
    "memory bandwidth", "scalar memory", "barrier", "no-op", "branch", "fetch", "counter full",
    "start",
)  # fmt: skip
(
    ISSUE, DEPENDENCY, VALU_BUSY, MATRIX_BUSY, TRANS_BUSY, ARBITRATION,
    LDS_BUSY, ADDRESS_BUSY, LDS_LATENCY, L1_LATENCY, L2_LATENCY,
    MALL_LATENCY, HBM_LATENCY, L2_BANDWIDTH, MALL_BANDWIDTH,
    HBM_BANDWIDTH, SCALAR_WAIT, BARRIER_WAIT, IDLE, BRANCHING, FETCHING, COUNTER_FULL,
    STARTING,
) = range(len(CAUSES))  # fmt: skip

BUSY: Final = (
    "vector", "matrix", "transcendental", "LDS", "address path", "L2", "memory-side cache",
    "memory", "issue",
)  # fmt: skip
"""Resources whose clocks of work are counted."""

RING: Final = 64
PARAMETERS: Final = (
    "simds", "period", "shared_slot", "lds_port", "tag", "l2", "mall", "hbm",
    "latency_lds", "latency_scalar", "latency_l1", "latency_l2", "latency_mall", "latency_hbm",
    "queue_lds", "queue_vmem", "barrier", "branch", "fetch", "lds_rate",
    "scalar", "latency_store", "lds_bytes",
)  # fmt: skip
"""Fields of `Machine` in the order of the parameter array."""
(
    P_SIMDS, P_PERIOD, P_SHARED, P_PORT, P_TAG, P_L2, P_MALL, P_HBM,
    P_LAT_LDS, P_LAT_SCALAR, P_LAT_L1, P_LAT_L2, P_LAT_MALL, P_LAT_HBM,
    P_QUEUE_LDS, P_QUEUE_VMEM, P_BARRIER, P_BRANCH, P_FETCH, P_LDS_RATE,
    P_SCALAR, P_LAT_STORE, P_LDS_BYTES,
) = range(len(PARAMETERS))  # fmt: skip
ADDRESSES: Final = 256.0
"""Bytes of addresses that share the LDS port with the data of a store: 64 lanes of 4 (AMD, ROCm
Compute Profiler, "Local data share")."""
FETCH_BUFFER: Final = 64.0
"""Clocks of code a wave's instruction buffers hold ahead."""
_FREE: Final = 1e30


@numba.njit(cache=True)
def simulate(  # pragma: no cover
    pipe, category, kind, issue, latency, chained, idle, reads, reads_start, accumulators,
    accumulators_start, writes, writes_start, counters, waits, places, lds_bytes, priority, size,
    limits, registers, waves, steps, weights, start, rows, rows_start, template, begins, resident,
    parameters, events,
):  # fmt: skip
    """Run workgroups `template` (i32[n], in order of dispatch, not before `begins`, f64[n]).

    `resident` of them run at once. `events` (f64[m, 5]) takes the first m issues: time, SIMD, wave
    slot, instruction, clocks.

    Returns (finish f64[n], stalls f64[instructions, causes], counts f64[instructions], busy
    f64[BUSY], wave clocks without weights, events written).
    """
    simds = int(parameters[P_SIMDS])
    period = parameters[P_PERIOD]
    shared_slot = parameters[P_SHARED] > 0
    total = len(template)
    slots = resident * waves
    number = len(pipe)

    finish = np.zeros(total)
    stalls = np.zeros((number, len(CAUSES)))
    counts = np.zeros(number)
    busy = np.zeros(len(BUSY))
    plain = 0.0
    logged = 0

    at = np.zeros(slots, np.int64)
    end = np.zeros(slots, np.int64)
    row = np.zeros(slots, np.int64)
    after = np.zeros(slots)  # earliest time of the next issue
    blocked = np.full(slots, _FREE)
    charged = np.zeros(slots)  # up to here the wave's time is charged
    cause = np.zeros(slots, np.int64)
    level = np.zeros(slots, np.int64)  # priority
    ready = np.zeros((slots, registers))
    ready_chain = np.zeros((slots, registers))
    done = np.zeros((slots, c.COUNTERS, RING))
    reason = np.zeros((slots, c.COUNTERS, RING), np.int64)
    issued = np.zeros((slots, c.COUNTERS), np.int64)

    group_of = np.full(resident, -1, np.int64)
    living = np.zeros(resident, np.int64)
    arrived = np.zeros(resident, np.int64)
    freed = np.zeros(resident)

    order = np.full((simds, slots), -1, np.int64)
    length = np.zeros(simds, np.int64)

    valu_free = np.zeros(simds)
    matrix_free = np.zeros(simds)
    trans_free = np.zeros(simds)
    port_free = np.zeros(simds // 2 + 1)
    lds_free = 0.0
    address_free = 0.0
    scalar_free = 0.0
    l2_free = 0.0
    mall_free = 0.0
    hbm_free = 0.0
    fetch_free = 0.0
    prioritised = 0

    begun = 0
    finished = 0
    t = 0.0
    while finished < total:
        soonest = _FREE
        for g in range(resident):
            if group_of[g] >= 0 or begun >= total:
                continue
            moment = max(begins[begun], freed[g])
            if moment > t:
                soonest = min(soonest, moment)
                continue
            group_of[g] = begun
            living[g] = waves
            arrived[g] = 0
            for w in range(waves):
                slot = g * waves + w
                simd = (begun * waves + w) % simds
                own = template[begun] * waves + w
                at[slot] = start[own]
                end[slot] = start[own + 1]
                row[slot] = rows_start[own]
                after[slot] = t
                blocked[slot] = t
                charged[slot] = t
                cause[slot] = STARTING
                level[slot] = 0
                ready[slot, :] = 0.0
                ready_chain[slot, :] = 0.0
                issued[slot, :] = 0
                order[simd, length[simd]] = slot
                length[simd] += 1
            begun += 1

        any_issue = False
        for simd in range(simds):
            now = t + (simd if period > 1 else 0)
            used = 0
            top = 3 if prioritised > 0 else 0
            for rank in range(top, -1, -1):
                position = 0
                while position < length[simd]:
                    w = order[simd, position]
                    position += 1
                    if top > 0 and level[w] != rank:
                        continue
                    if blocked[w] > now:
                        soonest = min(soonest, blocked[w])
                        continue
                    i = steps[at[w]]
                    group = category[i]
                    earliest = after[w]
                    why = ISSUE
                    if group > 0 and (used & (1 << group) or (shared_slot and used != 0)):
                        earliest = now + period
                        why = ARBITRATION
                    # registers
                    for n in range(reads_start[i], reads_start[i + 1]):
                        for register in range(reads[n, 0], reads[n, 1]):
                            if ready[w, register] > earliest:
                                earliest = ready[w, register]
                                why = DEPENDENCY
                    for n in range(accumulators_start[i], accumulators_start[i + 1]):
                        for register in range(accumulators[n, 0], accumulators[n, 1]):
                            if ready_chain[w, register] > earliest:
                                earliest = ready_chain[w, register]
                                why = DEPENDENCY
                    # waits
                    for counter in range(c.COUNTERS):
                        left = waits[i, counter]
                        if left >= 0:
                            last = issued[w, counter] - left - 1
                            if last >= 0 and issued[w, counter] - last <= RING:
                                moment = done[w, counter, last % RING]
                                if moment > earliest:
                                    earliest = moment
                                    why = reason[w, counter, last % RING]
                    for side in range(2):
                        counter = counters[i, side]
                        if counter >= 0:
                            last = issued[w, counter] - limits[counter]
                            if last >= 0:
                                moment = done[w, counter, last % RING]
                                if moment > earliest:
                                    earliest = moment
                                    why = COUNTER_FULL
                    # pipes
                    unit = pipe[i]
                    if unit == c.VALU:
                        if valu_free[simd] > earliest:
                            earliest = valu_free[simd]
                            why = VALU_BUSY
                    elif unit == c.MATRIX:
                        if matrix_free[simd] > earliest:
                            earliest = matrix_free[simd]
                            why = MATRIX_BUSY
                        if valu_free[simd] > earliest:
                            earliest = valu_free[simd]
                            why = VALU_BUSY
                    elif unit == c.TRANS:
                        if trans_free[simd] > earliest:
                            earliest = trans_free[simd]
                            why = TRANS_BUSY
                    elif unit == c.LDS:
                        if lds_free - parameters[P_QUEUE_LDS] > earliest:
                            earliest = lds_free - parameters[P_QUEUE_LDS]
                            why = LDS_BUSY
                    elif unit == c.VMEM and (address_free - parameters[P_QUEUE_VMEM] > earliest):
                        earliest = address_free - parameters[P_QUEUE_VMEM]
                        why = ADDRESS_BUSY
                    if fetch_free - FETCH_BUFFER > earliest:
                        earliest = fetch_free - FETCH_BUFFER
                        why = FETCHING
                    weight = weights[at[w]]
                    if earliest > now:
                        if now > charged[w]:
                            stalls[i, cause[w]] += weight * (now - charged[w])
                            plain += now - charged[w]
                            charged[w] = now
                        cause[w] = why
                        blocked[w] = earliest
                        soonest = min(soonest, earliest)
                        continue

                    # issue
                    any_issue = True
                    if now > charged[w]:
                        stalls[i, cause[w]] += weight * (now - charged[w])
                        plain += now - charged[w]
                    stalls[i, ISSUE] += weight * period
                    plain += period
                    counts[i] += weight
                    busy[8] += weight
                    used |= 1 << group
                    if group == 0 and not shared_slot:
                        used &= ~1
                    charged[w] = now + period
                    cause[w] = ISSUE
                    following = now + period
                    fetch_free = max(fetch_free, now) + size[i] / parameters[P_FETCH]
                    length_of = period
                    if unit == c.VALU:
                        valu_free[simd] = now + issue[i]
                        busy[0] += weight * (issue[i])
                        length_of = issue[i]
                    elif unit == c.MATRIX:
                        matrix_free[simd] = now + issue[i]
                        valu_free[simd] = now + period
                        busy[1] += weight * (issue[i])
                        length_of = issue[i]
                    elif unit == c.TRANS:
                        trans_free[simd] = now + issue[i]
                        busy[2] += weight * (issue[i])
                        length_of = issue[i]
                    finished_at = now + latency[i]
                    chained_at = now + chained[i]
                    why = SCALAR_WAIT
                    if unit == c.LDS:
                        served = lds_bytes[i] / parameters[P_LDS_BYTES]
                        if places[i] > 0:
                            served = rows[row[w], r.PASSES]
                            row[w] += 1
                        served *= parameters[P_LDS_RATE]
                        moved = lds_bytes[i]
                        if kind[i] != c.LOAD:
                            moved += ADDRESSES
                        side = simd // 2
                        port_free[side] = max(port_free[side], now) + (
                            moved / parameters[P_PORT] * parameters[P_LDS_RATE]
                        )
                        lds_free = max(lds_free, now) + served
                        busy[3] += weight * (served)
                        through = max(lds_free, port_free[side])
                        finished_at = through + parameters[P_LAT_LDS]
                        why = LDS_LATENCY
                        if through - now > parameters[P_LAT_LDS]:
                            why = LDS_BUSY
                    elif unit == c.VMEM or unit == c.SMEM:
                        tags = 0.0
                        l2 = 0.0
                        mall = 0.0
                        hbm = 0.0
                        serial = 0.0
                        if places[i] > 0:
                            tags = rows[row[w], r.TAGS]
                            l2 = rows[row[w], r.L2]
                            mall = rows[row[w], r.MALL]
                            hbm = rows[row[w], r.HBM]
                            serial = rows[row[w], r.SERIAL]
                            row[w] += 1
                        if unit == c.SMEM:
                            scalar_free = max(scalar_free, now) + parameters[P_SCALAR]
                        queue = scalar_free
                        wait = parameters[P_LAT_SCALAR]
                        if unit == c.VMEM:
                            work = max(period, tags * parameters[P_TAG])
                            address_free = max(address_free, now) + work
                            busy[4] += weight * (work)
                            queue = address_free
                            wait = parameters[P_LAT_L1]
                            why = L1_LATENCY
                            if queue - now > wait:
                                why = ADDRESS_BUSY
                        finished_at = queue + wait
                        if l2 > 0:
                            l2_free = max(l2_free, queue) + l2 / parameters[P_L2] + serial
                            busy[5] += weight * (l2 / parameters[P_L2] + serial)
                            behind = P_LAT_STORE if kind[i] == c.STORE else P_LAT_L2
                            finished_at = l2_free + parameters[behind]
                            if unit == c.VMEM:
                                why = L2_LATENCY
                                if l2_free - now > parameters[P_LAT_L2]:
                                    why = L2_BANDWIDTH
                            last = l2_free
                            if mall > 0:
                                mall_free = max(mall_free, queue) + mall / parameters[P_MALL]
                                busy[6] += weight * (mall / parameters[P_MALL])
                                last = max(last, mall_free)
                                if kind[i] != c.STORE:
                                    finished_at = max(
                                        finished_at, mall_free + parameters[P_LAT_MALL]
                                    )
                                    why = MALL_LATENCY
                                    if mall_free - now > parameters[P_LAT_MALL]:
                                        why = MALL_BANDWIDTH
                            if hbm > 0:
                                hbm_free = max(hbm_free, queue) + hbm / parameters[P_HBM]
                                busy[7] += weight * (hbm / parameters[P_HBM])
                                last = max(last, hbm_free)
                                if kind[i] != c.STORE:
                                    finished_at = max(finished_at, hbm_free + parameters[P_LAT_HBM])
                                    why = HBM_LATENCY
                                    if hbm_free - now > parameters[P_LAT_HBM]:
                                        why = HBM_BANDWIDTH
                            if kind[i] == c.STORE and last > finished_at:
                                finished_at = last
                                why = HBM_BANDWIDTH
                        if kind[i] == c.TO_LDS:
                            lds_free = max(lds_free, now) + lds_bytes[i] / parameters[P_LDS_BYTES]
                            busy[3] += weight * (lds_bytes[i] / parameters[P_LDS_BYTES])
                    for side in range(2):
                        counter = counters[i, side]
                        if counter >= 0:
                            number_of = issued[w, counter]
                            if number_of > 0:
                                before = done[w, counter, (number_of - 1) % RING]
                                if before > finished_at:
                                    finished_at = before
                                    why = reason[w, counter, (number_of - 1) % RING]
                            done[w, counter, number_of % RING] = finished_at
                            reason[w, counter, number_of % RING] = why
                            issued[w, counter] = number_of + 1
                    for n in range(writes_start[i], writes_start[i + 1]):
                        for register in range(writes[n, 0], writes[n, 1]):
                            ready[w, register] = finished_at
                            ready_chain[w, register] = chained_at
                    if idle[i] > 0:
                        following = now + period * idle[i]
                        stalls[i, IDLE] += weight * (following - charged[w])
                        plain += following - charged[w]
                        charged[w] = following
                    if unit == c.PRIORITY:
                        prioritised += (priority[i] > 0) - (level[w] > 0)
                        level[w] = priority[i]
                    if logged < len(events):
                        events[logged, 0] = now
                        events[logged, 1] = simd
                        events[logged, 2] = w
                        events[logged, 3] = i
                        events[logged, 4] = length_of
                        logged += 1
                    home = w // waves
                    at[w] += 1
                    if unit == c.BRANCH and at[w] < end[w] and steps[at[w]] != i + 1:
                        following = now + max(period, parameters[P_BRANCH])
                        stalls[i, BRANCHING] += weight * (following - charged[w])
                        plain += following - charged[w]
                        charged[w] = following
                    after[w] = following
                    blocked[w] = following
                    soonest = min(soonest, following)
                    if unit == c.BARRIER or at[w] >= end[w]:
                        over = at[w] >= end[w]
                        if over:
                            prioritised -= level[w] > 0
                            living[home] -= 1
                            blocked[w] = _FREE
                            for later in range(position - 1, length[simd] - 1):
                                order[simd, later] = order[simd, later + 1]
                            length[simd] -= 1
                            position -= 1
                        else:
                            arrived[home] += 1
                            blocked[w] = _FREE
                            cause[w] = BARRIER_WAIT
                            level[w] |= 8
                        if living[home] == 0:
                            finish[group_of[home]] = now + period
                            freed[home] = now + period
                            group_of[home] = -1
                            finished += 1
                            soonest = min(soonest, now + period)
                        elif arrived[home] == living[home]:
                            arrived[home] = 0
                            for other in range(home * waves, (home + 1) * waves):
                                if level[other] & 8:
                                    level[other] &= 7
                                    after[other] = now + parameters[P_BARRIER]
                                    blocked[other] = now + parameters[P_BARRIER]
                                    soonest = min(soonest, blocked[other])
        if any_issue:
            t += period
        else:
            reach = period * np.floor((soonest - (simds - 1)) / period)
            t = max(t + period, reach)
    return finish, stalls, counts, busy, plain, logged


__all__ = ["BUSY", "CAUSES", "PARAMETERS", "simulate"]
