"""Matrix products with the collective before or behind them: one kernel, or one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.collectives.libraries import OWN, OWN_HALF, own_shots
from wavecast.perfmodel.ops.collectives.own_products import (
    PRODUCTS,
    LaunchParts,
    element_size,
    gather_plan,
    launch_length,
    launch_parts,
    reduce_plan,
)
from wavecast.perfmodel.ops.collectives.problem import Collective, known_of, one_node
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.formats import canonical
from wavecast.perfmodel.ops.sizes import at_most, check_options, parse_sizes, whole
from wavecast.perfmodel.prediction import Prediction

_BUFFER: Final = 1 << 40
"""Bytes: more than the memory of any GPU."""
KERNELS: Final = ("fused", "separate")
DTYPES: Final = ("bf16", "fp16", "fp32")
_NOT_MODELLED: Final = (
    "registers that fused kernels spill",
    "caches that signals write back",
    "congestion",
)
_OPTIONS: Final = ("function", "gpus", "dtype", "kernels", "library", "shots", "buffer")


@dataclass(frozen=True, slots=True)
class GemmCollective(Op):
    """`function` (a key of `PRODUCTS`), where each of `gpus` GPUs multiplies `m` x `k` by `k` x
    `n`: rows that all have gathered, or a part of a sum over all.

    `kernels` is "fused" (that of `wavecast.ops.distributed`, in a node), "separate" (the best
    product and the collective of `library`), or "" for the faster. `shots` are those of a fused
    all-reduce (0: as the operator takes them), `buffer` the bytes of half of the buffer of a rank:
    what one launch exchanges. Without a `group` the GPUs are of one node of the device.
    """

    kind: ClassVar[str] = "gemm_collective"
    shape_help: ClassVar[str] = (
        f"MxNxK of every GPU; function={'|'.join(PRODUCTS)}, gpus, --dtype bf16|fp16|fp32, "
        "kernels=fused|separate (the faster), library (of the separate collective), shots=1|2, "
        f"buffer (bytes that a fused launch exchanges, {OWN_HALF})"
    )

    function: str
    m: int
    n: int
    k: int
    gpus: int
    dtype: str = "bf16"
    kernels: str = ""
    library: str = ""
    shots: int = 0
    buffer: int = OWN_HALF
    group: GpuGroup | None = None

    def __post_init__(self) -> None:
        if self.function not in PRODUCTS:
            raise UnknownName("product over ranks", self.function, PRODUCTS)
        if self.dtype not in DTYPES:
            raise UnknownName("dtype of products over ranks", self.dtype, DTYPES)
        if self.kernels and self.kernels not in KERNELS:
            raise UnknownName("kernels of a product over ranks", self.kernels, KERNELS)
        if self.shots not in (0, 1, 2):
            raise UsageError(f"gemm_collective: {self.shots} shots; 1, 2 or 0")
        if self.shots and self.function != "matmul_all_reduce":
            raise UsageError("gemm_collective: shots belong to matmul_all_reduce")
        if self.function != "matmul_all_reduce" and self.m % self.gpus:
            raise UsageError(f"gemm_collective: {self.gpus} GPUs do not divide {self.m} rows")
        if self.buffer < 1:
            raise UsageError("gemm_collective: a buffer has a byte or more")
        at_most(self.kind, {"buffer": (self.buffer, _BUFFER)})
        self.collective()  # raises for GPUs and libraries that there are not

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `8192x8192x1024` and options by name. Raises UsageError, UnknownName."""
        values = check_options(
            cls.kind,
            options,
            _OPTIONS,
            required=("function", "gpus"),
            values={"function": PRODUCTS},
        )
        m, n, k = parse_sizes(shape, 3)
        return cls(
            values["function"],
            m,
            n,
            k,
            parse_sizes(values["gpus"], 1)[0],
            canonical(values.get("dtype", "bf16")),
            values.get("kernels", ""),
            values.get("library", ""),
            whole(cls.kind, "shots", values.get("shots", "0")),
            whole(cls.kind, "buffer", values.get("buffer", str(OWN_HALF))),
        )

    def product(self) -> Gemm:
        """The product alone."""
        return Gemm(m=self.m, n=self.n, k=self.k, dtype=self.dtype)

    def collective(self) -> Collective:
        """The collective alone, of the rows that are gathered or of the result."""
        columns = self.k if self.function == "all_gather_matmul" else self.n
        return Collective(
            PRODUCTS[self.function],
            self.m * columns * element_size(self.dtype),
            self.gpus,
            group=self.group,
            library=self.library,
        )

    def work(self) -> Work:
        return self.product().work()

    def memory_floor(self, device: Device) -> MemoryFloor:
        return self.product().memory_floor(device)

    def predict(self, device: Device) -> Prediction:
        """The time of `kernels`, or of the faster; of separate ones where nothing fits the buffer
        of a fused kernel. Raises MissingFact where links or rates are unknown, UsageError for a
        fused kernel over nodes or with too small a buffer."""
        if self.kernels == "fused":
            return self._fused(device)
        separate = self._separate(device)
        if self.kernels or (self.group is not None and self.group.nodes > 1):
            return separate
        group = self.group or one_node(device, self.gpus)
        if not self._fitting(group.local, self._shots(group, device)):
            note = f"a buffer of {self.buffer} bytes is too small for the fused kernel"
            return replace(separate, notes=(*separate.notes, note))
        return min((self._fused(device), separate), key=lambda prediction: prediction.seconds)

    def _fused(self, device: Device) -> Prediction:
        group = self.group or one_node(device, self.gpus)
        if group.nodes > 1:
            raise UsageError(f"{self}: ranks of a fused kernel share the memory of one node")
        launches = list(self._launches(group, device))
        bounds = {
            "product": sum(parts.product + parts.reads for parts in launches),
            "links": sum(parts.transfer for parts in launches),
            "tail": sum(parts.tail for parts in launches),
        }
        rows, columns = self._tile(group, device)
        seconds = sum(parts.seconds for parts in launches)
        prediction = Prediction(
            device=device.id,
            seconds=seconds,
            low=seconds,
            high=seconds,
            limiter=max(bounds, key=lambda name: bounds[name]),
            fidelity="formula",
            bounds=bounds,
            assumed={
                "kernels": "fused",
                "library": OWN,
                "tile": (rows, columns),
                "launches": len(launches),
            },
            not_modelled=_NOT_MODELLED,
            notes=("the kernels of wavecast.ops.distributed were not measured",),
        )
        return with_interval(prediction, self.subject, device)

    def _separate(self, device: Device) -> Prediction:
        product = self.product().predict(device)
        collective = self.collective().predict(device)
        parts = (product, collective)
        bounds = {"product": product.seconds, "collective": collective.seconds}
        return Prediction(
            device=device.id,
            seconds=sum(bounds.values()),
            low=sum(part.low for part in parts),
            high=sum(part.high for part in parts),
            limiter=max(bounds, key=lambda name: bounds[name]),
            fidelity="formula",
            bounds=bounds,
            assumed={
                "kernels": "separate",
                "library": product.assumed["library"],
                "algorithm": collective.assumed["algorithm"],
            },
            not_modelled=collective.not_modelled,
            notes=collective.notes,
            basis=max(parts, key=lambda part: part.seconds).basis,
        )

    def _tile(self, group: GpuGroup, device: Device) -> tuple[int, int]:
        """Rows and columns of a tile of the first launch."""
        ranks, shots = group.local, self._shots(group, device)
        length = self._length(ranks, shots)
        if self.function == "all_gather_matmul":
            rows = min(self.m // ranks, length)
            plan = gather_plan(rows, self.n, self.k, ranks, self.dtype, device)
        else:
            parts = ranks if shots == 2 else 1
            columns = min(self.n, length)
            plan = reduce_plan(math.ceil(self.m / parts), columns, parts, self.dtype, device)
        return plan.rows, plan.columns

    def _launches(self, group: GpuGroup, device: Device) -> Iterator[LaunchParts]:
        """The launches whose exchanged rows or columns fit the buffer."""
        constants, ranks = known_of(device), group.local
        shots = self._shots(group, device)
        gathered = self.function == "all_gather_matmul"
        whole_size = self.m // ranks if gathered else self.n
        length = self._length(ranks, shots)
        for first in range(0, whole_size, length):
            size = min(length, whole_size - first)
            sizes = (ranks * size, self.n, self.k) if gathered else (self.m, size, self.k)
            yield launch_parts(self.function, sizes, shots, self.dtype, group, device, constants)

    def _fitting(self, ranks: int, shots: int) -> int:
        """Rows or columns of a launch that the buffer holds, 0 for none."""
        element = element_size(self.dtype)
        return launch_length(self.function, self.m, self.k, ranks, shots, element, self.buffer)

    def _length(self, ranks: int, shots: int) -> int:
        length = self._fitting(ranks, shots)
        if not length:
            raise UsageError(
                f"{self}: a buffer of {self.buffer:,} bytes is too small for the fused kernel"
            )
        return length

    def _shots(self, group: GpuGroup, device: Device) -> int:
        if self.function != "matmul_all_reduce":
            return 2
        if self.shots:
            return self.shots
        size = self.m * self.n * element_size(self.dtype)
        return own_shots(size, group, device, known_of(device))

    def __str__(self) -> str:
        kernels = f" {self.kernels}" if self.kernels else ""
        sizes = f"{self.m}x{self.n}x{self.k} {self.dtype}"
        return f"{self.function} {sizes} on {self.gpus} GPUs{kernels}"


__all__ = ["DTYPES", "KERNELS", "GemmCollective"]
