"""Collectives that have been launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from wavecast.emulate.node import GpuNode, Marker


class QueueWork(dist.Work):
    """A collective in the queue of a GPU. Waiting blocks the host: calls of PyTorch compute on the
    host, also where no stream can tell them to wait (in the dispatcher, in backward passes)."""

    def __init__(self, node: GpuNode, marker: Marker | None, results: Sequence[Tensor]) -> None:
        super().__init__()
        self._node, self._marker, self._results = node, marker, list(results)

    def wait(self, timeout: Any = None) -> bool:  # noqa: ARG002  pyright: ignore
        """Wait until it has ended. Raises what a launch of the GPU raised."""
        if self._marker is not None:
            self._node.wait(self._marker)
        return True

    def is_completed(self) -> bool:
        return self._marker is None or self._marker.is_reached

    def is_success(self) -> bool:
        return self.is_completed()

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def result(self) -> list[Tensor]:
        return self._results

    def get_future(self) -> Any:
        """A future that is done: it waits."""
        self.wait()
        future: Any = torch.futures.Future()
        future.set_result(self._results)
        return future


__all__ = ["QueueWork"]
