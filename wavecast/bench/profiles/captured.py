"""Sizes of products in replayed graphs, from the weights of the model that ran.

A replayed graph has no operators, and kernels of products have neither K nor, on ROCm, a grid. The
order of the products of a step is that of the model's layers: a step ends with the output
projection, which engines launch outside the graphs. Its rows are the tokens of a step that is one
graph; where attention is outside the graphs too, the tokens are its queries. If a step has as many
products as the model, each gets its sizes; else none does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wavecast.arch.device import Device
from wavecast.bench.profiles.kernel_names import recognise
from wavecast.bench.profiles.profile import NONE, Profile, ProfiledOp
from wavecast.errors import MissingFact, UsageError
from wavecast.model.ops.gemm import Gemm
from wavecast.systems import huggingface
from wavecast.systems.engine import engine
from wavecast.systems.graph import Builder, Step, layer_nodes
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import on_device, precision
from wavecast.wording import count

_PADDING: Final = 1024
"""Rows that engines add to the output projection at most."""
_TYPES: Final = {"bf16": "c10::BFloat16", "fp16": "c10::Half"}
_ENGINE: Final = "vllm"


def size_products(profile: Profile, model: str, device: Device) -> None:
    """Give the products of replayed graphs the operator `aten::mm` with the sizes of `model`, a
    `config.json` or a name; notes say what did not fit.

    Raises InputError, UsageError and UnknownName for a configuration that cannot be read.
    """
    name, values = huggingface.load(model)
    architecture = huggingface.read(values, name)
    found = _Captured(profile, architecture.hidden, architecture.vocabulary)
    steps = list(found.steps())
    if not steps:
        weights = f"{architecture.hidden:,} by {architecture.vocabulary:,}"
        profile.notes.append(
            f"{name}: the tokens of a step are not known: the file has no output projection "
            f"({weights}) with sizes after products of graphs"
        )
        return
    formats, _ = on_device(precision(values), device)
    sized = 0
    for number, tokens, tensor in steps:
        builder = Builder(
            architecture, formats, Parallelism(tensor=tensor), engine(_ENGINE, device.generation)
        )
        try:
            wanted = list(_products(builder, architecture.layers, tokens))
        except (MissingFact, UsageError) as error:
            profile.notes.append(f"{name}: {error.message}")
            return
        launches = found.products[number]
        if len(launches) != len(wanted):
            profile.notes.append(
                f"{name}: a step has {count(len(launches), 'captured product')}, the model has "
                f"{len(wanted):,}: they have no sizes"
            )
            continue
        for launch, (path, op) in zip(launches, wanted, strict=True):
            sized += found.size(launch, path, op)
    if sized:
        text = count(sized, "product")
        profile.notes.append(
            f"{text} of replayed graphs: sizes from the layers of {name}, in order"
        )


def _products(
    builder: Builder, layers: Sequence[tuple[Any, int]], tokens: int
) -> Iterator[tuple[str, Gemm]]:
    """The products of a step's layers in order, with the path of their module."""
    step = Step(decode=tokens, context=1)
    number = 0
    for layer, repeated in layers:
        nodes = [node for node in layer_nodes(builder, layer, step) if isinstance(node.op, Gemm)]
        for _ in range(repeated):
            for node in nodes:
                assert isinstance(node.op, Gemm)
                yield f"layers_{number}.{node.name}_{number}", node.op
            number += 1


class _Captured:
    """The products of a profile without an operator, by step."""

    def __init__(self, profile: Profile, hidden: int, vocabulary: int) -> None:
        self._profile, self._hidden, self._vocabulary = profile, hidden, vocabulary
        self.products: list[list[int]] = []

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """(number in `products`, tokens, GPUs that divide the vocabulary) of every step."""
        profile, launches = self._profile, self._profile.launches
        mine: dict[int, list[int]] = {}
        queries: dict[int, int] = {}
        order = sorted(range(len(launches)), key=lambda number: launches.start[number])
        category = [recognise(kernel.name).category for kernel in profile.kernels.values]
        sizes = [_sizes(info) for info in profile.op_infos.values]
        infos = profile.op_infos.values
        heads = [_queries(info.name, found) for info, found in zip(infos, sizes, strict=True)]
        ends = [self._projection(found) for found in sizes]
        for number in order:
            device, op = launches.device[number], launches.op[number]
            if op == NONE:
                if category[launches.info[number]] == "gemm":
                    mine.setdefault(device, []).append(number)
                continue
            queries[device] = self._tokens(op, heads) or queries.get(device, 0)
            end = ends[profile.ops.info[op]]
            if end is None:
                continue
            self.products.append(mine.pop(device, []))
            tokens = queries.pop(device, 0) or end[0]
            if self.products[-1]:
                yield len(self.products) - 1, tokens, end[1]

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
        shapes = [one for one in sizes if isinstance(one, list) and len(one) == 2]
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

    def size(self, launch: int, path: str, op: Gemm) -> bool:
        """Give a launch an operator; False for products that PyTorch has no operator for."""
        kind = _TYPES.get(op.dtype)
        if kind is None or op.weight or op.scaling:
            return False
        profile = self._profile
        info = ProfiledOp(
            "aten::mm",
            json.dumps([[op.m, op.k], [op.k, op.n]]),
            json.dumps([kind, kind]),
            json.dumps([[op.k, 1], [1, op.k]]),
            '["", ""]',
        )
        start = profile.launches.start[launch]
        profile.launches.op[launch] = len(profile.ops)
        profile.ops.add(profile.op_infos.number(info), NONE, start, 0)
        profile.ops.module[-1] = profile.modules.number(path)
        return True


def _sizes(info: ProfiledOp) -> list[Any]:
    """Sizes of the arguments; none where they cannot be read."""
    try:
        found = json.loads(info.sizes) if info.sizes else []
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _queries(name: str, sizes: Sequence[Any]) -> int:
    """Rows of the first argument of an operator that computes attention, else 0."""
    first = sizes[0] if sizes else None
    if "attention" in name and isinstance(first, list) and len(first) >= 2:
        return first[0] if isinstance(first[0], int) else 0
    return 0


__all__ = ["size_products"]
