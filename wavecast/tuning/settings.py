"""The settings of a tuning, as JSON on their way to the capturing process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from wavecast.tuning.budget import SearchBudget

SPACES = ("own", "wide")


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """Settings of a tuning.

    `devices` are ids, `device_files` their overlays. `space` is `own` (the configurations of the
    autotuner) or `wide` (also their neighbours), `search` a name of `STRATEGIES`. The best
    `simulate` configurations are simulated from executed samples. `jobs` processes run at once;
    one configuration may take `limit` seconds. Results go to the file `journal`. Of all
    configurations, those of part `shard` of `shards` are tried.
    """

    devices: tuple[str, ...]
    journal: str
    device_files: tuple[str, ...] = ()
    space: str = "own"
    search: str = "evolution"
    budget: SearchBudget = field(default_factory=SearchBudget)
    simulate: int = 6
    jobs: int = 1
    seed: int = 0
    limit: float = 300.0
    shard: int = 0
    shards: int = 1

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> TuneSettings:
        """The settings that `to_json` was called on."""
        return TuneSettings(
            **{
                **document,
                "devices": tuple(document["devices"]),
                "device_files": tuple(document["device_files"]),
                "budget": SearchBudget(**document["budget"]),
            }
        )


__all__ = ["SPACES", "TuneSettings"]
