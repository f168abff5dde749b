"""Calibrations that `calibration.left_out` starts: without a word to leave out, or without rows."""

from __future__ import annotations

from calibration import common, moe, table


def test_a_calibration_of_all_rows_starts_from_every_coefficient() -> None:
    known = common.starting("moe")
    assert moe._without(known, "") == known
    assert "stream_fraction" in moe._without(known, "gfx942")
    assert "pipe@gfx942" not in moe._without(known, "gfx942")


def test_settings_without_samples_stay() -> None:
    setting = ("timing", "host_norm", "default")
    before = table.get(setting)
    table.fit([setting], [], rounds=1)
    assert table.get(setting) == before
