"""Attention over a sequence that GPUs divide: keys and values around a ring, or gathered first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.errors import UnknownName, Unpredictable, UsageError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import of_device
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.attention import Attention
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.collectives.algorithms import Known
from wavecast.perfmodel.ops.collectives.libraries import OWN_BLOCKS, OWN_HALF
from wavecast.perfmodel.ops.collectives.own_products import element_size
from wavecast.perfmodel.ops.collectives.problem import known_of, one_node
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.sizes import check_options, parse_sizes, truth
from wavecast.perfmodel.prediction import Prediction

ALGORITHMS: Final = ("ring", "gather")
_DTYPES: Final = ("bf16", "fp16", "fp32")
_OPTIONS: Final = ("gpus", "dtype", "causal", "algorithm", "library")
_MERGE: Final = 3
"""Kernels of PyTorch that add two partial results, each over the whole of it."""
_NOT_MODELLED: Final = (
    "compute units that copies take from attention",
    "ranks of a causal mask that wait for the last",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAttention(Op):
    """`batch` sequences of which each of `gpus` GPUs has `tokens`, of queries, keys and values.

    `algorithm` is "ring" (`ring_attention` of `wavecast.ops.distributed`: a step per GPU, the next
    keys and values come meanwhile), "gather" (`all_gather_attention`), or "" for the faster. The
    time is that of the last rank, which with `causal` sees all tokens. `library` is that of
    attention. Without a `group` the GPUs are of one node of the device.
    """

    kind: ClassVar[str] = "context_attention"
    shape_help: ClassVar[str] = (
        "BxHxKVxSxD (batch, query heads, heads of keys, tokens of a GPU, elements of a head); "
        "gpus, --dtype bf16|fp16|fp32, causal, algorithm=ring|gather (the faster), library"
    )

    batch: int
    heads: int
    kv_heads: int
    tokens: int
    head: int
    gpus: int
    dtype: str = "bf16"
    causal: bool = False
    algorithm: str = ""
    library: str = "triton"
    group: GpuGroup | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise UnknownName("dtype of attention over ranks", self.dtype, _DTYPES)
        if self.algorithm and self.algorithm not in ALGORITHMS:
            raise UnknownName("algorithm of attention over ranks", self.algorithm, ALGORITHMS)
        if self.gpus < 2:
            raise UsageError("context_attention: two GPUs or more")
        self._attention(self.tokens)  # raises for sizes that attention does not have

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `1x64x8x4096x128` and options by name. Raises UsageError, UnknownName."""
        values = check_options(cls.kind, options, _OPTIONS, required=("gpus",), values={})
        batch, heads, kv_heads, tokens, head = parse_sizes(shape, 5)
        return cls(
            batch=batch,
            heads=heads,
            kv_heads=kv_heads,
            tokens=tokens,
            head=head,
            gpus=parse_sizes(values["gpus"], 1)[0],
            dtype=values.get("dtype", "bf16"),
            causal=truth(cls.kind, "causal", values.get("causal", "false")),
            algorithm=values.get("algorithm", ""),
            library=values.get("library", "triton"),
        )

    def work(self) -> Work:
        return self._attention(self.gpus * self.tokens, causal=self.causal).work()

    def predict(self, device: Device) -> Prediction:
        """The time of `algorithm`, or of the faster. Raises MissingFact where links or rates are
        not known, Unpredictable over nodes."""
        group = self.group or one_node(device, self.gpus)
        if group.nodes > 1:
            raise Unpredictable(f"{self}: ranks share the memory of one node")
        names = (self.algorithm,) if self.algorithm else ALGORITHMS
        choices = [getattr(self, f"_{name}")(device, group, known_of(device)) for name in names]
        name, seconds, bounds = min(choices, key=lambda choice: choice[1])
        prediction = Prediction(
            device=device.id,
            seconds=seconds,
            low=seconds,
            high=seconds,
            limiter=max(bounds, key=lambda bound: bounds[bound]),
            fidelity="formula",
            bounds=bounds,
            assumed={"algorithm": name, "library": self.library},
            not_modelled=_NOT_MODELLED,
            notes=("the kernels of wavecast.ops.distributed were not measured",),
        )
        return with_interval(prediction, self.subject, device)

    def _ring(
        self, device: Device, group: GpuGroup, constants: Known
    ) -> tuple[str, float, dict[str, float]]:
        """Every step takes as long as its attention or what arrives meanwhile; partial results are
        added after each but the first."""
        assert group.fabric is not None
        first = self._attention(self.tokens, causal=self.causal).predict(device).seconds
        others = self._attention(self.tokens).predict(device).seconds
        arrival = self._reads(1, group.fabric.rate(2), device, constants)
        elements = (self.batch * self.tokens * self.heads, self.head)
        merge = _MERGE * Elementwise.of("add", elements, "fp32").predict(device).seconds
        steps = self.gpus - 1
        seconds = max(first, arrival) + (steps - 1) * max(others, arrival) + others + steps * merge
        bounds = {
            "attention": first + steps * others,
            "links": steps * arrival,
            "sums": steps * merge,
        }
        return "ring", seconds, bounds

    def _gather(
        self, device: Device, group: GpuGroup, constants: Known
    ) -> tuple[str, float, dict[str, float]]:
        """Keys and values of all, their copies in the order of attention, and attention."""
        assert group.fabric is not None
        whole = self._attention(self.gpus * self.tokens, causal=self.causal).predict(device).seconds
        arrival = self._reads(self.gpus - 1, group.fabric.rate(self.gpus), device, constants)
        rows = 2 * self.gpus * self.batch * self.tokens * self.kv_heads
        copies = Elementwise.of("copy", (rows, self.head), self.dtype).predict(device).seconds
        bounds = {"attention": whole, "links": arrival, "copies": copies}
        return "gather", sum(bounds.values()), bounds

    def _reads(self, peers: int, rate: float, device: Device, constants: Known) -> float:
        """Seconds to copy own keys and values to the buffer of the rank and read those of `peers`
        over links of `rate`."""
        size = 2 * self.batch * self.tokens * self.kv_heads * self.head * element_size(self.dtype)
        blocks = OWN_BLOCKS * constants["read_block_bandwidth"]
        share = constants["read_fraction"] * constants["concurrent_gemm"]
        transfer = peers * size / min(rate * share, blocks)
        launches = math.ceil(size / OWN_HALF)
        return launches * constants["read_start"] + 2 * size / of_device(device).hbm + transfer

    def _attention(self, keys: int, *, causal: bool = False) -> Attention:
        return Attention(
            batch=self.batch,
            heads=self.heads,
            kv_heads=self.kv_heads,
            seq_q=self.tokens,
            seq_k=keys,
            head=self.head,
            head_v=self.head,
            dtype=self.dtype,
            causal=causal,
            library=self.library,
        )

    def __str__(self) -> str:
        shape = "x".join(map(str, (self.batch, self.heads, self.kv_heads, self.tokens, self.head)))
        flags = " ".join(filter(None, ("causal" if self.causal else "", self.algorithm)))
        return f"attention {shape} {self.dtype} on {self.gpus} GPUs {flags}".rstrip()


__all__ = ["ALGORITHMS", "ContextAttention"]
