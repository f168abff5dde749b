"""The extras of the distribution: what each is for, what it installs, and which has a module."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PURPOSES: Final[Mapping[str, str]] = {
    "torch": "scripts, operators, models as modules",
    "models": "sizes and plans that transformers has",
    "hip": "HIP sources, and CUDA sources for AMD GPUs",
    "cuda": "CUDA sources for NVIDIA GPUs",
    "serve": "the workbench",
    "lsp": "editors",
    "mcp": "coding agents",
    "bench": "statistics of `compare`",
    "validate": "measurements in Parquet and CSV",
    "jax": "`wavecast.jax`, Pallas",
    "tensorflow": "`wavecast.tensorflow`",
    "vllm": "the platform of vLLM",
    "sglang": "the platform of SGLang",
    "ray": "searches on several machines",
    "perfetto": "traces that Perfetto wrote",
    "chakra": "execution traces of models",
    "notebook": "the course as notebooks",
    "pytest": "`pytest --wavecast`",
}
"""What users install an extra for (`docs/releases.md`)."""
_NAME: Final = re.compile(r"[\w.-]+")
_EXTRA: Final = re.compile(r"extra *== *['\"]([\w-]+)['\"]|$")
DISTRIBUTIONS: Final = {"elftools": "pyelftools", "google": "protobuf", "yaml": "pyyaml"}
"""Module -> its distribution, where the names differ."""


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra, what it is for, and the distributions it asks for that are not installed."""

    name: str
    purpose: str
    missing: tuple[str, ...]


def extras() -> tuple[Extra, ...]:
    """Every extra that is for users."""
    return tuple(
        Extra(name, purpose, tuple(d for d in sorted(_requirements(name)) if not _installed(d)))
        for name, purpose in PURPOSES.items()
    )


def install_hint(extra: str) -> str:
    """How to install an extra."""
    return f"pip install 'wavecast[{extra}]'"


def hint_for(module: str) -> str:
    """How to install a module that wavecast or one of its extras asks for; "" for others."""
    root = module.partition(".")[0]
    name = _normal(DISTRIBUTIONS.get(root, root))
    if name in _requirements(""):
        return "pip install wavecast"
    return next((install_hint(extra) for extra in PURPOSES if name in _requirements(extra)), "")


@functools.cache
def _requirements(extra: str) -> frozenset[str]:
    """The distributions an extra asks for, other than this one, or wavecast itself ("") does; none
    where it is not installed as a distribution."""
    try:
        stated = importlib.metadata.requires("wavecast") or []
    except importlib.metadata.PackageNotFoundError:
        return frozenset()
    found = set()
    for requirement in stated:
        name, of = _NAME.match(requirement), _EXTRA.search(requirement)
        if name and of and (of[1] or "") == extra:
            found.add(_normal(name[0]))
    return frozenset(found - {"wavecast"})


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


__all__ = ["DISTRIBUTIONS", "PURPOSES", "Extra", "extras", "hint_for", "install_hint"]
