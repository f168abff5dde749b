"""The file of measurements that verbs share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast.options import Options, option
from wavecast.options.values import FILE

STORE: Final = ".wavecast/bench.sqlite"


@dataclass(frozen=True, kw_only=True)
class StoreOptions(Options):
    """Where measurements are."""

    store: Path | None = option(None, "The file of measurements.", values=FILE, default_text=STORE)

    @property
    def store_path(self) -> Path:
        """The file that is stated, that of $WAVECAST_STORE, or `STORE`."""
        return self.store or Path(os.environ.get("WAVECAST_STORE") or STORE)


__all__ = ["STORE", "StoreOptions"]
