"""The versions of vLLM that this integration is written for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint

SUPPORTED: Final = ("0.33",)
"""Major and minor numbers of the releases that the tests run with."""


def check() -> str:
    """The version of vLLM. Raises MissingTool without vLLM, UsageError for another release."""
    try:
        found = version("vllm")
    except PackageNotFoundError:
        hint = install_hint("vllm")
        raise MissingTool("vLLM is not installed", hint=hint) from None
    if ".".join(found.split(".")[:2]) not in SUPPORTED:
        raise UsageError(
            f"vLLM {found}: wavecast works with {', '.join(f'{one}.*' for one in SUPPORTED)}",
            hint="unset WAVECAST_VLLM, or install a release that wavecast works with",
        )
    return found


__all__ = ["SUPPORTED", "check"]
