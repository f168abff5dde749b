"""The streams of recorded waves: long loops folded, with the weight of what was not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.compile.loops import loop
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.fold import FIRST, fold
from wavecast.perfmodel.streams import Streams, Wave, expand_blocks

Array = np.ndarray[Any, Any]


def streams(
    code: Code, workgroups: Sequence[Sequence[Wave]], counts: Array | None = None
) -> Streams:
    """The flat arrays of recorded workgroups, all of the same number of waves.

    `counts` (per basic block: executions by all these waves to their end) tells what recordings
    that were cut lack: the last executions of a block in them carry the weight of those not
    recorded, and blocks no recording reached follow at the end, with requests of contiguous lanes.
    Where none was cut, all carry what other workgroups execute more.
    """
    lengths = np.array([b.stop - b.start for b in code.program.blocks], np.int64)
    firsts = np.array([b.start for b in code.program.blocks], np.int64)
    rest = _Rest.of(counts, workgroups, len(lengths))
    steps, weights, rows = [], [], []
    for workgroup in workgroups:
        for wave in workgroup:
            wave_steps = expand_blocks(wave.blocks, firsts, lengths)
            wave_rows = _rows(wave_steps, code.slots, wave.instructions, wave.requests)
            shorter = fold(wave.blocks, lengths)
            keep_mask = np.repeat(shorter.kept, lengths[wave.blocks])
            weight = np.repeat(shorter.weights, lengths[wave.blocks]).astype(np.float32)
            steps.append(wave_steps[keep_mask])
            weights.append(weight[keep_mask])
            rows.append(_rescale_rows(wave_steps, code.slots, keep_mask, weight, wave_rows))
            if rest.carried_by(wave):
                more = np.repeat(rest.factor(wave.blocks), lengths[wave.blocks])
                weights[-1] *= more[keep_mask]
                late = expand_blocks(rest.missing, firsts, lengths)
                share = np.repeat(rest.share, lengths[rest.missing])
                steps[-1] = np.concatenate([steps[-1], late])
                weights[-1] = np.concatenate([weights[-1], share.astype(np.float32)])
                rows[-1] = np.concatenate([rows[-1], code.contiguous[late[code.slots[late] > 0]]])
    return Streams(
        waves=len(workgroups[0]),
        steps=np.concatenate(steps).astype(np.int32),
        weights=np.concatenate(weights).astype(np.float32),
        start=_starts(steps),
        rows=np.concatenate(rows).astype(np.float32),
        rows_start=_starts(rows),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rest:
    """What recordings lack: factors of the later executions of a block in those that carry it, and
    the blocks that were executed but never recorded, with their executions per wave."""

    factors: Array
    missing: Array
    share: Array
    cut: bool

    @staticmethod
    def of(counts: Array | None, workgroups: Sequence[Sequence[Wave]], blocks: int) -> _Rest:
        waves = [wave for workgroup in workgroups for wave in workgroup]
        cut = not all(wave.complete for wave in waves)
        if counts is None:
            return _Rest(np.ones(blocks), np.zeros(0, np.int64), np.zeros(0), cut)
        recorded, early = np.zeros(blocks), np.zeros(blocks)
        total = np.array(counts, float)
        carrying = 0
        for wave in waves:
            wave_counts = np.bincount(np.asarray(wave.blocks, np.int64), minlength=blocks)
            if cut and wave.complete:
                total -= wave_counts
            else:
                recorded += wave_counts
                early += np.minimum(wave_counts, FIRST)
                carrying += 1
        late = recorded - early
        factors = np.divide(total - early, late, out=np.ones(blocks), where=late > 0)
        missing = np.flatnonzero((recorded == 0) & (total > 0))
        return _Rest(np.maximum(factors, 1.0), missing, total[missing] / carrying, cut)

    def carried_by(self, wave: Wave) -> bool:
        """Whether a wave carries what recordings lack."""
        return not (self.cut and wave.complete)

    def factor(self, blocks: Array) -> Array:
        """The factor of every execution in a wave's sequence of blocks."""
        if not (self.factors > 1.0).any():
            return np.ones(len(blocks))
        order = np.argsort(blocks, kind="stable")
        ranked = np.asarray(blocks)[order]
        first = np.searchsorted(ranked, ranked)
        nth = np.empty(len(blocks), np.int64)
        nth[order] = np.arange(len(blocks)) - first
        return np.where(nth >= FIRST, self.factors[blocks], 1.0)


def _rescale_rows(
    steps: Array, slots: Array, keep_mask: Array, weight: Array, rows: Array
) -> Array:
    """The rows of the steps kept, scaled so that with their weights every instruction asks for as
    much as it did in full."""
    memory = slots[steps] > 0
    of_row, row_kept = steps[memory], keep_mask[memory]
    if row_kept.all():
        return rows
    number = len(slots)
    scaled_rows = rows[row_kept].copy()
    for column in range(rows.shape[1]):
        full = np.bincount(of_row, rows[:, column], number)
        now = np.bincount(
            of_row[row_kept], scaled_rows[:, column] * weight[memory][row_kept], number
        )
        scale = np.divide(full, now, out=np.ones(number), where=now > 0)
        scaled_rows[:, column] *= scale[of_row[row_kept]]
    return scaled_rows


def _starts(parts: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _rows(steps: Array, slots: Array, instructions: Array, requests: Array) -> Array:
    """One row per executed memory instruction: the sum of its requests (none where all lanes were
    off and nothing was recorded)."""
    rows = np.zeros((int(np.count_nonzero(slots[steps] > 0)), requests.shape[1]), np.float32)
    _sum_requests(steps, slots, instructions, requests, rows)
    return rows


@loop
def _sum_requests(steps, slots, instructions, requests, rows):  # pragma: no cover
    row, at = 0, 0
    for step in steps:
        if slots[step] == 0:
            continue
        slot = 0
        while slot < slots[step] and at < len(instructions) and instructions[at] == step:
            for column in range(requests.shape[1]):
                rows[row, column] += requests[at, column]
            slot += 1
            at += 1
        row += 1


__all__ = ["streams"]
