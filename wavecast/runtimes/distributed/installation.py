"""`torch.distributed` while several GPUs are emulated."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from wavecast.errors import UsageError
from wavecast.launch import group_memory
from wavecast.runtimes.distributed import (
    group_functions,
    operators,
    process_group,
    spawning,
    tensor_sharing,
)
from wavecast.runtimes.distributed.process_group import NAME, EmulatedGroup
from wavecast.runtimes.distributed.randomness import RankRandom
from wavecast.runtimes.distributed.ranks import RankThreads
from wavecast.runtimes.distributed.shared import RegionMemory, SharedGroups
from wavecast.runtimes.distributed.shared_region import SharedRegion
from wavecast.runtimes.distributed.world import RankWorlds
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.gpus import Gpus


def install(patches: Patches, gpus: Gpus) -> RankThreads:
    """Make ranks of threads: every rank has its process groups and variables, and every backend is
    `wavecast`, until `patches` are undone."""
    from torch.distributed import device_mesh, distributed_c10d

    ranks, node = RankThreads(), gpus.node
    shared = SharedGroups()
    if node.board is not None:
        region = SharedRegion()

        def memory(name: str) -> RegionMemory | None:
            return RegionMemory(region, name) if node.is_fork else None

        patches.attribute(group_memory, "shared", memory)
    thread_store: Any = vars(dist)["HashStore"]()
    store_path = ""
    if node.board is not None:
        store_file = os.memfd_create("wavecast-store")  # nothing is left of it
        store_path = f"/proc/{os.getpid()}/fd/{store_file}"
        patches.callback(os.close, store_file)
    ranks.install(patches)
    patches.attribute(sys, "excepthook", sys.excepthook)  # a process group puts another over it
    registry: Any = vars(torch._C)["_distributed_c10d"]
    registry._set_thread_isolation_mode(True)
    patches.callback(registry._set_thread_isolation_mode, False)

    def create(options: Any, backend_options: Any) -> EmulatedGroup:
        del backend_options
        members = list(options.global_ranks_in_group) or list(range(options.group_size))
        name, rank = str(options.group_id), options.group_rank
        return EmulatedGroup(gpus, shared, name, members, rank)

    patches.attribute(process_group, "rank_parts", lambda: ranks.current.groups)

    _register(patches, create)
    start = distributed_c10d.init_process_group
    signature = inspect.signature(start)

    @functools.wraps(start)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        arguments = signature.bind(*args, **kwargs).arguments
        rank, world = (
            _argument_or_variable(arguments, "rank", "RANK"),
            _argument_or_variable(arguments, "world_size", "WORLD_SIZE"),
        )
        if not 1 <= world <= gpus.count or not 0 <= rank < world:
            raise UsageError(
                f"init_process_group: rank {rank} of {world}; the node has {gpus.count} GPUs",
                hint=f"one rank per GPU: 0 to {gpus.count - 1}",
            )
        store = thread_store
        if node.is_fork:
            if not node.is_process:
                node.become_rank(rank, world)
            store = vars(dist)["FileStore"](store_path, world)
        backend = group_functions.requested_backend(arguments.get("backend"))
        arguments |= {"backend": NAME, "rank": rank, "world_size": world}
        arguments |= {"store": arguments.get("store") or store, "init_method": None}
        start(**arguments)
        group_functions.note_backend(distributed_c10d._world.default_pg, backend)

    new_group = group_functions.emulated_new_group(distributed_c10d.new_group)
    monitored_barrier = group_functions.emulated_monitored_barrier(
        distributed_c10d.monitored_barrier
    )
    patches.functions(
        {
            distributed_c10d._world: RankWorlds(ranks),
            start: init_process_group,
            distributed_c10d.new_group: new_group,
            distributed_c10d.monitored_barrier: monitored_barrier,
            distributed_c10d.is_nccl_available: _is_available,
        }
    )
    patches.attribute(torch._C, "_get_accelerator", lambda *_: torch.device("cuda"))
    _separate_meshes(patches, device_mesh.DeviceMesh)
    _separate_data_parallel(patches, ranks)
    gpus.followed.append(ranks.follow)
    RankRandom(ranks).install(patches, gpus)
    spawning.install(patches, gpus, ranks)
    tensor_sharing.install(patches, gpus)
    operators.install()
    return ranks


def _is_available() -> bool:
    return True


def _register(patches: Patches, create: Any) -> None:
    """Register the backend for the time; a program may register and name it itself."""
    backend: Any = dist.Backend
    tables = (
        *(backend._plugins, backend.backend_capability, backend.backend_type_map),
        backend.default_device_backend_map,
    )
    before = [dict(table) for table in tables]
    backends = list(backend.backend_list)

    def forget() -> None:
        for table, content in zip(tables, before, strict=True):
            table.clear()
            table.update(content)
        backend.backend_list[:] = backends
        if hasattr(backend, NAME.upper()):
            delattr(backend, NAME.upper())

    backend.register_backend(NAME, create, extended_api=True, devices=["cuda", "cpu"])
    patches.callback(forget)


def _argument_or_variable(arguments: dict[str, Any], name: str, variable: str) -> int:
    """A number that a call gives, or a launcher in a variable. Raises UsageError."""
    value = arguments.get(name, -1)
    if value is not None and value >= 0:
        return value
    text = os.environ.get(variable)
    if text is None:
        raise UsageError(
            f"init_process_group: {name} is not given and {variable} is not set",
            hint="start ranks with `ranks` of the device, or with wavecast run --gpus N",
        )
    return int(text)


def _separate_meshes(patches: Patches, mesh: Any) -> None:
    """Let meshes of different ranks differ, because PyTorch's caches for DTensors are per process,
    and let ranks propagate shardings one after another: modes of fake tensors are, too."""
    init, lock = mesh.__init__, threading.RLock()

    attributes: set[str] = set()

    @functools.wraps(init)
    def with_thread(self: Any, *args: Any, **kwargs: Any) -> None:
        with lock:
            if "_fake_mode_lock" not in attributes:
                from torch.distributed.tensor._sharding_prop import ShardingPropagator

                attributes.add("_fake_mode_lock")
                patches.attribute(ShardingPropagator, "_fake_mode_lock", lock)
        init(self, *args, **kwargs)
        self._thread_id = threading.get_ident()

    patches.attribute(mesh, "__init__", with_thread)


def _separate_data_parallel(patches: Patches, ranks: RankThreads) -> None:
    """Let each rank have the `DistributedDataParallel` module whose forward pass it runs. PyTorch
    has one for the process: ranks would compile for another's module, and the last of two that
    overlap would leave the first's behind."""
    from torch.nn.parallel import DistributedDataParallel

    not_compiled: Any = vars(torch)["_disable_dynamo"](recursive=False)

    @contextlib.contextmanager
    @not_compiled  # as PyTorch's
    def forward_pass(self: Any) -> Iterator[None]:
        state = ranks.current
        before, state.data_parallel = state.data_parallel, self
        try:
            yield
        finally:
            state.data_parallel = before

    for name, value in (
        ("_inside_ddp_forward", forward_pass),
        ("_get_active_ddp_module", staticmethod(lambda: ranks.current.data_parallel)),
        ("_active_ddp_module", None),  # `replicate` sets it
    ):
        patches.attribute(DistributedDataParallel, name, value)


__all__ = ["install"]
