"""Tasks on a Ray cluster: their results as they are known, whatever happens to nodes.

Nodes need the versions of Wavecast and Triton of this machine, which is a node itself or starts
one. Paths are those of the nodes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from typing import Any, Final, TypeVar, final

from wavecast.errors import InputError, MissingTool, UsageError, WavecastError
from wavecast.extras import install_hint
from wavecast.version import __version__

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")
_STARTS: Final = 3
"""Starts of a task whose nodes are lost."""
_QUEUE: Final = 2
"""Tasks that the cluster knows, over those that can run: it starts the next one by itself."""
_CHECK_SECONDS: Final = 5.0
"""Without a result: then the nodes that are left are looked at."""
_REACH_SECONDS: Final = 10.0
_HEAD_SECONDS: Final = 20.0
"""That a head may be away to start again. Ray ends this process after 60."""
_KEPT: Final = "results that were known are kept where the command names a file for them"


@final
class RayCluster:
    """A cluster that this process is connected to. `losses` are the tasks that were lost and
    started again, in words."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.losses: list[str] = []

    @property
    def processors(self) -> list[int]:
        """The number of processors of each node that has any. Raises InputError without one, and
        without a head."""
        self._reach_head()
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        counts = [count for node in nodes if (count := int(node.get("CPU", 0)))]
        if not counts:
            raise InputError("no node of the Ray cluster has a processor")
        return counts

    def results(
        self,
        function: Callable[..., Iterable[_Result]],
        keys: Sequence[_Key],
        arguments: Callable[[_Key], tuple[Any, ...]],
        *,
        processors: int = 1,
    ) -> Iterator[tuple[_Key, _Result]]:
        """What the generator `function(*arguments(key))` yields on a node with free `processors`,
        for every key, as soon as it is known.

        A lost task starts again, with the `arguments` that its key has then. Raises InputError if
        it is lost three times, no node that is left has the processors, or a node has other
        versions; and the error that a task raises.
        """
        ray = self._ray
        task = ray.remote(num_cpus=processors, max_retries=0)(_yield_results)
        about = versions(), os.getcwd(), function
        queue = deque(range(len(keys)))
        running: dict[Any, int] = {}
        starts: Counter[int] = Counter()
        while queue or running:
            while queue and len(running) < self._most_at_once(processors):
                number = queue.popleft()
                starts[number] += 1
                running[task.remote(*about, *arguments(keys[number]))] = number
            ready, _ = ray.wait(list(running), timeout=_CHECK_SECONDS)
            if not ready:
                self._check(processors)
                continue
            number = running[ready[0]]
            try:
                result = ray.get(next(ready[0]))
            except StopIteration:
                del running[ready[0]]
                continue
            except ray.exceptions.RayTaskError as failed:
                raise _cause(failed) from None
            except ray.exceptions.RayError as lost:
                del running[ready[0]]
                self._lose(lost, starts[number])
                queue.appendleft(number)
                continue
            yield keys[number], result

    def _reach_head(self) -> None:
        """Raises InputError where the head of the cluster answers no more."""
        address = self._ray.get_runtime_context().gcs_address
        end = time.monotonic() + _HEAD_SECONDS
        while True:
            try:
                return _reach(address)
            except InputError as error:
                if time.monotonic() > end:
                    raise InputError(
                        f"the head of the Ray cluster was lost: {error}", hint=_KEPT
                    ) from None
                time.sleep(1.0)

    def _most_at_once(self, processors: int) -> int:
        """Tasks that the cluster knows: Ray looks at all of them for every result."""
        return max(1, _QUEUE * sum(count // processors for count in self.processors))

    def _lose(self, lost: Exception, times: int) -> None:
        """Note a lost task, which was started `times`. Raises InputError for the last one."""
        reason = str(lost).partition("\n")[0]
        if times == _STARTS:
            raise InputError(
                f"the Ray cluster lost a task {times} times: {reason}",
                hint=_KEPT,
            )
        self.losses.append(f"a task on the Ray cluster was lost and started again: {reason}")

    def _check(self, processors: int) -> None:
        """Raises InputError where no node can run a task."""
        if max(self.processors) < processors:
            raise InputError(
                f"no node that the Ray cluster has left has {processors} processors",
                hint="give a smaller --jobs",
            )


@contextlib.contextmanager
def connect(address: str) -> Iterator[RayCluster]:
    """The cluster at `address` (`HOST:PORT` of its head, `auto` for the one of this machine,
    `local` to start one here), until the end of the block. A connection that the program has is
    used and kept.

    Raises MissingTool without Ray, UsageError for an address of Ray Client, InputError if there is
    no cluster.
    """
    ray = _ray()
    if ray.is_initialized():
        yield RayCluster(ray)
        return
    _reach(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray prints what happens to nodes on standard output.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            _connect(ray, address)
            yield RayCluster(ray)
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"no Ray cluster at {address!r}: {text}") from None


def versions() -> dict[str, str]:
    """What must be the same on all nodes."""
    try:
        triton = metadata.version("triton")
    except metadata.PackageNotFoundError:
        triton = "none"
    return {"wavecast": __version__, "triton": triton}


def _yield_results(
    requirements: dict[str, str],
    folder: str,
    function: Callable[..., Iterable[_Result]],
    *args: Any,
) -> Iterator[_Result]:
    """What `function` yields in `folder`, where there is one. Runs on a node."""
    for name, version in versions().items():
        if version != requirements[name]:
            raise InputError(
                f"node {platform.node()} of the Ray cluster has {name} {version}, "
                f"this machine {requirements[name]}",
                hint="install the same version on every node",
            )
    with contextlib.suppress(OSError):
        os.chdir(folder)
    for result in function(*args):  # noqa: UP028 — Ray sends values to generators, not to iterators
        yield result


def _reach(address: str) -> None:
    """Raises UsageError for an address of Ray Client, InputError where nothing answers: Ray itself
    would wait for minutes."""
    if address.startswith("ray://"):
        raise UsageError(
            "Ray Client is not supported",
            hint="run wavecast on a node of the cluster, with HOST:PORT of its head or auto",
        )
    host, separator, port = address.rpartition(":")
    if not separator:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"no Ray cluster at {address!r}: {reason}") from None


def _cause(failed: Any) -> Exception:
    """The error of a task."""
    if isinstance(failed.cause, WavecastError):
        return failed.cause
    if "ModuleNotFoundError: No module named 'wavecast" in str(failed):
        return InputError(
            "a node of the Ray cluster has no wavecast",
            hint=f"install wavecast {__version__} on every node",
        )
    return failed


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingTool("Ray is not installed", hint=install_hint("ray")) from None
    return ray


__all__ = ["RayCluster", "connect", "versions"]
