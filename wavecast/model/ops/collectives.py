"""Collectives over the GPUs of one node, every one linked to every other (xGMI, NVLink).

Each GPU sends `wire` bytes through its links to the others. Two protocols are weighed, the faster
taken: one that sends a flag with every word (half of the bandwidth, short latency) and one that
hands over whole slices (full bandwidth, synchronises):

    seconds = latency + wire / bandwidth

    wire = 2 (n - 1) / n · bytes   all_reduce
               (n - 1) / n · bytes   all_gather, reduce_scatter, all_to_all (bytes of the whole)
                             bytes   broadcast, reduce

(bus bandwidth as nccl-tests defines it, doc/PERFORMANCE.md). Few channels copy less than the links
carry; what a call adds is a matter of how it was timed (`TIMINGS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.model import coefficients
from wavecast.model.bounds import Work
from wavecast.model.intervals import bracketed
from wavecast.model.memory import overlapped
from wavecast.model.ops.base import Op
from wavecast.model.ops.sizes import parse_sizes, taken, whole
from wavecast.model.prediction import Prediction

FAMILY = "collectives"

FUNCTIONS: Final = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "all_to_all": 1.0,
    "broadcast": 0.0,
    "reduce": 0.0,
}
"""Name -> how often (n - 1) / n of the bytes leave a GPU; 0: all of them once."""

TIMINGS: Final = {
    "kernel": "the kernel alone, or launched by a graph",
    "launch": "launched one after another",
    "torch": "a call of torch.distributed between events, host in step",
}
OPTIONS: Final = ("function", "gpus", "channels", "concurrent", "timing")


@dataclass(frozen=True, slots=True)
class Collective(Op):
    """`function` of `bytes` on each of `gpus` GPUs of a node.

    `bytes` is the size nccl-tests prints: of the buffer that is reduced, of the whole of what is
    gathered or scattered. `channels` is the number of workgroups that copy (0: enough).
    `concurrent` is "gemm" while matrix products keep the memory and the compute units busy.
    """

    kind: ClassVar[str] = "collective"
    shape_help: ClassVar[str] = (
        "BYTES; function=all_reduce|all_gather|…, gpus, channels (workgroups that copy), "
        "concurrent=gemm, timing=kernel|launch|torch"
    )

    function: str
    bytes: int
    gpus: int
    channels: int = 0
    concurrent: str = ""
    timing: str = "kernel"

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise UnknownName("collective", self.function, FUNCTIONS)
        if self.timing not in TIMINGS:
            raise UnknownName("timing", self.timing, TIMINGS)
        if self.concurrent not in ("", "gemm"):
            raise UnknownName("work concurrent with a collective", self.concurrent, ("gemm",))
        if self.gpus < 2 or self.bytes < 1 or self.channels < 0:
            raise UsageError("a collective needs two GPUs or more and a byte or more")

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        given = taken(cls.kind, options, OPTIONS, required=("function", "gpus"))
        return cls(
            given["function"],
            parse_sizes(shape, 1)[0],
            parse_sizes(given["gpus"], 1)[0],
            whole(cls.kind, "channels", given.get("channels", "0")),
            given.get("concurrent", ""),
            given.get("timing", "kernel"),
        )

    @property
    def wire(self) -> float:
        """Bytes every GPU sends."""
        times = FUNCTIONS[self.function]
        return self.bytes * (times * (self.gpus - 1) / self.gpus if times else 1.0)

    def work(self) -> Work:
        return Work({}, float(self.bytes), float(self.bytes), "none", "derived from the size")

    def predict(self, device: Device) -> Prediction:
        known = coefficients.values(FAMILY, device)
        links = _links(device, self.gpus, known["link_fraction"])
        if self.concurrent:
            links *= known["concurrent_gemm"]
        rates = [links]
        if self.channels:
            rates.append(self.channels * known["channel_bandwidth"])
        rate = 1 / float(overlapped([1 / r for r in rates], known["channel_overlap"]))
        protocols = {
            "flags": known["flag_latency"] + self.wire / (rate * known["flag_fraction"]),
            "slices": known["slice_latency"] + self.wire / rate,
        }
        protocol = min(protocols, key=lambda name: protocols[name])
        seconds = protocols[protocol]
        bounds = {"links": self.wire / rate, "latency": seconds - self.wire / rate}
        if self.timing == "launch":
            bounds["launch"] = known["launch"]
            seconds += known["launch"]
        elif self.timing == "torch":
            bounds["host"] = known["host_call"]
            seconds = float(overlapped([seconds, known["host_call"]], 2.0))
        return bracketed(
            Prediction(
                device=device.id,
                seconds=seconds,
                low=seconds,
                high=seconds,
                limiter=max(bounds, key=lambda name: bounds[name]),
                fidelity="formula",
                bounds=bounds,
                assumed={"protocol": protocol, "channels": self.channels or "enough"},
                not_modelled=("arithmetic of reductions", "congestion", "more than one node"),
            ),
            self.subject,
            device,
        )

    def __str__(self) -> str:
        return f"{self.function} {self.bytes} B on {self.gpus} GPUs"


def _links(device: Device, gpus: int, fraction: float) -> float:
    """Byte/s a GPU sends to the others of its node. Raises MissingFact."""
    per_link = device.get("xgmi_per_link_dir")
    if isinstance(per_link, (int, float)):
        links = device.value("xgmi_links")
        assert isinstance(links, (int, float))
        if gpus > links + 1:
            raise MissingFact(f"{device.id} links {links + 1:g} GPUs at most, not {gpus}")
        return min(links, gpus - 1) * per_link * 1e9 * fraction
    both = device.get("nvlink_total_bidir")
    if not isinstance(both, (int, float)):
        raise MissingFact(f"the links between GPUs of {device.id} are not known")
    return both * 1e9 / 2 * fraction


__all__ = ["FUNCTIONS", "TIMINGS", "Collective"]
