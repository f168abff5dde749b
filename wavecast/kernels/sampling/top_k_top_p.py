"""Sampling of tokens from logits with temperature, top-k, top-p and min-p, and the filter alone."""

from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor

from wavecast.kernels import random
from wavecast.kernels.describe import Batch, Operator, Signature, Work, checks, choice, sizes
from wavecast.kernels.sampling import filters
from wavecast.kernels.strides import rows_of

TENSORS = Signature(
    *("logits: [rows, vocabulary] float", "temperature: [rows] float32", "top_k?: [rows] int32"),
    *("top_p?: [rows] float32", "min_p?: [rows] float32"),
)


@TENSORS.checked
def top_k_top_p_sample(
    logits: Tensor, temperature: Tensor, top_k: Tensor | None = None, top_p: Tensor | None = None,
    min_p: Tensor | None = None, seed: int = 0,
) -> Tensor:  # fmt: skip
    """A token for each row of `logits` [rows, vocabulary] (float32, float16, bfloat16), as int64.

    A row's token is drawn from the softmax of its logits over `temperature` [rows], among those
    that `top_k_top_p_mask` keeps, by the number that `tl.rand(seed, row)` gives: the first token at
    which the sum of probabilities, in the order of the vocabulary, exceeds it. A temperature of 0
    takes the first of the largest logits. The same seed gives the same tokens. A row of -inf alone
    gives some token; with NaN the result is undefined. A CUDA graph replays one seed. Raises
    ArgumentError.
    """
    _check_vocabulary("top_k_top_p_sample", logits)
    rows = logits.shape[0]
    tokens = torch.empty((rows,), dtype=torch.int64, device=logits.device)
    if rows:
        _select(logits, (temperature, top_k, top_p, min_p), None, tokens, random.to_int64(seed))
    return tokens


@TENSORS.checked
def top_k_top_p_mask(
    logits: Tensor, temperature: Tensor, top_k: Tensor | None = None, top_p: Tensor | None = None,
    min_p: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`logits` [rows, vocabulary] (float32, float16, bfloat16) with -inf for what the filters drop.

    Each filter is [rows], or None for none. `top_k` (int32) keeps the k largest, unless k is
    nonpositive or beyond the vocabulary. Of these `top_p` (float32) keeps the fewest largest whose
    probabilities at `temperature` (float32) sum to p of theirs, unless p is 1 or more; `min_p`
    (float32) keeps those of at least min_p times the probability of the largest. Logits equal to
    the smallest kept are kept too. A temperature of 0 keeps the largest alone. Raises
    ArgumentError.
    """
    _check_vocabulary("top_k_top_p_mask", logits)
    rows, vocabulary = logits.shape
    out = torch.empty((rows, vocabulary), dtype=logits.dtype, device=logits.device)
    if not rows:
        return out
    flat = rows_of(logits)
    cuts = torch.empty((rows,), dtype=torch.int32, device=logits.device)
    _select(flat, (temperature, top_k, top_p, min_p), cuts, None)
    problem = {"rows": rows, "vocabulary": vocabulary, "bytes": logits.element_size()}
    choice.run(filters.MASK, problem, logits=flat, cuts=cuts, out=out)
    return out


def _select(
    logits: Tensor, options: Sequence[Tensor | None], cuts: Tensor | None, tokens: Tensor | None,
    seed: int = 0,
) -> None:  # fmt: skip
    """Writes the thresholds of rows to `cuts`, or tokens to `tokens`. `options` are the
    temperature, top_k, top_p and min_p."""
    flat = rows_of(logits)
    rows, vocabulary = flat.shape
    shape = filters.split(vocabulary)
    parts = triton.cdiv(vocabulary, shape["SPLIT"])

    def empty(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(sizes, dtype=dtype, device=flat.device)

    largest = {"best": empty(rows, parts, shape["COLUMNS"]), "sums": empty(rows, parts, 2)}
    bounds = empty(rows, 3)
    counts = empty(rows, parts, dtype=torch.int32)
    gathered = {
        "values": empty(rows, vocabulary),
        "tokens": empty(rows, vocabulary, dtype=torch.int32),
        "num_found": empty(rows, dtype=torch.int32),
    }
    flags = {
        f"FILTER_{n}": option is not None for n, option in zip("KP", options[1:], strict=False)
    }
    tensors = [options[0] if option is None else option for option in options]
    divisor, k, p, ratio = (option.contiguous() for option in tensors if option is not None)
    problem = {"rows": rows, "vocabulary": vocabulary, "bytes": flat.element_size(), **flags}
    split = {name: shape[name] for name in ("SPLIT", "COLUMNS")}
    scaled = {"temperature": divisor, "k": k}
    choice.run(filters.SUMMARY, problem, logits=flat, **scaled, **largest, **split)
    selection = {"bounds": bounds, "counts": counts}
    choice.run(filters.COUNT, problem, logits=flat, **scaled, p=p, **largest, **selection, **shape)
    split = {name: shape[name] for name in ("SPLIT", "PARTS")}
    choice.run(filters.GATHER, problem, logits=flat, **gathered, **selection, **split)
    minimum = options[3] is not None
    problem |= {"min": minimum, "choose": tokens is not None}
    unused = gathered["num_found"]
    choice.run(
        filters.CHOOSE, problem, **gathered, **scaled, p=p, min=ratio, bounds=bounds, seed=seed,
        cuts=unused if cuts is None else cuts, token=unused if tokens is None else tokens,
        FILTER_MIN=minimum,
    )  # fmt: skip


def _check_vocabulary(operator: str, logits: Tensor) -> None:
    vocabulary = logits.shape[1]
    checks.require(vocabulary > 0, operator, "the vocabulary is empty")
    message = f"a vocabulary of {vocabulary}; it takes {filters.MOST} at most"
    checks.require(vocabulary <= filters.MOST, operator, message)


def top_k_top_p_sample_reference(logits, temperature, top_k=None, top_p=None, min_p=None, seed=0):
    """Cumulative probabilities of the filtered logits, in float64."""
    mask = _sampling_mask(logits, temperature, top_k, top_p, min_p)
    wide = torch.where(mask, logits.double(), -torch.inf)
    greedy = temperature <= 0
    divisor = torch.where(greedy, 1.0, temperature).double()
    cumulative = torch.softmax(wide / divisor[:, None], dim=-1).cumsum(-1)
    rows = torch.arange(logits.shape[0], device=logits.device)
    draw = random.uniform(seed, rows).double()
    goal = torch.where(greedy, 0.0, draw)[:, None] * cumulative[:, -1:]
    return (cumulative > goal).to(torch.uint8).argmax(-1)


def top_k_top_p_mask_reference(logits, temperature, top_k=None, top_p=None, min_p=None):
    """By sorting, in float64."""
    mask = _sampling_mask(logits, temperature, top_k, top_p, min_p)
    return torch.where(mask, logits, -torch.inf).to(logits.dtype).contiguous()


def _sampling_mask(logits, temperature, top_k, top_p, min_p):
    wide, vocabulary = logits.double(), logits.shape[1]
    greedy = (temperature <= 0)[:, None]
    divisor = torch.where(greedy, 1.0, temperature[:, None]).double()
    ordered = wide.sort(dim=-1, descending=True).values
    top = ordered[:, :1]
    count = torch.full_like(greedy, vocabulary, dtype=torch.int64)
    if top_k is not None:
        k = top_k[:, None].long()
        count = torch.where((k <= 0) | (k > vocabulary), vocabulary, k)
    count = torch.where(greedy, 1, count)
    least = ordered.gather(1, count - 1)
    if top_p is not None:
        p = top_p[:, None].double()
        exponentials = torch.where(ordered >= least, torch.exp((ordered - top) / divisor), 0.0)
        sums = exponentials.cumsum(-1)
        last = (sums >= p * sums[:, -1:]).to(torch.uint8).argmax(-1, keepdim=True)
        least = torch.where(p < 1, torch.maximum(least, ordered.gather(1, last)), least)
    if min_p is not None:
        ratio = min_p[:, None].double()
        bound = top + divisor * ratio.clamp(1e-300, 1.0).log()
        least = torch.where((ratio > 0) & ~greedy, torch.maximum(least, bound), least)
    return wide >= least


def _inputs(make, rows, vocabulary, dtype, given="kp", k=50, **options):
    """`given` are the filters there are: k, p, m. Some rows go without, one is greedy."""
    temperature = make.uniform((rows,), "float32", 0.5, 1.5)
    top_k = make.integers((rows,), 1, min(k, vocabulary) + 1, "int32")
    top_p = make.uniform((rows,), "float32", 0.5, 0.99)
    if make.values and rows > 2:
        temperature[2] = 0.0
        top_p[0] = 1.0
        top_k[1] = 0
    return {
        "logits": make.normal((rows, vocabulary), dtype, 3.0),
        "temperature": temperature,
        "top_k": top_k if "k" in given else None,
        "top_p": top_p if "p" in given else None,
        "min_p": make.uniform((rows,), "float32", 0.0, 0.1) if "m" in given else None,
        **options,
    }


def _sample_inputs(make, seed=7, **sizes):
    return _inputs(make, seed=seed, **sizes)


def _work(writes: bool) -> Any:
    def work(rows, vocabulary, dtype, **_):
        size = rows * vocabulary * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": 8.0 * rows * vocabulary}
        return Work(flops, size + 12 * rows, size if writes else 8 * rows, "formula", "formula")

    return work


_SIZES = "rows vocabulary dtype given k"
_CASES = sizes(
    _SIZES,
    *((4, 300, "float32"), (3, 5003, "bfloat16", "kpm"), (4, 2500, "float32", "p")),
)
_THOROUGH = sizes(
    _SIZES,
    *((5, 1100, "float16", "k", 1), (3, 20011, "float32", "kp", 15000)),
    *((3, 9000, "float32", ""), (4, 777, "float32", "m")),
)
_SHAPES = sizes(_SIZES, (64, 128256, "float32"))
_SHARED: dict[str, Any] = {
    "tensors": TENSORS,
    "cases": _CASES,
    "shapes": _SHAPES,
    "exact": ("logits", "temperature", "top_p", "min_p"),
    "needs_values": True,
}

OPERATORS = (
    Operator(
        summary="tokens drawn from logits with temperature, top-k, top-p and min-p",
        call=top_k_top_p_sample,
        fake=lambda logits, *_, **__: logits.new_empty(logits.shape[0], dtype=torch.int64),
        inputs=_sample_inputs,
        work=_work(False),
        thorough=({**_CASES[0], "seed": 2**40 + 1}, *_THOROUGH),
        notes="Fast where filters leave few tokens: the last kernel takes a row per program.",
        **_SHARED,
    ),
    Operator(
        summary="logits with -inf for what top-k, top-p and min-p drop",
        call=top_k_top_p_mask,
        fake=lambda logits, *_, **__: logits.new_empty(logits.shape),
        inputs=_inputs,
        work=_work(True),
        batch=Batch(("logits", "temperature", "top_k", "top_p", "min_p"), merged=True),
        thorough=_THOROUGH,
        **_SHARED,
    ),
)
