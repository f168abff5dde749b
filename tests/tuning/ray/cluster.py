"""Clusters of several nodes on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any


class Nodes:
    """A cluster of Ray: a head without processors, whose driver is on it, and nodes with one each.
    A node is known by the process of its raylet, which tasks have in `RAY_RAYLET_PID`."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head, connect=False)
        self._nodes: dict[int, Any] = {}
        for _ in range(count):
            self.add()

    @property
    def address(self) -> str:
        return self._cluster.address

    @property
    def running(self) -> list[int]:
        return list(self._nodes)

    def add(self, **environment: str) -> int:
        """A node with one processor; its number."""
        node = self._cluster.add_node(num_cpus=1, env_vars=environment)
        number = node.all_processes["raylet"][0].process.pid
        self._nodes[number] = node
        return number

    def kill(self, number: int) -> None:
        """End a node as a power cut does: all its processes at once."""
        _kill(number, *descendants(number))
        self._cluster.remove_node(self._nodes.pop(number), allow_graceful=False)

    def kill_head(self) -> None:
        """End the head in the same way, and with it the cluster."""
        started = self._cluster.head_node.all_processes.values()
        _kill(*(info.process.pid for infos in started for info in infos))

    def close(self) -> None:
        self._cluster.shutdown()


def _kill(*processes: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.kill(process, signal.SIGKILL)


def descendants(parent: int) -> list[int]:
    """The processes that a process started, and those that these did."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found: list[int] = []
    for child in children.get(parent, []):
        found += [child, *descendants(child)]
    return found


def tasks_of(driver: int) -> list[int]:
    """The processes of a driver's cluster that run its tasks."""
    found = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in descendants(driver)}
    return [child for child, command in found.items() if command.startswith(b"ray::_yield_results")]


__all__ = ["Nodes", "descendants", "tasks_of"]
