"""Processes a script starts through `multiprocessing`: all by fork.

A new Python process (`spawn`, `forkserver`) imports the script with no emulated GPU, fails, and a
pool starts it again without end. A fork has everything that was installed.
"""

from __future__ import annotations

import os
from typing import Any

from wavecast.runtimes.patching import Patches


def fork_always(patches: Patches) -> None:
    """Make every start method fork, until `patches` are undone."""
    import multiprocessing.context as context

    import torch

    def start(process: Any) -> Any:
        from multiprocessing.popen_fork import Popen

        return Popen(process)

    for kind in (context.SpawnProcess, context.ForkServerProcess):
        patches.attribute(kind, "_Popen", staticmethod(start))
    # PyTorch's pool of threads does not exist in a fork; its data loader's workers do the same.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
