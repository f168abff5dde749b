"""Shipped configurations: found for what they were made for, and not for anything else."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast.kernels  # noqa: E402
from wavecast import arch, ops  # noqa: E402
from wavecast.compile.configuration import Configuration  # noqa: E402
from wavecast.kernels import choice, tables  # noqa: E402
from wavecast.kernels.norm.rows import norm_rows_kernel  # noqa: E402
from wavecast.runtimes.triton import capture  # noqa: E402

pytestmark = pytest.mark.torch
SHIPPED = tables.shipped_folder()


def _kernels() -> dict[str, str]:
    """The text of every kernel of the package, by name."""
    from triton.runtime.jit import JITFunction

    found = {}
    for module in pkgutil.walk_packages(wavecast.kernels.__path__, "wavecast.kernels."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, JITFunction):
                found[name] = tables.source(value)
    return found


def test_shipped_entries_are_of_the_kernels_there_are() -> None:
    known = _kernels()
    for path in sorted(SHIPPED.glob("*.json")):
        assert arch.load(path.stem).id == path.stem
        stale = {
            entry.kernel
            for entry in tables.table(path.stem).values()
            if known.get(entry.kernel) != entry.source
        }
        assert not stale, (
            f"{path.name}: {', '.join(sorted(stale))} changed since: tune the operators again "
            "(wavecast ops NAME --arch … --tune), or remove the entries"
        )


_KERNEL = """
import triton
import triton.language as tl

LEAST = tl.constexpr({least})

@triton.jit
def helper(x):
    return tl.maximum(x, LEAST)

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, helper(tl.load(x_ptr)))
"""


def test_a_kernel_that_moves_keeps_its_name_and_one_whose_constants_change_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found = {}
    for place, least in (("here_kernel", 0), ("there_kernel", 0), ("other_kernel", 1)):
        (tmp_path / f"{place}.py").write_text(_KERNEL.format(least=least))
        found[place] = tables.source(importlib.import_module(place).kernel)
    assert found["here_kernel"] == found["there_kernel"] != found["other_kernel"]


def test_tuned_configurations_are_not_slower_than_the_formulas() -> None:
    for path in sorted(SHIPPED.glob("*.json")):
        for entry in tables.table(path.stem).values():
            assert entry.formula_seconds is None or entry.seconds <= entry.formula_seconds


@pytest.fixture
def decision() -> choice.Decision:
    """What the formula decides for a norm on gfx942."""
    choice.forget()
    with capture("gfx942"), choice.record_decisions() as seen:
        ops.rms_norm(torch.empty(5, 333), torch.empty(333))
    choice.forget()
    return seen[0]


def _stored(decision: choice.Decision, folder: Path, **changed: object) -> Configuration:
    better = Configuration.of({**decision.configuration.settings, "num_warps": 16})
    row = {
        "kernel": decision.spec.name,
        "source": decision.text,
        "problem": dict(decision.spec.key(decision.problem)),
        "configuration": better,
        "seconds": 1e-6,
        "formula_seconds": 2e-6,
    }
    tables.store("mi300x", [tables.TunedEntry(**{**row, **changed})], folder)  # type: ignore[arg-type]
    return better


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "shipped_folder", lambda: tmp_path)
    tables.table.cache_clear()
    yield
    tables.table.cache_clear()


@pytest.mark.usefixtures("_folder")
def test_an_entry_is_found_for_its_class(decision: choice.Decision, tmp_path: Path) -> None:
    better = _stored(decision, tmp_path)
    space, problem = decision.spec, decision.problem
    assert tables.find(norm_rows_kernel, space, problem, arch.load("mi300x")) == better
    more = {**problem, "rows": 7}  # of the same class: up to eight rows
    assert tables.find(norm_rows_kernel, space, more, arch.load("mi300x")) == better
    assert tables.find(norm_rows_kernel, space, {**problem, "rows": 9}, arch.load("mi300x")) is None
    # As many units of the same kind; then fewer of them; then another kind.
    assert tables.find(norm_rows_kernel, space, problem, arch.load("mi325x")) == better
    assert tables.find(norm_rows_kernel, space, problem, arch.load("mi308x")) is None
    assert tables.find(norm_rows_kernel, space, problem, arch.load("mi355x")) is None


def test_a_folder_keeps_what_was_tuned_into_it_before(
    decision: choice.Decision, tmp_path: Path
) -> None:
    for rows in (7, 4096):
        _stored(
            decision, tmp_path, problem={**dict(decision.spec.key(decision.problem)), "rows": rows}
        )
    entries = json.loads((tmp_path / "mi300x.json").read_text())["entries"]
    own = [one["problem"]["rows"] for one in entries if one["source"] == decision.text]
    assert {7, 4096} <= set(own)


@pytest.mark.usefixtures("_folder")
def test_an_entry_of_another_text_does_not_count(decision: choice.Decision, tmp_path: Path) -> None:
    _stored(decision, tmp_path / "tables", source="0" * 16)
    device = arch.load("mi300x")
    assert tables.find(norm_rows_kernel, decision.spec, decision.problem, device) is None
    _stored(decision, tmp_path)
    assert len(tables.table("mi300x")) == 1


@pytest.mark.usefixtures("_folder")
def test_launches_take_what_the_table_says(decision: choice.Decision, tmp_path: Path) -> None:
    better = _stored(decision, tmp_path)
    with capture("gfx942") as launches, choice.record_decisions() as seen:
        ops.rms_norm(torch.empty(5, 333), torch.empty(333))
    choice.forget()
    assert (seen[0].source, seen[0].configuration) == ("table", better)
    assert launches[0].code.workgroup_size == 16 * 64
