"""Tensors of emulated GPUs that a program gives to another process: the memory is shared, as that
of GPUs is, and stays that of its GPU."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, assign, owner


def install(patches: Patches, gpus: Gpus) -> None:
    """Let queues and pipes of `torch.multiprocessing` say whose memory a tensor is."""
    from torch.multiprocessing import reductions

    reducers: dict[Any, Any] = vars(ForkingPickler)["_extra_reducers"]
    before = dict(reducers)

    def reduce(tensor: Tensor) -> tuple[Any, ...]:
        gpu = owner(tensor)
        if gpu is None or gpu == HOST:
            return reductions.reduce_tensor(tensor)
        gpus.node.wait_for(gpu)  # sharing moves the memory
        return rebuild, (gpu, *reductions.reduce_tensor(tensor))

    def restore() -> None:
        reducers.clear()
        reducers.update(before)

    patches.callback(restore)
    for kind in (Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reduce)


def rebuild(gpu: int, function: Callable[..., Tensor], arguments: tuple[Any, ...]) -> Tensor:
    """The tensor of a GPU that `function` makes."""
    tensor = function(*arguments)
    assign(tensor, gpu)
    return tensor


__all__ = ["install", "rebuild"]
