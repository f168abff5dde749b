"""What operations on the rows of one matrix share: their sizes, and how they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.errors import UnknownName
from wavecast.perfmodel.bounds import MemoryFloor
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.dtypes import KNOWN, element_bytes
from wavecast.perfmodel.ops.sizes import check_options, parse_sizes, warm_floor
from wavecast.perfmodel.timing import TIMINGS

OPTIONS: Final = ("dtype", "timing")


@dataclass(frozen=True, slots=True)
class RowOp(Op):
    """`rows` of `columns` elements. `timing` is a key of `timing.TIMINGS`."""

    shape_help: ClassVar[str] = "ROWSxCOLUMNS; --dtype, timing (kernel, launch, eager, …)"

    rows: int
    columns: int
    dtype: str
    timing: str = "kernel"

    def __post_init__(self) -> None:
        if self.timing not in TIMINGS:
            raise UnknownName("way of timing", self.timing, TIMINGS)
        element_bytes(self.dtype)

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        values = check_options(
            cls.kind, options, OPTIONS, required=("dtype",), values={"dtype": KNOWN}
        )
        rows, columns = parse_sizes(shape, 2)
        return cls(rows, columns, values["dtype"], values.get("timing", "kernel"))

    def memory_floor(self, device: Device) -> MemoryFloor:
        return warm_floor(self, device, self.work().bytes or 0.0)

    def __str__(self) -> str:
        return f"{self.kind} {self.rows}x{self.columns} {self.dtype}"


__all__ = ["RowOp"]
