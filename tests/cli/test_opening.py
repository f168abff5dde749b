"""`--open`: the page is written, and the browser gets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from wavecast.cli.explain import command as explain
from wavecast.cli.model import command as model
from wavecast.errors import UsageError

GEMM = ["gemm", "--shape", "4096x4096x4096", "--dtype", "bf16", "--arch", "mi300x"]
SERVED = ["Llama-3.1-8B", "--system", "mi300x", "--concurrency", "1", "--in", "64", "--out", "8"]


@pytest.fixture(autouse=True)
def pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """New pages are in the folder of the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser was asked to open."""
    found: list[str] = []
    monkeypatch.setattr("click.launch", lambda address: found.append(address) or 0)
    return found


@pytest.mark.parametrize(("command", "words"), [(explain, GEMM), (model, SERVED)])
def test_a_page_is_opened(launched: list[str], command: object, words: list[str]) -> None:
    done = CliRunner().invoke(command, [*words, "--open"], standalone_mode=False)  # type: ignore[arg-type]
    assert done.exception is None
    (page,) = launched
    assert f"page: {page}" in done.stderr
    assert Path(page).read_text().startswith("<!doctype html>")


def test_the_named_file_is_opened(launched: list[str], tmp_path: Path) -> None:
    page = tmp_path / "gemm.html"
    CliRunner().invoke(explain, [*GEMM, "--open", "-o", str(page)], standalone_mode=False)
    assert launched == [str(page)]


def test_another_format_is_refused(launched: list[str]) -> None:
    done = CliRunner().invoke(explain, [*GEMM, "--open", "-f", "json"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == "--open shows HTML, not json"
    assert launched == []


def test_a_machine_without_a_browser_says_where_the_page_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "PATH", "")
    done = CliRunner().invoke(explain, [*GEMM, "--open"], standalone_mode=False)
    assert "page: " in done.stderr
    assert "open the page in one" in done.stderr
