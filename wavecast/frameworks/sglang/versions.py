"""The versions of SGLang that this integration is written for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint
from wavecast.frameworks.requirements import check_requirement

SUPPORTED: Final = ("0.5.23",)
"""Releases that the tests run with. SGLang changes its interfaces in the third number."""


def check() -> str:
    """The version of SGLang. Raises MissingTool without SGLang, UsageError for another release, and
    for one of transformers that it does not take."""
    try:
        release = version("sglang")
    except PackageNotFoundError:
        hint = install_hint("sglang")
        raise MissingTool("SGLang is not installed", hint=hint) from None
    if release not in SUPPORTED:
        raise UsageError(
            f"SGLang {release}: wavecast works with {', '.join(SUPPORTED)}",
            hint="unset WAVECAST_SGLANG, or install a release that wavecast works with",
        )
    check_requirement("sglang", "transformers")
    return release


__all__ = ["SUPPORTED", "check"]
