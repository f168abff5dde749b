"""The collectives as descriptions, from which tests and documentation are derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.kernels.distributed import collectives, products
from wavecast.kernels.operator import Sizes, sizes

RankTensors = Sequence[Mapping[str, Tensor]]
"""The tensors that each rank passes, by argument."""


@dataclass(frozen=True, slots=True)
class CollectiveOperator:
    """One collective. `call(**tensors, group=…, **options)` runs on every rank; `shapes(world,
    **sizes)` are those of its tensors on a rank; `reference` gives the results of all ranks, each a
    tuple, for tensors of any floating dtype. Sizes other than those of shapes are options."""

    summary: str
    call: Callable[..., Any]
    shapes: Callable[..., Mapping[str, tuple[int, ...]]]
    reference: Callable[..., list[tuple[Tensor, ...]]]
    cases: tuple[Sizes, ...]
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.call.__name__


def _sum(ranks: RankTensors) -> Tensor:
    return torch.stack([tensors["x"] for tensors in ranks]).sum(0)


def _all_reduce(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    return [(_sum(ranks),)] * len(ranks)


def _reduce_scatter(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    return [(part,) for part in _sum(ranks).chunk(len(ranks))]


def _all_gather(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    return [(torch.cat([tensors["x"] for tensors in ranks]),)] * len(ranks)


def _all_to_all(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    parts = [tensors["x"].chunk(len(ranks)) for tensors in ranks]
    return [(torch.cat([chunks[rank] for chunks in parts]),) for rank in range(len(ranks))]


def _broadcast(ranks: RankTensors, root: int = 0, **_: Any) -> list[tuple[Tensor, ...]]:
    return [(ranks[root]["x"],)] * len(ranks)


def _reduce_norm(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    results = []
    for tensors in ranks:
        total = tensors["residual"] + _sum(ranks)
        scale = torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6)
        results.append((total * scale * tensors["weight"], total))
    return results


def _product(ranks: RankTensors) -> Tensor:
    return torch.stack([tensors["x"] @ tensors["weight"].T for tensors in ranks]).sum(0)


def _product_reduce(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    return [(_product(ranks),)] * len(ranks)


def _product_scatter(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    return [(part,) for part in _product(ranks).chunk(len(ranks))]


def _gather_product(ranks: RankTensors, **_: Any) -> list[tuple[Tensor, ...]]:
    x = torch.cat([tensors["x"] for tensors in ranks])
    return [(x @ tensors["weight"].T,) for tensors in ranks]


def _product_shapes(world: int, rows: int, columns: int, k: int) -> Mapping[str, tuple[int, ...]]:
    del world
    return {"x": (rows, k), "weight": (columns, k)}


def _scatter_shapes(world: int, rows: int, columns: int, k: int) -> Mapping[str, tuple[int, ...]]:
    return {"x": (world * rows, k), "weight": (columns, k)}


def _flat(world: int, count: int) -> Mapping[str, tuple[int, ...]]:
    del world
    return {"x": (count,)}


def _parts(world: int, rows: int, columns: int) -> Mapping[str, tuple[int, ...]]:
    return {"x": (world * rows, columns)}


def _norm_shapes(world: int, rows: int, columns: int) -> Mapping[str, tuple[int, ...]]:
    del world
    return {"x": (rows, columns), "residual": (rows, columns), "weight": (columns,)}


_FLAT: Final = sizes("count dtype", (1, "float32"), (777, "bfloat16"), (40_000, "float16"))
_PARTS: Final = sizes("rows columns dtype", (1, 3, "float32"), (5, 301, "bfloat16"))

DESCRIPTIONS: Final = (
    CollectiveOperator(
        summary="sum over ranks",
        call=collectives.all_reduce,
        shapes=_flat,
        reference=_all_reduce,
        cases=(
            *({**case, "shots": shots} for case in _FLAT for shots in (1, 2)),
            {"count": 4096, "dtype": "bfloat16", "shots": 0},
        ),
        options=("shots",),
    ),
    CollectiveOperator(
        summary="a part of the sum on each rank",
        call=collectives.reduce_scatter,
        shapes=_parts,
        reference=_reduce_scatter,
        cases=_PARTS,
    ),
    CollectiveOperator(
        summary="the tensors of all ranks, one after another",
        call=collectives.all_gather,
        shapes=_flat,
        reference=_all_gather,
        cases=_FLAT,
    ),
    CollectiveOperator(
        summary="part r of every rank's tensor, on rank r",
        call=collectives.all_to_all,
        shapes=_parts,
        reference=_all_to_all,
        cases=_PARTS,
    ),
    CollectiveOperator(
        summary="the tensor of one rank on all",
        call=collectives.broadcast,
        shapes=_flat,
        reference=_broadcast,
        cases=sizes("count dtype root", (777, "bfloat16", 1), (300, "float32", 0)),
        options=("root",),
    ),
    CollectiveOperator(
        summary="sum over ranks, residual added, RMS norm",
        call=collectives.all_reduce_rms_norm,
        shapes=_norm_shapes,
        reference=_reduce_norm,
        cases=sizes("rows columns dtype", (3, 300, "bfloat16")),
    ),
    CollectiveOperator(
        summary="product, a part of its sum over ranks on each",
        call=products.matmul_reduce_scatter,
        shapes=_scatter_shapes,
        reference=_product_scatter,
        cases=sizes("rows columns k dtype", (3, 70, 40, "bfloat16"), (65, 66, 33, "float32")),
    ),
    CollectiveOperator(
        summary="product, summed over ranks",
        call=products.matmul_all_reduce,
        shapes=_product_shapes,
        reference=_product_reduce,
        cases=sizes(
            "rows columns k dtype shots",
            (5, 70, 40, "bfloat16", 1),
            (67, 66, 33, "float16", 2),
            (16, 64, 64, "bfloat16", 0),
        ),
        options=("shots",),
    ),
    CollectiveOperator(
        summary="the tensors of all ranks, multiplied",
        call=products.all_gather_matmul,
        shapes=_product_shapes,
        reference=_gather_product,
        cases=sizes("rows columns k dtype", (3, 70, 40, "bfloat16"), (66, 65, 33, "float32")),
    ),
)

__all__ = ["DESCRIPTIONS", "CollectiveOperator"]
