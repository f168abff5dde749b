"""Counted loops and constant tables for generated code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from wavecast.emulate.values import I32, I64, element, load


@contextmanager
def counted_loop(
    builder: ir.IRBuilder, count: int, step: int = 1, *, short: bool = False
) -> Iterator[Any]:
    """Emit the body for 0, step … below `count` (an i64 value); nothing loops when it runs once.

    A `short` body leaves it to the optimizer whether to unroll.
    """
    if count <= step:
        yield I64(0)
        return
    before = builder.block
    body = builder.append_basic_block("loop")
    after = builder.append_basic_block("done")
    builder.branch(body)
    builder.position_at_end(body)
    counter = builder.phi(I64, name="i")
    counter.add_incoming(I64(0), before)
    yield counter
    following = builder.add(counter, I64(step))
    counter.add_incoming(following, builder.block)
    more = builder.icmp_unsigned("<", following, I64(count))
    close_loop(builder, more, body, after, short=short)


def accumulating_loop(
    builder: ir.IRBuilder,
    count: Any,
    step: int,
    sums: list[list[Any]],
    body: Callable[[Any, list[list[Any]]], list[list[Any]]],
) -> list[list[Any]]:
    """`sums` after `body(i, sums)` for i = 0, step … below `count`, an i64 value of at least 1."""
    before = builder.block
    loop, after = (builder.append_basic_block(name) for name in ("sum", "summed"))
    builder.branch(loop)
    builder.position_at_end(loop)
    counter = builder.phi(I64)
    counter.add_incoming(I64(0), before)
    carried = [[builder.phi(value.type) for value in row] for row in sums]
    results = body(counter, [list(row) for row in carried])
    following = builder.add(counter, I64(step))
    counter.add_incoming(following, builder.block)
    for phis, first, last in zip(carried, sums, results, strict=True):
        for phi, start, end in zip(phis, first, last, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(end, builder.block)
    close_loop(builder, builder.icmp_unsigned("<", following, count), loop, after)
    return results


def close_loop(
    builder: ir.IRBuilder, more: Any, body: ir.Block, after: ir.Block, *, short: bool = False
) -> None:
    """Branch back while `more`.

    The optimizer keeps the loop unless it is `short`: bodies are written as long as they should be,
    and unrolling costs more time than it saves.
    """
    branch = builder.cbranch(more, body, after)
    builder.position_at_end(after)
    if short:
        return
    module = builder.module
    keep = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    loop = module.add_metadata([keep, I64(len(module.metadata))])
    loop.operands = (loop, keep)  # a loop's identity is a node that begins with itself
    branch.set_metadata("llvm.loop", loop)


def constant_table(module: ir.Module, name: str, values: Sequence[int]) -> Any:
    """A read-only i64 array; one value that is the same throughout is returned as a constant."""
    if len(set(values)) == 1:
        return I64(values[0])
    kind = ir.ArrayType(I64, len(values))
    table: Any = ir.GlobalVariable(module, kind, module.get_unique_name(f"matrix.{name}"))
    table.initializer = ir.Constant(kind, [I64(value) for value in values])
    table.global_constant = True
    table.linkage = "private"
    table.unnamed_addr = True
    return table


def table_entry(builder: ir.IRBuilder, table: Any, index: Any) -> Any:
    """Entry `index` of a constant table."""
    if isinstance(table, ir.GlobalVariable):
        return load(builder, element(builder, table, index, I64), I64, align=8)
    return table


def splat(builder: ir.IRBuilder, value: Any, width: int) -> Any:
    """A scalar in every lane."""
    kind = ir.VectorType(value.type, width)
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, value, I32(0))
    zeros = ir.Constant(ir.VectorType(I32, width), [0] * width)
    return builder.shuffle_vector(single, undefined, zeros)
