"""The versions of vLLM that this integration is written for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint
from wavecast.frameworks.requirements import check_requirement

SUPPORTED: Final = ("0.33",)
"""Major and minor numbers of the releases that the tests run with."""


def check() -> str:
    """The version of vLLM. Raises MissingTool without vLLM, UsageError for another release, and
    for one of transformers that it does not take."""
    try:
        release = version("vllm")
    except PackageNotFoundError:
        hint = install_hint("vllm")
        raise MissingTool("vLLM is not installed", hint=hint) from None
    if ".".join(release.split(".")[:2]) not in SUPPORTED:
        raise UsageError(
            f"vLLM {release}: wavecast works with "
            f"{', '.join(f'{prefix}.*' for prefix in SUPPORTED)}",
            hint="unset WAVECAST_VLLM, or install a release that wavecast works with",
        )
    check_requirement("vllm", "transformers")
    return release


__all__ = ["SUPPORTED", "check"]
