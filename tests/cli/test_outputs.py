"""Files and folders that commands write are looked at before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_main import call


@pytest.mark.parametrize(
    "arguments",
    [
        "lab reduce x.ll --arch gfx942 --if crash -o {}/none/x.md",
        "lab schedule x.hip --journal {}/none/x",
        "lab schedule x.hip --patch {}/file/x",
        "lab schedule x.hip --groups {}/file",
        "lab tune x.hip -o {}/none/x.json",
        "explain x.hip -o {}/none/x.json",
        "explain x.hip --perfetto {}",
        "model x.json --html {}/none/x.html",
        "model x.json --chakra {}/file/traces",
        "model --collectives all_reduce:64M --msccl {}/none/x.xml",
        "profile x.json --calibrate {}/none/x.toml",
        "run x.hip --check --check-output {}/none/x.json",
    ],
)
def test_what_cannot_be_written_is_refused_at_once(capsys, tmp_path: Path, arguments: str) -> None:
    """The inputs are missing: that would be said later."""
    (tmp_path / "file").touch()
    for name in ("x.ll", "x.hip", "x.json", "x.py"):
        (tmp_path / name).touch()
    words = [
        str(tmp_path / word) if word.startswith("x.") else word.format(tmp_path)
        for word in arguments.split()
    ]
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert "cannot write" in err or "is a directory" in err or "is a file" in err
