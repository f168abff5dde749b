"""PyTorch's random numbers of ranks that are threads: every rank has a state of the generator.

The generator belongs to the process. A call that draws or seeds gets the state of its rank for the
time, so that ranks that use one seed get the same numbers, as processes do.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from wavecast.runtimes.distributed.ranks import RankThreads
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.gpus import Gpus

_SEEDING: Final = ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state")
_SEEDING_CUDA: Final = (
    *_SEEDING,
    *("manual_seed_all", "seed_all", "get_rng_state_all", "set_rng_state_all"),
)


class RankRandom:
    """The states of the generator, by rank. Threads without a rank use the process's."""

    def __init__(self, ranks: RankThreads) -> None:
        self._ranks = ranks
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """A block in which the generator has the state of the calling thread's rank: that of the
        process until the rank has drawn or seeded."""
        state = self._ranks.rank_state
        with self._lock:
            if state is None or state.drawing:
                yield
                return
            generator = torch.default_generator
            process = generator.get_state()
            if state.random is not None:
                generator.set_state(state.random)
            state.drawing = True
            try:
                yield
            finally:
                state.drawing = False
                state.random = generator.get_state()
                generator.set_state(process)

    def install(self, patches: Patches, gpus: Gpus) -> None:
        """Let the calls of ranks use their states."""
        for module, names in (
            (torch, _SEEDING), (torch.random, _SEEDING), (torch.cuda, _SEEDING_CUDA)
        ):  # fmt: skip
            for name in names:
                patches.attribute(module, name, self._wrap(getattr(module, name)))
        gpus.drawing = self.own

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.own():
                return original(*args, **kwargs)

        return run


__all__ = ["RankRandom"]
