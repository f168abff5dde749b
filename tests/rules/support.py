"""Subjects for the rules: from assembly, from Triton kernels, or put together by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.analyze.support import DEVICES, code, descriptor, program
from wavecast import analyze, arch, rules
from wavecast.analyze.result import CodeAnalysis, MemoryInstruction
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.program import Program
from wavecast.perfmodel.roofline import roofline as roofline_of
from wavecast.perfmodel.work import work as work_of
from wavecast.pipeline.explain.reading import read_launch
from wavecast.rules import Finding, RuleInput

LINE = SourceLocation("kernel.py", 7, 4)


def assembly_subject(
    body: str,
    target: str = "gfx942",
    *,
    grid: tuple[int, int, int] | None = None,
    stages: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    threads: int = 256,
    dynamic_lds: int = 0,
    file: str = "",
    **registers: int,
) -> RuleInput:
    """A body of assembly on the device of its target; Triton stages make it a Triton kernel. Lines
    of `file` are its locations."""
    written = replace(
        code(target, threads, dynamic_lds),
        origin="triton" if stages is not None else "assembly",
        stages=stages or {},
        options=options or {},
        source="kernel.py",
        source_line=1,
    )
    launch = (
        Launch(written, grid, (threads, 1, 1), dynamic_lds=dynamic_lds)
        if grid is not None
        else None
    )
    wave_size = 64 if target.startswith("gfx9") else 32
    device, parsed = arch.load(DEVICES[target]), program(body, target, file)
    analysis = analyze.analyze(written, device, parsed, descriptor(wave_size, **registers), launch)
    return subject(written, analysis, parsed, launch, DEVICES[target])


def subject(
    written: CodeObject,
    analysis: CodeAnalysis,
    parsed: Program,
    launch: Launch | None,
    device: str,
) -> RuleInput:
    """A subject with the roofline of its launch."""
    loaded = arch.load(device)
    roofline = roofline_of(work_of(launch, analysis), loaded)
    return RuleInput(written, loaded, analysis, roofline, parsed, launch)


def with_memory(found: RuleInput, *instructions: MemoryInstruction) -> RuleInput:
    """The subject with these memory instructions instead of its own."""
    return replace(found, analysis=replace(found.analysis, memory=instructions))


def memory(index: int = 0, **changes: Any) -> MemoryInstruction:
    """A contiguous 16-byte global load of `x` outside of loops, unless changed."""
    values: dict[str, Any] = {
        "index": index,
        "mnemonic": "global_load_dwordx4",
        "space": "global",
        "kind": "load",
        "bytes_per_lane": 16,
        "argument": "x",
        "pattern": "contiguous",
        "stride": 16,
        "lines": 8,
        "transactions_ideal": 8,
        "conflict_ways": None,
        "location": LINE,
        "loop": None,
    }
    return MemoryInstruction(**{**values, **changes})


def find(found: RuleInput, name: str) -> list[Finding]:
    """What one rule finds; a rule that fails fails the test."""
    findings = rules.check(found, only=[name])
    failed = [finding.evidence for finding in findings if "rule" in finding.message.split()[:2]]
    assert not failed, failed
    return list(findings)


def the_one(found: RuleInput, name: str) -> Finding:
    """The only finding of a rule."""
    findings = find(found, name)
    assert len(findings) == 1, findings
    assert findings[0].advice.endswith("."), findings[0].advice
    return findings[0]


def captured(
    kernel: Any, *args: Any, device: str, grid: tuple[int, ...], **options: Any
) -> RuleInput:
    """A Triton kernel compiled for a device through a captured launch, with its analysis."""
    pytest.importorskip("torch")
    from wavecast.runtimes.triton import capture_call

    loaded = arch.load(device)
    (launch,) = capture_call(kernel, args, options, grid=grid, device=loaded)
    read = read_launch(launch, loaded)
    return subject(read.launch.code, read.analysis, read.program, read.launch, device)


@cache
def matmul(
    dtype: str = "bfloat16",
    *,
    device: str = "mi300x",
    shape: tuple[int, int, int] = (4096, 4096, 4096),
    tile: tuple[int, int, int] = (64, 64, 32),
    **options: Any,
) -> RuleInput:
    """A tiled matrix product of `shape` (M, N, K) in `dtype`; compiled once per set of options."""
    torch = pytest.importorskip("torch")
    from tests.rules import kernels

    m, n, k = shape
    element = getattr(torch, dtype)
    return captured(
        kernels.matmul,
        torch.empty((m, k), dtype=element),
        torch.empty((n, k), dtype=element),
        torch.empty((m, n), dtype=torch.float32),
        *(m, n, k, k, k, n),
        device=device,
        grid=(-(-m // tile[0]), -(-n // tile[1])),
        BLOCK_M=tile[0],
        BLOCK_N=tile[1],
        BLOCK_K=tile[2],
        **options,
    )
