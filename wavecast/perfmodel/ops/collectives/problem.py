"""Collectives over the GPUs of a node and over nodes (xGMI, NVLink, PCIe, NICs).

`price` is the time of a collective on a system; `Collective` the same as an operation. The
algorithms are those of `algorithms`; the library takes the fastest, engines' own
all-reduces choose by size (`libraries`). Few channels copy less than the links carry;
what a call adds depends on how it was timed (`TIMINGS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.arch.systems import System, node_fabric
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import of_device
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.memory import overlap_time
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.collectives.algorithms import (
    EXCHANGES,
    FUNCTIONS,
    CollectiveTime,
    Known,
    exchange_estimates,
    wire,
)
from wavecast.perfmodel.ops.collectives.libraries import check, estimates, own_kernels
from wavecast.perfmodel.ops.sizes import at_most, check_options, parse_sizes, whole
from wavecast.perfmodel.prediction import Prediction

FAMILY = "collectives"
NETWORK_WIDENING: Final = 2.0
"""Factor of the width of intervals over nodes: no all-reduce over nodes was measured."""

LATENCIES: Final = (
    *("start", "flag_hop", "slice_hop", "exchange_start", "read_start", "read_hop"),
    *("multimem_start", "switch_latency", "low_latency_start", "grouped_start"),
)
"""Coefficients that are chains of round trips through L2, where flags are written and polled."""

TIMINGS: Final = {
    "kernel": "the kernel alone, or launched by a graph",
    "launch": "launched one after another",
    "torch": "a call of torch.distributed between events, host in step",
}
_MOST: Final = 1024
"""Workgroups that copy, and experts of a token: more than any library or model has."""
OPTIONS: Final = ("function", "gpus", "channels", "concurrent", "timing", "library", "topk")


@dataclass(frozen=True, slots=True)
class Collective(Op):
    """`function` of `bytes` on each of `gpus` GPUs, of one node of the device if no `group`.

    `bytes` is the size nccl-tests prints: of the buffer that is reduced, of the whole of what is
    gathered or scattered. `channels` is the number of workgroups that copy (0: enough).
    `concurrent` is "gemm" while matrix products keep the memory and the compute units busy.
    `library` is that of `libraries`. `dispatch` and `combine` exchange tokens with the ranks of
    their `topk` experts; `bytes` are the tokens of one GPU, each once.
    """

    kind: ClassVar[str] = "collective"
    shape_help: ClassVar[str] = (
        "BYTES; function=all_reduce|all_gather|…, gpus, channels (workgroups that copy), "
        "concurrent=gemm, timing=kernel|launch|torch, library=vllm|sglang|quick-int4|…, "
        "topk (dispatch, combine)"
    )

    function: str
    bytes: int
    gpus: int
    channels: int = 0
    concurrent: str = ""
    timing: str = "kernel"
    group: GpuGroup | None = None
    library: str = ""
    topk: int = 0

    def __post_init__(self) -> None:
        if self.function not in (*FUNCTIONS, *EXCHANGES):
            raise UnknownName("collective", self.function, (*FUNCTIONS, *EXCHANGES))
        check(self.function, self.library)
        if (self.topk > 0) != (self.function in EXCHANGES):
            raise UsageError("topk, the experts of a token, belongs to dispatch and combine")
        if self.timing not in TIMINGS:
            raise UnknownName("timing", self.timing, TIMINGS)
        if self.concurrent not in ("", "gemm"):
            raise UnknownName("work concurrent with a collective", self.concurrent, ("gemm",))
        if self.gpus < 2 or self.bytes < 1 or self.channels < 0:
            raise UsageError("a collective needs two GPUs or more and a byte or more")
        at_most(self.kind, {"channels": (self.channels, _MOST), "topk": (self.topk, _MOST)})
        if self.group is not None and self.group.ranks != self.gpus:
            raise UsageError(f"{self.gpus} GPUs, but {self.group.ranks} are placed")

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        values = check_options(
            cls.kind,
            options,
            OPTIONS,
            required=("function", "gpus"),
            values={"function": (*FUNCTIONS, *EXCHANGES)},
        )
        return cls(
            values["function"],
            parse_sizes(shape, 1)[0],
            parse_sizes(values["gpus"], 1)[0],
            whole(cls.kind, "channels", values.get("channels", "0")),
            values.get("concurrent", ""),
            values.get("timing", "kernel"),
            library=values.get("library", ""),
            topk=whole(cls.kind, "topk", values.get("topk", "0")),
        )

    @property
    def wire(self) -> float:
        """Bytes every GPU sends; those of an exchange depend on its kernels."""
        if self.function in EXCHANGES:
            return float(self.bytes * self.topk)
        return wire(self.function, self.bytes, self.gpus)

    def work(self) -> Work:
        return Work({}, float(self.bytes), float(self.bytes), "none", "derived from the size")

    def transfers(self, device: Device) -> Mapping[str, float]:
        """Seconds in which what its fastest algorithm sends keeps `links` and `network` busy."""
        best, _ = self._fastest(device, known_of(device))
        return {name: best.bounds.get(name, 0.0) for name in ("links", "network")}

    def _fastest(self, device: Device, constants: Known) -> tuple[CollectiveTime, dict[str, float]]:
        where = self.group or one_node(device, self.gpus)
        if self.function in EXCHANGES:
            candidates = exchange_estimates(self.bytes, self.topk, where, constants, self.library)
        else:
            channels = self.channels
            candidates = estimates(
                self.function, self.bytes, where, device, constants, self.library, channels
            )
        return _fastest(candidates, self._link_limits(constants))

    def predict(self, device: Device) -> Prediction:
        constants = known_of(device)
        where = self.group or one_node(device, self.gpus)
        best, times = self._fastest(device, constants)
        seconds = sum(times.values())
        if self.timing == "launch":
            times["launch"] = constants["launch"]
            seconds += constants["launch"]
        elif self.timing == "torch":
            times["host"] = constants["host_call"]
            seconds = float(overlap_time([seconds, constants["host_call"]], 2.0))
        notes = []
        if where.nodes > 1:
            notes.append("no collective over nodes was measured")
        if own_kernels(self.function, self.library):
            notes.append("the kernels of wavecast.ops.distributed were not measured")
        return with_interval(
            Prediction(
                device=device.id,
                seconds=seconds,
                low=seconds,
                high=seconds,
                limiter=max(times, key=lambda name: times[name]),
                fidelity="formula",
                bounds=times,
                assumed={
                    "algorithm": best.algorithm,
                    "protocol": best.protocol,
                    "channels": self.channels or "enough",
                },
                not_modelled=("arithmetic of reductions", "congestion"),
                notes=tuple(notes),
            ),
            self.subject,
            device,
            widen=NETWORK_WIDENING if where.nodes > 1 else 1.0,
        )

    def _link_limits(self, constants: Known) -> tuple[float, float, float]:
        """Factor of the time on the links, seconds of the channels, and their exponent."""
        share = constants["concurrent_gemm"] if self.concurrent else 1.0
        has_limit = self.channels and not own_kernels(self.function, self.library)
        copying = self.wire / (self.channels * constants["channel_bandwidth"]) if has_limit else 0.0
        return 1 / share, copying, constants["channel_overlap"]

    def __str__(self) -> str:
        return f"{self.function} {self.bytes} B on {self.gpus} GPUs"


def price(
    function: str,
    size: float,
    ranks: int,
    system: System,
    *,
    stride: int = 1,
    concurrent: str = "",
    library: str = "",
) -> Prediction:
    """The time of `function` (a key of `FUNCTIONS`) of `size` bytes on `ranks` GPUs of a system.

    `size` is as nccl-tests counts it: the whole of what is gathered or scattered, the buffer that
    is reduced. The ranks are `stride` GPUs apart (`System.group`); all groups of the system do
    the same at once and share links and NICs equally. `concurrent` is "gemm" next to matrix
    products, `library` as in `libraries` ("": NCCL or RCCL).
    `bounds` of the prediction has seconds of `latency` and of `links` or `network`.

    Raises UsageError for ranks that do not divide the nodes, MissingFact for unknown links.
    """
    group = system.group(ranks, stride)
    op = Collective(
        function,
        max(1, round(size)),
        ranks,
        concurrent=concurrent,
        group=group,
        library=library,
    )
    return op.predict(system.device)


def known_of(device: Device) -> Known:
    """The coefficients for a device. `LATENCIES` that were measured on no chip of its kind hold for
    an L2 latency of `l2_reference` and are scaled to that of the device."""
    constants = dict(coefficients.values(FAMILY, device))
    factor = of_device(device).latency["l2"] / constants["l2_reference"]
    for name in LATENCIES:
        if coefficients.coefficient(FAMILY, name).scope(device) == "default":
            constants[name] *= factor
    return constants


def one_node(device: Device, gpus: int) -> GpuGroup:
    """GPUs of the usual node of a device. Raises MissingFact where their links are not known."""
    fabric = node_fabric(device)
    if fabric is None:
        raise MissingFact(f"the links between GPUs of {device.id} are not known")
    if gpus > fabric.gpus:
        raise MissingFact(f"{device.id} links {fabric.gpus} GPUs at most, not {gpus}")
    return GpuGroup(fabric, None, gpus)


def _fastest(
    candidates: Iterable[CollectiveTime], limits: tuple[float, float, float]
) -> tuple[CollectiveTime, dict[str, float]]:
    """The fastest algorithm, and seconds of its latency and of what bounds its transfer."""
    slower, copying, exponent = limits
    timings: list[tuple[CollectiveTime, dict[str, float]]] = []
    for estimate in candidates:
        name = max(estimate.bounds, key=lambda bound: estimate.bounds[bound])
        transfer = estimate.bounds[name] * (slower if name == "links" else 1.0)
        if copying:
            transfer = float(overlap_time([transfer, copying], exponent))
        timings.append((estimate, {"latency": estimate.latency, name: transfer}))
    return min(timings, key=lambda entry: sum(entry[1].values()))


__all__ = ["FUNCTIONS", "TIMINGS", "Collective", "one_node", "price"]
