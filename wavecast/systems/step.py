"""The time of a step: its kernels on the device, and what the host adds.

A simulation of thousands of steps takes their times from a grid of sizes (`step_grid`), so that it
asks for few predictions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.systems.architecture import DenseMlp, ExpertMlp, ModelArchitecture
from wavecast.systems.graph import Builder, Node, Step, head_nodes, layer_nodes, stage_nodes
from wavecast.systems.parts import MODULES
from wavecast.systems.pricing import Priced, Prices
from wavecast.systems.serving_state import engine_record
from wavecast.systems.speculation import Speculation
from wavecast.systems.step_grid import (
    DECODE,
    HEAD,
    OWN,
    ROWS,
    SIZES,
    GridCells,
    StepGrids,
    grid_time,
    is_captured,
    launched,
    total_seconds,
)

_ATTENTION: Final = frozenset({"attention"})
_OWN: Final = frozenset({"projections", "norm"})
"""Modules that GPUs with separate sequences compute for those alone."""


@dataclass(frozen=True, slots=True)
class LayerKernel:
    """A kernel of a step and in how many layers it runs. `form` numbers the layers that have equal
    kernels, -1 for what belongs to none."""

    priced: Priced
    count: int
    form: int = -1

    @property
    def seconds(self) -> float:
        """The time of all of them."""
        return self.priced.seconds * self.count


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a step: `device` for its kernels with an interval, `host` for what the CPU does.
    `seconds` is what a step takes; `kernels` is their number."""

    device: float
    low: float
    high: float
    host: float
    seconds: float
    kernels: int
    modules: Mapping[str, float]


@dataclass
class StepModel:
    """Steps of one model on one device. `scale`: factors of times by module or name of a kernel.
    With `speculation`, a decoding step verifies what a draft of the model proposed in it."""

    builder: Builder
    device: Device
    scale: Mapping[str, float] = field(default_factory=dict)
    speculation: Speculation | None = field(default=None, kw_only=True)
    prices: Prices = field(init=False)
    draft: StepModel | None = field(default=None, init=False)
    grids: StepGrids = field(init=False)

    def __post_init__(self) -> None:
        self.prices = Prices(self.device, self.scale)
        if self.speculation and self.speculation.method != "ngram":
            architecture = draft_architecture(self.builder.architecture, self.speculation.method)
            builder = replace(self.builder, architecture=architecture)
            self.draft = StepModel(builder, self.device)
            self.draft.prices = self.prices
        drafted = self.speculation.tokens if self.speculation else 0
        empty = GridCells.empty
        model_cells = empty()
        self.grids = StepGrids(
            model_cells,
            empty() if self.draft else model_cells,
            SIZES,
            drafted,
            int(self.draft is not None),
            self.builder.parallel.ranks,
            np.zeros(5, np.int64),
        )

    def kernels(self, step: Step) -> list[LayerKernel]:
        """Every kernel of a step, priced at its very sizes."""
        layer_kernels = [
            LayerKernel(self.prices.of(node), count, form)
            for form, (layer, count) in enumerate(self.builder.architecture.layers)
            for node in layer_nodes(self.builder, layer, step)
        ]
        around = (*stage_nodes(self.builder, step), *head_nodes(self.builder, step))
        return layer_kernels + [LayerKernel(self.prices.of(node), 1) for node in around]

    def time(self, step: Step) -> StepTime:
        """The time of a step, priced at its very sizes."""
        layer_kernels = self.kernels(step)
        modules: dict[str, float] = defaultdict(float)
        below: dict[str, float] = defaultdict(float)
        above: dict[str, float] = defaultdict(float)
        for kernel in layer_kernels:
            module, priced = kernel.priced.node.module, kernel.priced
            modules[module] += kernel.seconds
            below[module] += (priced.seconds - priced.low) * kernel.count
            above[module] += (priced.high - priced.seconds) * kernel.count
        launches = self._launched(step, layer_kernels)
        device = sum(modules.values())
        # Errors of one module are those of one predictor: they add up. Modules err independently.
        return StepTime(
            device=device,
            low=device - math.hypot(*below.values()),
            high=device + math.hypot(*above.values()),
            host=self.host(step, launches),
            seconds=total_seconds.__wrapped__(
                self.builder.engine, step.sequences, device, launches
            ),
            kernels=sum(kernel.count for kernel in layer_kernels),
            modules=dict(modules),
        )

    def seconds(
        self, decode: int, context: float, chunks: int, tokens: float, before: float
    ) -> float:
        """The time of a step from the grid. `tokens` and `before` are means over the chunks. A
        captured graph computes as many sequences as it was captured for."""
        seconds = np.full(1, np.nan)
        step = np.array([decode, context, chunks, tokens, before], np.float64)
        engine, sizes = engine_record(self.builder.engine)
        while np.isnan(seconds[0]):
            grid_time(engine, sizes, self.grids, step, seconds)
            if np.isnan(seconds[0]):
                self.fill()
        return float(seconds[0])

    def host(self, step: Step, launches: int) -> float:
        """Seconds of the host for a step with `launches` one by one."""
        engine = self.builder.engine
        return engine.host_step + engine.host_sequence * step.sequences + engine.launch * launches

    def _launched(self, step: Step, kernels: list[LayerKernel]) -> int:
        launches = [kernel.count * self._launches(kernel.priced.node) for kernel in kernels]
        attention = (one.count for one in kernels if one.priced.node.module in _ATTENTION)
        return launched.__wrapped__(
            self.builder.engine,
            self._is_captured(step),
            step.chunks,
            step.rows,
            sum(launches),
            sum(attention),
        )

    def _is_captured(self, step: Step) -> bool:
        return is_captured.__wrapped__(self.builder.engine, step.decode, step.chunks)

    def _launches(self, node: Node) -> int:
        """How often the time of a launch a kernel takes on the host."""
        return self.builder.engine.expert_launches if isinstance(node.op, FusedMoe) else 1

    # --- the grid ------------------------------------------------------------------------------

    def _sum(self, nodes: Iterable[tuple[Node, int]]) -> tuple[float, int]:
        """Seconds and launches."""
        seconds, launches = 0.0, 0
        for node, count in nodes:
            seconds += self.prices.of(node).seconds * count
            launches += count * self._launches(node)
        return seconds, launches

    @property
    def _separate(self) -> frozenset[str]:
        """The modules that GPUs with separate sequences compute for them alone."""
        return _OWN if self.builder.parallel.ranks > 1 else frozenset()

    def _layers(self, step: Step, modules: frozenset[str]) -> tuple[float, int]:
        return self._sum(
            (node, count)
            for layer, count in self.builder.architecture.layers
            for node in layer_nodes(self.builder, layer, step)
            if node.module in modules
        )

    def fill(self) -> None:
        """Price the cell that `grids` wants."""
        which, array, *at = map(int, self.grids.wanted)
        model = self.draft if which else self
        assert model is not None
        cells = self.grids.draft if which else self.grids.model
        if array in (ROWS, HEAD):
            size = int(SIZES[at[0]])
            cells[array][at[0]] = model._rows(size) if array == ROWS else model._head(size)
        elif array == OWN:
            step = Step(decode=int(SIZES[at[0]]), context=1)
            cells.own[at[0]] = model._layers(step, model._separate)
        elif array == DECODE:
            sequences, context = (int(SIZES[index]) for index in at[:2])
            queries = 1 + self.grids.drafted if not which else 1
            step = Step(sequences, context, queries=queries)
            cells.decode[at[0], at[1]] = model._layers(step, _ATTENTION)
        else:
            before = 1 << (at[2] - 1) if at[2] else 0
            step = Step(0, 0, 1 << at[0], int(SIZES[at[1]]), before)
            cells.prefill[at[0], at[1], at[2]] = model._layers(step, _ATTENTION)

    def _rows(self, rows: int) -> tuple[float, int]:
        step = Step(decode=rows, context=1)
        shared = frozenset(MODULES) - _ATTENTION - self._separate
        seconds, kernels = self._layers(step, shared)
        sent, count = self._sum((node, 1) for node in stage_nodes(self.builder, step))
        return seconds + sent, kernels + count

    def _head(self, sequences: int) -> tuple[float, int]:
        return self._sum((node, 1) for node in head_nodes(self.builder, Step(decode=sequences)))


def draft_architecture(architecture: ModelArchitecture, method: str) -> ModelArchitecture:
    """The model that drafts: for `mtp` one more layer like the last, for `eagle` one with a dense
    perceptron of the model's width. It shares embedding and output projection."""
    layer = architecture.layers[-1][0]
    if method == "eagle":
        mlp = layer.mlp
        units = mlp.topk * mlp.inter + mlp.shared if isinstance(mlp, ExpertMlp) else mlp.inter
        layer = replace(layer, mlp=DenseMlp(units))
    return replace(architecture, layers=((layer, 1),), extra_parameters=0)


__all__ = ["LayerKernel", "StepModel", "StepTime", "draft_architecture"]
