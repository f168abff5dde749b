"""Versions that users have: `make matrix`, and those they will have: `make newest`, which locks
them in constraints.txt. An interpreter that is not installed is skipped.
Frameworks, each as its users install it: `make test-frameworks`."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import nox
from packaging.requirements import Requirement  # nox brings it
from packaging.utils import canonicalize_name

nox.options.envdir = "build/nox"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ("interpreters", "triton")
EXECUTION = (
    "tests/emulate",
    "tests/compile",
    "tests/runtimes",
    "tests/frameworks",
    "tests/pipeline",
    "tests/cli",
)
"""What differs between releases of Triton."""
INTERPRETATION = ("tests/release", "tests/isa", "tests/analyze", *EXECUTION)
"""What differs between versions of Python."""
PYTHONS = ("3.12", "3.13", "3.14")
TRITONS = ("3.6", "3.7", "3.8")
"""CI has the oldest Python and the newest Triton of pyproject.toml: these are the others."""
OLD = ("3.6", "3.7")
"""The library refuses these on AMD GPUs: they compile some of its operators wrongly."""
TORCH = os.environ.get("TORCH", "torch==2.13.0")
"""The build of PyTorch that the Makefile names."""
FRAMEWORKS = {
    "jax": ("tests/frameworks/jax",),
    "tensorflow": ("tests/frameworks/tensorflow",),
    "vllm": ("tests/frameworks/vllm",),
}
"""The tests of each framework that `wavecast.frameworks.install` installs."""
WORKERS = ("-n", "auto", "--maxprocesses", "4", "--dist", "worksteal")
"""As `make test`."""
CONSTRAINTS = Path("constraints.txt")
"""The releases that CI has."""
HEAD = "# The releases that the tests passed with, written by `make newest`.\n"


@nox.session(python=PYTHONS)
def interpreters(session: nox.Session) -> None:
    """Another Python, with the packages that CI has."""
    _install(session)
    session.run("pytest", "-q", "-m", "not thorough", *(session.posargs or INTERPRETATION))


@nox.session(python="3.11")
@nox.parametrize("release", TRITONS)
def triton(session: nox.Session, release: str) -> None:
    """Another Triton, with the Python that CI has."""
    _install(session, f"triton~={release}.0")
    chosen = "not thorough and not operators" if release in OLD else "not thorough"
    session.run("pytest", "-q", "-m", chosen, *(session.posargs or EXECUTION))


@nox.session(python="3.11")
@nox.parametrize("name", tuple(FRAMEWORKS))
def frameworks(session: nox.Session, name: str) -> None:
    """A framework as its page installs it on a machine without a GPU, and its tests."""
    session.install(TORCH)
    session.install("--editable", ".", "pytest>=8", "pytest-xdist>=3.5")
    session.run("python", "-m", "wavecast.frameworks.install", name, env={"TORCH": TORCH})
    tests = session.posargs or FRAMEWORKS[name]
    session.run("python", "-m", "pytest", *WORKERS, "-m", "not thorough", *tests)


@nox.session(python="3.11")
def newest(session: nox.Session) -> None:
    """The newest release of everything that pyproject.toml allows, in a new environment, with the
    Python that CI has. They are those of CI from here on, when all tests pass.

    Only PyTorch stays as the Makefile names it: its newest build brings gigabytes for GPUs.
    """
    session.install(TORCH)
    requirements = ("--editable", ".[docs,hip,test]", "setuptools", TORCH)
    session.install("--upgrade", "--upgrade-strategy", "eager", *requirements)
    for line in _versions(session):
        print(line)
    session.run("python", "-m", "pytest", *WORKERS, "-m", "not thorough", *session.posargs)
    if not session.posargs:
        CONSTRAINTS.write_text(HEAD + _constraints(_pip_list(session)), encoding="utf-8")


def _constraints(distributions: Iterable[dict[str, str]]) -> str:
    """The lines of the lock for what pip lists, without what `make install` names itself."""
    releases = {canonicalize_name(one["name"]): one["version"] for one in distributions}
    names = sorted(releases.keys() - {"pip", "torch", "wavecast"})
    return "".join(f"{name}=={releases[name]}\n" for name in names)


def _install(session: nox.Session, *others: str) -> None:
    """PyTorch and the package with the releases that CI has, but for the Triton of `others`. Builds
    of PyTorch for GPUs pin theirs."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines(keepends=True)
    free = Path(session.virtualenv.location, "constraints.txt")
    free.write_text("".join(line for line in lines if not line.startswith("triton==")))
    session.install("--constraint", str(free), TORCH)
    lock = free if others else CONSTRAINTS
    session.install("--constraint", str(lock), "--editable", ".[hip,test]", *others)


def _versions(session: nox.Session) -> Iterator[str]:
    """What is installed next to what pyproject.toml declares, and what a bound keeps old."""
    installed = {canonicalize_name(one["name"]): one["version"] for one in _pip_list(session)}
    for one in sorted({*_declared(("docs", "hip", "test"))}, key=str):
        version = installed.get(canonicalize_name(one.name), "not installed")
        yield f"{one.name:20} {version:16} declared {one.specifier}"
    for one in _pip_list(session, "--outdated"):
        yield f"{one['name']:20} {one['version']:16} a bound excludes {one['latest_version']}"


def _pip_list(session: nox.Session, *options: str) -> list[dict[str, str]]:
    command = ("python", "-m", "pip", "list", "--format=json", *options)
    printed = session.run(*command, silent=True, log=False, stderr=subprocess.DEVNULL)
    return json.loads(printed)


def _declared(extras: Iterable[str]) -> Iterator[Requirement]:
    """The requirements of the package, of `extras`, and of the extras that these name."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    optional = project["optional-dependencies"]
    waiting = [*project["dependencies"], *(text for one in extras for text in optional[one])]
    while waiting:
        found = Requirement(waiting.pop())
        if found.name == project["name"]:
            waiting += (text for one in found.extras for text in optional[one])
        else:
            yield found
