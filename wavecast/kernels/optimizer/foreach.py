"""AdamW over a list of tensors in one launch: their addresses and sizes are in a table."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.optimizer import adamw
from wavecast.kernels.optimizer.adamw import SCALARS, step_elements

CHUNK: Final = 1 << 15
"""Elements of a tensor that a program takes at most."""
_KEPT: Final = 64
_TYPES: Final = {
    torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16
}  # fmt: skip
_STATE = tl.constexpr(tl.float32)
_tables: OrderedDict[tuple, tuple[Tensor, Tensor]] = OrderedDict()


@triton.jit
def tensor_ptr(entry_ptr, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """The tensor whose address is at `entry_ptr`."""
    ptr = tl.load(entry_ptr).to(tl.pointer_type(TYPE))  # pyright: ignore[reportArgumentType]
    return tl.multiple_of(ptr, 16) if ALIGNED else ptr


@triton.jit(do_not_specialize=SCALARS)
def adamw_foreach_kernel(
    table_ptr, chunks_ptr,
    decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
    grad_scale,
    PARAM: tl.constexpr, GRAD: tl.constexpr, MASTER: tl.constexpr, ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`chunks_ptr` [programs, 2]: the tensor a program works on, and which of its chunks."""
    tensor = tl.load(chunks_ptr + 2 * tl.program_id(0))
    start = tl.load(chunks_ptr + 2 * tl.program_id(0) + 1).to(tl.int64) * CHUNK
    entry_ptr = table_ptr + tensor * 6
    param_ptr = tensor_ptr(entry_ptr, PARAM, ALIGNED) + start
    master_ptr = tensor_ptr(entry_ptr + 1, _STATE, ALIGNED) + start
    grad_ptr = tensor_ptr(entry_ptr + 2, GRAD, ALIGNED) + start
    exp_avg_ptr = tensor_ptr(entry_ptr + 3, _STATE, ALIGNED) + start
    exp_avg_sq_ptr = tensor_ptr(entry_ptr + 4, _STATE, ALIGNED) + start
    count = tl.minimum(tl.load(entry_ptr + 5) - start, CHUNK).to(tl.int32)
    offs_block = tl.arange(0, BLOCK)
    # A mask whose limit is a multiple of the block keeps loads vectorised.
    full_blocks = count // BLOCK * BLOCK
    for start_block in range(0, full_blocks, BLOCK):
        offs = start_block + offs_block
        step_elements(
            param_ptr, master_ptr, grad_ptr, exp_avg_ptr, exp_avg_sq_ptr, offs, offs < full_blocks,
            decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
            grad_scale, MASTER,
        )  # fmt: skip
    if full_blocks < count:
        offs = full_blocks + offs_block
        step_elements(
            param_ptr, master_ptr, grad_ptr, exp_avg_ptr, exp_avg_sq_ptr, offs, offs < count,
            decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
            grad_scale, MASTER,
        )  # fmt: skip


def adamw_foreach(
    params: list[Tensor], masters: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor], step: int, lr: float, beta1: float = 0.9, beta2: float = 0.999,
    eps: float = 1e-8, weight_decay: float = 0.01, grad_scale: float = 1.0,
) -> None:  # fmt: skip
    """`adamw` of every tensor in a list, bit by bit, or, where `masters` is not empty,
    `adamw_master`; in one launch for each pair of dtypes.

    Lists are of one length; gradients of other strides are copied. The table of addresses is kept
    on the device for further steps on the same tensors and copied without waiting for it; take a
    step before a CUDA graph is captured. Raises ArgumentError.
    """
    name = "adamw_foreach"
    lists = {"grads": grads, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs}
    for what, others in {**lists, **({"masters": masters} if masters else {})}.items():
        message = f"{len(params)} params and {len(others)} {what}"
        checks.require(len(others) == len(params), name, message)
    numbers = adamw.scalars(name, step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    groups: dict[tuple, list[tuple[Tensor, ...]]] = {}
    for index, (param, grad) in enumerate(zip(params, grads, strict=True)):
        states = {"exp_avg": exp_avgs[index], "exp_avg_sq": exp_avg_sqs[index]}
        if masters:
            states["master"] = masters[index]
        adamw.check_tensors(name, param, grad, states)
        if param.numel():
            master = states.pop("master", param)
            entry = (param, master, grad.contiguous(), *states.values())
            groups.setdefault((param.device, param.dtype, grad.dtype), []).append(entry)
    checks.require(len({key[0] for key in groups}) < 2, name, "tensors on several devices")
    for (_, *dtypes), group in groups.items():
        _launch(group, dtypes, bool(masters), numbers)


def _launch(
    group: Sequence[tuple[Tensor, ...]], dtypes: Sequence[torch.dtype], master: bool,
    numbers: dict[str, float],
) -> None:  # fmt: skip
    entries = tuple(
        (*(tensor.data_ptr() for tensor in tensors), tensors[0].numel()) for tensors in group
    )
    table, chunks = _table(entries, group[0][0].device)
    state_bytes = 12 if master else 8 + dtypes[0].itemsize
    problem = {
        "count": sum(count for *_, count in entries),
        "read": state_bytes + dtypes[1].itemsize,
        "written": state_bytes + (dtypes[0].itemsize if master else 0),
        "master": master,
        "mixed": any(dtype != torch.float32 for dtype in dtypes),
        "programs": len(chunks),
    }
    types = {"PARAM": _TYPES[dtypes[0]], "GRAD": _TYPES[dtypes[1]]}
    aligned = all(at % 16 == 0 for *addresses, _ in entries for at in addresses)
    operands = {"table": table, "chunks": chunks, **numbers, **types}
    choice.run(ADAMW_FOREACH, problem, **operands, ALIGNED=aligned, CHUNK=CHUNK)


def _table(entries: tuple[tuple[int, ...], ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """Addresses and sizes, and the chunks of all tensors, on a device; kept for the next step."""
    key = (entries, device)
    if key not in _tables:
        chunks = [
            (index, chunk)
            for index, (*_, count) in enumerate(entries)
            for chunk in range(triton.cdiv(count, CHUNK))
        ]
        table = torch.tensor(entries, dtype=torch.int64)
        numbers = torch.tensor(chunks, dtype=torch.int32)
        if device.type == "cuda":
            table, numbers = (
                tensor.pin_memory().to(device, non_blocking=True) for tensor in (table, numbers)
            )
        _tables[key] = table, numbers
        while len(_tables) > _KEPT:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    return _tables[key]


def adamw_foreach_reference(
    params, masters, grads, exp_avgs, exp_avg_sqs, step, lr,
    beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, grad_scale=1.0,
):  # fmt: skip
    numbers = (step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    for index, tensors in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs, strict=True)):
        if masters:
            adamw.adamw_master_reference(tensors[0], masters[index], *tensors[1:], *numbers)
        else:
            adamw.adamw_reference(*tensors, *numbers)


ADAMW_FOREACH = describe.KernelSpec.streaming(
    adamw_foreach_kernel,
    grid="programs",
    axes={"BLOCK": (512, 1024, 2048, 4096), "num_warps": (1, 2, 4, 8)},
    # dtypes have one layout only where lanes take 4 each
    fits="4 * lanes <= BLOCK <= (4 if mixed else 16) * lanes",
    read="count * read",
    written="count * written",
    elements="BLOCK",
    instructions=f"30.0 * {CHUNK} / BLOCK",
    live_registers=6.0,
    rounded=("count",),
    ignored=("programs",),
)


def _inputs(make, count, tensors, dtype, grad="", master=False, step=3, **options):
    """`tensors` of `count` elements together, each twice as large as the one before, the first
    empty; gradients of the dtype `grad`."""
    sizes = [count * 2**index // 2**tensors for index in range(tensors)]
    sizes = [0, *sizes, count - sum(sizes)]

    def each(make_one: Any) -> list[Tensor]:
        return [make_one((size,)) for size in sizes]

    return {
        "params": each(lambda shape: make.normal(shape, dtype)),
        "masters": each(lambda shape: make.normal(shape, "float32")) if master else [],
        "grads": each(lambda shape: make.normal(shape, grad or dtype)),
        "exp_avgs": each(lambda shape: make.normal(shape, "float32", 0.1)),
        "exp_avg_sqs": each(lambda shape: make.uniform(shape, "float32", 0.01, 1.0)),
        "step": step,
        "lr": 1e-2,
        **options,
    }


def _work(count, dtype, grad="", master=False, **_):
    size, grad_size = getattr(torch, dtype).itemsize, getattr(torch, grad or dtype).itemsize
    state = count * (12 if master else 8 + size)
    written = state + (count * size if master else 0)
    flops = {"vector_fp32": 14.0 * count}
    return describe.Work(flops, state + count * grad_size, written, "formula", "formula")


OPERATORS = (
    describe.Operator(
        summary="one step of AdamW in place on a list of tensors",
        call=adamw_foreach,
        inputs=_inputs,
        work=_work,
        cases=(
            {"count": 3001, "tensors": 3, "dtype": "float32"},
            {"count": 40000, "tensors": 1, "dtype": "bfloat16", "master": True, "grad_scale": 0.5},
        ),
        thorough=(
            {"count": 777, "tensors": 2, "dtype": "float16", "grad": "float32", "step": 1},
            {"count": 2100, "tensors": 4, "dtype": "float32", "grad": "bfloat16", "beta1": 0.8},
            {"count": 900, "tensors": 2, "dtype": "bfloat16", "weight_decay": 0.1},
        ),
        shapes=(
            {"count": 1 << 27, "tensors": 20, "dtype": "float32"},
            {"count": 1 << 27, "tensors": 20, "dtype": "bfloat16", "master": True},
        ),
        mutates=("params", "masters", "exp_avgs", "exp_avg_sqs"),
        notes=adamw.NOTES,
    ),
)
