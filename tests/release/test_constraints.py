"""constraints.txt has one release of everything that `make install` and `make docs` install."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.release.sources import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("docs", "hip", "test")
OF_THE_MAKEFILE = {"torch"}


def locked(text: str) -> dict[str, str]:
    """Distribution -> release. No line has more, such as a host or a path."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pairs = [re.fullmatch(r"([a-z0-9-]+)==([\w.]+)", line) for line in lines]
    assert None not in pairs
    return {pair[1]: pair[2] for pair in pairs if pair}


def required(extras: Iterable[str]) -> Iterator[Requirement]:
    """The requirements of the package with these extras, and of the extras that these name."""
    optional = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *(text for name in extras for text in optional[name])]
    for requirement in map(Requirement, texts):
        if requirement.name == PROJECT["name"]:
            yield from required(requirement.extras)
        else:
            yield requirement


def unlocked(requirements: Iterable[Requirement], releases: dict[str, str]) -> list[str]:
    """Requirements without a release that satisfies them."""
    missing = []
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        release = releases.get(name, "")
        if name not in OF_THE_MAKEFILE and not (release and release in requirement.specifier):
            missing.append(str(requirement))
    return missing


def test_every_requirement_is_locked() -> None:
    """A new one gets its line from `make newest`, or by hand."""
    releases = locked((REPOSITORY / "constraints.txt").read_text(encoding="utf-8"))
    assert unlocked(required(EXTRAS), releases) == []
    assert not OF_THE_MAKEFILE & releases.keys()
    assert "setuptools" in releases  # builds the package


def test_a_planted_requirement_is_found() -> None:
    releases = locked("# head\nrich==14.0\nhttpx==1.0\n")
    requirements = ["rich>=13.7", "HTTPX>=2", "click", "torch>=2"]
    assert unlocked(map(Requirement, requirements), releases) == ["HTTPX>=2", "click"]
