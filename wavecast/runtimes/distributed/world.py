"""What `torch.distributed` knows of process groups, one set per rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wavecast.runtimes.distributed.ranks import RankThreads


@dataclass(eq=False, slots=True)
class RankWorld:
    """The process groups of a rank, as `torch.distributed.distributed_c10d._World` has them."""

    default_pg: Any = None
    group_count: int = 0
    pg_map: dict[Any, Any] = field(default_factory=dict)
    pg_names: dict[Any, Any] = field(default_factory=dict)
    pg_group_ranks: dict[Any, Any] = field(default_factory=dict)
    pg_backend_config: dict[Any, Any] = field(default_factory=dict)
    tags_to_pg: dict[Any, Any] = field(default_factory=dict)
    pg_to_tag: dict[Any, Any] = field(default_factory=dict)
    pg_coalesce_state: dict[Any, Any] = field(default_factory=dict)
    comms: list[Any] = field(default_factory=list)


class RankWorlds:
    """Replaces PyTorch's only `_World`: every attribute is that of the calling thread's
    rank."""

    def __init__(self, ranks: RankThreads) -> None:
        object.__setattr__(self, "_ranks", ranks)

    def __getattr__(self, name: str) -> Any:
        return getattr(_world(self._ranks), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_world(self._ranks), name, value)

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """The process groups, described as PyTorch does for its logs."""
        from torch.distributed import distributed_c10d

        return distributed_c10d._World.pg_config_info.fget(self)  # type: ignore[union-attr]


def _world(ranks: RankThreads) -> RankWorld:
    state = ranks.current
    if state.world is None:
        state.world = RankWorld()
    return state.world


__all__ = ["RankWorld", "RankWorlds"]
