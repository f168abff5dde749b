"""Products of a step and the collectives next to them, as one kernel where that is faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wavecast.perfmodel.ops.collectives import Collective
from wavecast.perfmodel.ops.collectives.product import DTYPES, GemmCollective
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.systems.engine import Engine
from wavecast.systems.parts import Node

_BEHIND = {"all_reduce": "matmul_all_reduce", "reduce_scatter": "matmul_reduce_scatter"}


def with_fused_products(nodes: Iterable[Node], engine: Engine) -> Iterator[Node]:
    """The kernels of a layer in order; where the engine has `fused_products`, a product whose
    result the next kernel adds up over GPUs is one with it, and so is one of the rows that the
    kernel before has gathered."""
    if not engine.fused_products:
        yield from nodes
        return
    before: Node | None = None
    for node in nodes:
        if before is not None:
            fused = _fused(before, node, engine)
            if fused is not None:
                before = fused
                continue
            yield before
        before = node
    if before is not None:
        yield before


def _fused(first: Node, second: Node, engine: Engine) -> Node | None:
    """Both as one kernel; None where the library has none for them."""
    match first.op, second.op:
        case Gemm() as product, Collective() as collective:
            function, columns, module = _BEHIND.get(collective.function), product.n, first.module
        case Collective(function="all_gather") as collective, Gemm() as product:
            function, columns, module = "all_gather_matmul", product.k, second.module
        case _:
            return None
    plain = Gemm(m=product.m, n=product.n, k=product.k, dtype=product.dtype)
    if function is None or product != plain or product.dtype not in DTYPES:
        return None
    if collective.bytes != product.m * columns * 2:
        return None
    if function != "matmul_all_reduce" and product.m % collective.gpus:
        return None
    op = GemmCollective(
        function,
        product.m,
        product.n,
        product.k,
        collective.gpus,
        product.dtype,
        library=collective.library,
        buffer=int(engine.communication_bytes / 4),
        group=collective.group,
    )
    return Node(f"{first.name}, {second.name}", module, op)


__all__ = ["with_fused_products"]
