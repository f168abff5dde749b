"""Leaving something out: which rows, which coefficients, and what derives from the errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration import cells, left_out, page, problems, refit, residuals
from calibration.cells import Cell, LeftOutTable
from calibration.priors import PRIORS
from calibration.problems import PublishedProblem
from wavecast import arch
from wavecast.perfmodel import coefficients, intervals
from wavecast.perfmodel.distance import DistanceClass, MeasuredRange, PredictionSubject
from wavecast.perfmodel.ops.gemm import Gemm

TABLE = """
[step_ck]
unit = "s"
meaning = "a step"
status = "fitted"
source = "x"
default = 4.0
mi300x = 5.0
gfx950 = 9.0

[step_asm]
unit = "s"
meaning = "a step"
status = "fitted"
source = "x"
default = 2.0

[step_triton]
unit = "s"
meaning = "a step"
status = "fitted"
source = "x"
default = 1.0

[fetch]
unit = "B"
meaning = "documented"
status = "documented"
source = "x"
default = 1.0
mi300x = 2.0
"""


def test_coefficients_that_only_what_is_left_out_tells_of_are_forgotten() -> None:
    rows = coefficients.read("gemm", TABLE)
    scopes = refit.learned_scopes(["mi300x"], ["mi308x", "mi355x"])
    assert scopes == {"mi300x": ("gfx942", "cdna3", "mall", "amd", "default")}
    assert refit.forgotten(rows, scopes, set(), {"ck", "asm"}) == {"step_ck@mi300x": 4.0}
    names = ("step_ck", "step_ck@mi300x", "step_ck@gfx950")
    assert refit.forgotten(rows, {}, {"ck"}, {"asm", "triton"}) == dict.fromkeys(names, 1.5)
    assert refit.learned_scopes(["mi300x", "mi308x"], ["mi355x"]).keys() >= {
        *("mi300x", "gfx942", "cdna3")
    }


def test_a_left_out_chip_has_the_value_of_the_chips_most_like_it() -> None:
    """Bandwidth behind a memory-side cache is that of the others with one."""
    row = coefficients.coefficient("chips", "hbm_fraction")
    for name, others, wider in (
        ("mi300x", ["mi355x"], "mall"), ("mi210", ["mi355x"], "default"),
        ("rx6800xt", ["mi100"], "default"),
    ):  # fmt: skip
        scopes = refit.learned_scopes([name], others)
        found = refit.forgotten({row.name: row}, scopes, set(), set())
        own = {scope for scope in scopes if scope in row.values}
        assert found == {f"hbm_fraction@{scope}": row.values[wider] for scope in own}
        assert own


def test_facts_replace_what_only_a_left_out_vendor_tells_of() -> None:
    """Without an NVIDIA chip a kernel does not start as late as on an AMD chip."""
    left = ["h100_sxm", "rx9070xt", "rx7900xtx", "rx6800xt"]
    scopes = refit.learned_scopes(left, ["mi300x"])
    for (family, name, scope), known in PRIORS.items():
        row = coefficients.coefficient(family, name)
        assert row.status_in(scope) in refit.LEARNED
        assert known.source
        found = refit.forgotten({name: row}, scopes, set(), set())
        assert found[f"{name}@{scope}"] == known.value != row.values["default"]


def test_values_of_a_vendor_are_forgotten_unless_they_were_guessed() -> None:
    """NVIDIA's values were measured on H100: without it nothing tells of them. Guesses stay."""
    scopes = refit.learned_scopes(["h100_sxm"], ["mi300x"])
    assert {"nvidia", "hopper"} <= scopes.keys()
    assert "nvidia" not in refit.learned_scopes(["h100_sxm"], ["b200"])
    row = '[call]\nunit = "s"\nmeaning = "m"\nsource = "x"\nstatus = "fitted"\n%s'
    row += "default = 1\nnvidia = 2"
    fitted = coefficients.read("gemm", row % "")
    assert refit.forgotten(fitted, scopes, set(), set()) == {"call@nvidia": 1.0}
    guessed = coefficients.read("gemm", row % 'statuses = { nvidia = "guessed" }\n')
    assert refit.forgotten(guessed, scopes, set(), set()) == {}
    assert guessed["call"].status_in("nvidia") == "guessed"
    assert guessed["call"].status_in("default") == "fitted"
    for wrong in ('{ amd = "guessed" }', '{ nvidia = "sure" }', '"guessed"'):
        with pytest.raises(ValueError, match=r"gemm\.toml, call"):
            coefficients.read("gemm", row % f"statuses = {wrong}\n")


def test_coefficients_change_in_the_copy_only() -> None:
    before = (refit.ROOT / "wavecast/perfmodel/coefficients/gemm.toml").read_text()
    with refit.sources() as copy:
        refit.forget(copy, {"gemm": {"call": 0.125}, "memory": {}})
        changed = (copy / "wavecast/perfmodel/coefficients/gemm.toml").read_text()
        assert coefficients.read("gemm", changed)["call"].values["default"] == 0.125
        op = Gemm(m=512, n=512, k=512, dtype="bf16")
        (seconds,) = refit.predict(copy, [(op, "mi300x")])
    from wavecast import arch

    assert seconds is not None
    assert seconds > 0.125 > op.predict(arch.load("mi300x")).seconds
    assert (refit.ROOT / "wavecast/perfmodel/coefficients/gemm.toml").read_text() == before


def test_every_calibration_reads_files_that_are_scored() -> None:
    for name, calibration in left_out.FAMILIES.items():
        assert not calibration.refitted or set(refit.files_of(name)) & set(calibration.files)


def problem(device: str, library: str, model: str, row: int) -> PublishedProblem:
    op = Gemm(m=16 + row, n=512, k=512, dtype="bf16", library=library)
    return PublishedProblem(
        "gemm_tuned", op, device, op.subject, 1e-4, "a/b", model, "", "2025-06", (row,)
    )


KNOWN = [
    problem(device, library, f"{device} {library} {number % 4}.csv", 100 * index + number)
    for index, (device, library) in enumerate(
        [("mi300x", ""), ("mi300x", "ck"), ("mi355x", ""), ("mi308x", "asm")]
    )
    for number in range(8)
]


def test_experiments_leave_out_every_chip_library_and_model() -> None:
    found = list(left_out.experiments(KNOWN))
    kinds = [(one.kind, one.group) for one in found]
    assert kinds == [
        ("chip", "mi300x"), ("chip", "mi308x"), ("chip", "mi355x"), ("target", "gfx942"),
        ("library", "asm"), ("library", "ck"), ("model", "0"), ("model", "1"), ("model", "2"),
    ]  # fmt: skip
    for one in found:
        assert len(one.left_out) + len(one.remaining) == len(KNOWN)
        names = {left_out_one.model for left_out_one in one.left_out}
        if one.kind == "model":
            assert not names & {kept.model for kept in one.remaining}


def test_what_was_published_last_is_left_out_together() -> None:
    """At least a quarter of the problems, whole months of it; nothing where all have one month."""
    months = ["2025-01"] * 5 + ["2026-03"] * 2 + ["2026-04"]
    known = [replace(one, month=month) for one, month in zip(KNOWN, months * 4, strict=True)]
    assert left_out.later_than(known) == "2026-03"
    (last,) = [one for one in left_out.experiments(known) if one.kind == "later"]
    assert {one.month for one in last.left_out} == {"2026-03", "2026-04"}
    assert {one.month for one in last.remaining} == {"2025-01"}
    (cell, *_) = left_out.cells("gemm", last, [(last.left_out[0], 1e-4)], "2026-03")
    assert cell.later
    assert left_out.later_than(KNOWN) == ""
    first = [replace(one, month="2025-01" if n else "2024-01") for n, one in enumerate(KNOWN)]
    assert left_out.later_than(first) == "2025-01"


def test_later_measurements_are_covered_by_intervals_of_earlier_ones() -> None:
    """The interval they are tried on has no residual of them, in whatever experiment."""
    table = sample()
    late = [
        replace(cell(kind, group, 3.0, distance="measured"), later=True)
        for kind, group in (("later", "2026-03"), ("model", "late.csv"))
    ]
    known = LeftOutTable(table.measured, (*table.cells, *late), table.slices, {})
    (found,) = [one for one in residuals.coverage(known) if one.kind == "later"]
    assert found.coverage == 0.0


def test_a_chip_without_matrix_units_says_nothing_of_matrix_kernels() -> None:
    table = sample()
    odd = cell("chip", "rx6800xt", 3.0, device="rx6800xt", distance="chip not measured")
    made = residuals.table(LeftOutTable(table.measured, (*table.cells, odd), table.slices, {}))
    before = residuals.table(table)
    key = ("chip not measured", "gemm", "", "")
    assert made.rows[key] == before.rows[key]


def test_rows_of_what_is_left_out_are_not_in_the_copy_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "gemm_tuned.parquet"
    pd.DataFrame({"M": range(400), "arch": "gfx942"}).to_parquet(path)
    gone = [one for one in KNOWN if one.device == "mi355x"]
    frame = problems.kept_rows(path, KNOWN, gone)
    assert sorted(set(range(400)) - set(frame["M"])) == [one.rows[0] for one in gone]
    assert 80 < len(problems.thinned(frame, 100)) < 120


def test_layers_left_out_of_a_table_of_alternatives_keep_the_other_layers(tmp_path: Path) -> None:
    """A table with several rows per problem is divided by layers, on every chip, or by chips."""
    path = tmp_path / "conv_miopen.parquet"
    rows = [(arch, c, 64, 3, 3) for arch in ("gfx90a", "gfx908") for c in (32, 128)]
    frame = pd.DataFrame(rows, columns=["arch", "C", "K", "R", "S"])
    frame.to_parquet(path)
    known = [
        replace(
            problem(device, "", problems.layer(c, 64, (3, 3)), number), file="conv_miopen", rows=()
        )
        for number, (device, c) in enumerate(
            (device, c) for device in ("mi250x_gcd", "mi100") for c in (32, 128)
        )
    ]
    layers = problems.kept_rows(path, known, [one for one in known if "32 and" in one.model])
    assert layers["C"].tolist() == [128, 128]
    chips = problems.kept_rows(path, known, [one for one in known if one.device == "mi100"])
    assert chips["arch"].tolist() == ["gfx90a", "gfx90a"]


def test_the_distance_is_from_what_remains() -> None:
    (experiment,) = [one for one in left_out.experiments(KNOWN) if one.group == "ck"]
    answers = [(one, 1.1e-4) for one in experiment.left_out]
    (cell,) = left_out.cells("gemm", experiment, answers)
    assert (cell.distance, cell.device, cell.n) == ("library not measured", "mi300x", 8)
    assert cell.logs == pytest.approx([np.log(1 / 1.1)] * 8, abs=1e-4)


def test_sketches_keep_the_quantiles() -> None:
    logs = np.random.default_rng(0).normal(size=5000)
    sketch = left_out.sketch(logs)
    assert len(sketch) == left_out.QUANTILES
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(sketch, share) == pytest.approx(np.quantile(logs, share), abs=0.12)


def cell(kind: str, group: str, shift: float, **other: str) -> Cell:
    random = np.random.default_rng(abs(hash((kind, group))) % 1000)
    logs = tuple(float(x) for x in np.sort(random.normal(shift, 0.05, 15)))
    row = {"family": "gemm", "device": "mi300x", "library": "", "source": "a/b",
           "distance": "measured", **other}  # fmt: skip
    return Cell("gemm", kind, group, *row.values(), False, 30, 0.5, logs)


CHIPS = (
    *("mi100", "mi210", "mi250x_gcd", "mi300a", "mi300x", "mi325x", "mi350x", "mi355x"),
    *("rx7900xtx", "rx9070xt"),
)
"""Chips with matrix units."""


def sample() -> LeftOutTable:
    chips = [
        cell("chip", CHIPS[n], 0.1 * (n - 4), device=CHIPS[n], distance="chip not measured")
        for n in range(9)
    ]
    models = [cell("model", f"{n}.csv", 0.01 * (n - 4)) for n in range(9)]
    far = [
        cell("source", f"s{n}", 0.0, source=f"s{n}", device=CHIPS[n],
             distance="chip and library not measured")
        for n in range(8)
    ]  # fmt: skip
    ranges = (MeasuredRange("gemm", "mi300x", "", "bf16", 9, {"FLOPs": (1.0, 2.0)}),)
    return LeftOutTable({"gemm": ranges}, (*chips, *models, *far), {"gemm": ()}, {})


def test_a_farther_class_has_its_own_wider_interval() -> None:
    made = residuals.table(sample())
    near = made.rows["measured", "", "", ""]
    far = made.rows["chip not measured", "gemm", "", ""]
    assert far.high - far.low > 2 * (near.high - near.low)
    assert (near.groups, near.problems) == (9, 270)
    assert near.source == "all kinds of kernels, models left out"
    subject = PredictionSubject("gemm")
    row, basis = intervals.residuals(made, subject, arch.load("mi308x"))
    assert (row.low, row.high) == (far.low, far.high)
    assert basis.distance == "chip not measured"


def test_a_group_of_one_problem_does_not_count() -> None:
    """One wrong time on a chip with few rows is not a ninth group."""
    table = sample()
    wrong = replace(
        cell("model", "x.csv", 0, device=CHIPS[9], source="c/d", distance="chip not measured"),
        n=1,
        logs=(2.0,),
    )
    known = LeftOutTable(table.measured, (*table.cells, wrong), table.slices, {})
    assert residuals.table(known).rows == residuals.table(table).rows


def test_what_two_experiments_leave_out_counts_once() -> None:
    """The rows of a source that measured one chip are those of the chip."""
    table = sample()
    same = cell("source", "a/b", 9.0, device=CHIPS[0], distance="chip not measured")
    known = LeftOutTable(table.measured, (*table.cells, same), table.slices, {})
    assert residuals.table(known).rows == residuals.table(table).rows


def test_a_family_with_few_groups_takes_the_residuals_of_families_with_its_limits() -> None:
    table = sample()
    others = [
        cell("chip", CHIPS[n], 1.0, family="norm", device=CHIPS[n], distance="chip not measured")
        for n in range(9)
    ]
    made = residuals.table(LeftOutTable(table.measured, (*table.cells, *others), table.slices, {}))
    rows = {
        family: next(
            made.rows[key]
            for key in intervals.keys(
                DistanceClass.CHIP, PredictionSubject(family), arch.load("mi308x")
            )
            if key in made.rows
        )
        for family in ("conv", "elementwise", "kernel")
    }
    assert rows["conv"].source == "matrix kernels, chips left out"
    assert rows["elementwise"].source == "memory-bound kernels, chips left out"
    assert rows["kernel"].source == "all kinds of kernels, chips left out"
    assert rows["conv"].high < rows["elementwise"].low


def test_a_command_replaces_its_notes() -> None:
    table = LeftOutTable(
        {}, (), {}, {"gemm: 3 problems": "set aside", "gemm without chip a": "x", "moe: 1": "y"}
    )
    assert table.without("gemm").notes == {"moe: 1": "y"}


def test_coverage_uses_no_residual_of_the_group() -> None:
    """One chip is far from all others: an interval that saw it would contain it."""
    table = sample()
    odd = cell("chip", "b200", 3.0, device="b200", distance="chip not measured")
    known = LeftOutTable(table.measured, (*table.cells, odd), table.slices, {})
    found = {one.group: one for one in residuals.coverage(known)}
    assert found["b200"].coverage == 0.0
    assert found[CHIPS[4]].coverage == 1.0


@pytest.fixture(scope="module")
def groups() -> list[residuals.GroupCoverage]:
    return residuals.coverage(cells.read())


def test_what_is_committed_derives_from_the_left_out_errors(
    groups: list[residuals.GroupCoverage],
) -> None:
    """`python -m calibration.regenerate` writes all of it."""
    known = cells.read()
    assert known.document() == cells.TABLE.read_text()
    assert residuals.document(residuals.table(known)) == residuals.OUTPUT.read_text()
    assert page.left_out(known, groups) in page.PAGE.read_text()
    assert page.readme(page.README.read_text(), known, groups) == page.README.read_text()


def test_chips_libraries_and_sources_are_covered_on_average(
    groups: list[residuals.GroupCoverage],
) -> None:
    for kind, within in (("chip", 0.05), ("library", 0.05), ("source", 0.05), ("target", 0.1)):
        shares = [one.coverage for one in groups if one.kind == kind]
        assert np.mean(shares) == pytest.approx(intervals.COVERAGE, abs=within)


def test_every_distance_class_is_covered_with_intervals_that_say_something() -> None:
    """Groups count equally; chips that nobody measured have intervals narrower than 2.5."""
    classes = residuals.by_class(cells.read())
    names = [name for merged in classes for name in merged.split(", ")]
    assert names == [one.value for one in DistanceClass]
    for name, same in classes.items():
        assert len(same) >= residuals.TESTED
        assert 0.7 <= np.mean([one.coverage for one in same]) <= 0.9
        if name in ("chip not measured", "target not measured"):
            assert np.mean([np.exp(one.width) for one in same]) < 2.5


def test_a_class_of_few_groups_is_one_with_the_next_wider() -> None:
    """Nine models, three libraries and nine chips; eight sources, which are the last class."""
    table = sample()
    few = [
        cell("source", f"paper {n}", 0.1, device=CHIPS[n], distance="library not measured")
        for n in range(3)
    ]
    known = LeftOutTable(table.measured, (*table.cells, *few), table.slices, {})
    classes = residuals.by_class(known)
    first, last = (
        "measured, library not measured",
        "chip not measured, chip and library not measured",
    )
    assert {name: len(same) for name, same in classes.items()} == {first: 12, last: 17}
    known = LeftOutTable(table.measured, (*table.cells[:18], *few), table.slices, {})
    assert list(residuals.by_class(known)) == [f"{first}, chip not measured"]


def test_a_time_that_cannot_be_that_of_its_problem_is_set_aside() -> None:
    from dataclasses import replace

    one = problem("mi300x", "", "a.csv", 1)
    assert not problems.implausible(replace(one, seconds=9e-4))
    assert problems.implausible(replace(one, seconds=2e-3))
    large = Gemm(m=8192, n=8192, k=8192, dtype="bf16")
    assert not problems.implausible(replace(one, op=large, seconds=2e-3))


def test_files_whose_times_contain_the_host_are_set_aside() -> None:
    """A product of a microsecond that takes 40 shows it, for its whole file."""
    small = Gemm(m=64, n=64, k=64, dtype="bf16")
    large = Gemm(m=8192, n=8192, k=8192, dtype="bf16")
    first, second = problem("mi300x", "", "a.csv", 1), problem("mi300x", "", "b.csv", 2)
    slow = [replace(first, op=small, seconds=40e-6), replace(first, op=large, seconds=2e-3)]
    quick = [replace(second, op=small, seconds=8e-6), replace(second, op=large, seconds=2e-3)]
    assert problems.without_host([*slow, *quick]) == quick
    hosted = [replace(slow[0], op=replace(small, timing="eager")), slow[1]]
    assert problems.without_host(hosted) == hosted


def test_all_scopes_of_a_library_are_forgotten() -> None:
    table = TABLE + '\n[serial_own]\nunit = "1"\nmeaning = "x"\nstatus = "fitted"\nsource = "x"'
    table += '\nstatuses = { default = "derived" }\ndefault = 5.0\nrdna = 4.0\n'
    table += table[table.index("[serial_own]") :].replace("serial_own", "serial_asm")
    table += table[table.index("[serial_own]") : table.index("[serial_asm]")].replace(
        "serial_own", "filled_own"
    )
    table += '[filled]\nunit = "1"\nmeaning = "x"\nstatus = "fitted"\nsource = "x"\ndefault = 0.7\n'
    table = table.replace("[serial_asm]", "[serial_asm]\ncdna3 = 9.0").replace(
        "rdna = 4.0\n[filled_own]", "rdna = 3.0\n[filled_own]"
    )
    rows = coefficients.read("gemm", table)
    assert refit.forgotten(rows, {}, {"own"}, {"asm"}) == {
        "serial_own@rdna": 3.0,
        "filled_own@rdna": 0.7,
    }


def test_a_library_is_forgotten_where_others_have_values_of_all_chips() -> None:
    table = TABLE.replace(
        'source = "x"\ndefault = 1.0\n\n[fetch]', 'source = "x"\ncdna3 = 1.0\n\n[fetch]'
    )
    rows = coefficients.read("gemm", table)
    names = ("step_ck", "step_ck@gfx950", "step_ck@mi300x")
    assert refit.forgotten(rows, {}, {"ck"}, {"asm", "triton"}) == dict.fromkeys(names, 2.0)
    assert refit.forgotten(rows, {}, {"triton"}, {"asm", "ck"}) == {}
