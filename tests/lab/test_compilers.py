"""Code generators side by side."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.lab.conftest import Captured
from tests.lab.test_passes import SCRIPT
from wavecast import isa
from wavecast.api.lab_compilers import compilers
from wavecast.cli.lab import command
from wavecast.errors import CompileError, MissingTool, UsageError
from wavecast.json_objects import values
from wavecast.lab import compilers as module
from wavecast.lab.codegen import CrashedCompiler, Llc, TritonGenerator, generator_of, portable
from wavecast.lab.compilers import PROGRAM, compared_compilers
from wavecast.lab.releases import TritonRelease
from wavecast.report.kit.terminal import plain
from wavecast.report.lab import compilers as report


def test_triton_s_generator_gives_the_program_s_code(
    captured: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = captured.subject.devices[0]
    others = [Llc("llc-22", device.target)] if shutil.which("llc-22") else []
    monkeypatch.setattr(
        module, "installed_generators", lambda device: [TritonGenerator(device), *others]
    )
    found = compared_compilers(captured.launch, device)
    own, triton, *llc = found.rows
    assert own.name == PROGRAM
    assert own.figures is not None
    assert triton.figures is not None
    assert triton.figures.digest == own.figures.digest
    assert all(row.figures is not None and row.figures.seconds for row in llc), llc
    document = values(report.document([found], []))
    json.dumps(document, allow_nan=False)
    text = plain(lambda console: report.render([found], ["a note"], console), width=160)
    assert PROGRAM in text
    assert "a note" in text


def test_python_has_the_document_of_the_command(
    captured: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del captured  # skips without PyTorch
    monkeypatch.setattr(module, "installed_generators", lambda device: [TritonGenerator(device)])
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = CliRunner().invoke(command, ["compilers", str(script), "-f", "json"])
    compared = compilers(script)
    assert compared.to_dict() == json.loads(done.stdout)
    assert compared.exit_code() == 0
    assert PROGRAM in str(compared)


def test_a_crash_and_a_refusal_are_told_apart(captured: Captured) -> None:
    """LLVM's verifier ends Triton's process too: that is a refusal of the text."""
    generator = TritonGenerator(captured.subject.devices[0])
    text = str(captured.launch.code.stages["llir"])
    with pytest.raises(CompileError) as broken:
        generator.assembly(text.replace("ret void", "br label %missing", 1))
    assert not isinstance(broken.value, CrashedCompiler)


def test_another_release_answers_from_its_own_process(captured: Captured) -> None:
    """This environment stands for the other one: the same release gives the same code."""
    device = captured.subject.devices[0]
    release = TritonRelease("3.x", Path(sys.executable), device)
    text = str(captured.launch.code.stages["llir"])
    made = compared_code(captured, release.assembly(text))
    assert made == compared_code(captured, TritonGenerator(device).assembly(portable(text)))
    none, log = release.limit_passes(captured.launch, 0)
    assert "NOT running pass (1)" in log
    assert compared_code(captured, none) != made
    with pytest.raises(CompileError, match=r"triton 3\.x: failed to parse"):
        release.assembly(text.replace("ret void", "ret nothing", 1))
    assert release.assembly(text), "the process goes on after an error"


def compared_code(captured: Captured, assembly: str) -> list[str]:
    """The instructions of the kernel in assembly."""
    name = captured.launch.code.kernel
    program = isa.parse(assembly, captured.launch.code.target).kernels[name].program
    return [item.decoded.text for item in program.instructions]


def test_which_programs_are_code_generators(tmp_path: Path) -> None:
    for name in ("llc-99", "clang-99", "gcc"):
        (tmp_path / name).write_text("#!/bin/sh\necho 1.2.3\n")
        (tmp_path / name).chmod(0o755)
    assert isinstance(generator_of(str(tmp_path / "llc-99"), "gfx942"), Llc)
    clang = generator_of(str(tmp_path / "clang-99"), "gfx942")
    assert clang.name == "clang-99"
    assert "-mcpu=gfx942" in clang.command
    with pytest.raises(UsageError, match="neither llc nor clang nor zig"):
        generator_of(str(tmp_path / "gcc"), "gfx942")
    with pytest.raises(MissingTool):
        generator_of(str(tmp_path / "llc-98"), "gfx942")


@pytest.mark.parametrize(
    ("line", "older"),
    [
        ("%1 = phi float [ -inf, %a ]", "%1 = phi float [ 0xFFF0000000000000, %a ]"),
        ("%1 = fcmp oeq half %2, f0x7C00", "%1 = fcmp oeq half %2, 0xH7C00"),
        ("%1 = fmul nsz contract bfloat %2, f0x3F80", "%1 = fmul nsz contract bfloat %2, 0xR3F80"),
        ("%1 = fadd double +inf, %2", "%1 = fadd double 0x7FF0000000000000, %2"),
        ("%1 = fsub half +qnan, %2", "%1 = fsub half 0xH7E00, %2"),
        ("%1 = fadd float f0x3F800000, %2", "%1 = fadd float 0x3FF0000000000000, %2"),
        ("%1 = phi float [ -1.000000e+30, %a ]", "%1 = phi float [ 0xC6293E5940000000, %a ]"),
        ("%1 = phi float [ -1.500000e+00, %a ]", "%1 = phi float [ -1.500000e+00, %a ]"),
        ("%1 = fmul half %2, 1.000000e-01", "%1 = fmul half %2, 0xH2E66"),
        ("%1 = fmul bfloat %2, 1.000000e-01", "%1 = fmul bfloat %2, 0xR3DCD"),
        ("%1 = call float @f(float 1.000000e-01)", "%1 = call float @f(float 0x3FB99999A0000000)"),
        ("%1 = fmul double %2, 1.000000e-01", "%1 = fmul double %2, 1.000000e-01"),
        ("%1 = phi i32 [ -1, %inf ], [ %2, %b ]", "%1 = phi i32 [ -1, %inf ], [ %2, %b ]"),
    ],
)  # fmt: skip
def test_literals_of_instructions_that_state_their_type_once(line: str, older: str) -> None:
    """`0xH`, `0xR` and doubles are how LLVM 22 writes them (LLVM LangRef, simple constants)."""
    assert portable(f"  {line}") == f"  {older}"
