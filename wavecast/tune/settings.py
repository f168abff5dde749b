"""What a tuning is asked to do, on its way to the capturing process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from wavecast.tune.budget import Budget

SPACES = ("own", "wide")


@dataclass(frozen=True, slots=True)
class Settings:
    """`devices` are ids, `device_files` their overlays. `space` is `own` (the autotuner's own
    configurations) or `wide` (their neighbours too), `search` a name of `SEARCHES`; `simulate` is
    how many of the best are simulated from executed samples, `jobs` processes at once, `limit` the
    seconds one configuration may take. `journal` is the file results go to. Of all configurations
    those in part `shard` of `shards` are tried."""

    devices: tuple[str, ...]
    journal: str
    device_files: tuple[str, ...] = ()
    space: str = "own"
    search: str = "evolution"
    budget: Budget = field(default_factory=Budget)
    simulate: int = 6
    jobs: int = 1
    seed: int = 0
    limit: float = 300.0
    shard: int = 0
    shards: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Settings:
        return Settings(
            **{
                **document,
                "devices": tuple(document["devices"]),
                "device_files": tuple(document["device_files"]),
                "budget": Budget(**document["budget"]),
            }
        )


__all__ = ["SPACES", "Settings"]
