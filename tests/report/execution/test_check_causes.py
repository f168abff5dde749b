"""Reports of check mode by likely cause."""

from __future__ import annotations

import io

from rich.console import Console

from wavecast.emulate.reports import Kind, Report
from wavecast.isa.instruction import SourceLocation
from wavecast.report.execution import checks
from wavecast.report.execution.check_causes import groups

WRITE, READ = 13, 19


def _at(line: int) -> SourceLocation:
    return SourceLocation("k.hip", line, 1)


def _race(index: int, *, after_read: bool = False, read: int = READ, write: int = WRITE) -> Report:
    here, there = (write, read) if after_read else (read, write)
    message = "overwrites what wave 0 read" if after_read else "reads what wave 0 wrote"
    return Report(
        Kind.LDS_RACE, "k", "gfx942", message, index, "ds_read_b32", _at(here), wave=1,
        other=1, other_text="ds_write_b32", other_location=_at(there),
    )  # fmt: skip


def _unwritten(index: int, line: int = READ) -> Report:
    return Report(
        Kind.UNINITIALISED_LDS, "k", "gfx942", "reads LDS", index, "ds_read_b32", _at(line)
    )


ONE_BARRIER = [_race(2, after_read=True), *(_race(n) for n in range(5, 9)), _unwritten(5)]


def test_one_missing_barrier_is_one_group_with_the_read_after_write_first() -> None:
    (group,) = groups(ONE_BARRIER)
    assert group.first == ONE_BARRIER[1]
    assert len(group.others) == len(ONE_BARRIER) - 1
    assert group.more == "+5 with the same cause: 4 lds-race, 1 uninitialised-lds"


def test_reads_at_several_lines_miss_the_same_barrier_behind_the_store() -> None:
    (group,) = groups([*ONE_BARRIER, _race(9, read=READ + 1), _unwritten(9, READ + 1)])
    assert group.first == ONE_BARRIER[1]


def test_other_lines_kinds_and_kernels_stay_apart() -> None:
    other = Report(Kind.LANE_RACE, "k", "gfx942", "stores", 3, "ds_write_b32", _at(WRITE))
    found = groups([*ONE_BARRIER, _race(9, read=20, write=14), other, _unwritten(11, 40)])
    assert [len(group.others) for group in found] == [5, 0, 0, 0]
    nowhere = [Report(Kind.HAZARD, "k", "gfx942", "m", n, "s_nop") for n in (1, 2)]
    assert len(groups(nowhere)) == len(nowhere)


def test_a_nan_behind_an_infinity_of_its_line_is_no_other_mistake() -> None:
    def special(kind: Kind, index: int, line: int) -> Report:
        return Report(kind, "k", "gfx942", "makes", index, "v_mul_f32", _at(line))

    cosh = special(Kind.INFINITY, 81, 3), special(Kind.INFINITY, 85, 3)
    nan, other = special(Kind.NOT_A_NUMBER, 86, 3), special(Kind.NOT_A_NUMBER, 90, 4)
    (group, apart) = groups([nan, *cosh, other])
    assert (group.first, group.others) == (cosh[0], (cosh[1], nan))
    assert (apart.first, apart.others) == (other, ())


def _global_race(kind: Kind, here: int, there: int, *, echo: bool = False) -> Report:
    message = "overwrites what was written" if echo else "reads what was written"
    return Report(
        kind, "k", "gfx942", message, here, "global_load_dword", _at(here),
        other=there, other_text="global_store_dword", other_location=_at(there),
    )  # fmt: skip


def test_waves_and_workgroups_that_race_at_the_same_lines_are_one_mistake() -> None:
    waves = _global_race(Kind.GLOBAL_RACE, 7, 6, echo=True)
    workgroups = _global_race(Kind.WORKGROUP_RACE, 7, 6, echo=True)
    (group,) = groups([waves, workgroups])
    assert (group.first, group.others) == (workgroups, (waves,))
    assert len(groups([waves, _global_race(Kind.WORKGROUP_RACE, 8, 6, echo=True)])) == 2


def test_a_barrier_that_lanes_and_waves_miss_is_one_mistake() -> None:
    lanes = Report(Kind.PARTIAL_BARRIER, "k", "gfx942", "masked", 4, "s_barrier", _at(9))
    waves = Report(
        Kind.EXITED_WAVE, "k", "gfx942", "ended", 4, "s_barrier", _at(9),
        other=9, other_text="s_endpgm", other_location=_at(11),
    )  # fmt: skip
    (group,) = groups([waves, lanes])
    assert {group.first, *group.others} == {lanes, waves}


def test_races_of_an_update_that_is_lost_belong_to_it() -> None:
    """`old = load(p); store(p, old + v)` in lines 8 and 9."""
    update = _global_race(Kind.LOST_UPDATE, 9, 8)
    stores = _global_race(Kind.GLOBAL_RACE, 9, 9, echo=True)
    loads = _global_race(Kind.REPLICATED_READ, 8, 9)
    elsewhere = _global_race(Kind.GLOBAL_RACE, 12, 9)
    (group, apart) = groups([stores, loads, elsewhere, update])
    assert (group.first, set(group.others)) == (update, {stores, loads})
    assert (apart.first, apart.others) == (elsewhere, ())
    lanes = Report(Kind.LANE_RACE, "k", "gfx942", "stores", 9, "global_store_dword", _at(9))
    (group, *apart) = groups([stores, lanes, loads])
    assert (group.first, group.others) == (lanes, (stores,))
    assert [one.first for one in apart] == [loads]  # of another line, too


def test_text_and_sarif_have_one_entry_per_cause_and_json_all() -> None:
    out = io.StringIO()
    checks.render(ONE_BARRIER, Console(file=out, width=120))
    text = out.getvalue()
    assert text.count("error[") == 1
    assert "+5 with the same cause" in text
    assert "check: 1 error (6 reports)" in text
    assert checks.github(ONE_BARRIER).count("::error") == 1
    (result,) = checks.sarif_document(ONE_BARRIER)["runs"][0]["results"]
    assert "+5 with the same cause" in result["message"]["text"]
    assert len(checks.document(ONE_BARRIER)["reports"]) == len(ONE_BARRIER)
