"""Which lanes the LDS serves together: each row has all lanes once, and the rows are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.arch import lds


def test_every_row_serves_every_lane_once() -> None:
    found = lds._table()
    assert found
    for phases in found.values():
        assert sorted(lane for group in phases.groups for lane in group) == list(range(lds.WAVE))
        assert phases.banks in (32, 64)


def test_phases_of_wide_reads() -> None:
    documented = lds.lds_phases("gfx942", 16, write=False)
    assert documented is not None
    assert documented.groups[0] == (0, 1, 2, 3, 20, 21, 22, 23)
    assert documented.groups[4] == (32, 33, 34, 35, 52, 53, 54, 55)
    assert documented.status == "spec"
    measured = lds.lds_phases("gfx950", 16, write=False)
    assert measured is not None
    assert (measured.banks, measured.status) == (64, "measured")
    assert lds.lds_phases("gfx942", 16, write=True) is None
    assert lds.lds_phases("gfx1100", 16, write=False) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('status = "spec"', 'status = "heard"'),
        ('source = "hipkittens"', 'source = "nobody"'),
        ("banks = 32\n", ""),
    ],
)
def test_a_wrong_row_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    path = tmp_path / "lds_phases.toml"
    path.write_text(lds._FILE.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(lds, "_FILE", path)
    with pytest.raises(ValueError, match=r"lds_phases\.toml"):
        lds._table.__wrapped__()
