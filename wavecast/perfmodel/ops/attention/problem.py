"""Attention as an op: sizes, options, and the time of the library that is asked for or is best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, Self

from wavecast.arch import Device
from wavecast.errors import MissingFact, UnknownName, Unpredictable, UsageError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.distance import DistanceClass
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.attention import libraries
from wavecast.perfmodel.ops.attention.changes import changes
from wavecast.perfmodel.ops.attention.libraries import Library
from wavecast.perfmodel.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.perfmodel.ops.attention.sizes import BITS, AttentionSizes
from wavecast.perfmodel.ops.attention.streaming import streaming
from wavecast.perfmodel.ops.attention.tiled import ASSUMED, tiled_time
from wavecast.perfmodel.ops.attention.unfused import unfused_time
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.dtypes import OF_MATRICES
from wavecast.perfmodel.ops.sizes import at_most, check_options, parse_sizes, truth, whole
from wavecast.perfmodel.prediction import Prediction, Share, WhatIf

OPTIONS = (
    *("dtype", "kv_dtype", "causal", "direction", "latent", "library", "splits", "lengths"),
    "timing",
)
Candidate = Callable[..., TimeBreakdown]
"""An implementation with its sizes; called with the machine."""

TIMINGS = ("kernel", "eager")
"""The kernels alone, or the call of the library's Python function between two events."""

_DECODE_ROWS = 256
"""Most rows (queries, times query heads per head of keys) kernels with split keys are taken for."""
ASSUMED_WIDENING = 1.5
"""Of the logarithmic width of an interval, where tiles and waves of a kernel are assumed and the
residuals are of targets that were measured (guessed)."""
_LONG, _ROWS = 2048, 256
"""Of a sequence that has many tiles; rows of the largest tiles."""
_NOT_MODELLED = (
    "dropout, bias and windows",
    "keys and values fetched again because an L2 does not hold them",
    "order of sequences of different lengths",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Op):
    """`batch` sequences of `seq_q` queries and `seq_k` keys, or of `lengths` keys each.

    `kv_dtype` is that of keys and values ("": as `dtype`), `library` one of `libraries.names()`
    ("": what PyTorch's `sdpa` runs on the chip, and for few queries over a long cache what vLLM
    runs), `splits` in how many parts the keys of one sequence are decoded (0: the best number).
    With `lengths`, `batch` is their number; sequences of a prefill (`seq_q` = 0) have as many
    queries as keys. `timing` is one of `TIMINGS`. The others are those of `AttentionSizes`.
    """

    kind: ClassVar[str] = "attention"
    shape_help: ClassVar[str] = (
        "BxHxSxD, BxHxKVxSxD, BxHxKVxQxKxD or BxHxKVxQxKxDxDV (batch, query heads, heads of keys, "
        "queries, keys, elements of a head, of a value); --dtype, causal, direction=backward, "
        "kv_dtype, library, splits, latent (keys hold the values), lengths=512,1024,…, timing=eager"
    )

    batch: int
    heads: int
    kv_heads: int
    seq_q: int
    seq_k: int
    head: int
    head_v: int
    dtype: str
    kv_dtype: str = ""
    causal: bool = False
    backward: bool = False
    latent: bool = False
    library: str = ""
    splits: int = 0
    lengths: tuple[int, ...] = ()
    timing: str = "kernel"

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "kv_heads", "head", "head_v"):
            if getattr(self, name) < 1:
                raise UsageError(f"attention: {name} is {getattr(self, name)}, not positive")
        if not self.lengths and (self.seq_q < 1 or self.seq_k < 1):
            raise UsageError("attention: sequences have no queries or no keys")
        if self.lengths and len(self.lengths) != self.batch:
            raise UsageError(f"attention: {len(self.lengths)} lengths for a batch of {self.batch}")
        if any(length < 1 for length in self.lengths):
            raise UsageError("attention: a length is not positive")
        if self.heads % self.kv_heads:
            raise UsageError(
                f"attention: {self.heads} heads do not share {self.kv_heads} heads of keys evenly"
            )
        for dtype in filter(None, (self.dtype, self.kv_dtype)):
            if dtype not in BITS:
                raise UsageError(f"attention: unknown dtype {dtype}; known: {', '.join(BITS)}")
        if self.splits < 0:
            raise UsageError("attention: splits is negative")
        at_most(self.kind, {"splits": (self.splits, max(self.seq_k, *self.lengths, 1))})
        if self.latent and (self.backward or self.kv_heads != 1):
            raise UsageError("attention: latent keys have one head and no backward pass")
        if self.library:
            libraries.resolve_libraries(self.library, "")
        if self.timing not in TIMINGS:
            raise UnknownName("way of timing", self.timing, TIMINGS)

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `16x64x8x4096x4096x128` and options by name. Raises UsageError."""
        numbers = _numbers(shape)
        options = check_options(
            cls.kind, options, OPTIONS, ("dtype",), values={"dtype": OF_MATRICES}
        )
        direction = options.get("direction", "forward")
        if direction not in ("forward", "backward"):
            raise UsageError(f"attention: direction is forward or backward, not {direction}")
        lengths = tuple(
            whole(cls.kind, "lengths", n) for n in options.get("lengths", "").split(",") if n
        )
        if lengths:
            numbers["batch"] = len(lengths)
            numbers["seq_q"] = 0 if numbers["seq_q"] == numbers["seq_k"] else numbers["seq_q"]
        return cls(
            **numbers,
            dtype=options["dtype"],
            kv_dtype=options.get("kv_dtype", ""),
            causal=truth(cls.kind, "causal", options.get("causal", "false")),
            backward=direction == "backward",
            latent=truth(cls.kind, "latent", options.get("latent", "false")),
            library=options.get("library", ""),
            splits=whole(cls.kind, "splits", options.get("splits", "0")),
            lengths=lengths,
            timing=options.get("timing", "kernel"),
        )

    @property
    def sizes(self) -> AttentionSizes:
        """What kernels see."""
        lengths = ((self.seq_q, self.seq_k, self.batch),)
        if self.lengths:
            counts = {n: self.lengths.count(n) for n in sorted(set(self.lengths))}
            lengths = tuple((self.seq_q or n, n, count) for n, count in counts.items())
        return AttentionSizes(
            lengths,
            self.heads,
            self.kv_heads,
            self.head,
            self.head_v,
            self.dtype,
            self.kv_dtype or self.dtype,
            self.causal,
            self.latent,
        )

    def work(self) -> Work:
        """Products over the scores the mask leaves; inputs read and outputs written once."""
        sizes = self.sizes
        per_score = 2.0 * (sizes.head + sizes.head_v)
        flops = sizes.scores * per_score * (2.5 if self.backward else 1.0)
        read = sizes.query_bytes + sizes.kv_bytes
        written = sizes.output_bytes
        if self.backward:
            read, written = read + 2 * sizes.output_bytes, sizes.query_bytes + sizes.kv_bytes
        return Work({self.dtype: flops}, read, written, "formula", "formula")

    def predict(self, device: Device) -> Prediction:
        """The time of `library`, or of what PyTorch or vLLM run on the device.

        Raises MissingFact for a chip without rates of a dtype or without a library that has such a
        kernel, Unpredictable for a given library that has none.
        """
        best, run = self._best(_machine(device))
        limiter = max(best.parts, key=lambda name: best.parts[name])
        choices = ("", libraries.BEST, *libraries.choices())
        is_explicit = bool(self.library not in choices or self.splits)
        prediction = Prediction(
            device=device.id,
            seconds=best.seconds,
            low=best.seconds,
            high=best.seconds,
            limiter=limiter,
            fidelity="tile" if is_explicit else "formula",
            bounds=best.parts,
            assumed=best.assumed,
            lines=tuple(Share("top-down", name, part) for name, part in best.shares.items()),
            what_if=_what_if(device, best, run),
            not_modelled=_NOT_MODELLED,
            notes=_notes(device, best),
        )
        prediction = with_interval(prediction, self.subject, device)
        far = prediction.basis and prediction.basis.distance == DistanceClass.TARGET.value
        if far or not _is_assumed(best):
            return prediction
        return with_interval(prediction, self.subject, device, widen=ASSUMED_WIDENING)

    def candidates(self, library: Library, generation: str) -> Iterator[Candidate]:
        """Every kernel of a library that applies to a generation of chips."""
        sizes = self.sizes
        if not library.runs_on(generation):
            return
        if not library.fused:
            yield partial(
                unfused_time,
                sizes,
                library=library.name,
                backward=self.backward,
                eager=self.timing == "eager",
                widened=library.widened,
            )
            return
        kernel = library.tile(sizes, generation, backward=self.backward)
        if kernel and self.library == libraries.MASKED:
            kernel = replace(kernel, mask_tensor=True)
        if kernel and not self.splits:
            yield partial(
                tiled_time,
                sizes,
                kernel=kernel,
                library=library,
                backward=self.backward,
                eager=self.timing == "eager",
            )
        decodes = ("latent" if sizes.latent else "dense") in library.split_keys
        if decodes and not self.backward and (sizes.latent or self._rows <= _DECODE_ROWS):
            yield partial(
                streaming,
                sizes,
                library=library.name,
                splits=self.splits,
            )

    def seconds(self, machine: AttentionRates) -> float:
        """The time alone. Raises as `predict`."""
        return self._best(machine)[0].seconds

    @property
    def _rows(self) -> int:
        """Rows of one head of keys: queries, times query heads that share it."""
        return self.sizes.group * self.sizes.longest[0]

    @property
    def _library_name(self) -> str:
        """The name of the library, or of the choice that is the default for such sizes."""
        decodes = self.sizes.latent or self._rows <= _DECODE_ROWS < self.sizes.longest[1]
        default = libraries.SERVING if decodes and not self.backward else libraries.TRAINING
        return self.library or default

    def _best(self, machine: AttentionRates) -> tuple[TimeBreakdown, Candidate]:
        """The fastest kernel. Under a causal mask no kernel takes longer than without: it computes
        a part of the scores, and comparing positions hides where that would be more."""
        best = self._fastest(machine)
        if self.causal and not self._leaves_half(machine.chip.units):
            full = replace(self, causal=False)._fastest(machine)
            best = min(best, full, key=lambda pair: pair[0].seconds)
        return best

    def _leaves_half(self, units: int) -> bool:
        """Whether the mask empties about half of the tiles of every CU: many long sequences."""
        queries, keys = self.sizes.longest
        tiles = self.sizes.queries * self.heads / _ROWS
        return queries == keys >= _LONG and tiles >= 2 * units

    def _fastest(self, machine: AttentionRates) -> tuple[TimeBreakdown, Candidate]:
        device, name = machine.chip.device, self._library_name
        timings: list[tuple[TimeBreakdown, Candidate]] = []
        for library in libraries.resolve_libraries(name, device.generation):
            runs = self.candidates(library, device.generation)
            timings += [(run(machine=machine), run) for run in runs]
            if timings and name != libraries.BEST:
                break
        if not timings and self.library:
            raise Unpredictable(
                f"{self.library} has no kernel for {self} on {device.id}; "
                f"libraries with one: {', '.join(self._with_kernels(device)) or 'none'}"
            )
        if not timings:
            raise MissingFact(f"{name} runs no known kernel for {self} on {device.id}")
        return min(timings, key=lambda pair: pair[0].seconds)

    def _with_kernels(self, device: Device) -> list[str]:
        """Names of the libraries that have a kernel for these sizes on a device."""
        return [
            library.name
            for library in libraries.libraries().values()
            if any(self.candidates(library, device.generation))
        ]

    def __str__(self) -> str:
        direction = " backward" if self.backward else ""
        mask = " causal" if self.causal else ""
        heads = f"{self.heads}/{self.kv_heads}x{self.head}/{self.head_v}"
        keys = f"{self.seq_q or 'n'}x{self.seq_k if not self.lengths else 'n'}"
        dtype = self.dtype + (f"/{self.kv_dtype}" if self.kv_dtype else "")
        extra = "".join(
            f" {name}"
            for name in (
                self.library,
                f"splits={self.splits}" if self.splits else "",
                self.timing if self.timing != "kernel" else "",
            )
            if name
        )
        return f"attention{direction}{mask} {self.batch}x{heads} {keys} {dtype}{extra}"


def _what_if(device: Device, best: TimeBreakdown, run: Candidate) -> tuple[WhatIf, ...]:
    """Changes of the machine that make the chosen kernel at least 1 % faster."""
    times = ((words, run(machine=changed).seconds) for words, changed in _what_if_rates(device))
    return tuple(
        WhatIf(words, seconds, 1 - seconds / best.seconds)
        for words, seconds in times
        if seconds < 0.99 * best.seconds
    )


def _is_assumed(best: TimeBreakdown) -> bool:
    """Whether nobody published tiles and waves of a kernel."""
    return ASSUMED in best.assumed


def _notes(device: Device, best: TimeBreakdown) -> tuple[str, ...]:
    name, schedule = str(best.assumed["library"]), best.assumed.get("schedule")
    library, notes = libraries.libraries()[name], []
    kernel = best.assumed["kernel"]
    if schedule and kernel not in {tile.kernel for tile in (*library.forward, *library.backward)}:
        notes.append(f"{name} runs the kernel of {kernel} on {device.id}")
    if device.generation not in library.measured:
        measured = ", ".join(library.measured)
        where = f"measured on {measured} only" if measured else "not measured"
        costs = f": costs of the {schedule} schedule" if schedule else ""
        notes.append(f"{name} was {where}{costs}")
    if _is_assumed(best):
        notes.append(f"{ASSUMED} of {kernel} on {device.id} are assumed")
    return tuple(notes)


@cache
def _what_if_rates(device: Device) -> tuple[tuple[str, AttentionRates], ...]:
    return tuple(changes(_machine(device)))


@cache
def _machine(device: Device) -> AttentionRates:
    return AttentionRates.of(device)


def _numbers(shape: str) -> dict[str, int]:
    sizes = parse_sizes(shape)
    match sizes:
        case (batch, heads, seq, head):
            numbers = (batch, heads, heads, seq, seq, head, head)
        case (batch, heads, kv, seq, head):
            numbers = (batch, heads, kv, seq, seq, head, head)
        case (batch, heads, kv, queries, keys, head):
            numbers = (batch, heads, kv, queries, keys, head, head)
        case (_, _, _, _, _, _, _):
            numbers = sizes
        case _:
            raise UsageError(f"attention: no shape {shape!r}", hint=Attention.shape_help)
    names = ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head", "head_v")
    return dict(zip(names, numbers, strict=True))


__all__ = ["Attention"]
