"""AdamW over a list of tensors in one launch: their addresses and sizes stand in a table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator
from wavecast.kernels.optimizer import adamw
from wavecast.kernels.optimizer.adamw import SCALARS, advance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

CHUNK: Final = 1 << 15
"""Elements of a tensor that a program takes at most."""
_FIELDS: Final = 6
"""Of a tensor in the table: addresses of parameters, master, gradient and averages, elements."""
_KEPT: Final = 64
_TYPES: Final = {
    torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16
}  # fmt: skip
_STATE = tl.constexpr(tl.float32)
_tables: OrderedDict[tuple, tuple[torch.Tensor, torch.Tensor]] = OrderedDict()


@triton.jit
def pointer(entry, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """The tensor whose address stands at `entry`."""
    found = tl.load(entry).to(tl.pointer_type(TYPE))  # pyright: ignore[reportArgumentType]
    return tl.multiple_of(found, 16) if ALIGNED else found


@triton.jit(do_not_specialize=SCALARS)
def adamw_foreach_kernel(
    table_ptr, chunks_ptr,
    decay, beta1, rest1, beta2, rest2, eps, rate, root, grad_scale,
    PARAM: tl.constexpr, GRAD: tl.constexpr, MASTER: tl.constexpr, ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`chunks_ptr` [programs, 2]: the tensor a program works on, and which of its chunks."""
    tensor = tl.load(chunks_ptr + 2 * tl.program_id(0))
    start = tl.load(chunks_ptr + 2 * tl.program_id(0) + 1).to(tl.int64) * CHUNK
    entry = table_ptr + tensor * 6
    param_ptr = pointer(entry, PARAM, ALIGNED) + start
    master_ptr = pointer(entry + 1, _STATE, ALIGNED) + start
    grad_ptr = pointer(entry + 2, GRAD, ALIGNED) + start
    mean_ptr = pointer(entry + 3, _STATE, ALIGNED) + start
    square_ptr = pointer(entry + 4, _STATE, ALIGNED) + start
    count = tl.minimum(tl.load(entry + 5) - start, CHUNK).to(tl.int32)
    along = tl.arange(0, BLOCK)
    # Vectors are known to lie inside or outside as a whole where the limit is a multiple.
    whole = count // BLOCK * BLOCK
    for first in range(0, whole, BLOCK):
        place = first + along
        advance(
            param_ptr, master_ptr, grad_ptr, mean_ptr, square_ptr, place, place < whole,
            decay, beta1, rest1, beta2, rest2, eps, rate, root, grad_scale, MASTER,
        )  # fmt: skip
    if whole < count:
        place = whole + along
        advance(
            param_ptr, master_ptr, grad_ptr, mean_ptr, square_ptr, place, place < count,
            decay, beta1, rest1, beta2, rest2, eps, rate, root, grad_scale, MASTER,
        )  # fmt: skip


def adamw_foreach(
    params: list[torch.Tensor],
    masters: list[torch.Tensor],
    grads: list[torch.Tensor],
    exp_avgs: list[torch.Tensor],
    exp_avg_sqs: list[torch.Tensor],
    step: int,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:
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
    groups: dict[tuple, list[tuple[torch.Tensor, ...]]] = {}
    for place, (param, grad) in enumerate(zip(params, grads, strict=True)):
        states = {"exp_avg": exp_avgs[place], "exp_avg_sq": exp_avg_sqs[place]}
        if masters:
            states["master"] = masters[place]
        adamw.check_tensors(name, param, grad, states)
        if param.numel():
            master = states.pop("master", param)
            one = (param, master, grad.contiguous(), *states.values())
            groups.setdefault((param.device, param.dtype, grad.dtype), []).append(one)
    checks.require(len({key[0] for key in groups}) < 2, name, "tensors on several devices")
    for (_, *dtypes), group in groups.items():
        _launch(group, dtypes, bool(masters), numbers)


def _launch(
    group: Sequence[tuple[torch.Tensor, ...]],
    dtypes: Sequence[torch.dtype],
    master: bool,
    numbers: tuple[float, ...],
) -> None:
    entries = tuple((*(one.data_ptr() for one in own), own[0].numel()) for own in group)
    table, chunks = _table(entries, group[0][0].device)
    moved = 12 if master else 8 + dtypes[0].itemsize
    launch(
        adamw_foreach_kernel,
        lambda _: (len(chunks),),
        (table, chunks, *numbers),
        SPACE,
        {
            "count": sum(count for *_, count in entries),
            "read": moved + dtypes[1].itemsize,
            "written": moved + (dtypes[0].itemsize if master else 0),
            "master": master,
            "mixed": any(dtype != torch.float32 for dtype in dtypes),
        },
        PARAM=_TYPES[dtypes[0]],
        GRAD=_TYPES[dtypes[1]],
        MASTER=master,
        ALIGNED=all(at % 16 == 0 for *addresses, _ in entries for at in addresses),
        CHUNK=CHUNK,
    )


def _table(
    entries: tuple[tuple[int, ...], ...], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Addresses and sizes, and the chunks of all tensors, on a device; kept for the next step."""
    key = (entries, device)
    if key not in _tables:
        chunks = [
            (place, chunk)
            for place, (*_, count) in enumerate(entries)
            for chunk in range(triton.cdiv(count, CHUNK))
        ]
        table = torch.tensor(entries, dtype=torch.int64)
        places = torch.tensor(chunks, dtype=torch.int32)
        if device.type == "cuda":
            table, places = (
                one.pin_memory().to(device, non_blocking=True) for one in (table, places)
            )
        _tables[key] = table, places
        while len(_tables) > _KEPT:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    return _tables[key]


def adamw_foreach_reference(
    params: list[torch.Tensor],
    masters: list[torch.Tensor],
    grads: list[torch.Tensor],
    exp_avgs: list[torch.Tensor],
    exp_avg_sqs: list[torch.Tensor],
    step: int,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:
    """One tensor after the other."""
    numbers = (step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    for place, own in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs, strict=True)):
        if masters:
            adamw.adamw_master_reference(own[0], masters[place], *own[1:], *numbers)
        else:
            adamw.adamw_reference(*own, *numbers)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del problem, device
    return {"BLOCK": (512, 1024, 2048, 4096), "num_warps": (1, 2, 4, 8), "num_stages": (1,)}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    most = 4 if problem["mixed"] else 16  # dtypes have one layout only where lanes take 4 each
    return 4 * lanes <= settings["BLOCK"] <= most * lanes


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    count = problem["count"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(count, CHUNK),
        read=count * problem["read"],
        written=count * problem["written"],
        elements=settings["BLOCK"],
        operations=30.0 * CHUNK / settings["BLOCK"],
        held=6.0,
    )


SPACE = Space(
    kernel="adamw_foreach_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("count",)
)


def _inputs(
    make: Make, count: int, tensors: int, dtype: str, grad: str = "", master: bool = False,
    step: int = 3, **named: Any,
) -> dict[str, Any]:  # fmt: skip
    """`tensors` of `count` elements together, each twice as large as the one before, the first
    empty; gradients of the dtype `grad`."""
    sizes = [count * 2**place // 2**tensors for place in range(tensors)]
    sizes = [0, *sizes, count - sum(sizes)]

    def each(make_one: Any) -> list[torch.Tensor]:
        return [make_one((size,)) for size in sizes]

    return {
        "params": each(lambda shape: make.normal(shape, dtype)),
        "masters": each(lambda shape: make.normal(shape, "float32")) if master else [],
        "grads": each(lambda shape: make.normal(shape, grad or dtype)),
        "exp_avgs": each(lambda shape: make.normal(shape, "float32", 0.1)),
        "exp_avg_sqs": each(lambda shape: make.uniform(shape, "float32", 0.01, 1.0)),
        "step": step,
        "lr": 1e-2,
        **named,
    }


def _work(
    count: int, tensors: int, dtype: str, grad: str = "", master: bool = False, **_: Any
) -> Work:
    del tensors
    size = getattr(torch, dtype).itemsize
    slope = getattr(torch, grad or dtype).itemsize
    kept = count * (12 if master else 8 + size)
    written = kept + (count * size if master else 0)
    flops = {"vector_fp32": 14.0 * count}
    return Work(flops, kept + count * slope, written, "formula", "formula")


OPERATORS = (
    Operator(
        name="adamw_foreach",
        summary="one step of AdamW in place on a list of tensors",
        call=adamw_foreach,
        reference=adamw_foreach_reference,
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
        spaces=(SPACE,),
        mutates=("params", "masters", "exp_avgs", "exp_avg_sqs"),
        notes=adamw.NOTES,
    ),
)
