"""The GPU that kernels run on now: the one of this machine, or one that is emulated or captured."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final

from wavecast import arch
from wavecast.arch import Device

emulated: Device | None = None
"""Set while `wavecast.device` or a capture replaces Triton's device."""

trying: Callable[[Any], AbstractContextManager[None]] = contextlib.nullcontext
"""Entered while a configuration is compiled that may be refused."""


class WouldLaunch(Exception):
    """A call came to a launch `without_launches`."""


_dry: Final = threading.local()


@contextlib.contextmanager
def without_launches() -> Iterator[None]:
    """Calls of this thread end in WouldLaunch where they would launch; they ask a device of the
    library's first target for facts."""
    _dry.on = True
    try:
        yield
    finally:
        _dry.on = False


def dry() -> bool:
    """Whether this thread is to launch nothing."""
    return getattr(_dry, "on", False)


def launching() -> Device:
    """The GPU that a launch goes to now."""
    if dry():
        return _stand_in()
    if emulated is not None:
        return emulated
    import torch

    return _local(torch.cuda.current_device())


@cache
def _stand_in() -> Device:
    return arch.load("gfx942")


@cache
def _local(index: int) -> Device:
    import torch

    properties = torch.cuda.get_device_properties(index)
    if torch.version.hip:
        target = properties.gcnArchName.split(":")[0]
    else:
        target = f"sm_{properties.major}{properties.minor}"
    return arch.nearest(properties.name, target)
