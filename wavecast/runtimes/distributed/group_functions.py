"""Functions of `torch.distributed` that create groups, and what depends on the backend that the
program names: all are emulated by one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from torch.distributed import distributed_c10d

from wavecast.errors import UsageError
from wavecast.runtimes.distributed.calls import group_call
from wavecast.runtimes.distributed.process_group import NAME, EmulatedGroup

_REPLACED: Final = ("nccl", "gloo", "rccl", "mpi", "cuda", "cpu", "undefined")
"""Backends whose groups are emulated instead."""
_MONITORING: Final = "gloo"
"""The backend that has `monitored_barrier`."""


def requested_backend(name: Any) -> str:
    """The backend that a program names, "" for none. Raises UsageError for one that cannot be
    emulated."""
    text = str(name or "").lower()
    for part in (text or "undefined").split(","):
        backend = part.split(":")[-1]
        if backend not in (*_REPLACED, NAME):
            raise UsageError(
                f"backend {backend!r} cannot be emulated", hint=f"use {NAME!r} or 'nccl'"
            )
    return text


def note_backend(group: Any, name: str) -> None:
    """Let a group know what the program calls its backend."""
    if isinstance(group, EmulatedGroup):
        group.backend = name


def emulated_new_group(new_group: Callable[..., Any]) -> Callable[..., Any]:
    """`new_group` of the emulated backend. Raises CallsDiffer where ranks create groups in other
    orders."""
    signature = inspect.signature(new_group)

    @functools.wraps(new_group)
    def create(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments
        everyone = distributed_c10d._world.default_pg
        backend = everyone.backend if isinstance(everyone, EmulatedGroup) else ""
        if arguments.get("backend") is not None:
            backend, arguments["backend"] = requested_backend(arguments["backend"]), NAME
        if isinstance(everyone, EmulatedGroup) and not arguments.get("use_local_synchronization"):
            ranks = arguments.get("ranks")
            members = "all" if ranks is None else " ".join(map(str, sorted(ranks)))
            everyone.agree(group_call("new_group", (), f"ranks={members}"))
        group = new_group(**arguments)
        note_backend(group, backend)
        return group

    return create


def emulated_monitored_barrier(monitored_barrier: Callable[..., Any]) -> Callable[..., Any]:
    """`monitored_barrier` of groups that stand for Gloo's; of others PyTorch's, which raises."""

    @functools.wraps(monitored_barrier)
    def wait(group: Any = None, *args: Any, **kwargs: Any) -> None:
        members = group or distributed_c10d._world.default_pg
        if isinstance(members, EmulatedGroup) and _MONITORING in members.backend:
            members.monitored_barrier()
        else:
            monitored_barrier(group, *args, **kwargs)

    return wait


__all__ = [
    "emulated_monitored_barrier",
    "emulated_new_group",
    "note_backend",
    "requested_backend",
]
