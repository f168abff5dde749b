"""Code generators side by side."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.lab.conftest import Captured
from wavecast.documents.base import values
from wavecast.errors import CompileError
from wavecast.lab import compilers as module
from wavecast.lab.codegen import CrashedCompiler, Llc, TritonGenerator
from wavecast.lab.compilers import PROGRAM, compared_compilers
from wavecast.report import compilers as report
from wavecast.report.terminal_text import plain


def test_triton_s_generator_gives_the_program_s_code(
    captured: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = captured.subject.devices[0]
    others = [Llc("llc-22", device.target)] if shutil.which("llc-22") else []
    monkeypatch.setattr(module, "installed", lambda device: [TritonGenerator(device), *others])
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


def test_a_crash_and_a_refusal_are_told_apart(captured: Captured) -> None:
    """LLVM's verifier ends Triton's process too: that is a refusal of the text."""
    generator = TritonGenerator(captured.subject.devices[0])
    text = str(captured.launch.code.stages["llir"])
    with pytest.raises(CompileError) as broken:
        generator.assembly(text.replace("ret void", "br label %missing", 1))
    assert not isinstance(broken.value, CrashedCompiler)
