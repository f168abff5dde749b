"""Matrix products as an op: sizes, formats, and the time of the best or a given kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Self

import numpy as np

from wavecast.arch import Device
from wavecast.errors import UnknownName, Unpredictable, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.gemm import formats, libraries
from wavecast.perfmodel.ops.gemm.tiles import GemmSizes, OperandFormats, demand, stored_bytes
from wavecast.perfmodel.ops.sizes import (
    TILE,
    WORKGROUP_WAVES,
    at_most,
    check_options,
    parse_sizes,
    truth,
    whole,
)
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.solve import Bounds, solve
from wavecast.perfmodel.timing import TIMINGS, WARM, measurement_time

FAMILY = "gemm"
_OPTIONS = (
    *("dtype", "weight", "out", "scaling", "layout", "library", "batch", "bias", "tile"),
    *("splits", "groups", "transposed", "units", "waves", "stages", "timing"),
)
_STAGES = 64
"""Steps of K on the way at once: those of 4 KiB that the largest LDS has room for."""
_STEP = 1 << 19
"""Bytes of both operands that a workgroup has of a step: all registers of a CU."""
_TRANSPOSED = ("TN", "NN", "NT", "TT")
_NOT_MODELLED = (
    "how a layout of A and B other than rows along K changes the order of loads",
    "operands left in caches by the kernel before",
    "channels of memory camped on by strides of a power of two",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm(Op):
    """`batch` products of `m` x `k` by `k` x `n`.

    `transposed` says which dimension of A and B is contiguous, as BLAS does: "TN" is K of both,
    "TT" K of A and N of B, what `torch.bmm` of two new tensors has. "" is TN for one product (a
    layer and its weights) and for 8-bit formats, TT for a batch of others.
    `weight` is the format of B where it is narrower than A's ("": the same), `out` that of the
    result ("": the usual one), `scaling` one of `formats.SCALINGS` ("": the usual one), `layout`
    one of `libraries.LAYOUTS`. `groups` are the rows of the groups of a grouped product, each with
    its own B; `m` is then their sum.

    `library` names the library ("": the best), `tile` rows, columns and bytes of K per step of the
    kernel, `splits` the parts of K (0: one), `waves` those of a workgroup (0: not known), `stages`
    the steps that asynchronous copies are ahead (0: as many as fit). `units` is how many compute
    units run it (0: all). `timing` is a key of `timing.TIMINGS`: how a measurement was taken.
    """

    kind: ClassVar[str] = "gemm"
    shape_help: ClassVar[str] = (
        "MxNxK or BxMxNxK; --dtype, weight, out, scaling=none|token|block|mx, "
        "layout=plain|preshuffled, transposed=TN|NN|NT|TT, library, bias, "
        "tile=256x256x128 (bytes of K), splits, waves, stages, groups=128,64,… (rows of the "
        "groups), units (compute units that run it), timing (kernel, launch, eager, …)"
    )

    m: int
    n: int
    k: int
    dtype: str
    batch: int = 1
    weight: str = ""
    out: str = ""
    scaling: str = ""
    layout: str = "plain"
    transposed: str = ""
    bias: bool = False
    library: str = ""
    tile: tuple[int, int, int] | None = None
    splits: int = 0
    groups: tuple[int, ...] = ()
    units: int = 0
    waves: int = 0
    stages: int = 0
    timing: str = "kernel"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"gemm: {name} is {getattr(self, name)}, not positive")
        formats.activation(self.dtype)
        if self.weight:
            formats.weight(self.weight, self.dtype)
        for name, value, choices in (
            ("output type", self.out, formats.OUTPUTS),
            ("scaling", self.scaling, formats.SCALINGS),
            ("layout", self.layout, libraries.LAYOUTS),
            ("layout of A and B", self.transposed, _TRANSPOSED),
        ):
            if value and value not in choices:
                raise UnknownName(name, value, choices)
        if self.timing not in TIMINGS:
            raise UnknownName("way of timing", self.timing, TIMINGS)
        if self.library:
            libraries.check(self.library)
        if self.tile and (not self.library or min(self.tile) < 1):
            raise UsageError("gemm: a tile has three positive sizes and belongs to a library")
        if min(self.units, self.waves, self.stages) < 0:
            raise UsageError("gemm: units, waves or stages is negative")
        rows, columns, depth = self.tile or (1, 1, 1)
        at_most(
            "gemm",
            {
                "waves": (self.waves, WORKGROUP_WAVES),
                "stages": (self.stages, _STAGES),
                "splits": (self.splits, self.k),
                "tile": (rows * columns, TILE),
                "bytes of a step of K": ((rows + columns) * depth, _STEP),
            },
        )
        if self.splits < 0 or (self.splits and not self.tile):
            raise UsageError("gemm: splits is a positive number and goes with a tile")
        if self.groups and (min(self.groups) < 0 or sum(self.groups) != self.m):
            raise UsageError(f"gemm: groups have {sum(self.groups)} rows, m is {self.m}")

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `4096x4096x4096` and options by name. Raises UsageError, UnknownName."""
        values = check_options(
            "gemm", options, _OPTIONS, ("dtype",), values={"dtype": formats.FORMATS}
        )
        sizes = parse_sizes(shape)
        if len(sizes) not in (3, 4):
            raise UsageError(f"gemm: no shape {shape!r}", hint=cls.shape_help)
        m, n, k = sizes[-3:]
        batch = sizes[0] if len(sizes) == 4 else whole("gemm", "batch", values.get("batch", "1"))
        tile = values.get("tile", "")
        groups = values.get("groups", "").split(",")
        return cls(
            m=m,
            n=n,
            k=k,
            batch=batch,
            dtype=formats.canonical(values["dtype"]),
            weight=formats.canonical(values.get("weight", "")),
            out=formats.canonical(values.get("out", "")),
            scaling=values.get("scaling", ""),
            layout=values.get("layout", "plain"),
            transposed=values.get("transposed", ""),
            bias=truth("gemm", "bias", values.get("bias", "false")),
            library=values.get("library", ""),
            tile=_tile(tile) if tile else None,
            splits=whole("gemm", "splits", values.get("splits", "0")),
            units=whole("gemm", "units", values.get("units", "0")),
            waves=whole("gemm", "waves", values.get("waves", "0")),
            stages=whole("gemm", "stages", values.get("stages", "0")),
            timing=values.get("timing", "kernel"),
            groups=tuple(whole("gemm", "groups", rows) for rows in groups if rows),
        )

    @property
    def sizes(self) -> GemmSizes:
        """What kernels see."""
        return GemmSizes(self.groups or (self.m,), self.n, self.k, self.batch)

    @property
    def operands(self) -> OperandFormats:
        """How elements are stored."""
        return operands(self)

    def work(self) -> Work:
        """Two FLOPs per product; operands read and the result written once."""
        stored = self.operands
        a = self.m * stored_bytes(stored.a)
        b = max(1, len(self.groups)) * self.n * stored_bytes(stored.b)
        return Work(
            {stored.a.multiplied: 2.0 * self.m * self.n * self.k * self.batch},
            (a + b) * self.k * self.batch + (4.0 * self.n if self.bias else 0.0),
            self.m * self.n * stored.output * self.batch,
            "formula",
            "formula",
        )

    def candidates(self, generation: str) -> libraries.Candidates:
        """The configurations to choose from. Raises Unpredictable where no library has a kernel."""
        if self.tile:
            return libraries.fixed_configuration(
                self.library, self.tile, self.splits or 1, generation
            )
        scaling = self.scaling or formats.default_scaling(self.dtype)
        configurations = libraries.candidates(
            self.dtype, scaling, self.layout, generation, self.library
        )
        if configurations is None:
            who = f"{self.library} has no" if self.library else "no known library has a"
            raise Unpredictable(f"{who} kernel for {self} on {generation}")
        return configurations

    def memory_floor(self, device: Device) -> MemoryFloor:
        """At `hbm_share` of the memory's bandwidth; warm operands that fit into the memory-side
        cache come from there."""
        chip, constants = machine(device)
        moved, share = self.work().bytes or 0.0, constants["hbm_share"]
        chip = _warm_chip(self, chip, constants, moved)
        return MemoryFloor(moved / chip.hbm_peak, moved / (share * chip.hbm_peak))

    def predict(self, device: Device) -> Prediction:
        """The time of the kernel that is given, or of the fastest its library, or any, has; no
        faster than products were measured on the chip.

        Raises MissingFact for a dtype or a chip without rates, Unpredictable where no library
        has a kernel.
        """
        chip, constants = machine(device, self.units)
        tiles = self.candidates(device.generation)
        times = bounds(self, tiles, chip, constants)
        best = times.best()
        parts = times.at(best)
        library = tiles.names[tiles.library[best]]
        seconds = float(times.seconds.flat[best])
        measured = device.sustained_flops(self.operands.a.multiplied)
        if measured is not None:
            seconds = max(seconds, 2.0 * self.m * self.n * self.k * self.batch / measured.number)
        if self.timing != "kernel":
            seconds = float(measurement_time(chip, self.timing, seconds - constants["call"]))
            parts["launch"] = float(measurement_time(chip, self.timing, 0.0))
        limiter = max((n for n in parts if n != "launch"), key=lambda name: parts[name])
        if parts["launch"] > seconds / 2:
            limiter = "launch"
        prediction = Prediction(
            device=device.id,
            seconds=seconds,
            low=seconds,
            high=seconds,
            limiter=limiter,
            fidelity="tile" if self.tile else "formula",
            bounds=parts,
            assumed={
                "library": library,
                "tile": (int(tiles.rows[best]), int(tiles.columns[best])),
                "bytes of K per step": int(tiles.depth[best]),
                "splits": int(tiles.splits[best]),
                "clock_mhz": round(times.clock_at(best) / 1e6),
            },
            not_modelled=_NOT_MODELLED,
        )
        return with_interval(prediction, self.subject, device)

    def __str__(self) -> str:
        sizes = f"{self.m}x{self.n}x{self.k}"
        if self.groups:
            sizes = f"{len(self.groups)} groups of {sizes}"
        batch = f"{self.batch}x" if self.batch > 1 else ""
        dtype = self.dtype + (f"/{self.weight}" if self.weight else "")
        tile = "x".join(map(str, self.tile)) if self.tile else ""
        units = f"{self.units} units" if self.units else ""
        waves = f"{self.waves} waves" if self.waves else ""
        layout = " ".join(filter(None, (self.layout.replace("plain", ""), self.transposed)))
        stages = f"{self.stages} stages" if self.stages else ""
        timing = self.timing if self.timing != "kernel" else ""
        extra = (self.scaling, layout, self.library, tile, waves, stages, units, timing)
        return " ".join(["gemm", batch + sizes, dtype, *filter(None, extra)])


def bounds(
    problem: Gemm,
    tiles: libraries.Candidates,
    chip: Chip,
    constants: Mapping[str, float],
    sizes: GemmSizes | None = None,
) -> Bounds:
    """The times of configurations; `sizes` stands for those of many problems of one kind, timed
    with cold operands. Warm ones come from the memory-side cache that they fit into."""
    asked = demand(sizes or problem.sizes, problem.operands, tiles, chip, constants)
    moved = float(np.max(asked.read + asked.written)) if problem.timing in WARM else 0.0
    return solve(asked, _warm_chip(problem, chip, constants, moved), constants)


def _warm_chip(problem: Gemm, chip: Chip, constants: Mapping[str, float], moved: float) -> Chip:
    """The chip, with the memory-side cache as its memory where warm operands fit into it."""
    if problem.timing not in WARM or moved > chip.mall_bytes:
        return chip
    cache = chip.mall_bandwidth or constants["mall_rate"] * chip.hbm_peak
    return replace(chip, hbm_peak=cache)


def operands(problem: Gemm) -> OperandFormats:
    """How the elements of a problem are stored."""
    a = formats.activation(problem.dtype)
    b = formats.weight(problem.weight, problem.dtype) if problem.weight else a
    scaling = problem.scaling or formats.default_scaling(problem.dtype)
    return OperandFormats(
        a=a,
        b=b,
        widened=problem.weight not in ("", problem.dtype),
        output=formats.OUTPUTS[problem.out or formats.default_output(problem.dtype)],
        block_scaled=scaling == "block",
        preshuffled=problem.layout == "preshuffled",
        waves=problem.waves,
        stages=problem.stages,
        transposed=problem.transposed or ("TN" if problem.batch == 1 or a.size == 1 else "TT"),
    )


@cache
def machine(device: Device, units: int = 0) -> tuple[Chip, Mapping[str, float]]:
    """A chip of which `units` compute units run (0: all), and its coefficients. Raises
    Unpredictable."""
    chip = Chip.of(device)
    if units > chip.units:
        raise Unpredictable(f"{device.id} has {chip.units} compute units, not {units}")
    if units:
        chip = replace(chip, units=units)
    return chip, coefficients.values(FAMILY, device)


def _tile(text: str) -> tuple[int, int, int]:
    sizes = parse_sizes(text, 3)
    return sizes[0], sizes[1], sizes[2]


__all__ = ["FAMILY", "Gemm", "bounds", "machine", "operands"]
