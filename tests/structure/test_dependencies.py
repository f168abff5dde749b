"""Every library that the package imports is declared: as a dependency, or in an extra that its
users have without the tests. Without any extra, verbs start, and what needs one names it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.structure.sources import ROOT, files, imports
from wavecast.extras import CPU_BUILDS, DISTRIBUTIONS, PURPOSES, extras, hint_for, install_hint
from wavecast.pipeline import capabilities

PROJECT = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
STANDARD = sys.stdlib_module_names | {"compression"}  # of Python 3.14
FOR_DEVELOPERS = {"docs", "test"}
NEXT_TO_AN_ENGINE = {"vllm-cpu", "sglang-cpu"}
"""What engines import, not this package."""
HOSTS = {"pytest"}
"""What loads a plugin of this package, which cannot start without it."""
EXTRAS = PROJECT["optional-dependencies"]
FEATURES = EXTRAS.keys() - FOR_DEVELOPERS - NEXT_TO_AN_ENGINE
PROGRAMS = {"cuda", "hip"}
"""Extras of programs, which nothing imports."""


def distributions(requirements: Iterable[str]) -> set[str]:
    """The names in a list of requirements, but extras of this package."""
    found = {re.split(r"[^\w.-]", one, maxsplit=1)[0].lower() for one in requirements}
    return found - {"wavecast"}


REQUIRED = distributions(PROJECT["dependencies"])
OF_EXTRAS = {name: distributions(EXTRAS[name]) for name in FEATURES}
OPTIONAL = set().union(*OF_EXTRAS.values()) - REQUIRED


def libraries(paths: Iterable[Path]) -> Mapping[str, str]:
    """Distribution -> where one of the files imports it."""
    found: dict[str, str] = {}
    for path in paths:
        for one in imports(path):
            module = one.name.partition(".")[0]
            if module not in STANDARD and module != "wavecast":
                found.setdefault(DISTRIBUTIONS.get(module, module), f"{path}:{one.line}")
    return found


def undeclared(paths: Iterable[Path]) -> list[str]:
    """The libraries that files import and `pyproject.toml` does not name, as messages."""
    known = REQUIRED | OPTIONAL
    return [f"{at}: {name}" for name, at in libraries(paths).items() if name not in known]


def test_every_library_is_declared() -> None:
    assert undeclared(files()) == []


@pytest.mark.parametrize(
    "text",
    ["import requests", "def f():\n    from hypothesis import given", "import xdist.plugin as p"],
)
def test_an_undeclared_library_is_found(text: str, tmp_path: Path) -> None:
    """Those of the extra `test` count as undeclared."""
    path = tmp_path / "planted.py"
    path.write_text(f"import json\nimport numpy\n{text}\n")
    (message,) = undeclared([path])
    assert message.startswith(f"{path}:")


def test_every_declared_library_is_imported() -> None:
    programs = set().union(*(OF_EXTRAS[name] for name in PROGRAMS))
    assert (REQUIRED | OPTIONAL) - programs - libraries(files()).keys() == set()


WITHOUT_EXTRAS = """
import json, shutil, sys, traceback
from importlib import import_module

class WithoutExtras:  # finds every other module, and no distribution
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OPTIONAL:
            return None
        return next(filter(None, (one.find_spec(name, path, target) for one in FINDERS)), None)

OPTIONAL = set(json.loads(sys.argv[1]))
FINDERS = sys.meta_path[:]
sys.meta_path[:] = [WithoutExtras()]
shutil.which = lambda *_, **__: None
"""
START = """
from wavecast.cli.commands import COMMANDS

for module, _ in COMMANDS.values():
    import_module(module)
for module in ("api.diff", "api.explain", "api.model", "api.profile", "testing"):
    import_module(f"wavecast.{module}")
"""
FAIL = """
from wavecast.errors import MissingTool

for name, text in json.loads(sys.argv[2]).items():
    try:
        exec(text, {})
    except MissingTool as error:
        print(f"{name}: {error}")
    except BaseException:
        print(f"{name}: {traceback.format_exc()}")
    else:
        print(f"{name}: no error")
"""
USES = {
    "torch": "from wavecast import ops",
    "models": "from wavecast.systems import huggingface; huggingface.load('qwen3')",
    "hip": "from wavecast.compile import toolchain; toolchain.find()",
    "cuda": "from wavecast.compile import cuda; cuda.find()",
    "validate": "from wavecast.benchmarking.accuracy import reading; reading.read(None, ())",
    "bench": "from wavecast.benchmarking.compare import statistics; statistics.difference([], [])",
    "jax": "import wavecast.jax",
    "tensorflow": "import wavecast.tensorflow",
    "ray": "from wavecast.tuning import ray; ray.connect('local').__enter__()",
    "chakra": "from wavecast.systems.chakra import schema; schema.messages()",
    "perfetto": "from wavecast.profiles.readers import perfetto_schema as schema; "
    "schema.messages()",
    "mcp": "from wavecast.cli.mcp import command; command([], standalone_mode=False)",
    "lsp": "from wavecast.cli.lsp import command; command([], standalone_mode=False)",
    "serve": "from wavecast.cli.serve import command; command(['k.py'], standalone_mode=False)",
    "notebook": "from wavecast.cli.learn import command; "
    "command(['notebook', '1'], standalone_mode=False)",
    "vllm": "from wavecast.frameworks.vllm import versions; versions.check()",
    "sglang": "from wavecast.frameworks.sglang import versions; versions.check()",
}
"""Extra -> what needs it."""


def run(code: str, folder: Path, *arguments: object) -> str:
    """What a process prints in which no library of an extra, nor a program, is found."""
    names = {name for name, of in DISTRIBUTIONS.items() if of in OPTIONAL} | OPTIONAL
    words = [sys.executable, "-c", WITHOUT_EXTRAS + code, json.dumps([*names, "nvidia"])]
    words += map(json.dumps, arguments)
    environment = {"HOME": str(folder), "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_verbs_start_without_extras(tmp_path: Path) -> None:
    assert run(START, tmp_path) == ""


def test_what_needs_an_extra_names_it_in_one_line(tmp_path: Path) -> None:
    assert USES.keys() == FEATURES - HOSTS
    (tmp_path / "k.py").touch()
    lines = run(FAIL, tmp_path, USES).splitlines()
    wrong = [line for line in lines if f"wavecast[{line.partition(':')[0]}]" not in line]
    assert wrong == []
    assert len(lines) == len(USES)


def test_the_extra_of_a_module_is_named() -> None:
    assert [extra.name for extra in extras()] == list(PURPOSES)
    assert PURPOSES.keys() == FEATURES
    for module, hint in (
        ("torch.nn", f"pip install 'wavecast[torch]' --extra-index-url {CPU_BUILDS}"),
        ("google.protobuf", "pip install 'wavecast[perfetto]'"),
        ("elftools.elf", "pip install 'pyelftools>=0.31'"),
        ("wavecast.cli.nothing", ""),
        ("json", ""),
    ):
        assert hint_for(module) == hint
    with_torch = {name for name in FEATURES if CPU_BUILDS in install_hint(name)}
    dependent = {name for name in FEATURES if "wavecast[torch]" in EXTRAS[name]}
    assert with_torch == {"torch", *dependent}
    rows = (ROOT.parent / "docs/releases.md").read_text(encoding="utf-8")
    assert [
        name for name, purpose in PURPOSES.items() if f"| `{name}` | {purpose}" not in rows
    ] == []


def test_hints_name_what_exists() -> None:
    """Extras that exist, and Triton in the versions that are required."""
    texts = {path: path.read_text(encoding="utf-8") for path in files()}
    named = {name for text in texts.values() for name in re.findall(r"wavecast\[([\w-]+)\]", text)}
    assert named <= FEATURES
    hints = [hint for name, _, _, hint in capabilities._TOOLS if name == "triton"]
    (triton,) = (one for one in PROJECT["dependencies"] if one.startswith("triton"))
    assert hints == [f"pip install '{triton.partition(';')[0]}'"]
