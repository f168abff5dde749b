"""The time of the kernels of a fused mixture-of-experts layer, over problems and tiles.

Rows (token, expert) are sorted by expert and cut into blocks of `block_m`. One workgroup multiplies
a block by `tile_n` columns of its expert's weights, over the whole depth K. Its launch needs

    memory   every active expert's weights once, activations and results once
    fabric   weights that dies fetch from the memory-side cache: a workgroup's columns once for all
             that run on its die at the same time and multiply by them
    chain    the larger of: what one CU streams from memory for one workgroup after the other
             (`resident` at once share it); what it takes in from its L1, and the fixed part of each
             of its workgroups
    matrix   products, padded blocks included, at the clock the chip sustains
    vector   scaling of products by block scales, widening of weights

which overlap: launch + (max(memory, fabric)^p + chain^p + (matrix + vector)^p)^(1/p). Adding
the rows of the result to their tokens comes on top, whether by atomics or by a second kernel: the
measurements do not tell the two apart.

Kernels of a known tile whose matrix instructions take block scales keep one step of K ahead: each
workgroup waits `step` for every 128 bytes of K, hidden by as many others as the CU has room for,
and at the end of the second stage it passes its whole tile, padding included, through the LDS
(`tile_end`). Single kernels have own rates of memory (`kernel_stream`,
`kernel_unit_stream`), for a layer is the best of a library's. AITER's assembly kernels take scales
by row; two small launches before them repeat those of a tensor. Arrays are
[problem, block_m, tile_n]; times are seconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import mall_bandwidth
from wavecast.perfmodel.ops.moe.formats import MoeFormats
from wavecast.perfmodel.ops.moe.routing import active_experts, expected_blocks
from wavecast.perfmodel.power import sustained_clock

Array = np.ndarray[Any, Any]
Known = Mapping[str, float]

FAMILY = "moe"
RESULT = 2.0
"""Bytes of one element of the result and of what the first stage leaves (bf16)."""
STEP = 128.0
"""Bytes of K of a row that a workgroup multiplies before it waits for the next."""
WAVES = 4
"""Waves of a workgroup, where nothing else is stated."""
COLUMNS = 128.0
"""Columns of weights whose next step is in the registers of a CU: they pass the LDS by."""
PARTIAL = 4.0
"""Bytes of a partial sum."""
SCALE_BLOCK = 128
"""Elements of K that share a scale in block-scaled fp8."""


@dataclass(frozen=True, slots=True)
class MoeSizes:
    """Problems of one format on one chip: arrays of shape [n, 1, 1], `blocks` [n, heights, 1]."""

    tokens: Array
    rows: Array
    model: Array
    inter: Array
    gates: Array
    active: Array
    blocks: Array
    heights: Array
    widths: Array

    @staticmethod
    def of(
        problems: Sequence[tuple[int, int, int, int, int, int]],
        heights: tuple[int, ...],
        widths: tuple[int, ...],
    ) -> MoeSizes:
        """From (tokens, model, inter, experts, topk, gates); gates is 2 for a gated activation."""
        columns = np.array(problems, float).T[:, :, None, None]
        tokens, model, inter, _, topk, gates = columns
        blocks = [expected_blocks(p[0], p[3], p[4], heights) for p in problems]
        active = [active_experts(p[0], p[3], p[4]) for p in problems]
        return MoeSizes(
            tokens=tokens,
            rows=tokens * topk,
            model=model,
            inter=inter,
            gates=gates,
            active=np.array(active)[:, None, None],
            blocks=np.array(blocks)[:, :, None],
            heights=np.array(heights, float)[None, :, None],
            widths=np.array(widths, float)[None, None, :],
        )


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds of the kernels of a stage: in all, and what each resource needs."""

    seconds: Array
    parts: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class MoeKernel:
    """What is stated of a kernel in addition to its tile.

    `assembly`: it is AITER's in assembly, not compiled. `waves` of a workgroup. `resident`: its
    workgroups on a CU at once, 0 where that is not stated. `splits`: parts of K that workgroups
    multiply apart. `by_element`: results are added to their tokens element by element.
    """

    assembly: bool = False
    waves: int = WAVES
    resident: int = 0
    splits: int = 1
    by_element: bool = False


COMPILED = MoeKernel()
"""A compiled kernel of which no more is stated."""


@dataclass(frozen=True)
class MoeModel:
    """A chip, the formats, the coefficients of family `moe` for it, and what is stated of the
    kernels."""

    chip: Chip
    form: MoeFormats
    known: Known
    kernel: MoeKernel = COMPILED

    @staticmethod
    def of(
        chip: Chip,
        form: MoeFormats,
        constants: Known,
        part: str,
        kernel: MoeKernel = COMPILED,
    ) -> MoeModel:
        """The model of a part, with the coefficients of the family. Layers take the best kernels,
        which neither wait nor show the end of a tile."""
        if part == "layer":
            constants = {**constants, "step": 0.0, "tile_end": 0.0}
        else:
            stream = constants["stream_fraction"] * constants["kernel_stream"]
            constants = {
                **constants,
                "stream_fraction": stream,
                "unit_stream": constants["kernel_unit_stream"],
            }
        return MoeModel(chip, form, constants, kernel)

    def gate_up(self, sizes: MoeSizes) -> StageTime:
        """Stage 1: rows [block_m, model] by [model, gates · inter], and the activation."""
        columns = sizes.gates * sizes.inter
        bytes_moved = (
            self._weights(sizes, columns * sizes.model)
            + sizes.tokens * sizes.model * self.form.activation_width
            + sizes.rows * sizes.inter * RESULT
        )
        if self.kernel.splits > 1:
            bytes_moved = bytes_moved + 2 * PARTIAL * self.kernel.splits * sizes.rows * columns
        parts = {
            "memory": bytes_moved / self._stream,
            **self._products(sizes, columns, sizes.model),
        }
        launch = np.full_like(bytes_moved, self.known["launch"])
        if self.form.scaling == "block":
            width = RESULT + self.form.activation_width
            launch = 2 * launch + sizes.rows * sizes.inter * width / self._stream
        if self.form.scaling == "tensor" and self.kernel.assembly:
            launch = launch + 2 * self.known["launch_repeat"]
        return _launch(parts, {"launch": launch}, self.known["overlap"])

    def down(self, sizes: MoeSizes) -> StageTime:
        """Stage 2: rows [block_m, inter] by [inter, model], summed over the experts of a token."""
        bytes_moved = (
            self._weights(sizes, sizes.inter * sizes.model)
            + sizes.rows * sizes.inter * self.form.activation_width
        )
        parts = {
            "memory": bytes_moved / self._stream,
            **self._products(sizes, sizes.model, sizes.inter),
        }
        return _launch(parts, self._combine(sizes, 1.0), self.known["overlap"])

    def fused_kernel(self, sizes: MoeSizes) -> StageTime:
        """Both stages in one kernel: a workgroup owns `tile_n` of the inner columns."""
        passes = sizes.gates + 1
        bytes_moved = (
            self._weights(sizes, passes * sizes.inter * sizes.model)
            + sizes.tokens * sizes.model * self.form.activation_width
        )
        parts = {
            "memory": bytes_moved / self._stream,
            **self._products(sizes, sizes.inter, sizes.model, passes),
        }
        slices = np.ceil(sizes.inter / sizes.widths)
        return _launch(parts, self._combine(sizes, slices), self.known["overlap"])

    def _weights(self, sizes: MoeSizes, elements: Array) -> Array:
        return sizes.active * elements * self.form.weight_width

    def _combine(self, sizes: MoeSizes, slices: Array | float) -> dict[str, Array]:
        """Adding `slices` times every row to its token, which is cleared before."""
        constants = self.known
        slow = self.form.row_scaled or self.kernel.by_element
        rate = constants["combine_rows"] * (constants["scaled_rows"] if slow else 1.0)
        row = sizes.model * RESULT
        tokens = constants["combine_tokens"] * self.chip.hbm_peak
        additions = sizes.rows * row * slices / (rate * self.chip.units)
        if self.form.scaled_instructions:
            elements = sizes.blocks * sizes.heights * sizes.model * slices
            additions = additions + elements * constants["tile_end"] / (
                self.chip.clock * self.chip.units
            )
        launch = np.full_like(row, constants["launch"])
        return {"launch": launch, "combine": sizes.tokens * row / tokens + additions}

    @cached_property
    def _stream(self) -> float:
        """Byte/s at which all compute units together stream from memory."""
        return min(
            self.known["stream_fraction"] * self.chip.hbm_peak,
            self.known["unit_stream"] * self.chip.units,
        )

    @cached_property
    def _widening(self) -> float:
        """Vector operations per weight before it can be multiplied.

        Chips that multiply FP4 also widen it in one instruction for many, which counts as none.
        """
        if not self.form.widened:
            return 0.0
        direct = self.form.weight == "mxfp4" and self.chip.device.peak_flops("fp4") is not None
        return 0.0 if direct else self.known["widen"]

    @cached_property
    def _lanes(self) -> float:
        """Vector operations of a CU per second; an FMA counts once."""
        return self.chip.vector_flops / 2 * self.chip.clock

    def _products(
        self, sizes: MoeSizes, columns: Array, depth: Array, passes: Array | float = 1.0
    ) -> dict[str, Array]:
        """What the products of [block_m, depth] by [depth, columns] ask of the compute units.

        `passes` is how many products of that size one workgroup does one after the other.
        """
        chip, form, constants, kernel = self.chip, self.form, self.known, self.kernel
        groups = sizes.blocks * np.ceil(columns / sizes.widths) * kernel.splits
        rounds = np.maximum(groups / chip.units, 1.0)
        depth = passes * depth / kernel.splits
        streamed = depth * (
            sizes.widths * form.weight_width + sizes.heights * form.activation_width
        )
        resident = constants["resident"] * WAVES / kernel.waves
        if kernel.resident:
            resident = np.minimum(kernel.resident, np.maximum(COLUMNS / sizes.widths, 1.0))
        feeding = (streamed / constants["unit_feed"] + constants["fixed"]) / chip.clock
        if form.scaled_instructions and constants["step"]:
            steps = np.ceil(depth * form.activation_width / STEP)
            one = feeding + steps * constants["step"]
        else:
            one = streamed / constants["unit_stream"]
        chain = np.maximum(np.ceil(rounds / resident) * one, rounds * feeding)
        products = sizes.heights * sizes.widths * depth
        operations = self._widening * sizes.widths * depth
        if form.scaling == "block":
            operations = operations + constants["rescale"] / SCALE_BLOCK * products
        issued = 1.0 if form.scaled_instructions else constants["plain_rate"]
        rate = chip.matrix_rate(form.compute) * issued * constants["pipe"]
        clocks = rounds * 2 * products / rate
        active = clocks / np.maximum(clocks, chain * chip.clock) * constants["pipe"] * issued
        return {
            "fabric": self._fabric(sizes, columns, depth),
            "chain": chain,
            "matrix": clocks / sustained_clock(chip, form.compute, active),
            "vector": np.broadcast_to(rounds * operations / self._lanes, clocks.shape),
        }

    def _fabric(self, sizes: MoeSizes, columns: Array, depth: Array) -> Array:
        """Seconds in which dies fetch weights of [depth, columns] from the memory-side cache.

        Workgroups are dealt to dies in turn, all columns of a block after each other: a die gets
        every n-th tile of columns where the number of tiles and that of dies have the divisor n,
        and those of several experts where few blocks are of one.
        """
        chip = self.chip
        groups = sizes.blocks * np.ceil(columns / sizes.widths) * self.kernel.splits
        if not chip.mall_bandwidth or chip.dies == 1:
            return np.zeros_like(groups)
        tiles = np.ceil(columns / sizes.widths)
        at_once = np.minimum(groups, chip.units)
        blocks = sizes.blocks / np.maximum(sizes.active, 1e-9)
        experts = np.maximum(at_once / (tiles * blocks), 1.0)
        on_die = at_once / chip.dies
        distinct = tiles / np.gcd(tiles.astype(int), chip.dies) * experts
        share = np.minimum(distinct / np.maximum(on_die, 1.0), 1.0)
        width = np.minimum(sizes.widths, columns)
        moved = groups * depth * width * self.form.weight_width * share
        return moved / mall_bandwidth(chip)


def _launch(parts: Mapping[str, Array], serial: Mapping[str, Array], p: float) -> StageTime:
    """Seconds of parts that overlap, and of others that do not."""
    busy = parts["matrix"] + parts["vector"]
    stream = np.maximum(parts["memory"], parts["fabric"])
    together = (stream**p + parts["chain"] ** p + busy**p) ** (1 / p)
    return StageTime(together + sum(serial.values()), {**parts, **serial})


__all__ = ["FAMILY", "MoeModel", "MoeSizes", "StageTime"]
