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
CPU_BUILDS: Final = "https://download.pytorch.org/whl/cpu"
"""PyTorch's builds for CPUs: the default build brings gigabytes of libraries for NVIDIA GPUs."""
_NAME: Final = re.compile(r"[\w.-]+")
_EXTRA: Final = re.compile(r"extra *== *['\"]([\w-]+)['\"]|$")
_WITH_TORCH: Final = ("torch", "jax", "tensorflow")
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
        Extra(name, purpose, tuple(d for d in sorted(_requirements(name)) if not _is_installed(d)))
        for name, purpose in PURPOSES.items()
    )


def install_hint(extra: str) -> str:
    """How to install an extra, with PyTorch's build for CPUs where it asks for PyTorch."""
    index = f" --extra-index-url {CPU_BUILDS}" if extra in _WITH_TORCH else ""
    return f"pip install 'wavecast[{extra}]'{index}"


def hint_for(module: str) -> str:
    """How to install a module that wavecast or one of its extras asks for; "" for others."""
    root = module.partition(".")[0]
    name = _normal(DISTRIBUTIONS.get(root, root))
    if name in _requirements(""):
        return f"pip install '{_requirements('')[name]}'"
    return next((install_hint(extra) for extra in PURPOSES if name in _requirements(extra)), "")


@functools.cache
def _requirements(extra: str) -> Mapping[str, str]:
    """Distribution -> its versions as pip takes them, for what an extra asks for, other than this
    distribution, or wavecast itself ("") does; none where it is not installed as a distribution."""
    try:
        dependency_lines = importlib.metadata.requires("wavecast") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    requirements = {}
    for line in dependency_lines:
        name, condition = _NAME.match(line), _EXTRA.search(line)
        if name and condition and (condition[1] or "") == extra and name[0] != "wavecast":
            requirements[_normal(name[0])] = line.partition(";")[0].strip()
    return requirements


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


__all__ = ["DISTRIBUTIONS", "PURPOSES", "Extra", "extras", "hint_for", "install_hint"]
