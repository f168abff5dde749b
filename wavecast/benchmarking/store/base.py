"""What stores of measurements do. `sqlite.open_store` opens one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from wavecast.benchmarking.records import BenchRecord, BenchRun


class Store(ABC):
    """Runs and their records. Nothing is ever changed or removed; a record that `add` returned from
    is on disk and survives the end of the process and of the machine."""

    @abstractmethod
    def begin(self, run: BenchRun) -> None:
        """Start a run. Its id must be new."""

    @abstractmethod
    def add(self, run: str, record: BenchRecord) -> None:
        """Keep a record of a run that began. Raises StoreError when that cannot be done (locked by
        others for too long, disk full): the record is then not kept, and the store is as before."""

    @abstractmethod
    def finish(self, run: str, finished: str) -> None:
        """Say when a run came to its end."""

    @abstractmethod
    def runs(self) -> tuple[BenchRun, ...]:
        """All runs, the oldest first."""

    @abstractmethod
    def records(self, run: str) -> Iterator[BenchRecord]:
        """The records of a run in the order they were added."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


__all__ = ["Store"]
