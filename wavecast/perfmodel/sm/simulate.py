"""The compiled loop: warps of one SM, clock by clock.

Each sub-partition issues one instruction per clock, of the oldest warp that
is ready. A warp's next instruction is ready when

- the stall count of the one before it has passed, or the branch it took,
- the scoreboards in its wait mask have fallen, and the groups it waits for are complete,
- its pipe is free, and the queue of the data path or of the tensor cores is not full.

Results of fixed latency need nothing else: the compiler's stall counts cover them. Memory is a
chain of servers: the data path that L1 and shared memory share, then this SM's share of L2 and of
memory, each in the order of requests. A load waits for the levels its bytes come from, weighted by
bytes.

A step of a warp represents `weight` executions, as in `model.cu.simulate`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from wavecast.compile.loops import always_inline, loop
from wavecast.perfmodel import streams as r
from wavecast.perfmodel.simulation import causes as k
from wavecast.perfmodel.sm import code as c
from wavecast.perfmodel.sm.state import BARRIERS, PHASES, RING

_NEVER: Final = 1e30
_AT_BARRIER: Final = 1
_AT_PHASE: Final = 2
"""What a warp waits for that another warp must do."""
_DEADLOCK: Final = -1


@loop
def simulate(
    program, executed, state, account, template, begins, finish, events
):  # pragma: no cover
    """Run workgroups `template` (i32[n], in order of dispatch, not before `begins`, f64[n]) on an
    idle SM, as `model.cu.simulate.simulate` does. Returns the number of events, -1 where all warps
    wait for each other."""
    records, arrivals = program
    per_group, steps, weights, start, rows, rows_start = executed
    machines, units, simds, order, groups, warps, completions, reason, phases = state
    stalls, counts, busy, plain = account
    machine, unit = machines[0], units[0]
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
            groups[g].number, groups[g].living = next_group, per_group
            groups[g].arrived[:] = 0
            groups[g].arrivals[:] = 0
            groups[g].complete[:] = 0
            for member in range(per_group):
                w, stream = g * per_group + member, template[next_group] * per_group + member
                warp = warps[w]
                warp.at, warp.end, warp.row = start[stream], start[stream + 1], rows_start[stream]
                warp.after = warp.blocked = t + machine.start
                warp.charged = t
                warp.cause, warp.waits = k.STARTING, 0
                warp.issued[:] = 0
                warp.copied = 0.0
                simd = member % len(simds)
                order[simd, simds[simd].warps] = w
                simds[simd].warps += 1
            next_group += 1

        any_issue = False
        for number in range(len(simds)):
            simd = simds[number]
            position = 0
            while position < simd.warps:
                w = order[number, position]
                warp = warps[w]
                position += 1
                if warp.blocked > t:
                    soonest = min(soonest, warp.blocked)
                    continue
                i, weight = steps[warp.at], weights[warp.at]
                it = records[i]
                g = w // per_group
                earliest, why = warp.after, k.DEPENDENCY
                for scoreboard in range(6):
                    if it.waits[scoreboard] and warp.issued[scoreboard] > 0:
                        last = (warp.issued[scoreboard] - 1) % RING
                        if completions[w, scoreboard, last] > earliest:
                            earliest, why = (
                                completions[w, scoreboard, last],
                                reason[w, scoreboard, last],
                            )
                if it.counter >= 0:
                    last = warp.issued[it.counter] - it.left - 1
                    recent = last >= 0 and warp.issued[it.counter] - last <= RING
                    if recent and completions[w, it.counter, last % RING] > earliest:
                        earliest = completions[w, it.counter, last % RING]
                        why = reason[w, it.counter, last % RING]
                earliest, why = _pipes(it, simd, unit, machine, earliest, why)
                if it.kind == c.PHASE_WAIT:
                    barrier, phase = int(rows[warp.row, r.TAGS]), int(rows[warp.row, r.L2])
                    if groups[g].complete[barrier] < phase:
                        _charge(warp, stalls, i, plain, weight, t)
                        warp.cause, warp.blocked, warp.waits = k.BARRIER_WAIT, _NEVER, _AT_PHASE
                        continue
                    if phase > 0 and phases[g, barrier, (phase - 1) % PHASES] > earliest:
                        earliest = phases[g, barrier, (phase - 1) % PHASES]
                        why = k.BARRIER_WAIT
                _charge(warp, stalls, i, plain, weight, t)
                if earliest > t:
                    warp.cause, warp.blocked = why, earliest
                    soonest = min(soonest, earliest)
                    continue

                any_issue = True
                warp.cause = k.ISSUE
                _charge(warp, stalls, i, plain, weight, t + 1.0)
                counts[i] += weight
                busy[k.ISSUE_WORK] += weight
                if logged < len(events):
                    events[logged, 0], events[logged, 1] = t, number
                    events[logged, 2], events[logged, 3] = w, i
                    events[logged, 4] = it.issue
                    logged += 1
                ends, why = _start(it, warp, rows, simd, unit, machine, busy, weight, t)
                _count(it, warp, completions, reason, w, ends, why, t + machine.latency_read)
                if it.kind == c.COMMIT or it.kind == c.ARRIVAL or it.kind == c.TMA:
                    moment = ends
                    if it.kind == c.COMMIT:
                        moment = max(t, unit.tensor) + machine.latency_matrix
                    if _arrive(groups[g], phases, g, rows[warp.row], arrivals, moment):
                        soonest = t + 1.0
                        for other in range(g * per_group, (g + 1) * per_group):
                            if warps[other].waits == _AT_PHASE:
                                warps[other].waits = 0
                                warps[other].blocked = t + 1.0
                if it.slots > 0:
                    warp.row += 1
                warp.at += 1
                over = warp.at >= warp.end
                following = t + it.stall
                if not over and steps[warp.at] != i + 1:
                    following = t + max(float(it.stall), machine.branch)
                    warp.cause = k.BRANCHING
                    _charge(warp, stalls, i, plain, weight, following)
                warp.cause = k.DEPENDENCY
                warp.after = warp.blocked = following
                soonest = min(soonest, following)
                if over:
                    position -= 1
                    simd.warps -= 1
                    for later in range(position, simd.warps):
                        order[number, later] = order[number, later + 1]
                    warp.blocked = _NEVER
                    groups[g].living -= 1
                    if groups[g].living == 0:
                        ends = max(t + 1.0, unit.stored)
                        finish[groups[g].number] = ends
                        groups[g].number, groups[g].freed = -1, t + 1.0
                        finished += 1
                        soonest = min(soonest, t + 1.0)
                elif it.kind == c.BARRIER:
                    groups[g].arrived[it.barrier] += 1
                    warp.blocked, warp.cause = _NEVER, k.BARRIER_WAIT
                    warp.waits = _AT_BARRIER + 2 + it.barrier
                if over or it.kind == c.BARRIER:
                    release = _release_barriers(
                        groups[g], warps, g * per_group, per_group, it, t, machine
                    )
                    soonest = min(soonest, release)
                break
        if any_issue:
            t += 1.0
        else:
            if soonest >= _NEVER:
                return _DEADLOCK
            t = max(t + 1.0, np.floor(soonest))
    return logged


@always_inline
def _release_barriers(group, warps, first, number, it, t, machine):  # pragma: no cover
    """Release the warps of barriers at which all have arrived; when, `_NEVER` without any."""
    soonest = _NEVER
    for at in range(BARRIERS):
        participants = group.living
        if it.kind == c.BARRIER and it.barrier == at and it.members > 0:
            participants = min(participants, it.members)
        if group.arrived[at] == 0 or group.arrived[at] < participants:
            continue
        group.arrived[at] = 0
        soonest = t + machine.barrier
        for other in range(first, first + number):
            if warps[other].waits == _AT_BARRIER + 2 + at:
                warps[other].waits = 0
                warps[other].after = warps[other].blocked = soonest
    return soonest


@always_inline
def _charge(warp, stalls, i, plain, weight, until):  # pragma: no cover
    """Charge a warp's time since it was charged last to its cause."""
    if until > warp.charged:
        stalls[i, warp.cause] += weight * (until - warp.charged)
        plain[0] += until - warp.charged
        warp.charged = until


@always_inline
def _pipes(it, simd, unit, machine, earliest, why):  # pragma: no cover
    """When its pipe, or room in its queue, is free, if that is later than `earliest`."""
    free = simd.free[it.pipe]
    if it.pipe == c.WARPGROUP:
        free -= machine.queue_matrix
    elif it.pipe == c.TCGEN:
        free = unit.tensor - 4.0 * machine.queue_matrix
    elif it.pipe == c.LSU:
        free = max(free, unit.data - machine.queue_lsu)
    if it.pipe != c.NO_UNIT and free > earliest:
        earliest, why = free, k.VALU_BUSY
        if it.pipe == c.MATRIX or it.pipe == c.WARPGROUP or it.pipe == c.TCGEN:
            why = k.MATRIX_BUSY
        elif it.pipe == c.XU:
            why = k.TRANS_BUSY
        elif it.pipe == c.LSU:
            why = k.LDS_BUSY if it.kind == c.SHARED else k.ADDRESS_BUSY
    return earliest, why


@always_inline
def _start(it, warp, rows, simd, unit, machine, busy, weight, now):  # pragma: no cover
    """Take the pipe of an instruction; when its result is there and why then."""
    ends, why = now + it.stall, k.DEPENDENCY
    if it.pipe == c.WARPGROUP:
        simd.free[it.pipe] = ends = max(simd.free[it.pipe], now) + it.issue
        busy[k.MATRIX_WORK] += weight * it.issue
        return ends + machine.latency_matrix, k.MATRIX_BUSY
    if it.pipe == c.TCGEN:
        unit.tensor = max(unit.tensor, now) + it.issue
        busy[k.MATRIX_WORK] += weight * it.issue * machine.simds
        return now + it.stall, k.DEPENDENCY
    if it.pipe != c.NO_UNIT:
        simd.free[it.pipe] = now + it.issue
    if it.pipe == c.MATRIX:
        busy[k.MATRIX_WORK] += weight * it.issue
        ends = now + it.issue + machine.latency_matrix
    elif it.pipe == c.XU:
        busy[k.TRANS_WORK] += weight * it.issue
        ends, why = now + it.issue + machine.latency_xu, k.TRANS_BUSY
    elif it.pipe == c.FP64:
        busy[k.VECTOR_WORK] += weight * it.issue
        ends = now + it.issue + machine.latency_fp64
    elif it.pipe == c.FMA or it.pipe == c.ALU or it.pipe == c.HALF:
        busy[k.VECTOR_WORK] += weight * it.issue * 0.5
    elif it.pipe == c.CONSTANT:
        ends, why = now + machine.latency_constant, k.SCALAR_WAIT
    elif it.pipe == c.TENSOR_LOAD:
        simd.free[it.pipe] = now + it.lds_bytes / machine.tensor_load
        ends = simd.free[it.pipe] + machine.latency_lds
    if it.kind == c.TMA:
        ends, why = _bulk_copy(warp, rows, unit, machine, busy, weight, now)
    elif it.pipe == c.LSU:
        ends, why = _memory(it, warp, rows, unit, machine, busy, weight, now)
    elif it.kind == c.GROUP_END:
        ends, why = max(now, warp.copied), warp.copied_why
    return ends, why


@always_inline
def _memory(it, warp, rows, unit, machine, busy, weight, now):  # pragma: no cover
    """When memory has served an instruction, and why then."""
    if it.slots == 0:  # shuffles use the path of shared memory
        unit.data = max(unit.data, now) + machine.lds_rate
        busy[k.LDS_WORK] += weight
        return unit.data + machine.latency_shuffle, k.LDS_LATENCY
    row = warp.row
    if it.kind == c.SHARED:
        work = rows[row, r.PASSES] * machine.lds_rate
        unit.data = max(unit.data, now) + work
        busy[k.LDS_WORK] += weight * work
        late = unit.data - now > machine.latency_lds
        return unit.data + machine.latency_lds, k.LDS_BUSY if late else k.LDS_LATENCY
    work = rows[row, r.TAGS] * machine.tag
    unit.data = tag_end = max(unit.data, now) + work
    busy[k.ADDRESS_WORK] += weight * work
    late = tag_end - now > machine.latency_l1
    ends, why = tag_end + machine.latency_l1, k.ADDRESS_BUSY if late else k.L1_LATENCY
    if rows[row, r.L2] > 0:
        work = rows[row, r.L2] / machine.l2 + rows[row, r.SERIAL]
        unit.l2 = max(unit.l2, tag_end) + work
        busy[k.L2_WORK] += weight * work
        part = min(1.0, rows[row, r.HBM] / rows[row, r.L2])
        latency = machine.latency_l2 + part * (machine.latency_hbm - machine.latency_l2)
        why = k.L2_BANDWIDTH if unit.l2 - now > machine.latency_l2 else k.L2_LATENCY
        last = unit.l2
        if part > 0:
            work = rows[row, r.HBM] / machine.hbm
            unit.hbm = max(unit.hbm, tag_end) + work
            busy[k.HBM_WORK] += weight * work
            if unit.hbm >= last:
                last = unit.hbm
                why = k.HBM_BANDWIDTH if last - now > latency else k.HBM_LATENCY
            elif part > 0.5:
                why = k.HBM_LATENCY
        ends = last + latency
        if it.kind == c.STORE:
            unit.stored = max(unit.stored, last)
            return tag_end, k.ADDRESS_BUSY
    if it.kind == c.TO_SHARED:
        unit.data += rows[row, r.PASSES] * machine.lds_rate
        busy[k.LDS_WORK] += weight * rows[row, r.PASSES] * machine.lds_rate
        if ends > warp.copied:
            warp.copied, warp.copied_why = ends, why
    return ends, why


@always_inline
def _bulk_copy(warp, rows, unit, machine, busy, weight, now):  # pragma: no cover
    """When TMA has copied a box, and why then. It passes the L1's tags and the warp's data path
    by: L2 and memory serve it at this SM's share, and shared memory takes or gives its bytes."""
    row = warp.row
    if rows[row, r.L2] == 0:  # the guard of this warp stopped it
        return now, k.DEPENDENCY
    began = now + machine.latency_bulk
    work = rows[row, r.PASSES] * machine.lds_rate
    unit.data = max(unit.data, now) + work
    busy[k.LDS_WORK] += weight * work
    work = rows[row, r.L2] / machine.l2
    unit.l2 = max(unit.l2, began) + work
    busy[k.L2_WORK] += weight * work
    last, why = unit.l2, k.L2_LATENCY
    part = min(1.0, rows[row, r.HBM] / rows[row, r.L2])
    if part > 0:
        work = rows[row, r.HBM] / machine.hbm
        unit.hbm = max(unit.hbm, began) + work
        busy[k.HBM_WORK] += weight * work
        if unit.hbm >= last:
            last, why = unit.hbm, k.HBM_LATENCY
    if rows[row, r.SERIAL] == 0:  # a store
        unit.stored = max(unit.stored, last)
        return unit.data, k.LDS_BUSY
    return last + machine.latency_l2 + part * (machine.latency_hbm - machine.latency_l2), why


@always_inline
def _count(it, warp, completions, reason, w, ends, why, operands):  # pragma: no cover
    """When an instruction's counters fall: they do in the order of their instructions."""
    for side in range(2):
        counter = it.written if side == 0 else it.read
        if counter < 0:
            continue
        moment = ends
        if side == 1 and it.kind != c.SHARED:
            moment = min(ends, operands)
        number = warp.issued[counter]
        if number > 0 and completions[w, counter, (number - 1) % RING] > moment:
            moment = completions[w, counter, (number - 1) % RING]
            why = reason[w, counter, (number - 1) % RING]
        completions[w, counter, number % RING] = moment
        reason[w, counter, number % RING] = why
        warp.issued[counter] = number + 1


@always_inline
def _arrive(group, phases, g, row, arrivals, moment):  # pragma: no cover
    """Count an arrival at a memory barrier. Whether it completes a phase."""
    barrier = int(row[r.SERIAL]) - 1
    if barrier < 0:  # the guard of this warp stopped it
        return False
    group.arrivals[barrier] += 1
    at = group.complete[barrier] % PHASES
    if group.arrivals[barrier] == 1 or phases[g, barrier, at] < moment:
        phases[g, barrier, at] = moment
    if group.arrivals[barrier] < arrivals[barrier]:
        return False
    group.arrivals[barrier] = 0
    group.complete[barrier] += 1
    return True


__all__ = ["simulate"]
