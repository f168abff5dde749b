"""A project with one small kernel under guard."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.documents.support import validated
from wavecast.cli.main import run

SETTINGS = """
[tool.wavecast.gate]
arch = {arch!r}
execute = true
checks = true
subjects = [
    {{ function = "planted:softmax", axes = {{ rows = 2 }}, reference = "planted:right" }},
]
[tool.wavecast.gate.thresholds]
spills = 0
vgprs = "10%"
predicted_seconds = "3%"
"""

KERNEL = """\
import torch
import triton
import triton.language as tl

COLUMNS = 1024


@triton.jit
def softmax_kernel(x, y, columns, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    for number in range(1):
        values = tl.load(x + row * columns + offsets * step, mask=inside, other=-float("inf"))
        values = tl.exp(values - tl.max(values, 0))
        result = values / tl.sum(values, 0)
        tl.store(y + row * columns + offsets * step, result, mask=inside)


def inputs(rows):
    return torch.randn(rows, COLUMNS, device="cuda")


def softmax(rows):
    x = inputs(rows)

    def call():
        y = torch.empty_like(x)
        softmax_kernel[(rows,)](x, y, COLUMNS, 1, BLOCK=1024, num_warps=4)
        return y

    return call


def right(rows):
    x = inputs(rows)
    return lambda: torch.softmax(x.double(), 1)
"""


@dataclass
class Project:
    """A folder with a gate, and what the gate said last. `gate` gives its exit code."""

    root: Path
    capture: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def edit(self, *replacements: tuple[str, str]) -> None:
        """Change the kernel."""
        path = self.root / "planted.py"
        text = path.read_text()
        for old, new in replacements:
            assert text.count(old) >= 1, old
            text = text.replace(old, new)
        path.write_text(text)

    def gate(self, *arguments: str) -> int:
        """Run the gate on the files as they are now."""
        sys.modules.pop("planted", None)
        self.capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            run(["gate", "--jobs", "1", *arguments])
        self.out, self.err = self.capture.readouterr()
        sys.modules.pop("planted", None)
        assert isinstance(ended.value.code, int)
        return ended.value.code

    def broken(self) -> dict[str, dict[str, Any]]:
        """What breaks the gate, by KPI, or by status where there is none."""
        assert self.gate("--format", "json") == 1
        judged = validated(json.loads(self.out), "wavecast.gate/1")["judged"]
        return {one["kpi"] or one["status"]: one for one in judged if one["breaks"]}


def project(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capture: pytest.CaptureFixture[str],
    arch: str = "gfx942",
) -> Project:
    """A project in a folder, which becomes the current one."""
    monkeypatch.chdir(root)
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("COLUMNS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (root / "pyproject.toml").write_text(SETTINGS.format(arch=arch))
    (root / "planted.py").write_text(KERNEL)
    return Project(root, capture)
