"""Passes that make a figure differ between two code generators."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from tests.lab.conftest import Captured
from wavecast.cli.lab import command
from wavecast.compile.codeobject import Launch
from wavecast.errors import CompileError, UsageError
from wavecast.json_objects import values
from wavecast.lab.bisect import BisectedCompiler, BisectedPass, CoreLlvm, LimitedLlc, bisect_passes
from wavecast.lab.codegen import Llc
from wavecast.lab.compilers import CompilerComparison
from wavecast.report.kit.terminal import plain
from wavecast.report.lab import compilers as report


@dataclass(frozen=True)
class Numbered:
    """A compiler whose passes add no-ops in front of the kernel's code."""

    name: str
    passes: tuple[tuple[str, int], ...]

    def limit_passes(self, launch: Launch, limit: int) -> tuple[str, str]:
        run = self.passes if limit < 0 else self.passes[:limit]
        label = f"{launch.code.kernel}:"
        nops = "\ts_nop 0\n" * sum(count for _, count in run)
        before, _, after = launch.code.assembly.rpartition(f"\n{label}")
        text = (
            f"{before}\n{label}{after.partition(chr(10))[0]}\n{nops}{after.partition(chr(10))[2]}"
        )
        log = [
            f"BISECT: running pass ({number}) {name} on function (f)"
            for number, (name, _) in enumerate(self.passes, 1)
        ]
        return text, "\n".join(log)


ONE = Numbered("one", (("licm", 1), ("scheduler", 2), ("shrink", 0)))
OTHER = Numbered("other", (("licm", 1), ("scheduler", 7), ("clauses", 1), ("shrink", 0)))


def test_the_changes_add_up_to_the_difference(captured: Captured) -> None:
    device = captured.subject.devices[0]
    found = bisect_passes(captured.launch, device, (ONE, OTHER), "instructions")
    first, second = found.first.values[-1], found.second.values[-1]
    assert first is not None
    assert second is not None
    assert second - first == 6
    assert sum(one.apart for one in (found.always, *found.passes)) == 6
    assert found.most == BisectedPass("scheduler", 2.0, 7.0)
    assert [one.name for one in found.passes] == ["scheduler", "clauses"]
    comparison = CompilerComparison("k", "mi300x", "gfx942", (), (found,))
    document = values(report.document([comparison], []))
    (shown,) = document["kernels"][0]["bisections"]
    assert shown["most"] == "scheduler"
    assert shown["passes"][-1] == {"name": "clauses", "first": None, "second": 1.0}
    text = plain(lambda console: report.render([comparison], [], console), width=120)
    assert "most by scheduler" in text
    assert "+7" in text


def test_equal_figures_have_no_culprit(captured: Captured) -> None:
    device = captured.subject.devices[0]
    found = bisect_passes(captured.launch, device, (ONE, ONE), "vgprs")
    assert found.most is None
    assert not found.passes


def test_a_compiler_that_numbers_no_passes(captured: Captured) -> None:
    device = captured.subject.devices[0]
    with pytest.raises(CompileError, match="does not number its passes"):
        bisect_passes(captured.launch, device, (Numbered("none", ()), ONE), "vgprs")
    with pytest.raises(UsageError, match="unknown figure 'speed'"):
        bisect_passes(captured.launch, device, (ONE, ONE), "speed")
    told = CliRunner().invoke(command, ["compilers", "no.py", "--bisect", "speed"])
    assert isinstance(told.exception, UsageError)


def test_the_limits_of_llvm(captured: Captured) -> None:
    """The limit 0 leaves passes out, and is told so; without a limit all of them run."""
    device = captured.subject.devices[0]
    compilers: list[BisectedCompiler] = [CoreLlvm(device)]
    if shutil.which("llc-22"):
        compilers.append(LimitedLlc(Llc("llc-22", device.target)))
    for compiler in compilers:
        none, log = compiler.limit_passes(captured.launch, 0)
        every, told = compiler.limit_passes(captured.launch, -1)
        assert "NOT running pass (1)" in log
        assert "NOT running" not in told
        assert none != every
