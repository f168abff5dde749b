"""The timers that autotuners of languages measure with."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from wavecast.runtimes.imported import call_when_imported
from wavecast.runtimes.languages.registry import TIMERS
from wavecast.runtimes.patching import Patches


def replace_timers(patches: Patches, timer: Callable[..., Any]) -> None:
    """Let `timer` measure instead of the timers of the registry, once a program imports them."""

    def replace(module: str, name: str) -> None:
        patches.attribute(sys.modules[module], name, timer)

    for module, name in TIMERS.items():
        call_when_imported(patches, module, functools.partial(replace, module, name))


__all__ = ["replace_timers"]
