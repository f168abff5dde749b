"""Penalties on tokens a sequence has already, in one pass over the logits."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import Batch, Operator, Signature, Work, choice, sizes, widened
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.strides import rows_of

PENALTIES = ("repetition", "presence", "frequency")
TENSORS = Signature(
    *("logits: [rows, vocabulary] float", "counts: [rows, vocabulary] int32|int16"),
    "prompt?: [rows, vocabulary] bool|uint8",
    *(f"{name}?: [rows] float32" for name in PENALTIES),
    returns=("out: [rows, vocabulary] =logits",),
)


@triton.jit
def penalise_kernel(
    logits_ptr, counts_ptr, prompt_ptr, repetition_ptr, presence_ptr, frequency_ptr, out_ptr,
    rows, vocabulary, stride, counts_stride, prompt_stride,
    PROMPT: tl.constexpr, REPETITION: tl.constexpr, PRESENCE: tl.constexpr,
    FREQUENCY: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(vocabulary, BLOCK)
    row = tl.program_id(0) // tiles_n * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % tiles_n * BLOCK + tl.arange(0, BLOCK)
    row_mask = row < rows
    mask = row_mask[:, None] & (column < vocabulary)[None, :]
    row_offset = row.to(tl.int64) if WIDE else row
    logits_offs = row_offset[:, None] * stride + column[None, :]
    x = tl.load(logits_ptr + logits_offs, mask=mask, other=0.0).to(tl.float32)
    counts_offs = row_offset[:, None] * counts_stride + column[None, :]
    count = tl.load(counts_ptr + counts_offs, mask=mask, other=0)
    if REPETITION:
        penalty = tl.load(repetition_ptr + row, mask=row_mask, other=1.0)[:, None]
        occurs = count > 0
        if PROMPT:
            prompt_offs = row_offset[:, None] * prompt_stride + column[None, :]
            occurs = occurs | (tl.load(prompt_ptr + prompt_offs, mask=mask, other=0) != 0)
        x = tl.where(occurs, tl.where(x > 0, x * (1.0 / penalty), x * penalty), x)
    if FREQUENCY:
        frequency = tl.load(frequency_ptr + row, mask=row_mask, other=0.0)[:, None]
        x = x - frequency * count.to(tl.float32)
    if PRESENCE:
        presence = tl.load(presence_ptr + row, mask=row_mask, other=0.0)[:, None]
        x = tl.where(count > 0, x - presence, x)
    out_ptrs = out_ptr + row_offset[:, None] * vocabulary + column[None, :]
    tl.store(out_ptrs, x.to(out_ptr.dtype.element_ty), mask=mask)


PENALISE = elementwise.row_kernel(
    penalise_kernel,
    instructions=14.0,
    live_registers=4.0,
    strides={"logits": "stride", "counts": "counts_stride", "prompt": "prompt_stride"},
)


@TENSORS.checked
def penalise(
    logits: Tensor, counts: Tensor, prompt: Tensor | None = None, repetition: Tensor | None = None,
    presence: Tensor | None = None, frequency: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`logits` [rows, vocabulary] (float32, float16, bfloat16) less likely where a sequence has
    tokens already, in their dtype; `counts` [rows, vocabulary] (int32, int16) says how often each
    token was generated, `prompt` of that shape (bool or uint8) whether the prompt has it.

    Each penalty is [rows] of float32, or None for none, and they come in this order. Logits of
    tokens generated or prompted are divided by `repetition` (over 0; 1 changes nothing) where they
    are positive, else multiplied by it (Keskar et al., CTRL, 2019, section 4.1). `frequency` is
    taken off for every time a token was generated, `presence` once. In float32. Raises
    ArgumentError.
    """
    rows, vocabulary = logits.shape
    out = torch.empty((rows, vocabulary), dtype=logits.dtype, device=logits.device)
    if not out.numel():
        return out
    penalties = dict(zip(PENALTIES, (repetition, presence, frequency), strict=True))
    flat, times = rows_of(logits), rows_of(counts)
    prompted = times if prompt is None else rows_of(prompt.view(torch.uint8))
    flags = {name.upper(): penalty is not None for name, penalty in penalties.items()}
    flags["PROMPT"] = prompt is not None and repetition is not None
    problem = {
        "rows": rows,
        "columns": vocabulary,
        **elementwise.traffic_entries((flat, times), (out,)),
    }
    problem["read"] += flags["PROMPT"]
    operands = {"logits": flat, "counts": times, "prompt": prompted, "out": out}
    operands |= {
        n: flat if penalty is None else penalty.contiguous() for n, penalty in penalties.items()
    }
    choice.run(PENALISE, {**problem, **flags}, **operands, vocabulary=vocabulary)
    return out


def penalise_reference(logits, counts, prompt=None, repetition=None, presence=None, frequency=None):
    x = widened(logits)
    if repetition is not None:
        occurs = counts > 0 if prompt is None else (counts > 0) | (prompt != 0)
        penalty = repetition[:, None].to(x.dtype)
        x = torch.where(occurs, torch.where(x > 0, x / penalty, x * penalty), x)
    if frequency is not None:
        x = x - frequency[:, None] * counts
    if presence is not None:
        x = x - presence[:, None] * (counts > 0)
    return x.to(logits.dtype).contiguous()


def _inputs(make, rows, vocabulary, dtype, given="trpf", counts="int32"):
    """`given`: t(he prompt), r(epetition), p(resence), f(requency)."""
    times = make.integers((rows, vocabulary), -6, 4, counts).clamp_min(0)
    return {
        "logits": make.normal((rows, vocabulary), dtype, 3.0),
        "counts": times,
        "prompt": make.integers((rows, vocabulary), 0, 2, "bool") if "t" in given else None,
        "repetition": make.uniform((rows,), "float32", 0.5, 2.0) if "r" in given else None,
        "presence": make.uniform((rows,), "float32", -2.0, 2.0) if "p" in given else None,
        "frequency": make.uniform((rows,), "float32", -2.0, 2.0) if "f" in given else None,
    }


def _work(rows, vocabulary, dtype, given="trpf", counts="int32"):
    elements = rows * vocabulary
    size, count_size = getattr(torch, dtype).itemsize, getattr(torch, counts).itemsize
    read = elements * (size + count_size + ("t" in given))
    return Work({"vector_fp32": 8.0 * elements}, read, elements * size, "formula", "formula")


OPERATOR = Operator(
    summary="repetition, presence and frequency penalties on logits",
    call=penalise,
    inputs=_inputs,
    work=_work,
    batch=Batch(("logits", "counts", "prompt", "repetition", "presence", "frequency"), merged=True),
    cases=sizes(
        "rows vocabulary dtype given counts",
        *((3, 1003, "float32"), (5, 300, "bfloat16", "rf", "int16")),
    ),
    thorough=sizes(
        "rows vocabulary dtype given",
        *((2, 5000, "float16", "tr"), (33, 70, "float32", "p"), (4, 129, "bfloat16", "tpf")),
    ),
    shapes=(
        {"rows": 64, "vocabulary": 128256, "dtype": "float32"},
        {"rows": 64, "vocabulary": 128256, "dtype": "bfloat16", "counts": "int16"},
    ),
    exact=("repetition", "presence", "frequency"),
)
