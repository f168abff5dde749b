"""Sizes of products and experts in replayed graphs, from the weights of the model that ran.

A replayed graph has no operators, and kernels of products have neither K nor, on ROCm, a grid. The
order of the products of a step is that of the model's layers: a step ends with the output
projection, which engines launch outside the graphs. Its rows are the tokens of a step that is one
graph; where attention is outside the graphs too, the tokens are its queries. If a step has as many
products as the model, each gets its sizes; else none does. The kernels of experts without a product
between them, from the choice of experts to the sum of their results, are one block; if a step has
blocks where the model has experts, each is an operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wavecast.arch.device import Device
from wavecast.errors import MissingFact, UsageError
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.profiles.kernel_names import recognise
from wavecast.profiles.profile import NONE, Profile, ProfiledOp
from wavecast.systems import huggingface
from wavecast.systems.engine import engine
from wavecast.systems.graph import Builder, Step, layer_nodes
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import precision
from wavecast.wording import count

_PADDING: Final = 1024
"""Rows that engines add to the output projection at most."""
_TYPES: Final = {"bf16": "c10::BFloat16", "fp16": "c10::Half"}
_ENGINE: Final = "vllm"
_EXPERTS: Final = ("topk", "sort tokens", "experts")
"""Nodes of a layer whose kernels have the category of experts."""


def size_products(profile: Profile, model: str, device: Device) -> None:
    """Give the products of replayed graphs the operator `aten::mm` with the sizes of `model`, a
    `config.json` or a name, and their experts the operations of its layers; notes say what did not
    fit.

    Raises InputError, UsageError and UnknownName for a configuration that cannot be read.
    """
    config = huggingface.load(model)
    architecture = config.architecture
    capture = _Captured(profile, architecture.hidden, architecture.vocabulary)
    steps = list(capture.steps())
    if not steps:
        weights = f"{architecture.hidden:,} by {architecture.vocabulary:,}"
        profile.notes.append(
            f"{config.name}: the tokens of a step are not known: the file has no output projection "
            f"({weights}) with sizes after products of graphs"
        )
        return
    formats, _ = precision(config).on_device(device)
    sized = experts = 0
    for number, tokens, tensor in steps:
        builder = Builder(
            architecture, formats, Parallelism(tensor=tensor), engine(_ENGINE, device.generation)
        )
        try:
            parts = list(_parts(builder, architecture.layers, tokens))
        except (MissingFact, UsageError) as error:
            profile.notes.append(f"{config.name}: {error.message}")
            return
        blocks = capture.steps_of_graphs[number]
        products = [part for part in parts if part.product]
        launches = [block for block in blocks if block.product]
        if len(launches) != len(products):
            profile.notes.append(
                f"{config.name}: a step has {count(len(launches), 'captured product')}, the "
                f"model has {len(products):,}: they have no sizes"
            )
            continue
        if [block.product for block in blocks] != [part.product for part in parts]:
            profile.notes.append(
                f"{config.name}: kernels of experts are not where the model has them: they have "
                "no sizes"
            )
            blocks, parts = launches, products
        for block, part in zip(blocks, parts, strict=True):
            capture.size(block, part)
        sized += len(launches)
        experts += len(blocks) - len(launches)
    for number, what in ((sized, "product"), (experts, "block")):
        if number:
            text = count(number, what) + (" of experts" if what == "block" else "")
            profile.notes.append(
                f"{text} of replayed graphs: sizes from the layers of {config.name}, in order"
            )


@dataclass(frozen=True, slots=True)
class _Part:
    """A product of a layer, or its experts, with the path of the module: `ops` of `tokens` tokens
    and `hidden` features."""

    path: str
    ops: tuple[Op, ...]
    product: bool
    tokens: int
    hidden: int


@dataclass(frozen=True, slots=True)
class _Block:
    """A launch of a product, or launches of experts without a product between them."""

    launches: list[int]
    product: bool


def _parts(builder: Builder, layers: Sequence[tuple[Any, int]], tokens: int) -> Iterator[_Part]:
    """The products and the experts of a step's layers in order."""
    step = Step(decode=tokens, context=1)
    hidden = builder.architecture.hidden
    number = 0
    for layer, repeated in layers:
        entries: list[tuple[str, tuple[Op, ...], bool]] = []
        for node in layer_nodes(builder, layer, step):
            product = isinstance(node.op, Gemm)
            if not product and node.name not in _EXPERTS:
                continue
            if not product and entries and not entries[-1][2]:
                entries[-1] = (node.name, (*entries[-1][1], node.op), False)
            else:
                entries.append((node.name, (node.op,), product))
        for _ in range(repeated):
            for name, ops, product in entries:
                path = f"layers_{number}.{name}_{number}"
                yield _Part(path, ops, product, tokens, hidden)
            number += 1


class _Captured:
    """The products and experts of a profile without an operator, by step."""

    def __init__(self, profile: Profile, hidden: int, vocabulary: int) -> None:
        self._profile, self._hidden, self._vocabulary = profile, hidden, vocabulary
        self.steps_of_graphs: list[list[_Block]] = []

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """(number in `steps_of_graphs`, tokens, GPUs that divide the vocabulary) of every step."""
        profile, launches = self._profile, self._profile.launches
        mine: dict[int, list[_Block]] = {}
        queries: dict[int, int] = {}
        order = sorted(range(len(launches)), key=lambda number: launches.start[number])
        category = [recognise(kernel.name).category for kernel in profile.kernels.values]
        sizes = [_sizes(info) for info in profile.op_infos.values]
        infos = profile.op_infos.values
        heads = [
            _queries(info.name, argument_sizes)
            for info, argument_sizes in zip(infos, sizes, strict=True)
        ]
        ends = [self._projection(argument_sizes) for argument_sizes in sizes]
        for number in order:
            device, op = launches.device[number], launches.op[number]
            if op == NONE:
                _collect(mine.setdefault(device, []), number, category[launches.info[number]])
                continue
            queries[device] = self._tokens(op, heads) or queries.get(device, 0)
            end = ends[profile.ops.info[op]]
            if end is None:
                continue
            self.steps_of_graphs.append(mine.pop(device, []))
            tokens = queries.pop(device, 0) or end[0]
            if any(block.product for block in self.steps_of_graphs[-1]):
                yield len(self.steps_of_graphs) - 1, tokens, end[1]

    def _tokens(self, op: int, heads: Sequence[int]) -> int:
        """Queries of the attention that an operator is, or is part of; 0 for others."""
        profile = self._profile
        while op != NONE:
            if heads[profile.ops.info[op]]:
                return heads[profile.ops.info[op]]
            op = profile.ops.parent[op]
        return 0

    def _projection(self, sizes: Sequence[Any]) -> tuple[int, int] | None:
        """(rows, GPUs) of the output projection; None for other operators."""
        shapes = [shape for shape in sizes if isinstance(shape, list) and len(shape) == 2]
        for rows in shapes:
            for weights in shapes:
                if rows is weights or rows[-1] != self._hidden or self._hidden not in weights:
                    continue
                columns = weights[1 - weights.index(self._hidden)]
                gpus = max(1, round(self._vocabulary / columns)) if columns else 0
                least = -(-self._vocabulary // gpus) if gpus else 0
                if gpus and least <= columns <= least + _PADDING:
                    return rows[0], gpus
        return None

    def size(self, block: _Block, part: _Part) -> None:
        """Give the launches of a block an operator: PyTorch's for plain products, else the
        operations themselves."""
        profile = self._profile
        info = _matmul(part.ops[0]) if part.product else None
        if info is None:
            name = "captured product" if part.product else "experts"
            sizes = json.dumps([[part.tokens, part.hidden]])
            info = ProfiledOp(name, sizes, values=json.dumps([str(op) for op in part.ops]))
            profile.operations[profile.op_infos.number(info)] = part.ops
        call = len(profile.ops)
        start = profile.launches.start[block.launches[0]]
        profile.ops.add(profile.op_infos.number(info), NONE, start, 0)
        profile.ops.module[-1] = profile.modules.number(part.path)
        for launch in block.launches:
            profile.launches.op[launch] = call


def _collect(blocks: list[_Block], launch: int, category: str) -> None:
    """Add a launch to the blocks of a step, if it is of a product or of experts."""
    if category == "gemm":
        blocks.append(_Block([launch], True))
    elif category == "moe":
        if not blocks or blocks[-1].product:
            blocks.append(_Block([], False))
        blocks[-1].launches.append(launch)


def _matmul(op: Op) -> ProfiledOp | None:
    """PyTorch's operator for a product; None for formats that it has none for."""
    dtype = _TYPES.get(op.dtype) if isinstance(op, Gemm) else None
    if not isinstance(op, Gemm) or dtype is None or op.weight or op.scaling:
        return None
    return ProfiledOp(
        "aten::mm",
        json.dumps([[op.m, op.k], [op.k, op.n]]),
        json.dumps([dtype, dtype]),
        json.dumps([[op.k, 1], [1, op.k]]),
        '["", ""]',
    )


def _sizes(info: ProfiledOp) -> list[Any]:
    """Sizes of the arguments; none where they cannot be read."""
    try:
        sizes = json.loads(info.sizes) if info.sizes else []
    except (ValueError, RecursionError):
        return []
    return sizes if isinstance(sizes, list) else []


def _queries(name: str, sizes: Sequence[Any]) -> int:
    """Rows of the first argument of an operator that computes attention, else 0."""
    first = sizes[0] if sizes else None
    if "attention" in name and isinstance(first, list) and len(first) >= 2:
        return first[0] if isinstance(first[0], int) else 0
    return 0


__all__ = ["size_products"]
