"""Reductions of rows to one value each: sum, mean, extremes, norms (aten/…/cuda/Reduce.cuh).

A thread walks over its elements with few loads on the way at once (`reduce_launch` says how many),
so a reduction with few results waits for memory however fast that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import Traffic
from wavecast.perfmodel.ops.dtypes import KNOWN, element_bytes
from wavecast.perfmodel.ops.reduce_launch import ReduceLaunch, divide
from wavecast.perfmodel.ops.row_op import OPTIONS, RowOp
from wavecast.perfmodel.ops.rows import FAMILY
from wavecast.perfmodel.ops.sizes import (
    check_options,
    parse_sizes,
    predict_kernels,
    warm_floor,
    whole,
)
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import Streaming, kernel_parts, lanes

FUNCTIONS: Final = {"sum": "reduction_instructions", "argmax": "index_instructions"}
"""Kinds of reductions (`argmax`: those that return where an extreme is) and the coefficient with
their vector instructions per element."""
HANDOVERS: Final = 3
"""Accesses in a row by which workgroups combine: store a part, count, load the parts."""


@dataclass(frozen=True, slots=True)
class Reduction(RowOp):
    """One value of each row: `rows` values. `inner` results lie between two elements of a row (1:
    the last dimension is reduced). `function` is a key of `FUNCTIONS`."""

    kind: ClassVar[str] = "reduction"
    shape_help: ClassVar[str] = (
        "ROWSxCOLUMNS; --dtype, function=sum|argmax, inner (results between two elements of a row, "
        "1), timing (kernel, launch, eager, …)"
    )

    inner: int = 1
    function: str = "sum"

    def __post_init__(self) -> None:
        super(Reduction, self).__post_init__()
        if self.function not in FUNCTIONS:
            raise UnknownName("reduction", self.function, FUNCTIONS)
        if self.inner < 1 or self.rows % self.inner:
            raise UsageError(
                f"reduction: inner is {self.inner}: it is at least 1 and divides {self.rows} rows"
            )

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        values = check_options(
            cls.kind,
            options,
            (*OPTIONS, "function", "inner"),
            required=("dtype",),
            values={"dtype": KNOWN, "function": FUNCTIONS},
        )
        rows, columns = parse_sizes(shape, 2)
        return cls(
            rows,
            columns,
            values["dtype"],
            values.get("timing", "kernel"),
            whole(cls.kind, "inner", values.get("inner", "1")),
            values.get("function", "sum"),
        )

    def work(self) -> Work:
        width = element_bytes(self.dtype)
        elements = self.rows * self.columns
        return Work(
            {"vector_fp32": float(elements)},
            elements * width,
            self.rows * width,
            "one per element",
            "derived from the shape",
        )

    def memory_floor(self, device: Device) -> MemoryFloor:
        return warm_floor(self, device, self.work().bytes or 0.0, streams=1)

    def predict(self, device: Device) -> Prediction:
        chip = Chip.of(device)
        division = divide(chip, self.rows, self.columns, self.inner)
        constants = coefficients.values(FAMILY, device)
        launch = self._streaming(chip, division)
        return predict_kernels(
            self,
            device,
            [kernel_parts(chip, launch)],
            constants["overlap"],
            timing=self.timing,
            assumed={
                "workgroups": division.workgroups,
                "threads": division.threads,
                "elements of a thread": division.values * division.results,
                "workgroups of a result": division.parts,
                "timing": self.timing,
            },
        )

    def _streaming(self, chip: Chip, division: ReduceLaunch) -> Streaming:
        constants = coefficients.values(FAMILY, chip.device)
        width = element_bytes(self.dtype)
        elements = self.rows * self.columns
        instructions = constants[FUNCTIONS[self.function]]
        clocks = chip.lanes / (lanes(chip) / chip.simds)
        chain = constants["reduction_chain"]
        if division.parts > 1:
            common = "l2" if chip.dies == 1 else "mall" if chip.mall_bytes else "hbm"
            chain += HANDOVERS * chip.latency[common] * chip.clock
        per_thread = division.values * division.results
        return Streaming(
            traffic=Traffic(
                elements * width, self.rows * width, streams=1, shared=self.timing == "kernel"
            ),
            workgroups=division.workgroups,
            issue=division.threads * per_thread * instructions / lanes(chip),
            overlap=constants["overlap"],
            chain=chain,
            threads=division.threads,
            outstanding=min(division.loads, per_thread) * width,
            step=constants["reduction_step"] + division.loads * instructions * clocks,
        )

    def __str__(self) -> str:
        text = super(Reduction, self).__str__()
        inner = f" inner={self.inner}" if self.inner > 1 else ""
        return text + (f" {self.function}" if self.function != "sum" else "") + inner


__all__ = ["FUNCTIONS", "Reduction"]
