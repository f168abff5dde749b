"""Fused mixture of experts as an op: parsing, useful work, prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

from wavecast.arch import Device, pattern_table
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.dtypes import OF_MATRICES
from wavecast.perfmodel.ops.gemm.formats import canonical
from wavecast.perfmodel.ops.moe.formats import MoeFormats
from wavecast.perfmodel.ops.moe.routing import active_experts
from wavecast.perfmodel.ops.moe.stages import FAMILY, WAVES, MoeKernel, MoeModel
from wavecast.perfmodel.ops.moe.strategies import BLOCKS, PARTS, TILES, TiledProblems
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

NOT_MODELLED = (
    "routing, sorting of rows and quantisation of the layer's input",
    "experts chosen more often than others",
)
_BIG = 1 << 40
_RESIDENT = 64
"""Workgroups of a CU at once: waves that the largest has room for (`max_waves_per_simd`)."""


@dataclass(frozen=True, slots=True)
class FusedMoe(Op):
    """`tokens` rows of `model` elements, each sent to `topk` of `experts` experts of `inter` units.

    `dtype`, `weights` and `scaling` are names of `formats`; `gated` experts have a gate and an up
    projection. `block_m` and `tile_n` give the tile where it is known (0: the best there is).
    Of a single kernel may be stated, too: `assembly`, `waves` of a workgroup, `resident`
    workgroups of a CU (0: not known), `splits` of K, `by_element` (`stages.MoeKernel`).
    """

    kind: ClassVar[str] = "moe"
    shape_help: ClassVar[str] = (
        "TOKENSxMODELxINTERxEXPERTSxTOPK; dtype (bf16, fp8, mxfp4 …), weights (int4, mxfp4 …), "
        "scaling (tensor, token, block, mx), gated (true), part (layer, gate-up, down, one-kernel),"
        " block_m, tile_n; of a kernel: assembly (false), waves (4), resident, splits (1), "
        "by_element (false)"
    )

    tokens: int
    model: int
    inter: int
    experts: int
    topk: int
    dtype: str = "bf16"
    weights: str = ""
    scaling: str = ""
    gated: bool = True
    part: str = "layer"
    block_m: int = 0
    tile_n: int = 0
    assembly: bool = False
    waves: int = WAVES
    resident: int = 0
    splits: int = 1
    by_element: bool = False

    def __post_init__(self) -> None:
        for name in ("tokens", "model", "inter", "experts", "topk"):
            if not 1 <= getattr(self, name) < _BIG:
                raise UsageError(f"moe: {name} is {getattr(self, name)}, not 1 to {_BIG - 1}")
        if self.topk > self.experts:
            raise UsageError(f"moe: {self.topk} of {self.experts} experts cannot be chosen")
        if min(self.block_m, self.tile_n) < 0:
            raise UsageError("moe: tiles are positive")
        if min(self.waves, self.splits) < 1 or self.resident < 0:
            raise UsageError("moe: waves, resident and splits are positive")
        at_most(
            "moe",
            {
                "waves": (self.waves, WORKGROUP_WAVES),
                "resident": (self.resident, _RESIDENT),
                "splits": (self.splits, max(self.model, self.inter)),
                "block_m x tile_n": (
                    (self.block_m or min(BLOCKS)) * (self.tile_n or min(TILES)),
                    TILE,
                ),
            },
        )
        if self.part not in PARTS:
            raise UnknownName("part of a mixture of experts", self.part, PARTS)
        _ = self.form

    @property
    def op_class(self) -> str:
        """Layers and single kernels have separate errors."""
        return self.kind if self.part == "layer" else "moe kernel"

    @property
    def form(self) -> MoeFormats:
        """The number formats. Raises UnknownName or UsageError for pairs that do not exist."""
        return _form(self.dtype, self.weights or self.dtype, self.scaling)

    @property
    def kernel(self) -> MoeKernel:
        """What is stated of a single kernel in addition to its tile."""
        return MoeKernel(self.assembly, self.waves, self.resident, self.splits, self.by_element)

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `TOKENSxMODELxINTERxEXPERTSxTOPK` and options by field name. Raises UsageError."""
        check_options(cls.kind, options, tuple(_OPTIONS), ("dtype",), values={"dtype": OF_MATRICES})
        values: dict[str, Any] = {
            name: _OPTIONS[name](name, text) for name, text in options.items()
        }
        sizes = parse_sizes(shape)
        if len(sizes) != 5:
            raise UsageError(f"moe: no shape {shape!r}", hint=cls.shape_help)
        tokens, model, inter, experts, topk = sizes
        return cls(tokens, model, inter, experts, topk, **values)

    def work(self) -> Work:
        """FLOPs of all chosen experts; weights of the experts expected to be chosen, once."""
        form, once = self.form, self.model * self.inter
        matrices = {"gate-up": 1 + self.gated, "down": 1}.get(self.part, 2 + self.gated)
        rows = self.tokens * self.topk
        active = active_experts(self.tokens, self.experts, self.topk)
        first, second = self.tokens * self.model, rows * self.inter
        read = first if self.part != "down" else second
        written = second if self.part == "gate-up" else first
        return Work(
            flops={form.compute: 2.0 * rows * once * matrices},
            bytes_read=active * once * matrices * form.weight_width + read * form.activation_width,
            bytes_written=2.0 * written,
            flops_source="derived from the sizes",
            bytes_source="derived from the sizes, with equally likely experts",
        )

    def memory_floor(self, device: Device) -> MemoryFloor:
        """Weights are only read, at `stream_fraction` of the memory's bandwidth."""
        chip, moved = Chip.of(device), self.work().bytes or 0.0
        share = coefficients.coefficient(FAMILY, "stream_fraction").of(device)
        return MemoryFloor(moved / chip.hbm_peak, moved / (share * chip.hbm_peak))

    def predict(self, device: Device) -> Prediction:
        """The best time over tiles, or the time of the tile that is given."""
        batch = TiledProblems.of(self.part, [self.sizes], self.block_m, self.tile_n)
        best = batch.best(_machine(device, self.form, self.part, self.kernel))
        bounds = {name: part for name, part in best.parts.items() if part > 0}
        notes = []
        if self.form.compute not in _measured_dtypes(device.generation):
            notes.append(f"{self.form} was not measured on {device.generation}")
        prediction = Prediction(
            device=device.id,
            seconds=best.seconds,
            low=best.seconds,
            high=best.seconds,
            limiter=max(bounds, key=lambda name: bounds[name]),
            fidelity="tile" if self.block_m or self.tile_n else "formula",
            bounds=bounds,
            assumed=best.assumed,
            not_modelled=NOT_MODELLED,
            notes=tuple(notes),
        )
        return with_interval(prediction, self.subject, device, widen=1.5 if notes else 1.0)

    def __str__(self) -> str:
        sizes = f"{self.tokens}x{self.model}x{self.inter} experts {self.experts} top {self.topk}"
        tile = f" tile {self.block_m or '*'}x{self.tile_n or '*'}"
        return (
            f"moe {sizes} {self.form}"
            + ("" if self.part == "layer" else f" {self.part}")
            + (tile if self.block_m or self.tile_n else "")
        )

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int]:
        """Tokens, model, inter, experts, topk, and projections of the first stage."""
        return self.tokens, self.model, self.inter, self.experts, self.topk, 1 + self.gated


@cache
def _measured_dtypes(generation: str) -> tuple[str, ...]:
    """Dtypes of matrix products that were measured on a generation."""
    rows = pattern_table.read(Path(__file__).with_name("measured.toml"), ["dtypes"])
    return pattern_table.value(rows["dtypes"], generation)


@cache
def _machine(device: Device, form: MoeFormats, part: str, kernel: MoeKernel) -> MoeModel:
    constants = coefficients.values(FAMILY, device)
    return MoeModel.of(Chip.of(device), form, constants, part, kernel)


@cache
def _form(dtype: str, weights: str, scaling: str) -> MoeFormats:
    """Formats by any of their names; fp8 with scales of 32 elements is mxfp8."""
    dtype, weights = canonical(dtype), canonical(weights)
    if not scaling:
        micro = "mx" in (dtype[:2], weights[:2]) or weights in ("nvfp4", "int4")
        scaling = "mx" if micro else "token" if dtype in ("fp8", "int8") else "none"
    if scaling == "mx" and dtype == "fp8":
        dtype, weights = "mxfp8", "mxfp8" if weights == "fp8" else weights
    return MoeFormats(dtype, weights, scaling)


def _text(name: str, text: str) -> str:
    del name
    return text.lower()


_READ = {"str": _text, "int": partial(whole, "moe"), "bool": partial(truth, "moe")}
_OPTIONS = {
    field.name: _READ[str(field.type)]
    for field in fields(FusedMoe)
    if field.name not in ("tokens", "model", "inter", "experts", "topk")
}

__all__ = ["FusedMoe"]
