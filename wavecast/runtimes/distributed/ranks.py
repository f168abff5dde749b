"""Which rank a host thread is, and the environment variables it sees.

Launchers tell a process its rank in variables. Ranks that are threads share the process's
environment, so these variables are stored per thread, over those of the process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from wavecast.runtimes.distributed.progress import RankLeft, RankProgress
from wavecast.runtimes.patching import Patches

_ADDRESS: Final = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@dataclass(eq=False, slots=True, weakref_slot=True)
class RankState:
    """What a rank has for itself: its `variables` by name, encoded as those of the process, what
    `torch.distributed` knows (`world`), its part of `groups` by their names, the module whose
    forward pass it runs (`data_parallel`), and the state of PyTorch's generator (`random`), which a
    call of it is `drawing` from."""

    variables: dict[bytes, bytes] = field(default_factory=dict)
    world: Any = None
    groups: dict[str, Any] = field(default_factory=dict)
    data_parallel: Any = None
    random: Any = None
    drawing: bool = False

    def clear(self) -> None:
        """Forget groups and tensors."""
        self.world = self.data_parallel = self.random = None
        self.groups.clear()


class _Current(threading.local):
    def __init__(self) -> None:
        self.state: RankState | None = None


class RankThreads:
    """The ranks of the host threads. A thread that a rank starts belongs to that rank."""

    def __init__(self) -> None:
        self._current = _Current()
        self._states: weakref.WeakSet[RankState] = weakref.WeakSet()
        self._others = self.new_state()
        self.progress = RankProgress()

    @property
    def current(self) -> RankState:
        """The state of the calling thread; threads without a rank share one."""
        return self._current.state or self._others

    @property
    def rank_state(self) -> RankState | None:
        """The state of the calling thread's rank, None for a thread without one."""
        return self._current.state

    @contextlib.contextmanager
    def rank(self, rank: int, world: int) -> Iterator[None]:
        """A block of the calling thread as a rank, with the variables that `torchrun` sets."""
        local = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
        group = {
            "GROUP_RANK": 0,
            "GROUP_WORLD_SIZE": 1,
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": world,
        }
        variables = {name: str(value) for name, value in (local | group).items()} | _ADDRESS
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
        with self.enter(self.new_state(encoded)):
            yield

    def new_state(self, variables: dict[bytes, bytes] | None = None) -> RankState:
        """The state of another rank."""
        state = RankState(variables or {})
        self._states.add(state)
        return state

    @contextlib.contextmanager
    def enter(self, state: RankState | None) -> Iterator[None]:
        """A block of the calling thread with the state of another."""
        before, self._current.state = self._current.state, state
        try:
            yield
        finally:
            self._current.state = before

    def follow(self) -> contextlib.AbstractContextManager[None]:
        """For a thread that the calling one starts: the block that it runs in."""
        return self.enter(self._current.state)

    def _clear(self) -> None:
        for state in list(self._states):
            state.clear()

    def install(self, patches: Patches) -> None:
        """Let `os.environ` have the variables of the calling thread's rank, and let `os._exit` end
        only that rank. In the end states forget what they have: threads that are still there then,
        as those of Inductor's pool, would free it while Python ends, when it ends the process."""
        patches.callback(self._clear)
        leave, process = os._exit, os.getpid()

        @functools.wraps(leave)
        def leave_rank(status: int) -> NoReturn:
            if self.rank_state is None or os.getpid() != process:
                leave(status)
            raise RankLeft(status)

        patches.attribute(os, "_exit", leave_rank)
        environment: Any = os.environ
        patches.attribute(environment, "_data", RankVariables(self, environment._data))


class RankVariables(MutableMapping[Any, Any]):
    """The environment of the process with the variables of the calling thread's rank over it."""

    def __init__(self, ranks: RankThreads, process: MutableMapping[Any, Any]) -> None:
        self._ranks, self._process = ranks, process

    @property
    def _rank_variables(self) -> dict[Any, Any]:
        return self._ranks.current.variables

    def _chain(self) -> Mapping[Any, Any]:
        return {**self._process, **self._rank_variables}

    def __getitem__(self, key: Any) -> Any:
        variables = self._rank_variables
        return variables[key] if key in variables else self._process[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        (self._rank_variables if key in self._rank_variables else self._process)[key] = value

    def __delitem__(self, key: Any) -> None:
        variables = self._rank_variables
        if key in variables:
            del variables[key]
            self._process.pop(key, None)
        else:
            del self._process[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._chain())

    def __len__(self) -> int:
        return len(self._chain())

    def __contains__(self, key: Any) -> bool:
        return key in self._rank_variables or key in self._process


__all__ = ["RankLeft", "RankState", "RankThreads"]
