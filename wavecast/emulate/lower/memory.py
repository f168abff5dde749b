"""Memory instructions: addresses of all lanes, then an outlined access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import OUT_OF_BOUNDS, Shape, access_function, check_function
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.run import masked_store
from wavecast.emulate.lower.values import I1, I32, I64, PTR, constant, element, load, splat
from wavecast.emulate.lower.vector import WholeOps
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import Access, MemoryKind, OperandKind, Space

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering


def lower(lowering: KernelLowering, instruction: Instruction) -> None:
    """Lower one memory instruction. Raises Unsupported for forms without a meaning here."""
    memory = instruction.memory
    assert memory is not None
    if memory.space is Space.SCALAR:
        _scalar_load(lowering, instruction)
    elif memory.kind is MemoryKind.PERMUTE:
        _permute(lowering, instruction)
    elif memory.kind in (MemoryKind.LOAD, MemoryKind.STORE):
        _move(lowering, instruction)
    else:
        raise Unsupported(f"{memory.kind.value} of {memory.space.value} memory")


def _fault(lowering: KernelLowering, failed: Any, instruction: Instruction) -> None:
    """Leave the function when an access failed."""
    builder = lowering.builder
    bad = builder.icmp_unsigned("!=", failed, failed.type(0))
    with builder.if_then(bad, likely=False):
        lowering.stop(state.BAD_ADDRESS, instruction.index)


def _scalar_load(lowering: KernelLowering, instruction: Instruction) -> None:
    decoded = instruction.decoded
    memory = decoded.memory
    assert memory is not None
    if memory.kind is not MemoryKind.LOAD or "buffer" in decoded.opcode.name:
        raise Unsupported("this scalar memory instruction")
    builder = lowering.builder
    target, base, offset = decoded.operands[:3]
    address = scalar_operand(lowering, base, decoded.roles[1], 64)
    amount = scalar_operand(lowering, offset, decoded.roles[2], 32)
    signed = offset.kind is OperandClass.CONSTANT
    wide = builder.sext(amount, I64) if signed else builder.zext(amount, I64)
    address = builder.add(address, wide)
    extra = decoded.modifiers.get("offset")
    if extra:
        address = builder.add(address, I64(int(extra, 0)))
    size = max(memory.bytes, 1)
    if memory.bytes >= 4:
        address = builder.and_(address, I64(~3 & (1 << 64) - 1))
    good = builder.call(check_function(lowering.module), [lowering.context, address, I64(size)])
    with builder.if_then(builder.not_(good), likely=False):
        builder.store(address, element(builder, lowering.context, 9, I64))
        lowering.stop(state.BAD_ADDRESS, instruction.index)
    first = target.bits.bit_length() - target.count
    if memory.bytes < 4:
        small = load(builder, builder.inttoptr(address, PTR), ir.IntType(8 * memory.bytes), 1)
        extend = builder.sext if decoded.roles[0].type.startswith("i") else builder.zext
        lowering.set_scalar_bits(first, extend(small, I32))
        return
    for index in range(target.count):
        where = builder.inttoptr(builder.add(address, I64(4 * index)), PTR)
        lowering.set_scalar_bits(first + index, load(builder, where, I32, 4))


def _row_vector(lowering: KernelLowering, position: int) -> Any:
    """A whole vector register as `<L x i32>`."""
    kind = ir.VectorType(I32, lowering.layout.lanes)
    return lowering.builder.load(lowering.row(lowering.layout.row(position)), align=64, typ=kind)


def _wide(lowering: KernelLowering, operand: Operand) -> Any:
    """One or two vector registers as `<L x i64>`, zero-extended."""
    builder, lanes = lowering.builder, lowering.layout.lanes
    kind = ir.VectorType(I64, lanes)
    first = operand.bits.bit_length() - operand.count
    low = builder.zext(_row_vector(lowering, first), kind)
    if operand.count == 1:
        return low
    high = builder.zext(_row_vector(lowering, first + 1), kind)
    return builder.or_(low, builder.shl(high, constant(32, 64, lanes)))


def _offset(decoded: Decoded, name: str = "offset") -> int:
    return int(decoded.modifiers.get(name) or "0", 0)


def _named(decoded: Decoded, kind: OperandKind) -> tuple[Operand, Any] | None:
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind is kind:
            return operand, role
    return None


def _addresses(lowering: KernelLowering, decoded: Decoded) -> tuple[Any, bool]:
    """`<L x i64>` host addresses, and whether they must be checked against the known ranges."""
    memory = decoded.memory
    assert memory is not None
    builder, lanes = lowering.builder, lowering.layout.lanes
    if memory.space is Space.BUFFER:
        return _buffer(lowering, decoded), True
    found = _named(decoded, OperandKind.ADDRESS)
    vector: Any = constant(0, 64, lanes)
    if found is not None and found[0].kind is OperandClass.VGPR:
        vector = _wide(lowering, found[0])
    base = _named(decoded, OperandKind.SCALAR_ADDRESS)
    if memory.space is Space.SCRATCH:
        return _scratch(lowering, decoded, vector, base), False
    if base is not None and base[0].kind is OperandClass.SGPR:
        start = scalar_operand(lowering, base[0], base[1], 64)
        vector = builder.add(vector, splat(builder, start, lanes))
    if memory.space is Space.FLAT:
        raise Unsupported("flat memory")
    vector = builder.add(vector, constant(_offset(decoded), 64, lanes))
    return vector, True


def _bounded(lowering: KernelLowering, offset: Any, size: int, limit: Any, base: Any) -> Any:
    """Base plus offset where offset + size fits the limit (all `<L x i64>`), else out of bounds."""
    builder, lanes = lowering.builder, lowering.layout.lanes
    end = builder.add(offset, constant(size, 64, lanes))
    inside = builder.icmp_unsigned("<=", end, limit)
    where = builder.add(offset, base)
    return builder.select(inside, where, constant(OUT_OF_BOUNDS, 64, lanes))


def _buffer(lowering: KernelLowering, decoded: Decoded) -> Any:
    """Raw buffers: base + soffset + offset, out of bounds beyond num_records.

    Source: AMD instruction set architecture guides, "Buffer addressing", raw mode.
    """
    if "idxen" in decoded.modifiers or "addr64" in decoded.modifiers:
        raise Unsupported("an indexed buffer")
    builder, lanes = lowering.builder, lowering.layout.lanes
    resource, shift = _named(decoded, OperandKind.RESOURCE), _named(decoded, OperandKind.OFFSET)
    address = _named(decoded, OperandKind.ADDRESS)
    assert resource is not None
    assert decoded.memory is not None
    first = resource[0].bits.bit_length() - resource[0].bits.bit_count()
    low = builder.zext(lowering.scalar(first), I64)
    high = builder.and_(lowering.scalar(first + 1), I32(0xFFFF))
    base = builder.or_(low, builder.shl(builder.zext(high, I64), I64(32)))
    limit = builder.zext(lowering.scalar(first + 2), I64)
    offset: Any = constant(_offset(decoded), 64, lanes)
    if "offen" in decoded.modifiers and address is not None:
        offset = builder.add(offset, _wide(lowering, address[0]))
    if shift is not None:
        amount = scalar_operand(lowering, shift[0], shift[1], 32)
        offset = builder.add(offset, splat(builder, builder.zext(amount, I64), lanes))
    wide_limit, wide_base = splat(builder, limit, lanes), splat(builder, base, lanes)
    return _bounded(lowering, offset, decoded.memory.bytes, wide_limit, wide_base)


def _scratch(lowering: KernelLowering, decoded: Decoded, vector: Any, base: Any) -> Any:
    """Private memory lies lane after lane: each lane has its own block of the wave's scratch."""
    builder, lanes = lowering.builder, lowering.layout.lanes
    assert decoded.memory is not None
    offset = builder.add(vector, constant(_offset(decoded), 64, lanes))
    if base is not None and base[0].kind is OperandClass.SGPR:
        amount = builder.zext(scalar_operand(lowering, base[0], base[1], 32), I64)
        offset = builder.add(offset, splat(builder, amount, lanes))
    size = load(builder, element(builder, lowering.context, state.SCRATCH_BYTES, I64), I64, 8)
    start = load(builder, element(builder, lowering.context, state.SCRATCH_BASE, I64), I64, 8)
    limit = splat(builder, size, lanes)
    numbers = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
    own = builder.add(splat(builder, start, lanes), builder.mul(numbers, limit))
    return _bounded(lowering, offset, decoded.memory.bytes, limit, own)


def _local(lowering: KernelLowering, decoded: Decoded, size: int, offset: int) -> Any:
    """Addresses in the workgroup's LDS."""
    builder, lanes = lowering.builder, lowering.layout.lanes
    found = _named(decoded, OperandKind.ADDRESS)
    assert found is not None
    vector = builder.add(_wide(lowering, found[0]), constant(offset, 64, lanes))
    base = load(builder, element(builder, lowering.context, state.LDS_BASE, I64), I64, 8)
    limit = load(builder, element(builder, lowering.context, state.LDS_BYTES, I64), I64, 8)
    return _bounded(
        lowering, vector, size, splat(builder, limit, lanes), splat(builder, base, lanes)
    )


def _data(decoded: Decoded) -> list[tuple[Operand, Any]]:
    """The data operands: what is loaded or stored."""
    return [
        (operand, role)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.kind is OperandKind.VECTOR
    ]


def _shape(decoded: Decoded, size: int) -> Shape:
    operand, role = _data(decoded)[0]
    name = decoded.opcode.name
    high = "_hi" in name or operand.half == "h"
    keep = (
        decoded.memory is not None
        and decoded.memory.kind is MemoryKind.LOAD
        and (role.access is Access.READ_WRITE or bool(operand.half))
    )
    return Shape(size, role.type.startswith("i"), high, keep)


def _move(lowering: KernelLowering, instruction: Instruction) -> None:
    decoded = instruction.decoded
    memory = decoded.memory
    assert memory is not None
    store = memory.kind is MemoryKind.STORE
    data = _data(decoded)
    if memory.space is not Space.LDS:
        addresses, checked = _addresses(lowering, decoded)
        operand = data[0][0]
        first = operand.bits.bit_length() - operand.count
        shape = _shape(decoded, memory.bytes)
        _access(lowering, instruction, addresses, first, shape, store, checked)
        return
    if (
        "offset0" in decoded.modifiers
        or "offset1" in decoded.modifiers
        or "2addr" in decoded.opcode.name
    ):
        _two(lowering, instruction, data, store)
        return
    operand = data[0][0]
    first = operand.bits.bit_length() - operand.count
    addresses = _local(lowering, decoded, memory.bytes, _offset(decoded))
    shape = _shape(decoded, memory.bytes)
    _access(lowering, instruction, addresses, first, shape, store, False)


def _two(
    lowering: KernelLowering, instruction: Instruction, data: list[tuple[Operand, Any]], store: bool
) -> None:
    """Two elements at two offsets, counted in elements (or 64 of them)."""
    decoded = instruction.decoded
    assert decoded.memory is not None
    size = decoded.memory.bytes // 2
    unit = size * (64 if "stride64" in decoded.opcode.name else 1)
    places = []
    for index in range(2):
        offset = unit * _offset(decoded, f"offset{index}")
        places.append(_local(lowering, decoded, size, offset))
    for index, addresses in enumerate(places):
        if store:
            operand = data[index][0]
            first = operand.bits.bit_length() - operand.count
        else:
            operand = data[0][0]
            first = operand.bits.bit_length() - operand.count + index * size // 4
        _access(lowering, instruction, addresses, first, Shape(size), store, False)


def _access(
    lowering: KernelLowering,
    instruction: Instruction,
    addresses: Any,
    first: int,
    shape: Shape,
    store: bool,
    checked: bool,
) -> None:
    builder, lanes = lowering.builder, lowering.layout.lanes
    builder.store(addresses, lowering.temporary, align=8)
    function = access_function(lowering.module, lanes, shape, store, checked)
    rows = lowering.row(lowering.layout.row(first))
    arguments = [lowering.context, rows, lowering.temporary, lowering.exec_mask()]
    failed = builder.call(function, arguments)
    if checked:
        _fault(lowering, failed, instruction)


def _permute(lowering: KernelLowering, instruction: Instruction) -> None:
    """Lanes exchange a dword through the LDS hardware; addresses are lane numbers times four."""
    decoded = instruction.decoded
    name = decoded.opcode.name
    builder, lanes = lowering.builder, lowering.layout.lanes
    if "bpermute" not in name and name != "ds_permute_b32":
        raise Unsupported("this lane exchange")
    target, address, source = decoded.operands
    numbers = _row_vector(lowering, address.bits.bit_length() - 1)
    numbers = builder.lshr(
        builder.add(numbers, constant(_offset(decoded), 32, lanes)), constant(2, 32, lanes)
    )
    numbers = builder.and_(numbers, constant(lanes - 1, 32, lanes))
    active = builder.bitcast(lowering.exec_mask(), ir.VectorType(I1, lanes))
    data = _row_vector(lowering, source.bits.bit_length() - 1)
    ops = WholeOps(lowering)
    if "bpermute" in name:
        result = ops.gather(data, numbers)
    else:
        result = _scattered(lowering, data, numbers)
    row = lowering.row(lowering.layout.row(target.bits.bit_length() - 1))
    masked_store(builder, result, row, active)


def _scattered(lowering: KernelLowering, data: Any, numbers: Any) -> Any:
    """Every active lane sends its dword to a lane; the highest sender wins, others get 0."""
    builder, lanes = lowering.builder, lowering.layout.lanes
    wide = builder.zext(numbers, ir.VectorType(I64, lanes))
    start = builder.ptrtoint(lowering.indices, I64)
    places = builder.add(splat(builder, start, lanes), builder.shl(wide, constant(2, 64, lanes)))
    builder.store(constant(0, 32, lanes), lowering.indices, align=8)
    builder.store(places, lowering.temporary, align=8)
    store = access_function(lowering.module, lanes, Shape(4), True, False)
    builder.store(data, lowering.spare, align=8)
    builder.call(
        store, [lowering.context, lowering.spare, lowering.temporary, lowering.exec_mask()]
    )
    return builder.load(lowering.indices, align=8, typ=data.type)
