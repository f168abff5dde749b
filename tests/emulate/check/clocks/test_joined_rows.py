"""Rows of many workgroups in blocks, against a dictionary of each workgroup."""

from __future__ import annotations

import numpy as np

from wavecast.emulate.check.clocks.joined_rows import NO_ROWS, JoinedRows, RowsBuilder

GROUPS = (0, 1, 63, 64, 65, 200)
WAVES = {group: 2 if group < 64 else 4 for group in GROUPS}
Model = dict[int, tuple[np.ndarray, dict[int, int]]]


def _random(generator: np.random.Generator) -> tuple[JoinedRows, Model]:
    builder, model = RowsBuilder(), {}
    for group in generator.choice(GROUPS, 3, replace=False).tolist():
        for _ in range(2):
            rows = generator.integers(0, 9, (WAVES[group], 3)).astype(np.uint32)
            wave, order = int(generator.integers(WAVES[group])), int(generator.integers(1, 99))
            builder.add(group, wave, rows, order)
            model = _join(model, {group: (rows, {wave: order})})
    return builder.build(), model


def _join(first: Model, second: Model) -> Model:
    total = dict(first)
    for group, (rows, orders) in second.items():
        before, order = total.get(group, (rows, {}))
        latest = {wave: max(order.get(wave, 0), orders.get(wave, 0)) for wave in order | orders}
        total[group] = np.maximum(before, rows), latest
    return total


def _assert_same(joined: JoinedRows, model: Model) -> None:
    assert {group for group, _ in joined.items()} == model.keys()
    for group in (*GROUPS, 1000):
        rows = joined.rows(group)
        assert (rows is None) == (group not in model)
        if rows is not None:
            assert np.array_equal(rows, model[group][0])
        for wave in range(5):
            order = model[group][1].get(wave, 0) if group in model else 0
            assert joined.order(group, wave) == order
    assert (joined.rows_between(60, 66) is None) == (not model.keys() & {63, 64, 65})


def test_joins_know_what_either_knows() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        (first, one), (second, other) = _random(generator), _random(generator)
        joined = first.join(second)
        _assert_same(joined, _join(one, other))
        _assert_same(first, one)
        assert joined.join(first) is joined
        assert first.join(joined) is joined
        assert first.join(second) is joined
        assert NO_ROWS.join(first) is first.join(NO_ROWS) is first


def test_a_builder_leaves_what_it_joins() -> None:
    generator = np.random.default_rng(6)
    (first, one), (second, other) = _random(generator), _random(generator)
    builder = RowsBuilder()
    builder.join(first)
    builder.add(0, 1, np.full((2, 3), 99, np.uint32), 500)
    builder.join(second)
    _assert_same(first, one)
    _assert_same(second, other)
    added = {0: (np.full((2, 3), 99, np.uint32), {1: 500})}
    _assert_same(builder.build(), _join(_join(one, added), other))
