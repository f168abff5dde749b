"""Two versions of assembly compared: which loop, which lines, which kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wavecast.benchmarking.diff.compare import compare, match_kernels
from wavecast.benchmarking.diff.result import Diff, KernelDiff
from wavecast.benchmarking.diff.sides import Asked, of_file
from wavecast.benchmarking.diff.verdict import worse
from wavecast.benchmarking.kpis import kpi
from wavecast.errors import NothingAnalysed
from wavecast.pipeline import SourceOptions, select

SAXPY = Path(__file__).parents[2] / "compile/data/saxpy.gfx942.s"


def silent(_: str) -> None:
    pass


def diff(tmp_path: Path, before: str, after: str, options: SourceOptions | None = None) -> Diff:
    options = options or SourceOptions(grid=(64, 1, 1), block=(256, 1, 1))
    asked = Asked(select(["gfx942"]), options)
    sides = []
    for name, text in (("before", before), ("after", after)):
        path = tmp_path / f"{name}.s"
        path.write_text(text)
        sides.append(of_file(path, asked, silent))
    return compare(*sides)


def only(found: Diff) -> KernelDiff:
    (kernel,) = found.kernels
    return kernel


@pytest.fixture(scope="module")
def saxpy() -> str:
    return SAXPY.read_text()


def test_the_same_code_has_no_change(tmp_path: Path, saxpy: str) -> None:
    kernel = only(diff(tmp_path, saxpy, saxpy))
    assert kernel.same_code
    assert kernel.responsible is None
    assert not any(d.changed for d in (*kernel.figures, *kernel.resources, *kernel.mix))
    assert (kernel.findings_gone, kernel.findings_new) == ((), ())


def test_a_loop_with_more_work_is_responsible(tmp_path: Path, saxpy: str) -> None:
    line = "\tv_fmac_f32_e32 v4, s2, v1\n"
    slow = saxpy.replace(line, "\tv_exp_f32_e32 v1, v1\n" * 6 + line)
    kernel = only(diff(tmp_path, saxpy, slow))
    assert not kernel.same_code
    region = kernel.responsible
    assert region is not None
    assert region.loop
    assert region.before is not None
    assert region.after is not None
    assert region.after.cycles["valu"] > region.before.cycles["valu"]
    assert [row.kind for row in region.rows if row.kind != "same"] == ["new"] * 6 + ["operands"]
    assert region.spent.difference > 0
    mix = {delta.name: (delta.before, delta.after) for delta in kernel.mix if delta.changed}
    assert mix == {"trans": (0, 6)}
    assert kernel.lines[0].after == 5
    assert kernel.lines[0].spent.difference == max(d.spent.difference for d in kernel.lines)


def test_a_loop_that_goes_is_an_entry(tmp_path: Path, saxpy: str) -> None:
    unrolled = saxpy.replace("\ts_cbranch_execnz .LBB0_2\n", "")
    kernel = only(diff(tmp_path, saxpy, unrolled))
    assert [region.loop for region in kernel.regions] == [False, True]
    gone = kernel.regions[1]
    assert gone.before is not None
    assert gone.after is None
    assert {row.kind for row in gone.rows} == {"gone"}


def test_what_became_worse(tmp_path: Path, saxpy: str) -> None:
    fat = saxpy.replace(".amdhsa_next_free_vgpr 6", ".amdhsa_next_free_vgpr 200")
    fat = fat.replace("num_vgpr, 6", "num_vgpr, 200").replace(
        "vgpr_count:     6", "vgpr_count:     200"
    )
    assert fat != saxpy
    found = diff(tmp_path, saxpy, fat)
    (line,) = worse(found, [kpi("waves")])
    assert line.startswith("waves of saxpy on gfx942: 8 → 2")
    assert worse(diff(tmp_path, fat, saxpy), [kpi("waves"), kpi("vgprs")]) == []
    assert worse(found, [kpi("waves")], minimum=0.9) == []
    assert worse(found, [kpi("spills")]) == []


def test_a_figure_that_no_side_has(tmp_path: Path, saxpy: str) -> None:
    found = diff(tmp_path, saxpy, saxpy, SourceOptions())
    with pytest.raises(NothingAnalysed, match="no kernel has predicted_seconds on both sides"):
        worse(found, [kpi("predicted_seconds")])
    assert only(found).basis == "cycles"


def test_a_renamed_kernel_is_compared_and_said_so(tmp_path: Path, saxpy: str) -> None:
    found = diff(tmp_path, saxpy, saxpy.replace("saxpy", "axpby"))
    assert only(found).name == "saxpy → axpby"
    assert only(found).paired
    assert any("the only kernels left" in note for note in found.notes)


def test_kernels_pair_by_name_arguments_and_order(tmp_path: Path, saxpy: str) -> None:
    kernel = only(diff(tmp_path, saxpy, saxpy))
    one = kernel.before
    assert one is not None
    assert one.launch is not None

    def made(name: str, x: int):
        assert one is not None
        assert one.launch is not None
        code = replace(one.code, kernel=name)
        return replace(one, code=code, launch=replace(one.launch, grid=(x, 1, 1)))

    before = [made("a", 1), made("a", 2), made("b", 1), made("c", 1)]
    after = [made("d", 1), made("e", 1), made("a", 2), made("a", 3), made("a", 4)]
    pairs = [
        tuple((e.code.kernel, e.launch.grid[0]) if e and e.launch else None for e in pair)
        for pair in match_kernels(before, after)
    ]
    assert pairs == [
        (("a", 1), ("a", 3)),
        (("a", 2), ("a", 2)),
        (None, ("a", 4)),
        (("b", 1), None),
        (("c", 1), None),
        (None, ("d", 1)),
        (None, ("e", 1)),
    ]


def test_a_kernel_that_is_gone_is_worse_and_a_new_one_is_not(tmp_path: Path, saxpy: str) -> None:
    kernel = only(diff(tmp_path, saxpy, saxpy))
    gone, new = replace(kernel, name="a", after=None), replace(kernel, name="b", before=None)
    found = Diff("before", "after", (kernel, gone, new))
    assert worse(found, [kpi("spills")]) == ["a on gfx942 is gone"]
