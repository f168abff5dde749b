from __future__ import annotations

from dataclasses import replace

from tests.report import sample
from wavecast.analyze.result import NextStep
from wavecast.compile.codeobject import Argument
from wavecast.isa.instruction import SourceLocation
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline.explain.prediction import Predicted
from wavecast.report.explain import accesses, listing, source, summary, words

REPORT = sample.report()
MATMUL = REPORT.explanations[0]


def test_launches_group_over_devices_even_when_the_grid_follows_the_device():
    changed = []
    for index, explanation in enumerate(REPORT.explanations):
        assert explanation.launch is not None
        launch = replace(explanation.launch, grid=(index + 1, 1, 1))
        changed.append(replace(explanation, launch=launch))
    groups = summary.groups(replace(REPORT, explanations=tuple(changed)))
    assert [(g.label, len(g.explanations)) for g in groups] == [
        ("matmul_kernel", 4),
        ("softmax_kernel", 4),
    ]


def test_launches_sized_by_the_device_are_matched_in_order():
    """Partial sums per compute unit: the arguments differ on every device, the calls do not."""
    first = REPORT.explanations[:4]
    sized = []
    for index, explanation in enumerate(first):
        argument = Argument("partial", "tensor", "fp32", (index + 1, 64), (64, 1))
        launch = replace(explanation.launch, arguments=(argument,), configuration=f"BLOCK={index}")
        sized.append(replace(explanation, launch=launch))
    found = summary.groups(replace(REPORT, explanations=tuple(sized)))
    assert [(g.label, len(g.explanations)) for g in found] == [("matmul_kernel", 4)]
    partly = summary.groups(replace(REPORT, explanations=(*sized, first[0])))
    assert [len(g.explanations) for g in partly] == [1] * 5


def test_a_second_launch_of_a_device_starts_a_group_of_its_own():
    groups = summary.groups(replace(REPORT, explanations=(MATMUL, MATMUL)))
    assert [g.label for g in groups] == ["matmul_kernel #1", "matmul_kernel #2"]


def test_configurations_are_part_of_the_label():
    assert MATMUL.launch is not None
    tuned = replace(MATMUL, launch=replace(MATMUL.launch, configuration="BLOCK_M: 64"))
    groups = summary.groups(replace(REPORT, explanations=(MATMUL, tuned)))
    assert [g.label for g in groups] == ["matmul_kernel", "matmul_kernel [BLOCK_M: 64]"]


def test_the_main_loop_comes_first_and_is_the_inner_one_unless_its_trips_are_few():
    (outer,) = MATMUL.analysis.loops
    inner = replace(outer, index=1, depth=2, trip_count=None, parent=outer.index)
    assert summary.main_loop(replace(MATMUL.analysis, loops=(outer, inner))) is inner
    rare = replace(inner, trip_count=1.0, cycles={"valu": 4.0}, critical_path=4.0)
    assert summary.main_loop(replace(MATMUL.analysis, loops=(outer, rare))) is outer
    assert summary.main_loop(replace(MATMUL.analysis, loops=())) is None


def test_next_step_names_every_resource_that_must_shrink():
    step = NextStep("vgpr", 1, 168, 3, (NextStep("lds", 2048, 4096, 3),))
    analysis = replace(MATMUL.analysis, occupancy=replace(MATMUL.analysis.occupancy, next=step))
    assert (
        words.next_step(replace(MATMUL, analysis=analysis))
        == "1 VGPR fewer and 2 KiB less LDS → 3 waves/SIMD"
    )


def test_where_names_the_call_site_of_inlined_code():
    own = SourceLocation("/a/k.py", 12)
    assert words.where(SourceLocation("/lib/standard.py", 290, 0, own)) == (
        "line 12 (via standard.py:290)"
    )
    assert words.where(own) == "line 12"


def test_memory_accesses_alike_are_one_group():
    groups = accesses.memory_groups(MATMUL.analysis)
    assert [(g.line, g.argument, g.count, accesses.wasteful(g)) for g in groups] == [
        (23, "a", 2, False),
        (23, "", 1, True),
        (24, "b", 2, True),
        (None, "c", 1, False),
    ]


def test_source_text_is_the_compilers_copy_and_only_source_files_are_read(tmp_path):
    assert source.line_text(MATMUL.code, "matmul.py", 23).strip() == "x = tl.load(left)"
    secret = tmp_path / "secret"
    secret.write_text("token\n")
    assert source.line_text(MATMUL.code, str(secret), 1) == ""
    script = tmp_path / "helper.py"
    script.write_text("a = 1\nb = 2\n")
    assert source.line_text(MATMUL.code, str(script), 2) == "b = 2"
    assert source.line_text(MATMUL.code, str(script), 3) == ""


def test_heat_is_cycles_times_executions():
    target = listing.build([MATMUL]).targets[0]
    matrix = [i for i, text in enumerate(target["text"]) if text.startswith("v_mfma")]
    assert {target["heat"][i] for i in matrix} == {listing.HEAT_STEPS}
    assert target["heat"][0] < target["heat"][8] < listing.HEAT_STEPS
    hottest = max(target["line_heat"], key=target["line_heat"].__getitem__)
    assert target["chains"][target["chain"][matrix[0]]] == [int(hottest)]


def test_shades_cover_the_range():
    assert listing.shades([0.0, 1.0, 450.0, 900.0]) == [0, 1, 5, 9]
    assert listing.shades([0.0, 0.0]) == [0, 0]
    assert listing.shades([]) == []


def test_assembly_files_show_the_source_they_were_compiled_from(tmp_path):
    kernel = tmp_path / "k.py"
    kernel.write_text("".join(f"line {n}\n" for n in range(1, 60)))
    assert MATMUL.program is not None
    moved = [
        type(i)(i.decoded, i.index, i.line, i.location and replace(i.location, file=str(kernel)))
        for i in MATMUL.program.instructions
    ]
    code = replace(MATMUL.code, origin="assembly", source="k.s", source_text="s_endpgm")
    explanation = replace(
        MATMUL,
        code=code,
        program=replace(MATMUL.program, instructions=tuple(moved)),
        analysis=replace(MATMUL.analysis, lines=()),
    )
    (file,) = listing.build([explanation]).files
    assert (file.name, file.own) == (str(kernel), True)
    assert [line.line for line in file.lines] == list(range(14, 30))
    assert file.lines[0].text == "line 14"


def test_the_headline_starts_with_the_time_and_what_bounds_it():
    time = Prediction("mi300x", 24e-6, 20e-6, 31e-6, "latency", "static", {"latency": 24e-6})
    said = words.headline(replace(MATMUL, predicted=Predicted(time)))
    assert said.startswith("gfx942 (MI300X): 24 µs predicted (20 µs to 31 µs), bound by latency. ")


def test_without_known_flops_the_headline_says_what_memory_needs():
    roofline = replace(MATMUL.roofline, bound="unknown", floor_seconds=None)
    said = words.headline(replace(MATMUL, roofline=roofline))
    assert "Memory alone needs 19 µs." in said
    nothing = replace(roofline, memory_seconds=None)
    assert "emory" not in words.headline(replace(MATMUL, roofline=nothing))
