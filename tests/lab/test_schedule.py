"""Other orders of the instructions in a kernel's loop."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from wavecast import arch
from wavecast.analyze.sync import hazards, missing_waits
from wavecast.analyze.sync.outstanding import OutstandingFlow
from wavecast.cli.lab import command
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.launch import AddressRange
from wavecast.errors import CompileError, MissingFact
from wavecast.isa import parse
from wavecast.isa.liveness import liveness
from wavecast.isa.program import Program
from wavecast.lab.comparing import compare_launches
from wavecast.lab.journal import LabProblem, records
from wavecast.lab.schedule import kernel as module
from wavecast.lab.schedule import repair
from wavecast.lab.schedule.arranging import BlockArranger
from wavecast.lab.schedule.dependences import BlockGraph, graph_of
from wavecast.lab.schedule.kernel import KernelSchedule, rearrange, schedule
from wavecast.lab.schedule.layout import Layout
from wavecast.lab.schedule.ordering import random_order
from wavecast.lab.scheduling import ScheduleRun
from wavecast.report.kit.recorded_html import page
from wavecast.report.lab.schedules import render

DEVICES = {"gfx942": "mi300x", "gfx1100": "rx7900xtx"}
TARGETS = [
    "gfx942",
    "gfx1100",
    *(pytest.param(name, marks=pytest.mark.thorough) for name in ("gfx90a", "gfx950", "gfx1201")),
]


@dataclass(frozen=True)
class Product:
    """A launch of `product` for one target, its memory, and its loop."""

    launch: Launch
    ranges: tuple[AddressRange, ...]
    tensors: Any
    program: Program
    graph: BlockGraph
    arranger: BlockArranger

    def layout(self, seed: int) -> Layout:
        """The loop in a random order."""
        order = random_order(self.graph, random.Random(seed))
        assert self.graph.allows(order)
        items = self.arranger.items(order)
        return Layout.of(self.program).with_block(self.graph.block.index, items)


@pytest.fixture(scope="module")
def product(request: pytest.FixtureRequest) -> Product:
    """C = A·B of 32 x 32 x 96 in bf16, in one workgroup of two waves."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from tests.lab import kernels
    from wavecast.runtimes.triton import capture

    target: str = request.param
    a = torch.randn(32, 96, dtype=torch.bfloat16)
    b = torch.randn(96, 32, dtype=torch.bfloat16)
    c = torch.zeros(32, 32)
    with capture(target) as launches:
        run = cast("Any", kernels.product[(1, 1)])
        run(a, b, c, 96, 32, BM=32, BN=32, BK=32, num_warps=2, num_stages=2)
    (launch,) = launches
    ranges = tuple((t.data_ptr(), t.data_ptr() + t.untyped_storage().nbytes()) for t in (a, b, c))
    return product_of(launch, ranges, (a, b, c))


def product_of(launch: Launch, ranges: tuple[AddressRange, ...], tensors: Any) -> Product:
    program = parse_kernel(launch.code).program
    (loop,) = (loop for loop in program.loops if len(loop.blocks) == 1)
    graph = graph_of(program, program.blocks[loop.header], liveness(program))
    arranger = BlockArranger(program, graph, OutstandingFlow(program))
    return Product(launch, ranges, tensors, program, graph, arranger)


def block(text: str, target: str = "gfx942") -> tuple[Program, BlockGraph]:
    """The program and graph of one basic block."""
    body = "".join(f"\t{line.strip()}\n" for line in text.strip().splitlines())
    program = parse(f".type f,@function\nf:\n{body}\ts_endpgm\n", target).functions["f"]
    return program, graph_of(program, program.blocks[0], liveness(program))


def items_of(text: str, order: list[int], target: str = "gfx942") -> list[str]:
    """The code of an order of a block."""
    program, graph = block(text, target)
    items = BlockArranger(program, graph, OutstandingFlow(program)).items(order)
    return [i if isinstance(i, str) else program.instructions[i].decoded.text for i in items]


def test_registers_keep_their_order() -> None:
    _, graph = block("""
        v_add_f32_e32 v0, v1, v2
        v_mul_f32_e32 v3, v0, v0
        v_mov_b32_e32 v1, 0
        v_mov_b32_e32 v9, 1
    """)
    assert graph.before[1] == (0,)
    assert graph.reads[1] == {0}
    assert graph.before[2] == (0,)  # it overwrites what the first reads
    assert not graph.reads[2]
    assert graph.before[3] == ()
    assert graph.before[4] == (0, 1, 2, 3)  # s_endpgm


def test_writes_that_nothing_reads_may_be_exchanged() -> None:
    """Both additions write SCC, which only the comparison's branch reads."""
    _, graph = block("""
        s_add_i32 s0, s0, 4
        s_add_i32 s1, s1, 4
        s_cmp_lg_u32 s2, 0
        s_cselect_b32 s3, s4, s5
    """)
    assert graph.before[1] == ()
    assert graph.before[2] == (0, 1)
    assert graph.reads[3] == {2}


def test_memory_keeps_its_order() -> None:
    _, graph = block("""
        ds_read_b32 v1, v0
        ds_read_b32 v2, v0 offset:4
        ds_write_b32 v0, v3
        s_barrier
        global_load_dword v4, v[6:7], off
        v_mov_b32_e32 v8, 0
    """)
    assert graph.before[1] == ()
    assert graph.before[2] == (0, 1)
    assert 2 in graph.before[3]
    assert graph.before[4] == (3,)
    assert graph.before[5] == ()


def test_nothing_passes_a_change_of_mode() -> None:
    _, graph = block("""
        v_mov_b32_e32 v0, 0
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5
        v_mov_b32_e32 v1, 0
    """)
    assert graph.before[1] == (0,)
    assert graph.before[2] == (1,)


LOADS = """
    global_load_dword v1, v[6:7], off
    global_load_dword v2, v[8:9], off
    v_add_f32_e32 v3, v1, v1
    v_add_f32_e32 v4, v2, v2
"""


def test_waits_follow_the_order() -> None:
    assert items_of(LOADS, [0, 1, 2, 3, 4])[2:5:2] == ["s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(0)"]
    assert items_of(LOADS, [1, 0, 3, 2, 4])[2] == "s_waitcnt vmcnt(1)"
    assert items_of(LOADS, [0, 2, 1, 3, 4])[1] == "s_waitcnt vmcnt(0)"


def test_one_instruction_waits_for_two_counters() -> None:
    text = """
        global_load_b32 v1, v[6:7], off
        ds_load_b32 v2, v5
        v_add_f32_e32 v3, v1, v2
    """
    assert items_of(text, [0, 1, 2, 3], "gfx1201")[2] == "s_wait_loadcnt_dscnt 0x0"
    assert items_of(text, [0, 1, 2, 3], "gfx1100")[2] == "s_waitcnt vmcnt(0) lgkmcnt(0)"


def test_what_was_complete_at_a_barrier_is_complete_there() -> None:
    """The compiler waited for the store at the barrier; no register asks for that."""
    text = """
        ds_write_b32 v0, v1
        s_waitcnt lgkmcnt(0)
        v_mov_b32_e32 v3, 0
        s_barrier
        ds_read_b32 v2, v0
    """
    assert items_of(text, [1, 0, 2, 3, 4])[:4] == [
        "v_mov_b32_e32 v3, 0", "ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "s_barrier",
    ]  # fmt: skip
    lost = text.replace("s_waitcnt lgkmcnt(0)", "s_nop 0")
    assert "s_waitcnt lgkmcnt(0)" not in items_of(lost, [1, 0, 2, 3, 4])[:4]


def test_wait_states_follow_the_order() -> None:
    text = """
        v_mfma_f32_16x16x16_bf16 v[0:3], v[8:9], v[10:11], 0
        v_mov_b32_e32 v20, 1
        v_add_f32_e32 v21, v0, v0
    """
    first = items_of(text, [0, 1, 2, 3])
    second = items_of(text, [0, 2, 1, 3])
    states = [int(i.split()[1]) + 1 for items in (first, second) for i in items if "s_nop" in i]
    assert states[0] + 1 == states[1]
    program = parse(
        ".type f,@function\nf:\n" + "".join(f"\t{i}\n" for i in second), "gfx942"
    ).functions["f"]
    assert not hazards(program)


def test_loads_in_a_row_do_not_overwrite_their_addresses() -> None:
    """Code for XNACK: a row of loads may be issued again."""
    text = """
        buffer_load_dword v4, v4, s[0:3], 0 offen
        s_nop 0
        buffer_load_dword v5, v5, s[0:3], 0 offen
        v_mov_b32_e32 v9, 0
    """
    assert items_of(text, [0, 1, 2, 3])[1] == "s_nop 0"
    assert items_of(text, [0, 2, 1, 3])[1:3] == [
        "v_mov_b32_e32 v9, 0",
        items_of(text, [0, 1, 2, 3])[2],
    ]
    unprotected = text.replace("s_nop 0\n", "\n")
    assert "s_nop 0" not in items_of(unprotected, [0, 1, 2, 3])


def test_hints_follow_the_order() -> None:
    text = """
        s_clause 0x1
        global_load_b32 v1, v[6:7], off
        global_load_b32 v2, v[8:9], off
        v_mul_f32_e32 v3, v10, v10
        s_delay_alu instid0(VALU_DEP_1)
        v_add_f32_e32 v4, v3, v3
    """
    assert items_of(text, [0, 1, 2, 3, 4], "gfx1100")[:6] == [
        line.strip() for line in text.strip().splitlines()
    ]
    apart = items_of(text, [2, 0, 3, 1, 4], "gfx1100")
    assert not any("s_clause" in item for item in apart)
    assert not any("s_delay_alu" in item for item in apart), "loads wait for results themselves"


@pytest.mark.parametrize("product", TARGETS, indirect=True)
def test_the_compilers_order_gets_its_waits(product: Product) -> None:
    """The waits made for the compiler's order are as many as the compiler's, and of the same
    values: LLVM computes them by the same rules."""
    items = product.arranger.items(range(len(product.graph.nodes)))
    remade = [item for item in items if isinstance(item, str) and "wait" in item]
    own = product.program.block_instructions(product.graph.block.index)
    assert remade == [item.decoded.text for item in own if item.opcode.waits]


@pytest.mark.parametrize("product", TARGETS, indirect=True)
def test_random_orders_compute_the_same(product: Product) -> None:
    """Any order that keeps the dependences gives the same bytes, and checks find nothing."""
    device = arch.resolve(product.launch.code.target).device
    for seed in range(12):
        layout = product.layout(seed)
        assembly = product.launch.code.assembly
        done = repair.insert_waits(layout, assembly, lambda text: reparsed(product, text))
        program = reparsed(product, done.text(assembly))
        assert not missing_waits(program)
        assert not hazards(program)
    changed = rearrange(product.launch, product.layout(0), device)
    found = compare_launches(product.launch, changed, product.ranges, rounding=False)
    assert found.same, found
    assert "memory as it is" in found.cases


def reparsed(product: Product, text: str) -> Program:
    code = product.launch.code
    module = parse(text, code.target, kernel=code.kernel, moved_files=code.moved_files)
    return module.kernels[code.kernel].program


@pytest.mark.parametrize("product", ["gfx942"], indirect=True)
def test_text_keeps_source_lines(product: Product) -> None:
    """Every instruction keeps the source line it has in the compiler's code."""
    program = reparsed(product, product.layout(3).text(product.launch.code.assembly))
    layout = product.layout(3)
    for item, instruction in zip(layout.items, program.instructions, strict=True):
        if isinstance(item, int):
            before = product.program.instructions[item]
            assert instruction.decoded.text == before.decoded.text
            assert instruction.location == before.location


@pytest.mark.parametrize("product", ["gfx942"], indirect=True)
def test_a_wrong_order_is_discarded(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that breaks a dependence is executed, found wrong, and not returned as a gain."""
    device = arch.resolve("gfx942").device
    real = rearrange

    def changed(launch: Launch, _: Layout, at: Any) -> Launch:
        layout = Layout.of(product.program)
        number = product.graph.block.index
        block = product.program.block_instructions(number)
        matrix = [item.index for item in block if item.opcode.matrix is not None]
        items = [item for item in layout.blocks[number] if item != matrix[0]]
        return real(launch, layout.with_block(number, items), at)

    monkeypatch.setattr(module, "rearrange", changed)
    found = schedule(product.launch, product.ranges, device, work=200_000)
    assert found.wrong
    assert found.saved == 0.0


@pytest.mark.parametrize("product", ["gfx942"], indirect=True)
def test_a_schedule_is_the_same_for_a_seed(product: Product) -> None:
    device = arch.resolve("gfx942").device
    found = schedule(product.launch, product.ranges, device, work=400_000)
    again = schedule(product.launch, product.ranges, device, work=400_000)
    assert found == again
    assert found == KernelSchedule.from_json(json.loads(json.dumps(found.to_json())))
    assert not found.wrong
    (loop,) = found.loops
    assert loop.before == loop.remade >= loop.after > 0
    if found.after is not None:
        assert found.execution is not None
        assert found.execution.same


@pytest.mark.parametrize("product", ["gfx942"], indirect=True)
def test_unknown_hazards_are_refused(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """RDNA 3 has hazards of wide waves that are not in the tables; this code has such waves."""
    known = SimpleNamespace(hazards=("wmma",))
    monkeypatch.setattr(module, "capabilities", lambda _: known)
    with pytest.raises(MissingFact, match="waves of 64 lanes"):
        schedule(product.launch, product.ranges, arch.resolve("gfx942").device)


SCRIPT = """
import torch
from kernels import product, scaled

x, out = torch.randn(1000), torch.zeros(1000)
scaled[(4,)](x, out, 1000, BLOCK=256)
a, b = torch.randn(32, 96, dtype=torch.bfloat16), torch.randn(96, 32, dtype=torch.bfloat16)
product[(1, 1)](a, b, torch.zeros(32, 32), 96, 32, BM=32, BN=32, BK=32, num_warps=2, num_stages=2)
"""


def written(folder: Path) -> Path:
    """The script, with its kernels beside it: its process does not find these tests."""
    shutil.copy(Path(__file__).with_name("kernels.py"), folder)
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return script


def test_command(tmp_path: Path) -> None:
    """A kernel without a loop is a note."""
    pytest.importorskip("triton")
    script = written(tmp_path)
    journal, out = tmp_path / "journal", tmp_path / "out"
    patches = tmp_path / "patches"
    options = ["--work", "1", "--journal", str(journal), "--assembly", str(out), "-f", "json"]
    options += ["--patch", str(patches)]
    done = CliRunner().invoke(command, ["schedule", str(script), *options])
    found = json.loads(done.stdout)
    (kernel,) = found["kernels"]
    assert kernel["kernel"] == "product"
    assert not kernel["wrong"]
    assert any("no loop" in note for note in found["notes"])
    (loop,) = kernel["loops"]
    assert loop["after"] <= loop["before"]
    if kernel["saved"]:
        assert (out / "product.mi300x.s").read_text() == kernel["assembly"]
        name = "product.mi300x"
        apply = ["git", "apply", f"{name}.patch"]
        subprocess.run(apply, cwd=patches, check=True, env={**os.environ, "GIT_DIR": "/nowhere"})
        assert (patches / f"{name}.s").read_text() == kernel["assembly"]
    ((problem, stored),) = records(journal, KernelSchedule.from_json)
    assert problem.kernel == "product"
    assert stored.loops[0].after == loop["after"]
    assert "product" in page("schedules", lambda shown: render(entries_of(problem, stored), shown))


def entries_of(problem: LabProblem, found: KernelSchedule) -> ScheduleRun:
    return ScheduleRun(((problem, found), (problem, replace(found, wrong="differs"))), (), ())


@pytest.mark.thorough
def test_a_journal_is_continued(tmp_path: Path) -> None:
    """Kernels whose schedules are in the journal are not searched again."""
    pytest.importorskip("triton")
    script = written(tmp_path)
    journal = tmp_path / "journal"
    arguments = ["schedule", str(script), "--work", "1", "--journal", str(journal)]
    sizes = []
    for _ in range(2):
        shown = CliRunner().invoke(command, arguments)
        assert "product" in shown.stdout
        sizes.append(journal.stat().st_size)
    assert sizes[0] == sizes[1]


def test_a_kernel_without_a_loop(captured: Any) -> None:
    with pytest.raises(CompileError, match="no loop"):
        schedule(captured.launch, captured.subject.ranges, captured.subject.devices[0])
