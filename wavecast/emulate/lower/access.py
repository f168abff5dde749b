"""Outlined memory functions: their names, arguments, and loops over lanes.

    i32 f(ptr context, ptr rows, ptr other, ptr result, ptr address, i64 base, i64 limit,
          i64 offset, iL exec)

`rows` are the data registers, `other` a second data operand, `result` where an atomic returns the
old value, `address` the address registers. In the mode `buffer` the low half of `offset` is that of
the instruction and the high half the scalar one (`buffer_offset`). The result is 1 when an access
failed; lane and address are then in the context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.lower.state import FAULT_ADDRESS, FAULT_LANE
from wavecast.emulate.values import I1, I32, I64, PTR, element

PREFIX: Final = "wavecast_memory"
_ZERO = ir.Constant(I64, 0)


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """Which outlined function: everything that is in its name.

    `action`: `load`, `store`, `tolds` or an atomic operation. `mode`: how addresses are made
    (`addresses.py`). `bytes` per lane. `detail`: for loads, loads to LDS and stores the letters
    `s` (sign-extend), `h` (upper half), `k` (keep the other half); for atomics `r` where the old
    value is returned, else `n`, then the element type.
    """

    action: str
    mode: str
    lanes: int
    bytes: int
    detail: str = "n"

    @property
    def name(self) -> str:
        return f"{PREFIX}.{self.action}.{self.mode}.{self.lanes}.{self.bytes}.{self.detail}"

    @classmethod
    def of(cls, name: str) -> MemoryAccess:
        """The access a function name stands for."""
        _, action, mode, lanes, size, detail = name.split(".")
        return cls(action, mode, int(lanes), int(size), detail)

    @property
    def dwords(self) -> int:
        return max(1, self.bytes // 4)

    @property
    def lds_step(self) -> int:
        """Bytes of LDS from one lane to the next, for loads to LDS: 4 up to a dword, else 16.

        Source: AMD instruction set architecture guide (CDNA4), "Memory Buffer Load to LDS".
        """
        return 4 if self.bytes <= 4 else 16


@dataclass(frozen=True, slots=True)
class AccessTarget:
    """Mode and address arguments of an access (`addresses.py`). `private` is the same access if the
    descriptor turns out to be the one of scratch, which `is_private` (i1) says at run time."""

    mode: str
    address: Any
    base: Any = _ZERO
    limit: Any = _ZERO
    offset: Any = _ZERO
    private: AccessTarget | None = None
    is_private: Any = None


def buffer_offset(builder: ir.IRBuilder, inset: Any, amount: Any) -> Any:
    """The offset argument of a buffer access: `inset` is added to the register's offset in 32 bits,
    `amount` to that sum in 64 (both i64; docs/decisions/0024-buffer-offsets-wrap.md)."""
    return builder.or_(inset, builder.shl(amount, I64(32)))


def function_type(lanes: int) -> ir.FunctionType:
    """The type every outlined memory function has."""
    return ir.FunctionType(I32, [PTR] * 5 + [I64] * 3 + [ir.IntType(lanes)])


class Outlined:
    """A function being built: its arguments by name and its builder. `name` is given to functions
    that look at an access instead of doing it."""

    def __init__(self, module: ir.Module, access: MemoryAccess, name: str = "") -> None:
        self.module = module
        self.access = access
        self.lanes = access.lanes
        self.mask = ir.IntType(access.lanes)
        self.function = ir.Function(module, function_type(access.lanes), name or access.name)
        (
            self.context, self.rows, self.other, self.result, self.address,
            self.base, self.limit, self.offset, self.exec,
        ) = self.function.args  # fmt: skip
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def room(self, kind: ir.Type, value: Any = None) -> Any:
        """A local variable."""
        slot = self.builder.alloca(kind)
        if value is not None:
            self.builder.store(value, slot)
        return slot

    def array(self, kind: ir.Type, *, zeroed: bool = False, length: int = 0) -> Any:
        """Memory for `length` values, one per lane unless given, as an untyped pointer."""
        room = ir.ArrayType(kind, length or self.lanes)
        slot = self.room(room, ir.Constant(room, None) if zeroed else None)
        return self.builder.inttoptr(self.builder.ptrtoint(slot, I64), PTR)

    def get(self, slot: Any, kind: ir.Type) -> Any:
        return self.builder.load(slot, typ=kind)

    def intrinsic(self, name: str, kind: ir.Type, *arguments: Any) -> Any:
        """Call an LLVM intrinsic by its full name."""
        function = self.module.globals.get(name)
        if function is None:
            types = [argument.type for argument in arguments]
            function = ir.Function(self.module, ir.FunctionType(kind, types), name)
        return self.builder.call(function, arguments)

    @contextmanager
    def counted_loop(self, count: int) -> Iterator[Any]:
        """A loop over 0 … count - 1."""
        builder = self.builder
        before = builder.block
        body, after = (self.function.append_basic_block(name) for name in ("loop", "after"))
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(I64)
        index.add_incoming(I64(0), before)
        yield index
        following = builder.add(index, I64(1))
        index.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", following, I64(count)), body, after)
        builder.position_at_end(after)

    @contextmanager
    def each_lane(self, mask: Any) -> Iterator[Any]:
        """A loop over the lanes of a mask, lowest first."""
        builder = self.builder
        before = builder.block
        head, body, after = (
            self.function.append_basic_block(name) for name in ("head", "lane", "after")
        )
        builder.branch(head)
        builder.position_at_end(head)
        lanes = builder.phi(self.mask)
        lanes.add_incoming(mask, before)
        builder.cbranch(builder.icmp_unsigned("!=", lanes, self.mask(0)), body, after)
        builder.position_at_end(body)
        number = self.lowest(lanes)
        rest = builder.and_(lanes, builder.sub(lanes, self.mask(1)))
        yield number
        lanes.add_incoming(rest, builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def lowest(self, mask: Any) -> Any:
        """The first lane of a mask, i64."""
        number = self.intrinsic(f"llvm.cttz.i{self.lanes}", self.mask, mask, I1(0))
        return number if self.lanes == 64 else self.builder.zext(number, I64)

    def fault(self, lane: Any, address: Any) -> None:
        """Leave with the lane and address that failed."""
        builder = self.builder
        builder.store(lane, element(builder, self.context, FAULT_LANE, I64))
        builder.store(address, element(builder, self.context, FAULT_ADDRESS, I64))
        builder.ret(I32(1))

    def slot(self, rows: Any, row: int, lane: Any) -> Any:
        """A pointer to one lane of a row."""
        return element(self.builder, rows, self.builder.add(lane, I64(row * self.lanes)), I32)


__all__ = ["AccessTarget", "MemoryAccess", "Outlined", "buffer_offset", "function_type"]
