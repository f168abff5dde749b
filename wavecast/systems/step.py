"""The time of a step: its kernels on the device, and what the host adds.

Kernels outside of attention depend on the number of tokens, those of attention on sequences and
their context. Both parts are predicted on a grid of powers of two and interpolated on logarithmic
scales, so that a simulation of thousands of steps asks for few predictions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from wavecast.arch import Device
from wavecast.systems.architecture import DenseMlp, ExpertMlp, ModelArchitecture
from wavecast.systems.graph import Builder, Node, Step, head_nodes, layer_nodes
from wavecast.systems.pricing import Priced, Prices
from wavecast.systems.speculation import Speculation

_FINE: Final = 2
"""Points of the grid per factor of two."""
_COARSE: Final = 1
"""The same for what times are nearly proportional to, or depend on little."""


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
    _rows: dict[int, tuple[float, int]] = field(default_factory=dict, init=False)
    _mixer: dict[Step, tuple[float, int]] = field(default_factory=dict, init=False)
    _head: dict[int, tuple[float, int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.prices = Prices(self.device, self.scale)
        if self.speculation and self.speculation.method != "ngram":
            architecture = draft_architecture(self.builder.architecture, self.speculation.method)
            builder = replace(self.builder, architecture=architecture)
            self.draft = StepModel(builder, self.device)
            self.draft.prices = self.prices

    def kernels(self, step: Step) -> list[LayerKernel]:
        """Every kernel of a step, priced at its very sizes."""
        found = [
            LayerKernel(self.prices.of(node), count, form)
            for form, (layer, count) in enumerate(self.builder.architecture.layers)
            for node in layer_nodes(self.builder, layer, step)
        ]
        return found + [LayerKernel(self.prices.of(n), 1) for n in head_nodes(self.builder, step)]

    def time(self, step: Step) -> StepTime:
        """The time of a step, priced at its very sizes."""
        found = self.kernels(step)
        modules: dict[str, float] = defaultdict(float)
        below: dict[str, float] = defaultdict(float)
        above: dict[str, float] = defaultdict(float)
        for kernel in found:
            module, priced = kernel.priced.node.module, kernel.priced
            modules[module] += kernel.seconds
            below[module] += (priced.seconds - priced.low) * kernel.count
            above[module] += (priced.high - priced.seconds) * kernel.count
        count = sum(kernel.count for kernel in found)
        device = sum(modules.values()) + self._gaps(step, count)
        # Errors of one module are those of one predictor: they add up. Modules err independently.
        return StepTime(
            device=device,
            low=device - math.hypot(*below.values()),
            high=device + math.hypot(*above.values()),
            host=self.host(step, count),
            seconds=self._total(step, device, count),
            kernels=count,
            modules=dict(modules),
        )

    def seconds(
        self, decode: int, context: float, chunks: int, tokens: float, before: float
    ) -> float:
        """The time of a step from the grid. `tokens` and `before` are means over the chunks. A
        captured graph computes as many sequences as it was captured for."""
        queries = 1 + self.speculation.tokens if self.speculation and decode else 1
        step = Step(decode, int(context), chunks, int(tokens), int(before), queries)
        device, count = self._device(step, context, tokens, before)
        if self.draft and self.speculation and decode:
            # One pass per drafted token; the first one also reads what was just accepted.
            drafted = replace(step, chunks=0, tokens=0, before=0, queries=1)
            each, _ = self.draft._device(drafted, context, 0.0, 0.0)
            device += self.speculation.tokens * each
        return self._total(step, device + self._gaps(step, round(count)), round(count))

    def _device(
        self, step: Step, context: float, tokens: float, before: float
    ) -> tuple[float, float]:
        """Seconds and number of the kernels of a step, from the grid."""
        decode, chunks, queries = step.decode, step.chunks, step.queries
        padded = self.builder.engine.padded(decode) if not chunks else decode
        device, count = _interpolated(self._rows_at, max(1.0, padded * queries + chunks * tokens))
        more, kernels = _interpolated(self._head_at, max(1.0, padded * queries + chunks))
        device, count = device + more, count + kernels
        if decode:
            more, kernels = self._decode(decode, context, queries)
            device, count = device + more, count + kernels
        if chunks:
            more, kernels = self._prefill(chunks, tokens, before)
            device, count = device + more, count + kernels
        return device, count

    def host(self, step: Step, kernels: int) -> float:
        """Seconds of the host for a step."""
        engine = self.builder.engine
        seconds = engine.host_step + engine.host_sequence * step.sequences
        return seconds + self._launches(step, kernels)

    def _captured(self, step: Step) -> bool:
        """Whether a step is a graph: no chunk of a prompt, and not more sequences than captured."""
        engine = self.builder.engine
        return engine.graphs and not step.chunks and step.decode <= engine.captured

    def _launches(self, step: Step, kernels: int) -> float:
        """Seconds of the host for the launches that no graph contains."""
        return 0.0 if self._captured(step) else self.builder.engine.launch * kernels

    def _gaps(self, step: Step, kernels: int) -> float:
        return self.builder.engine.gap * kernels if self._captured(step) else 0.0

    def _total(self, step: Step, device: float, kernels: int) -> float:
        engine = self.builder.engine
        launches = self._launches(step, kernels)
        host = engine.host_step + engine.host_sequence * step.sequences
        if engine.asynchronous:
            return max(device, launches + host)
        return max(device, launches) + host

    # --- the grid ------------------------------------------------------------------------------

    def _sum(self, nodes: Iterable[tuple[Node, int]]) -> tuple[float, int]:
        seconds, kernels = 0.0, 0
        for node, count in nodes:
            seconds += self.prices.of(node).seconds * count
            kernels += count
        return seconds, kernels

    def _layers(self, step: Step, *, attention: bool) -> tuple[float, int]:
        return self._sum(
            (node, count)
            for layer, count in self.builder.architecture.layers
            for node in layer_nodes(self.builder, layer, step)
            if (node.module == "attention") == attention
        )

    def _rows_at(self, rows: int) -> tuple[float, int]:
        if rows not in self._rows:
            self._rows[rows] = self._layers(Step(decode=rows, context=1), attention=False)
        return self._rows[rows]

    def _head_at(self, sequences: int) -> tuple[float, int]:
        if sequences not in self._head:
            self._head[sequences] = self._sum(
                (node, 1) for node in head_nodes(self.builder, Step(decode=sequences))
            )
        return self._head[sequences]

    def _mixer_at(self, step: Step) -> tuple[float, int]:
        if step not in self._mixer:
            self._mixer[step] = self._layers(step, attention=True)
        return self._mixer[step]

    def _decode(self, decode: int, context: float, queries: int) -> tuple[float, int]:
        return _interpolated(
            lambda sequences: _interpolated(
                lambda length: self._mixer_at(Step(sequences, length, queries=queries)),
                max(1.0, context),
            ),
            decode,
        )

    def _prefill(self, chunks: int, tokens: float, before: float) -> tuple[float, int]:
        def at(count: int, length: int) -> tuple[float, int]:
            if before < 1:
                return self._mixer_at(Step(0, 0, count, length, 0))
            return _interpolated(
                lambda b: self._mixer_at(Step(0, 0, count, length, b)), before, _COARSE
            )

        return _interpolated(
            lambda count: _interpolated(lambda length: at(count, length), max(1.0, tokens)),
            chunks,
            _COARSE,
        )


def draft_architecture(architecture: ModelArchitecture, method: str) -> ModelArchitecture:
    """The model that drafts: for `mtp` one more layer like the last, for `eagle` one with a dense
    perceptron of the model's width. It shares embedding and output projection."""
    layer = architecture.layers[-1][0]
    if method == "eagle":
        mlp = layer.mlp
        units = mlp.topk * mlp.inter + mlp.shared if isinstance(mlp, ExpertMlp) else mlp.inter
        layer = replace(layer, mlp=DenseMlp(units))
    return replace(architecture, layers=((layer, 1),), extra_parameters=0)


def _interpolated(
    at: Callable[[int], tuple[float, int]], x: float, points: int = _FINE
) -> tuple[float, int]:
    """Value at `x` from its neighbours on the grid of so many points per factor of two, on
    logarithmic scales."""
    exponent = math.log2(x) * points
    below, above = (round(2 ** (f(exponent) / points)) for f in (math.floor, math.ceil))
    low, count = at(below)
    if below == above:
        return low, count
    high, _ = at(above)
    share = math.log(x / below) / math.log(above / below)
    return low * (high / low) ** share if low > 0 else low + (high - low) * share, count


__all__ = ["LayerKernel", "StepModel", "StepTime", "draft_architecture"]
