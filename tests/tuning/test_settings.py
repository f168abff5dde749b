"""Settings on their way to the capturing process."""

from __future__ import annotations

import json

from wavecast.tuning.budget import SearchBudget
from wavecast.tuning.settings import TuneSettings


def test_settings_survive_json() -> None:
    settings = TuneSettings(
        devices=("mi300x", "mi325x"),
        journal="table.json.journal",
        device_files=("own.toml",),
        space="wide",
        search="random",
        budget=SearchBudget(seconds=90.0),
        simulate=3,
        jobs=2,
        seed=7,
        limit=10.0,
        shard=1,
        shards=4,
    )
    assert TuneSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    default = TuneSettings((), "")
    assert TuneSettings.from_json(json.loads(json.dumps(default.to_json()))) == default
