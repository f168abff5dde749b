"""Imports only go down the floors: at the top of a module, in functions, and under TYPE_CHECKING.
Optional libraries are imported only by the parts that need them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import wavecast
from tests.structure.floors import DOCS, LEVELS, with_table
from tests.structure.sources import ROOT, files, imports

TOP = {"__init__": 99, "__main__": 99}

OPTIONAL = {
    "torch": {"launch", "kernels", "runtimes", "frameworks"},
    "triton": {"kernels", "runtimes", "frameworks"},
    "llvmlite": {"compile", "emulate"},
    "numba": {"compile"},
    "pandas": {"benchmarking"},
    "pyarrow": {"benchmarking"},
    "ray": {"tuning"},
    "scipy": {"benchmarking"},
    "transformers": {"systems", "frameworks"},
    "jax": {"frameworks"},
    "tensorflow": {"frameworks"},
    "keras": {"frameworks"},
    "ml_dtypes": {"frameworks"},
    "vllm": {"frameworks"},
    "sglang": {"frameworks"},
    "jinja2": {"report"},
    "google": {"protobuf"},
    "rich": {"report", "cli", "api"},
    "click": {"cli"},
    "mcp": {"servers"},
    "nbformat": {"learn"},
    "pygls": {"servers"},
    "lsprotocol": {"servers"},
    "starlette": {"servers"},
    "uvicorn": {"servers"},
    "pytest": {"runtimes"},
}


def floor(path: Path, root: Path = ROOT) -> str:
    """The part of the package that a file belongs to."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def violations(path: Path, root: Path = ROOT) -> list[str]:
    """The imports of a file that do not go down, as messages."""
    here = floor(path, root)
    level = LEVELS.get(here, TOP.get(here))
    if level is None:
        return [f"{path}: no floor is named {here!r}"]
    found = []
    for imported in imports(path):
        parts = imported.name.split(".")
        if parts[0] != "wavecast":
            continue
        target = parts[1] if len(parts) > 1 else "__init__"
        above = LEVELS.get(target, TOP["__init__"])  # a name of the package itself is above all
        folders_differ = target.split(".")[0] != here.split(".")[0]
        if above > level or (above == level and folders_differ):
            found.append(f"{path}:{imported.line}: {here} imports {imported.name}")
    return found


def test_imports_only_go_down() -> None:
    assert [message for path in files() for message in violations(path)] == []


def test_no_room_hides_a_function_of_the_package() -> None:
    """`import wavecast.NAME` would replace the function `wavecast.NAME` by a module."""
    assert set(LEVELS) & set(wavecast.__all__) == {"ops", "testing"}


def test_every_room_has_a_floor_and_every_floor_its_rooms() -> None:
    assert {floor(path) for path in files()} == {*LEVELS, *TOP}


def test_the_docs_have_the_table_of_floors() -> None:
    """Out of date: python -m tests.structure.floors --write"""
    text = DOCS.read_text(encoding="utf-8")
    assert with_table(text) == text


def test_the_docs_describe_floors_by_their_numbers() -> None:
    numbers = dict(re.findall(r"\*\*(\w+)\*\* \((\d+)\)", DOCS.read_text(encoding="utf-8")))
    assert len(numbers) > 10
    assert {name: int(number) for name, number in numbers.items()} == {
        name: LEVELS[name] for name in numbers
    }


def test_a_table_that_differs_is_found() -> None:
    text = DOCS.read_text(encoding="utf-8")
    changed = text.replace("| `arch` |", "| `arch`, `isa` |")
    assert changed != text
    assert with_table(changed) == text


@pytest.mark.parametrize(
    "text",
    [
        "from wavecast.cli import main",
        "import wavecast.perfmodel.cu",
        "def f():\n    from wavecast.tuning.run import tune",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wavecast import kernels",
        "from wavecast import __version__",
        "import wavecast",
    ],
)
def test_an_import_that_goes_up_is_found(text: str, tmp_path: Path) -> None:
    path = tmp_path / "analyze" / "planted.py"
    path.parent.mkdir()
    path.write_text(f"from wavecast.isa import program\nfrom wavecast import errors\n{text}\n")
    (message,) = violations(path, tmp_path)
    assert ": analyze imports wavecast" in message


LIBRARY = {
    "registry": "which operators there are",
    "operator": "what one is",
    "choice": "which configurations launches have",
    "tables": "the configurations that tuning stored",
    "sparse.compression": "the weights of `matmul_sparse24`",
}
"""Modules of `kernels` that the rest of the package may import."""
ADAPTERS = {
    "frameworks": {
        "moe.activations": "what gates of experts compute, to compare with those of models",
        "refusal": "what a call refuses, without running it",
        "signature": "the tensors of an operator",
    },
    "ops": {"distributed.functions": "what the ranks of a group call, with its types"},
}
"""Those of the rooms that make the operators those of PyTorch, JAX and TensorFlow, and of users."""


def library_imports(path: Path, root: Path = ROOT) -> list[str]:
    """The imports of a file that go past the modules of the kernel library for others."""
    here = floor(path, root)
    if here == "kernels":
        return []
    modules = {*LIBRARY, *ADAPTERS.get(here, ())}
    messages = []
    for imported in imports(path):
        name = imported.name.removeprefix("wavecast.kernels.")
        past = name != imported.name and not any(
            name == module or name.startswith(f"{module}.") for module in modules
        )
        if past or imported.name == "wavecast.kernels":
            messages.append(f"{path}:{imported.line}: {here} imports {imported.name}")
    return messages


def test_others_use_the_kernel_library_through_few_modules() -> None:
    assert [message for path in files() for message in library_imports(path)] == []


@pytest.mark.parametrize(
    ("room", "text", "count"),
    [
        ("tuning", "from wavecast.kernels import choice, checks", 1),
        ("tuning", "def f():\n    from wavecast.kernels.spec import KernelSpec", 1),
        ("tuning", "from wavecast.kernels.signature import Signature", 1),
        ("frameworks", "from wavecast.kernels.signature import Signature", 0),
        ("frameworks", "import wavecast.kernels", 1),
        ("kernels", "from wavecast.kernels.spec import KernelSpec", 0),
        ("tuning", "from wavecast.kernels.registry import operator", 0),
        ("runtimes", "from wavecast.kernels.distributed import functions", 1),
        ("ops", "from wavecast.kernels.distributed import functions", 0),
    ],
)
def test_an_import_past_the_library_is_found(
    room: str, text: str, count: int, tmp_path: Path
) -> None:
    path = tmp_path / room / "planted.py"
    path.parent.mkdir()
    path.write_text(f"{text}\n")
    assert len(library_imports(path, tmp_path)) == count


def test_optional_libraries_stay_on_their_floors() -> None:
    found = []
    for path in files():
        for imported in imports(path):
            allowed = OPTIONAL.get(imported.name.split(".")[0])
            if allowed is not None and floor(path) not in allowed:
                found.append(f"{path}:{imported.line}: imports {imported.name}")
    assert found == []


def test_optional_libraries_are_imported_on_their_floors() -> None:
    found: dict[str, set[str]] = {}
    for path in files():
        for imported in imports(path):
            found.setdefault(imported.name.split(".")[0], set()).add(floor(path))
    assert {name: found.get(name) for name in OPTIONAL} == OPTIONAL


@pytest.mark.parametrize(
    "module", ["wavecast", "wavecast.cli.main", "wavecast.isa", "wavecast.arch"]
)
def test_import_is_light(module: str) -> None:
    """Heavy libraries are imported when they are used, not before."""
    heavy = ("msgspec", "torch", "triton", "llvmlite", "numpy", "jinja2", "rich", "pandas")
    code = f"import {module}, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
