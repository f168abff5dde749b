"""Orders as groups of `sched_group_barrier`: kinds, variants, where source and IR have them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.lab.test_code import SOURCE, STATED
from wavecast.api.lab_schedule import schedule
from wavecast.compile import hip, toolchain
from wavecast.errors import CompileError, MissingTool
from wavecast.isa import parse
from wavecast.lab.edits import MASKS, with_group_calls
from wavecast.lab.schedule import asking
from wavecast.lab.schedule.groups import MOST, group_variants, kind_of, source_with_groups

CODE = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.type k,@function
k:
  global_load_dwordx4 v[0:3], v4, s[0:1]
  buffer_load_dword v5, v6, s[4:7], 0 offen lds
  ds_read_b128 v[8:11], v7
  ds_bpermute_b32 v8, v9, v10
  ds_write_b32 v7, v8
  v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
  v_exp_f32_e32 v8, v8
  v_add_f32_e32 v8, v8, v9
  global_store_dword v4, v5, s[0:1]
  global_atomic_add v4, v5, s[0:1]
  s_load_dword s8, s[0:1], 0x0
  s_add_u32 s8, s8, 1
  s_endpgm
"""


def decoded(text: str) -> list:
    (program,) = parse(text, "gfx942").functions.values()
    return [instruction.decoded for instruction in program.instructions]


def test_kinds_are_those_of_the_masks() -> None:
    kinds = [kind_of(each) for each in decoded(CODE)]
    loads = ["vmem_read", "vmem_read", "lds_read", "lds_read", "lds_write", "matrix"]
    assert kinds == [*loads, "valu", "valu", "vmem_write", "", "", "", ""]
    assert {*kinds} - {""} == MASKS.keys()


def test_variants_have_every_instruction_of_their_kinds() -> None:
    order = decoded(CODE) * 4
    whole, half, quarter, *plain = group_variants(order)
    kinds = [kind_of(each) for each in order]
    for groups, times in ((whole, 1), (half, 2), (quarter, 4)):
        assert not any(kind == "valu" for kind, _ in groups)
        for kind in ("vmem_read", "matrix", "vmem_write"):
            assert sum(size for name, size in groups if name == kind) * times == kinds.count(kind)
        assert all(before[0] != after[0] for before, after in pairwise(groups))
    assert ("valu", 2) in plain[0]
    assert all(len(groups) <= MOST for groups in group_variants(order * 20))
    assert [*group_variants(decoded(CODE)[-2:])] == []


LOOPS = """\
__global__ void k(float* a) {
  // for (;;) { a comment
  for (int i = 0; i < 4; i++) {
    a[i] += 1;  /* } */
    for (int j = 0; j < 4; j++) a[j] *= 2;
    while (a[0] > f("}")) { a[1] -= 1; }
    do {
      a[2] += a[1];
    } while (a[2] < 9);
  }
}
"""
GROUPS = [("lds_read", 2), ("matrix", 1)]
CALLS = ["__builtin_amdgcn_sched_group_barrier(0x100, 2, 0);"]
CALLS += ["__builtin_amdgcn_sched_group_barrier(0x8, 1, 0);"]


@pytest.mark.parametrize(
    ("lines", "before"),
    [
        ([4, 5, 6, 8], "  }\n}\n"),
        ([5], "  }\n}\n"),
        ([6], "}\n    do {"),
        ([8], "    } while (a[2] < 9);"),
        ([8, 8, 8, 8, 4], "    } while (a[2] < 9);"),
    ],
)
def test_calls_are_at_the_end_of_the_loop_with_the_lines(lines, before) -> None:
    text = source_with_groups(LOOPS, lines, GROUPS)
    last = text.index(CALLS[-1]) + len(CALLS[-1])
    assert text[last:].lstrip("\n").startswith(before)
    assert [line.strip() for line in text.splitlines() if "sched_group" in line] == CALLS
    without = "".join(line for line in text.splitlines(keepends=True) if "sched_group" not in line)
    assert re.sub(r"\s", "", without) == re.sub(r"\s", "", LOOPS)


def test_lines_outside_loops_are_refused() -> None:
    with pytest.raises(CompileError, match="no loop of the source with braces"):
        source_with_groups(LOOPS, [1, 11], GROUPS)
    with pytest.raises(CompileError, match="no loop of the source with braces"):
        source_with_groups("for (;;) f();\n", [1], GROUPS)


IR = """\
define void @k() {
entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %1 = call <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float 1.0, float 1.0, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  br i1 poison, label %loop, label %7

7:                                                ; preds = %loop
  ret void
}
"""  # noqa: E501


def test_calls_are_in_the_block_of_that_name_or_of_as_many_matrix_instructions() -> None:
    named = with_group_calls(IR, [(0x100, 2), (8, 1)], "loop", 1)
    assert with_group_calls(IR, [(0x100, 2), (8, 1)], "", 1) == named
    lines = named.split("\n")
    calls = [number for number, line in enumerate(lines) if "tail call void" in line]
    assert calls == [6, 7]
    assert named.split("\n")[8].startswith("  br i1 poison")
    assert named.count("declare void @llvm.amdgcn.sched.group.barrier") == 1
    assert "ret" in with_group_calls(IR, [(8, 1)], "7", 0).split("group.barrier")[1]
    with pytest.raises(CompileError, match="is recognised"):
        with_group_calls(IR, [(8, 1)], "", 3)


@pytest.mark.hip
def test_a_patch_of_hip_source_gives_the_time_that_is_reported(tmp_path: Path) -> None:
    try:
        toolchain.find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    source = tmp_path / "product.hip"
    source.write_text(SOURCE)
    folder = tmp_path / "groups"
    report = schedule(source, arch="gfx942", work=4, groups=folder, **STATED)
    ((_, result),) = report.run.results
    asked, after = result.asked, result.after
    assert asked is not None
    assert after is not None
    assert (asked.why_not, asked.where) == ("", "source")
    assert asked.seconds is not None
    assert after.seconds is not None
    assert result.before.seconds is not None
    assert 0 < asked.reached < 1.5
    saved = (result.before.seconds - asked.seconds) / (result.before.seconds - after.seconds)
    assert asked.reached == pytest.approx(saved)
    (patch,) = folder.iterdir()
    first, *lines_of_patch = patch.read_text().splitlines()
    flags = first.partition(" with ")[2].split()
    added = [line[1:] for line in lines_of_patch if re.match(r"\+[^+]", line)]
    assert len(added) == asked.groups
    assert all("__builtin_amdgcn_sched_group_barrier" in line for line in added)
    lines = SOURCE.split("\n")
    at = int(re.findall(r"^@@ -(\d+)", patch.read_text(), re.M)[0]) + 2
    patched = "\n".join([*lines[:at], *added, *lines[at:]])
    source.write_text(patched)
    (code,) = hip.compile_file(source, "gfx942")
    assert "sched_group_barrier" in code.assembly
    again = schedule(source, arch="gfx942", work=1, compiler_options=flags, **STATED).run.results[
        0
    ][1]
    assert again.before.seconds == pytest.approx(asked.seconds)


@pytest.mark.hip
def test_an_option_is_the_first_line_of_a_patch(tmp_path: Path) -> None:
    """Which patch(1) leaves out; the code is that of the option."""
    try:
        toolchain.find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    source = tmp_path / "product.hip"
    source.write_text(SOURCE)
    (code,) = hip.compile_file(source, "gfx942")
    program = parse(code.assembly, "gfx942").kernels[code.kernel].program
    option = "-mllvm -disable-post-ra"
    text, changed = asking.hip_variant(code, program, 0, (), option)
    assert text == f"Compile product.hip with {option}\n"
    (expected,) = hip.compile_file(source, "gfx942", option.split())
    texts = []
    for each in (code, changed, expected):
        program = parse(each.assembly, "gfx942").kernels[each.kernel].program
        texts.append([instruction.decoded.text for instruction in program.instructions])
    assert texts[0] != texts[1] == texts[2]
