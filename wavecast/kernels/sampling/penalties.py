"""Penalties on tokens a sequence has already, in one pass over the logits."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Operator
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.space import Settings
from wavecast.model.bounds import Work

COUNTS = (torch.int32, torch.int16)
SEEN = (torch.bool, torch.uint8)


@triton.jit
def penalise_kernel(
    logits_ptr, counts_ptr, prompt_ptr, repetition_ptr, presence_ptr, frequency_ptr, out_ptr,
    rows, vocabulary, stride, counts_stride, prompt_stride,
    PROMPT: tl.constexpr, REPETITION: tl.constexpr, PRESENCE: tl.constexpr,
    FREQUENCY: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(vocabulary, BLOCK)
    row = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    there = row < rows
    inside = there[:, None] & (column < vocabulary)[None, :]
    far = row.to(tl.int64) if WIDE else row
    place = far[:, None] * stride + column[None, :]
    x = tl.load(logits_ptr + place, mask=inside, other=0.0).to(tl.float32)
    counted = far[:, None] * counts_stride + column[None, :]
    count = tl.load(counts_ptr + counted, mask=inside, other=0)
    if REPETITION:
        penalty = tl.load(repetition_ptr + row, mask=there, other=1.0)[:, None]
        seen = count > 0
        if PROMPT:
            asked = far[:, None] * prompt_stride + column[None, :]
            seen = seen | (tl.load(prompt_ptr + asked, mask=inside, other=0) != 0)
        x = tl.where(seen, tl.where(x > 0, x * (1.0 / penalty), x * penalty), x)
    if FREQUENCY:
        each = tl.load(frequency_ptr + row, mask=there, other=0.0)[:, None]
        x = x - each * count.to(tl.float32)
    if PRESENCE:
        once = tl.load(presence_ptr + row, mask=there, other=0.0)[:, None]
        x = tl.where(count > 0, x - once, x)
    to = out_ptr + far[:, None] * vocabulary + column[None, :]
    tl.store(to, x.to(out_ptr.dtype.element_ty), mask=inside)


def penalise(
    logits: torch.Tensor,
    counts: torch.Tensor,
    prompt: torch.Tensor | None = None,
    repetition: torch.Tensor | None = None,
    presence: torch.Tensor | None = None,
    frequency: torch.Tensor | None = None,
) -> torch.Tensor:
    """`logits` [rows, vocabulary] (float32, float16, bfloat16) less likely where a sequence has
    tokens already, in their dtype; `counts` [rows, vocabulary] (int32, int16) says how often each
    token was generated, `prompt` of that shape (bool or uint8) whether it stands in the prompt.

    Each penalty is [rows] of float32, or None for none, and they come in this order. Logits of
    tokens generated or prompted are divided by `repetition` (over 0; 1 changes nothing) where they
    are positive, else multiplied by it (Keskar et al., CTRL, 2019, section 4.1). `frequency` is
    taken off for every time a token was generated, `presence` once. In float32. Raises
    ArgumentError.
    """
    given = {"repetition": repetition, "presence": presence, "frequency": frequency}
    _check(logits, counts, prompt, given)
    rows, vocabulary = logits.shape
    out = torch.empty((rows, vocabulary), dtype=logits.dtype, device=logits.device)
    if not out.numel():
        return out
    flat, times = elementwise.rows_of(logits), elementwise.rows_of(counts)
    asked = times if prompt is None else elementwise.rows_of(prompt.view(torch.uint8))
    each = (flat if one is None else one.contiguous() for one in given.values())

    def grid(settings: Settings) -> tuple[int, ...]:
        down = triton.cdiv(rows, settings["ROWS"])
        return (down * triton.cdiv(vocabulary, settings["BLOCK"]),)

    flags = {name.upper(): one is not None for name, one in given.items()}
    flags["PROMPT"] = prompt is not None and repetition is not None
    launch(
        penalise_kernel,
        grid,
        (
            *(flat, times, asked, *each, out, rows, vocabulary),
            *(flat.stride(0), times.stride(0), asked.stride(0)),
        ),
        SPACE,
        {
            "rows": rows,
            "columns": vocabulary,
            "read": elementwise.bytes_of(flat, times) + flags["PROMPT"],
            "written": out.element_size(),
            **flags,
        },
        WIDE=checks.wide(flat, times, asked, out),
        **flags,
    )
    return out


def penalise_reference(
    logits: torch.Tensor,
    counts: torch.Tensor,
    prompt: torch.Tensor | None = None,
    repetition: torch.Tensor | None = None,
    presence: torch.Tensor | None = None,
    frequency: torch.Tensor | None = None,
) -> torch.Tensor:
    """One after the other, in float32 at least."""
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if repetition is not None:
        seen = counts > 0 if prompt is None else (counts > 0) | (prompt != 0)
        penalty = repetition[:, None].to(x.dtype)
        x = torch.where(seen, torch.where(x > 0, x / penalty, x * penalty), x)
    if frequency is not None:
        x = x - frequency[:, None] * counts
    if presence is not None:
        x = x - presence[:, None] * (counts > 0)
    return x.to(logits.dtype).contiguous()


def _check(
    logits: torch.Tensor,
    counts: torch.Tensor,
    prompt: torch.Tensor | None,
    penalties: dict[str, torch.Tensor | None],
) -> None:
    operator = "penalise"
    checks.dtype_in(operator, "logits", logits, checks.FLOATS)
    checks.shape_is(operator, "logits", logits, (-1, -1))
    checks.dtype_in(operator, "counts", counts, COUNTS)
    checks.shape_is(operator, "counts", counts, logits.shape)
    if prompt is not None:
        checks.dtype_in(operator, "prompt", prompt, SEEN)
        checks.shape_is(operator, "prompt", prompt, logits.shape)
    for name, tensor in penalties.items():
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, (torch.float32,))
            checks.shape_is(operator, name, tensor, logits.shape[:1])
    checks.same_device(operator, logits=logits, counts=counts, prompt=prompt, **penalties)


SPACE = elementwise.row_space("penalise_kernel", operations=14.0, held=4.0)


def _inputs(
    make: Make, rows: int, vocabulary: int, dtype: str, given: str = "trpf", counts: str = "int32"
) -> dict[str, Any]:
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


def _work(
    rows: int, vocabulary: int, dtype: str, given: str = "trpf", counts: str = "int32"
) -> Work:
    elements = rows * vocabulary
    size, times = getattr(torch, dtype).itemsize, getattr(torch, counts).itemsize
    read = elements * (size + times + ("t" in given))
    return Work({"vector_fp32": 8.0 * elements}, read, elements * size, "formula", "formula")


OPERATORS = (
    Operator(
        name="penalise",
        summary="repetition, presence and frequency penalties on logits",
        call=penalise,
        reference=penalise_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(
            ("logits", "counts", "prompt", "repetition", "presence", "frequency"), merged=True
        ),
        cases=(
            {"rows": 3, "vocabulary": 1003, "dtype": "float32"},
            {"rows": 5, "vocabulary": 300, "dtype": "bfloat16", "given": "rf", "counts": "int16"},
        ),
        thorough=(
            {"rows": 2, "vocabulary": 5000, "dtype": "float16", "given": "tr"},
            {"rows": 33, "vocabulary": 70, "dtype": "float32", "given": "p"},
            {"rows": 4, "vocabulary": 129, "dtype": "bfloat16", "given": "tpf"},
        ),
        shapes=(
            {"rows": 64, "vocabulary": 128256, "dtype": "float32"},
            {"rows": 64, "vocabulary": 128256, "dtype": "bfloat16", "counts": "int16"},
        ),
        spaces=(SPACE,),
        exact=("repetition", "presence", "frequency"),
    ),
)
