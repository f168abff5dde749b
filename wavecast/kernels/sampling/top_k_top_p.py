"""Sampling of tokens from logits with temperature, top-k, top-p and min-p, and the filter alone."""

from __future__ import annotations

from typing import Any

import torch
import triton

from wavecast.kernels import checks, random
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Operator
from wavecast.kernels.pointwise.elementwise import rows_of
from wavecast.kernels.sampling import filters
from wavecast.kernels.space import Settings
from wavecast.model.bounds import Work


def top_k_top_p_sample(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
    min_p: torch.Tensor | None = None,
    seed: int = 0,
) -> torch.Tensor:
    """A token for each row of `logits` [rows, vocabulary] (float32, float16, bfloat16), as int64.

    A row's token is drawn from the softmax of its logits over `temperature` [rows], among those
    that `top_k_top_p_mask` keeps, by the number that `tl.rand(seed, row)` gives: the first token at
    which the sum of probabilities, in the order of the vocabulary, exceeds it. A temperature of 0
    takes the first of the largest logits. The same seed gives the same tokens. A row of -inf alone
    gives some token; with NaN the result is undefined. A CUDA graph replays one seed. Raises
    ArgumentError.
    """
    name = "top_k_top_p_sample"
    _check(name, logits, temperature, top_k, top_p, min_p)
    rows = logits.shape[0]
    chosen = torch.empty((rows,), dtype=torch.int64, device=logits.device)
    if rows:
        signed = (seed + 2**63) % 2**64 - 2**63
        _select(logits, temperature, top_k, top_p, min_p, None, chosen, signed)
    return chosen


def top_k_top_p_mask(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
    min_p: torch.Tensor | None = None,
) -> torch.Tensor:
    """`logits` [rows, vocabulary] (float32, float16, bfloat16) with -inf for what the filters drop.

    Each filter is [rows], or None for none. `top_k` (int32) keeps the k largest, unless k is
    nonpositive or beyond the vocabulary. Of these `top_p` (float32) keeps the fewest largest whose
    probabilities at `temperature` (float32) sum to p of theirs, unless p is 1 or more; `min_p`
    (float32) keeps those of at least min_p times the probability of the largest. Logits equal to
    the smallest kept are kept too. A temperature of 0 keeps the largest alone. Raises
    ArgumentError.
    """
    name = "top_k_top_p_mask"
    _check(name, logits, temperature, top_k, top_p, min_p)
    rows, vocabulary = logits.shape
    out = torch.empty((rows, vocabulary), dtype=logits.dtype, device=logits.device)
    if not rows:
        return out
    flat = rows_of(logits)
    cuts = torch.empty((rows,), dtype=torch.int32, device=logits.device)
    _select(flat, temperature, top_k, top_p, min_p, cuts, None, 0)

    def grid(settings: Settings) -> tuple[int, ...]:
        return (rows * triton.cdiv(vocabulary, settings["BLOCK"]),)

    problem = {"rows": rows, "vocabulary": vocabulary, "bytes": logits.element_size()}
    launch(
        filters.mask_kernel,
        grid,
        (flat, cuts, out, vocabulary, flat.stride(0)),
        filters.MASK,
        problem,
    )
    return out


def _select(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
    cuts: torch.Tensor | None,
    chosen: torch.Tensor | None,
    seed: int,
) -> None:
    """Writes the thresholds of rows to `cuts`, or tokens to `chosen`."""
    flat = rows_of(logits)
    rows, vocabulary = flat.shape
    device = flat.device
    shape = filters.split(vocabulary)
    parts = triton.cdiv(vocabulary, shape["SPLIT"])

    def empty(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(sizes, dtype=dtype, device=device)

    best = empty(rows, parts, shape["COLUMNS"], dtype=torch.float32)
    sums = empty(rows, parts, 2, dtype=torch.float32)
    bounds = empty(rows, 3, dtype=torch.float32)
    counts = empty(rows, parts, dtype=torch.int32)
    values = empty(rows, vocabulary, dtype=torch.float32)
    tokens = empty(rows, vocabulary, dtype=torch.int32)
    found = empty(rows, dtype=torch.int32)
    heat = temperature.contiguous()
    k, p, least = (heat if one is None else one.contiguous() for one in (top_k, top_p, min_p))
    by_k, by_p = {"FILTER_K": top_k is not None}, {"FILTER_P": top_p is not None}
    problem = {"rows": rows, "vocabulary": vocabulary, "bytes": flat.element_size(), **by_k, **by_p}
    lies = vocabulary, flat.stride(0)
    columns = {name: shape[name] for name in ("SPLIT", "COLUMNS")}

    def grid(_: Settings) -> tuple[int, ...]:
        return (rows * parts,)

    launch(
        filters.summary_kernel,
        grid,
        (flat, heat, k, best, sums, *lies),
        filters.SUMMARY,
        problem,
        **by_k,
        **columns,
    )
    launch(
        filters.count_kernel,
        grid,
        (flat, heat, k, p, best, sums, bounds, counts, *lies),
        filters.COUNT,
        problem,
        **by_k,
        **by_p,
        **shape,
    )
    launch(
        filters.gather_kernel,
        grid,
        (flat, bounds, counts, values, tokens, found, *lies),
        filters.GATHER,
        problem,
        SPLIT=shape["SPLIT"],
        PARTS=shape["PARTS"],
    )
    launch(
        filters.choose_kernel,
        lambda _: (rows,),
        (
            *(values, tokens, found, bounds, heat, k, p, least),
            *(found if cuts is None else cuts, found if chosen is None else chosen),
            *(vocabulary, seed),
        ),
        filters.CHOOSE,
        {**problem, "min": min_p is not None, "choose": chosen is not None},
        FILTER_MIN=min_p is not None,
        CHOOSE=chosen is not None,
        **by_k,
        **by_p,
    )


def top_k_top_p_sample_reference(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
    min_p: torch.Tensor | None = None,
    seed: int = 0,
) -> torch.Tensor:
    """Cumulative probabilities of the filtered logits, in float64."""
    kept = _kept(logits, temperature, top_k, top_p, min_p)
    wide = torch.where(kept, logits.double(), -torch.inf)
    greedy = temperature <= 0
    heat = torch.where(greedy, 1.0, temperature).double()
    reached = torch.softmax(wide / heat[:, None], dim=-1).cumsum(-1)
    rows = torch.arange(logits.shape[0], device=logits.device)
    drawn = random.uniform(seed, rows).double()
    goal = torch.where(greedy, 0.0, drawn)[:, None] * reached[:, -1:]
    return (reached > goal).to(torch.uint8).argmax(-1)


def top_k_top_p_mask_reference(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
    min_p: torch.Tensor | None = None,
) -> torch.Tensor:
    """By sorting, in float64."""
    kept = _kept(logits, temperature, top_k, top_p, min_p)
    return torch.where(kept, logits, -torch.inf).to(logits.dtype).contiguous()


def _kept(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
) -> torch.Tensor:
    wide, vocabulary = logits.double(), logits.shape[1]
    greedy = (temperature <= 0)[:, None]
    heat = torch.where(greedy, 1.0, temperature[:, None]).double()
    inorder = wide.sort(dim=-1, descending=True).values
    top = inorder[:, :1]
    count = torch.full_like(greedy, vocabulary, dtype=torch.int64)
    if top_k is not None:
        k = top_k[:, None].long()
        count = torch.where((k <= 0) | (k > vocabulary), vocabulary, k)
    count = torch.where(greedy, 1, count)
    least = inorder.gather(1, count - 1)
    if top_p is not None:
        p = top_p[:, None].double()
        weights = torch.where(inorder >= least, torch.exp((inorder - top) / heat), 0.0)
        sums = weights.cumsum(-1)
        last = (sums >= p * sums[:, -1:]).to(torch.uint8).argmax(-1, keepdim=True)
        least = torch.where(p < 1, torch.maximum(least, inorder.gather(1, last)), least)
    if min_p is not None:
        share = min_p[:, None].double()
        bound = top + heat * share.clamp(1e-300, 1.0).log()
        least = torch.where((share > 0) & ~greedy, torch.maximum(least, bound), least)
    return wide >= least


def _check(
    operator: str,
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
) -> None:
    checks.dtype_in(operator, "logits", logits, checks.FLOATS)
    checks.shape_is(operator, "logits", logits, (-1, -1))
    rows, vocabulary = logits.shape
    checks.require(vocabulary > 0, operator, "the vocabulary is empty")
    message = f"a vocabulary of {vocabulary}; it takes {filters.MOST} at most"
    checks.require(vocabulary <= filters.MOST, operator, message)
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    for name, tensor in given.items():
        if tensor is not None:
            kind = torch.int32 if name == "top_k" else torch.float32
            checks.dtype_in(operator, name, tensor, (kind,))
            checks.shape_is(operator, name, tensor, (rows,))
    checks.same_device(operator, logits=logits, **given)


def _inputs(
    make: Make, rows: int, vocabulary: int, dtype: str, given: str = "kp", k: int = 50
) -> dict[str, Any]:
    """`given` are the filters there are: k, p, m. Some rows go without, one is greedy."""
    heat = make.uniform((rows,), "float32", 0.5, 1.5)
    ks = make.integers((rows,), 1, min(k, vocabulary) + 1, "int32")
    ps = make.uniform((rows,), "float32", 0.5, 0.99)
    if make.values and rows > 2:
        heat[2] = 0.0
        ps[0] = 1.0
        ks[1] = 0
    return {
        "logits": make.normal((rows, vocabulary), dtype, 3.0),
        "temperature": heat,
        "top_k": ks if "k" in given else None,
        "top_p": ps if "p" in given else None,
        "min_p": make.uniform((rows,), "float32", 0.0, 0.1) if "m" in given else None,
    }


def _sample_inputs(make: Make, seed: int = 7, **sizes: Any) -> dict[str, Any]:
    return {**_inputs(make, **sizes), "seed": seed}


def _work(writes: bool) -> Any:
    def work(rows: int, vocabulary: int, dtype: str, **_: Any) -> Work:
        size = rows * vocabulary * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": 8.0 * rows * vocabulary}
        return Work(flops, size + 12 * rows, size if writes else 8 * rows, "formula", "formula")

    return work


_CASES = (
    {"rows": 4, "vocabulary": 300, "dtype": "float32"},
    {"rows": 3, "vocabulary": 5003, "dtype": "bfloat16", "given": "kpm"},
    {"rows": 4, "vocabulary": 2500, "dtype": "float32", "given": "p"},
)
_THOROUGH = (
    {"rows": 5, "vocabulary": 1100, "dtype": "float16", "given": "k", "k": 1},
    {"rows": 3, "vocabulary": 20011, "dtype": "float32", "given": "kp", "k": 15000},
    {"rows": 3, "vocabulary": 9000, "dtype": "float32", "given": ""},
    {"rows": 4, "vocabulary": 777, "dtype": "float32", "given": "m"},
)
_SHAPES = ({"rows": 64, "vocabulary": 128256, "dtype": "float32"},)

OPERATORS = (
    Operator(
        name="top_k_top_p_sample",
        summary="tokens drawn from logits with temperature, top-k, top-p and min-p",
        call=top_k_top_p_sample,
        reference=top_k_top_p_sample_reference,
        inputs=_sample_inputs,
        work=_work(False),
        cases=_CASES,
        thorough=({**_CASES[0], "seed": 2**40 + 1}, *_THOROUGH),
        shapes=_SHAPES,
        spaces=(filters.SUMMARY, filters.COUNT, filters.GATHER, filters.CHOOSE),
        exact=("logits", "temperature", "top_p", "min_p"),
        needs_values=True,
        notes="Fast where filters leave few tokens: the last kernel takes a row per program.",
    ),
    Operator(
        name="top_k_top_p_mask",
        summary="logits with -inf for what top-k, top-p and min-p drop",
        call=top_k_top_p_mask,
        reference=top_k_top_p_mask_reference,
        inputs=_inputs,
        work=_work(True),
        batch=Batch(("logits", "temperature", "top_k", "top_p", "min_p"), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(filters.SUMMARY, filters.COUNT, filters.GATHER, filters.CHOOSE, filters.MASK),
        exact=("logits", "temperature", "top_p", "min_p"),
        needs_values=True,
    ),
)
