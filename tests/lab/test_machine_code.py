"""Other decisions for assembly and code objects: orders, waits, priorities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wavecast
import wavecast.lab
from tests.lab.test_code import LAUNCH, NUMBERS, SOURCE
from tests.libraries.launching import OBJECTS, needs_objects
from wavecast import compile as compilers
from wavecast.api.lab_tune import tune
from wavecast.compile import hip, toolchain
from wavecast.errors import MissingTool
from wavecast.isa import parse
from wavecast.isa.program import Program
from wavecast.lab.axes import applicable
from wavecast.lab.machine_code import with_new_waits
from wavecast.lab.schedule.layout import Layout
from wavecast.lab.schedule.priorities import with_priorities, without_priorities

MATRIX = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"
OTHER = "v_add_f32_e32 v8, v8, v9"


def program_of(*lines: str) -> Program:
    head = '.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n.type k,@function\nk:\n'
    text = head + "".join(f"  {line}\n" for line in (*lines, "s_endpgm"))
    (program,) = parse(text, "gfx942").functions.values()
    return program


def texts(program: Program, layout: Layout) -> list[str]:
    return [
        item if isinstance(item, str) else program.instructions[item].decoded.text.strip()
        for item in layout.items
    ]


def marked(lines: list[str], where: str) -> str:
    """Instructions with priorities as letters: m matrix, o other, b barrier, < and > priorities."""
    program = program_of(*lines)
    layout = with_priorities(Layout.of(program), where)
    letters = {"v_mfma": "m", "s_barrier": "b", "s_setprio 1": "<", "s_setprio 0": ">"}
    shown = [
        next((letter for start, letter in letters.items() if text.startswith(start)), "o")
        for text in texts(program, layout)[:-1]
    ]
    assert texts(program, without_priorities(Layout.of(program))) == texts(
        program, Layout.of(program)
    )
    return "".join(shown)


@pytest.mark.parametrize(
    ("lines", "runs", "phases"),
    [
        ("ommo", "o<mm>o", "o<mm>o"),
        ("moomo", "<moom>o", "<moom>o"),
        ("mmooommo", "<mm>ooo<mm>o", "<mmooomm>o"),
        ("mmbommo", "<mm>bo<mm>o", "<mm>bo<mm>o"),
        ("ombmo", "ombmo", "ombmo"),
        ("ooo", "ooo", "ooo"),
    ],
)
def test_where_priorities_are(lines: str, runs: str, phases: str) -> None:
    words = {"m": MATRIX, "o": OTHER, "b": "s_barrier"}
    code = [words[letter] for letter in lines]
    assert marked(code, "runs") == runs
    assert marked(code, "phases") == phases


def test_priorities_that_are_there_go() -> None:
    program = program_of("s_setprio 3", MATRIX, "s_setprio 0", OTHER)
    assert texts(program, without_priorities(Layout.of(program))) == texts(
        program_of(MATRIX, OTHER), Layout.of(program_of(MATRIX, OTHER))
    )


def test_waits_are_late_and_leave_what_they_can() -> None:
    """Two loads, a full wait at once: each result is waited for where it is read, the first one
    with the second under way."""
    program = program_of(
        "global_load_dword v0, v4, s[0:1]",
        "global_load_dword v1, v4, s[0:1] offset:4",
        "s_waitcnt vmcnt(0)",
        OTHER,
        "v_add_f32_e32 v5, v5, v0",
        OTHER,
        "v_add_f32_e32 v5, v5, v1",
    )
    (items,) = with_new_waits(program).values()
    shown = texts(program, Layout.of(program).with_block(0, items))
    assert [text.split(" ")[0] for text in shown] == [
        "global_load_dword", "global_load_dword", "v_add_f32_e32", "s_waitcnt", "v_add_f32_e32",
        "v_add_f32_e32", "s_waitcnt", "v_add_f32_e32", "s_endpgm",
    ]  # fmt: skip
    assert shown[3] == "s_waitcnt vmcnt(1)"
    assert shown[6] == "s_waitcnt vmcnt(0)"


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The matrix product of `test_code` as assembly of gfx942."""
    try:
        toolchain.find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    source = tmp_path_factory.mktemp("code") / "product.hip"
    source.write_text(SOURCE)
    (code,) = hip.compile_file(source, "gfx942")
    path = source.with_suffix(".s")
    path.write_text(code.assembly)
    return path


def by_number(words: tuple[str, ...]) -> list[str]:
    return [
        f"{NUMBERS[name]}={value}"
        for name, _, value in (word.partition("=") for word in words)
        if name in NUMBERS
    ]


@pytest.mark.hip
def test_assembly_is_tuned_and_its_object_computes_the_product(
    assembly: Path, tmp_path: Path
) -> None:
    """The object that is written is read and launched as any other, and gives the product that
    numpy computes; so do both of its versions as text."""
    saved = tmp_path / "best.json"
    report = tune(
        assembly, grid=(2, 2), block=256, arguments=by_number(LAUNCH), jobs=1, output=saved
    )
    (entry,) = report.tuning.entries
    settings = {json.dumps(dict(row.result.setting.items)) for row in entry.rows}
    assert {'{"order": "searched"}', '{"waits": "late"}'} <= settings
    assert not any("setprio" in text for text in settings), "it has no matrix instructions"
    best = entry.best
    assert best is not None
    assert best.interval[0] is not None
    assert best.status == "same"
    setting = wavecast.lab.load(saved).find("_Z7productPKfS0_Pfii", "gfx942")
    assert setting is not None
    assert setting.setting == dict(best.result.setting.items)
    assert Path(setting.assembly).read_text() == best.result.assembly != assembly.read_text()
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    for path in (Path(setting.code), Path(setting.assembly)):
        (kernel,) = wavecast.load(compilers.load(path, "gfx942")).values()
        c = np.zeros((64, 64), np.float32)
        kernel((2, 2), 256, a, b, c, 64, 64)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@needs_objects
def test_which_decisions_objects_have() -> None:
    """Priorities where there are matrix instructions; nothing of a compiler."""
    (product,) = compilers.load(
        OBJECTS / "aiter_gfx942_bf16gemm_bf16gemm_fp32bf16_tn_64x64_splitk_clean.co"
    )
    assert {axis.name for axis, _ in applicable(product)} == {"order", "waits", "setprio"}
    (top, *_) = compilers.load(
        OBJECTS / "aiter_gfx942_topk_per_row_decode_asm_top_k_per_row_decode.co"
    )
    assert {axis.name for axis, _ in applicable(top)} == {"order", "waits"}


@pytest.mark.thorough
@needs_objects
def test_an_object_of_aiter_is_tuned(tmp_path: Path) -> None:
    """Its product in bf16: what is executed agrees, and the winner saves time by its sample."""
    path = OBJECTS / "aiter_gfx942_bf16gemm_bf16gemm_fp32bf16_tn_64x64_splitk_clean.co"
    try:
        toolchain.find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    (code,) = compilers.load(path)
    m, n, k = 64, 64, 256
    stated = {
        "D": f"f32[{m}x{n}]", "A": f"bf16[{m}x{k}]:random(1)", "B": f"bf16[{n}x{k}]:random(2)",
        "alpha": "f32:1", "strideA0": f"i32:{2 * k}", "strideB0": f"i32:{2 * k}",
        "strideC0": f"i32:{4 * n}", "strideD0": f"i32:{4 * n}", "Mdim": f"i32:{m}",
        "Ndim": f"i32:{n}", "Kdim": f"i32:{k}", "splitk": "i32:1", "ptr_semaphore": "i32[1024]",
    }  # fmt: skip
    arguments = [
        f"{number}={stated.get(each.name, 'i32:0' if each.size == 4 else 'null')}"
        for number, each in enumerate(code.parameters, 1)
    ]
    saved = tmp_path / "best.json"
    report = tune(path, grid=(1, 1), block=256, arguments=arguments, jobs=1, output=saved)
    (entry,) = report.tuning.entries
    assert not [row.status for row in entry.rows if row.status not in ("same", "")]
    assert entry.best is not None
    assert (entry.saved_sampled(entry.best) or 0) > 0
    (setting,) = wavecast.lab.load(saved).entries
    (again,) = compilers.load(Path(setting.code))
    assert again.parameters == code.parameters
