"""Which experts every token goes to, and how much each counts."""

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, derivative, describe
from wavecast.kernels.describe import KernelSpec, Make, Problem, Settings, Signature, sizes
from wavecast.kernels.strides import adjacent

TENSORS = Signature(
    "logits: [tokens, experts] float",
    "bias?: [experts] float",
    returns=("weights: [tokens, top_k] float32", "experts: [tokens, top_k] int32"),
)
BACKWARD_TENSORS = Signature(
    "logits: [tokens, experts] float",
    "experts: [tokens, top_k] int32",
    "dweights: [tokens, top_k] float",
    returns=("dlogits: [tokens, experts] =logits",),
)
TINY: Final = 1e-20
"""Added to the sum that weights are divided by."""
_SCORINGS: Final = ("softmax", "sigmoid")
_MOST_EXPERTS: Final = 2048
_TAKEN: Final = tl.constexpr(-(2**31))


@triton.jit
def _scores(logits, expert_mask, SIGMOID: tl.constexpr):
    """Scores in float32; 0 beyond the experts there are."""
    if SIGMOID:
        scores = tl.sigmoid(logits)
    else:
        masked = tl.where(expert_mask, logits, -float("inf"))
        exps = tl.exp(masked - tl.max(masked, axis=1)[:, None])  # pyright: ignore[reportArgumentType, reportCallIssue]
        scores = exps / tl.sum(tl.where(expert_mask, exps, 0.0), axis=1)[:, None]  # pyright: ignore[reportArgumentType]
    return tl.where(expert_mask, scores, 0.0)


@triton.jit
def _ordered(value):
    """Integers in the order of float32 values; -0 is 0, NaN is -inf."""
    value = tl.where(value != value, -float("inf"), value)
    bits = tl.where(value == 0, 0.0, value).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _best_two(scores, mine):
    """Per row the sum of the two largest scores among `mine`; of the one there is."""
    candidates = tl.where(mine, scores, -float("inf"))
    offs = tl.arange(0, scores.shape[1])[None, :]
    first, index = tl.max(candidates, axis=1, return_indices=True)
    second = tl.max(tl.where(offs == index[:, None], -float("inf"), candidates), axis=1)
    return first + tl.where(second == -float("inf"), 0.0, second)


@triton.jit
def moe_route_kernel(
    logits_ptr, bias_ptr, weights_ptr, experts_ptr, tokens, count, stride, scale, tiny,
    TOP_K: tl.constexpr, SIGMOID: tl.constexpr, RENORMALISE: tl.constexpr, BIAS: tl.constexpr,
    GROUPS: tl.constexpr, TOP_GROUPS: tl.constexpr, EXPERTS: tl.constexpr, ROWS: tl.constexpr,
    CHOICES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)[None, :]
    expert_mask = (row < tokens)[:, None] & (expert < count)
    row64 = row.to(tl.int64) if WIDE else row
    logits = tl.load(logits_ptr + row64[:, None] * stride + expert, mask=expert_mask, other=0.0)
    logits = logits.to(tl.float32)
    scores = _scores(logits, expert < count, SIGMOID)
    ranked = logits
    if BIAS:
        bias = tl.load(bias_ptr + expert, mask=expert < count, other=0.0).to(tl.float32)
        ranked = scores + bias
    keys = tl.where(expert < count, _ordered(ranked), _TAKEN)
    if TOP_GROUPS < GROUPS:
        size = count // GROUPS
        biased = scores
        if BIAS:
            biased = ranked
        numbers = tl.arange(0, 64)[None, :]
        group_keys = tl.full((ROWS, 64), _TAKEN, tl.int32)
        for group in tl.static_range(GROUPS):  # pyright: ignore[reportGeneralTypeIssues]
            mine = (expert >= group * size) & (expert < (group + 1) * size)
            sums = _ordered(_best_two(biased, mine))
            group_keys = tl.where(numbers == group, sums[:, None], group_keys)
        group_mask = tl.zeros((ROWS, EXPERTS), tl.int1)
        for _ in tl.static_range(TOP_GROUPS):  # pyright: ignore[reportGeneralTypeIssues]
            best = tl.max(group_keys, axis=1)
            group = tl.min(tl.where(group_keys == best[:, None], numbers, 64), axis=1)  # pyright: ignore[reportArgumentType, reportCallIssue]
            group_keys = tl.where(numbers == group[:, None], _TAKEN, group_keys)  # pyright: ignore[reportArgumentType, reportCallIssue]
            group_mask = group_mask | (expert // size == group[:, None])  # pyright: ignore[reportArgumentType, reportCallIssue]
        keys = tl.where(group_mask, keys, _TAKEN)
    choice = tl.arange(0, CHOICES)[None, :]
    top_experts = tl.zeros((ROWS, CHOICES), tl.int32)
    weights = tl.zeros((ROWS, CHOICES), tl.float32)
    for number in tl.static_range(TOP_K):  # pyright: ignore[reportGeneralTypeIssues]
        best = tl.max(keys, axis=1)
        best_expert = tl.min(tl.where(keys == best[:, None], expert, EXPERTS), axis=1)  # pyright: ignore[reportArgumentType, reportCallIssue]
        is_best = expert == best_expert[:, None]  # pyright: ignore[reportArgumentType, reportCallIssue]
        score = tl.sum(tl.where(is_best, scores, 0.0), axis=1)
        keys = tl.where(is_best, _TAKEN, keys)
        top_experts = tl.where(choice == number, best_expert[:, None], top_experts)  # pyright: ignore[reportArgumentType, reportCallIssue]
        weights = tl.where(choice == number, score[:, None], weights)  # pyright: ignore[reportArgumentType]
    if RENORMALISE:
        weights = weights / (tl.sum(weights, axis=1) + tiny)[:, None]
    ptrs = row[:, None] * TOP_K + choice
    mask = (row < tokens)[:, None] & (choice < TOP_K)
    tl.store(weights_ptr + ptrs, weights * scale, mask=mask)
    tl.store(experts_ptr + ptrs, top_experts, mask=mask)


@triton.jit
def moe_route_backward_kernel(
    dweights_ptr, logits_ptr, experts_ptr, dlogits_ptr, tokens, count, stride, scale, tiny,
    TOP_K: tl.constexpr, SIGMOID: tl.constexpr, RENORMALISE: tl.constexpr,
    EXPERTS: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)[None, :]
    expert_mask = (row < tokens)[:, None] & (expert < count)
    row64 = row.to(tl.int64) if WIDE else row
    logits = tl.load(logits_ptr + row64[:, None] * stride + expert, mask=expert_mask, other=0.0)
    scores = _scores(logits.to(tl.float32), expert < count, SIGMOID)
    grad = tl.zeros((ROWS, EXPERTS), tl.float32)
    selection = tl.zeros((ROWS, EXPERTS), tl.float32)
    for number in tl.static_range(TOP_K):  # pyright: ignore[reportGeneralTypeIssues]
        offs = row * TOP_K + number
        expert_id = tl.load(experts_ptr + offs, mask=row < tokens, other=-1)
        dweight = tl.load(dweights_ptr + offs, mask=row < tokens, other=0.0).to(tl.float32)
        is_chosen = expert == expert_id[:, None]
        grad += tl.where(is_chosen, dweight[:, None] * scale, 0.0)
        selection = tl.where(is_chosen, 1.0, selection)
    if RENORMALISE:
        total = (tl.sum(scores * selection, axis=1) + tiny)[:, None]
        projected = tl.sum(grad * scores, axis=1)[:, None] / total  # pyright: ignore[reportArgumentType]
        grad = tl.where(selection > 0, (grad - projected) / total, 0.0)
    if SIGMOID:
        result = grad * scores * (1.0 - scores)
    else:
        result = scores * (grad - tl.sum(grad * scores, axis=1)[:, None])  # pyright: ignore[reportArgumentType]
    ptrs = dlogits_ptr + row64[:, None] * count + expert
    tl.store(ptrs, result.to(dlogits_ptr.dtype.element_ty), mask=expert_mask)


def _instructions(problem: Problem, _: Settings) -> float:
    return 12.0 + 12.0 * (problem["top_k"] + 3 * problem.get("groups", 1))


def _kernel(function: Any) -> KernelSpec:
    return KernelSpec.streaming(
        function,
        grid="cdiv(tokens, ROWS)",
        axes={"ROWS": "(1,) if experts > 512 else (1, 2, 4, 8)", "num_warps": (1, 2, 4)},
        read="tokens * experts * bytes",
        written="tokens * top_k * 8",
        elements="ROWS * max(16, next_power_of_2(experts))",
        instructions=_instructions,
        live_registers=6.0,
        strides={"logits": "stride"},
        rounded=("tokens",),
    )


ROUTE = _kernel(moe_route_kernel)
BACKWARD = _kernel(moe_route_backward_kernel)


@TENSORS.checked
def moe_route(
    logits: Tensor, top_k: int, scoring: str = "softmax", renormalise: bool = True,
    bias: Tensor | None = None, groups: int = 1, top_groups: int = 1, scale: float = 1.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The `top_k` experts of every token, by scores of a router's logits.

    `logits` is [tokens, experts] of float32, float16 or bfloat16. Scores are their `softmax` or
    their `sigmoid`; `bias` [experts] is added to them where experts are chosen, and only there.
    With `groups` the experts are as many groups of neighbours: those are left that belong to the
    `top_groups` groups with the largest sum of their two largest (biased) scores.

    Returns weights [tokens, top_k] of float32, the scores of the chosen experts, with `renormalise`
    divided by their sum (and 1e-20), times `scale`; and the experts' numbers, [tokens, top_k] of
    int32, the best first, of equal ones the lower number. Without `bias` experts are compared by
    their logits, which keep apart what scores round together. NaN is least. Raises ArgumentError.
    """
    _check("moe_route", logits, top_k, scoring)
    tokens, count = logits.shape
    even = 1 <= groups <= 64 and count % groups == 0
    checks.require(even, "moe_route", f"{count} experts are not {groups} groups (of 64 at most)")
    in_range = 1 <= top_groups <= groups
    checks.require(in_range, "moe_route", f"top_groups is {top_groups}, not 1 to {groups}")
    candidates = count // groups * top_groups
    checks.require(
        top_k <= candidates, "moe_route", f"top_k is {top_k}, but {candidates} experts are left"
    )
    weights = torch.empty((tokens, top_k), dtype=torch.float32, device=logits.device)
    experts = torch.empty((tokens, top_k), dtype=torch.int32, device=logits.device)
    if tokens:
        grouped = {"groups": groups, "top_groups": top_groups}
        problem, common = _launch(logits, top_k, scoring, renormalise, scale)
        choice.run(
            ROUTE, {**problem, "bias": bias is not None, **grouped}, **common,
            bias=logits if bias is None else bias.contiguous(), weights=weights, experts=experts,
            CHOICES=triton.next_power_of_2(top_k), WIDE=checks.wide(logits),
        )  # fmt: skip
    return weights, experts


def moe_route_reference(
    logits, top_k, scoring="softmax", renormalise=True, bias=None, groups=1, top_groups=1,
    scale=1.0,
):  # fmt: skip
    """Stable sorts, and torch.softmax or torch.sigmoid."""
    wide = describe.widened(logits)
    scores = wide.softmax(-1) if scoring == "softmax" else wide.sigmoid()
    ranked = wide if bias is None else scores + bias.to(wide.dtype)
    least = float("-inf")
    keys = torch.where(ranked.isnan(), least, ranked)
    if top_groups < groups:
        biased = (scores if bias is None else ranked).unflatten(-1, (groups, -1))
        best = biased.sort(dim=-1, descending=True).values[..., :2].sum(-1)
        order = best.sort(dim=-1, descending=True, stable=True).indices[:, :top_groups]
        group_mask = torch.zeros_like(best).scatter(-1, order, 1.0) > 0
        group_mask = group_mask.repeat_interleave(logits.shape[1] // groups, -1)
        keys = torch.where(group_mask, keys.clamp_min(torch.finfo(wide.dtype).min), least)
    experts = keys.sort(dim=-1, descending=True, stable=True).indices[:, :top_k]
    weights = scores.gather(-1, experts)
    if renormalise:
        weights = weights / (weights.sum(-1, keepdim=True) + TINY)
    result = torch.float64 if wide.dtype == torch.float64 else torch.float32
    return (weights * scale).to(result), experts.int().contiguous()


@BACKWARD_TENSORS.checked
def moe_route_backward(
    dweights: Tensor, logits: Tensor, experts: Tensor, scoring: str = "softmax",
    renormalise: bool = True, scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """The gradient of `moe_route`'s weights with respect to `logits`, in their dtype.

    `dweights` and `experts` are [tokens, top_k], a token's experts all different, and the choice of
    them counts as given. Raises ArgumentError.
    """
    _check("moe_route_backward", logits, experts.shape[1], scoring)
    result = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    if logits.shape[0]:
        problem, common = _launch(logits, experts.shape[1], scoring, renormalise, scale)
        choice.run(
            BACKWARD, problem, **common, dweights=dweights.contiguous(),
            experts=experts.contiguous(), dlogits=result, WIDE=checks.wide(logits, result),
        )  # fmt: skip
    return result


def moe_route_backward_reference(
    dweights, logits, experts, scoring="softmax", renormalise=True, scale=1.0
):
    """By the formula, in float32 at least."""
    wide = describe.widened(logits)
    scores = wide.softmax(-1) if scoring == "softmax" else wide.sigmoid()
    grad = dweights.to(wide.dtype) * scale
    if renormalise:
        top_scores = scores.gather(-1, experts.long())
        total = top_scores.sum(-1, keepdim=True) + TINY
        grad = (grad - (grad * top_scores).sum(-1, keepdim=True) / total) / total
    grad = torch.zeros_like(wide).scatter(-1, experts.long(), grad)
    if scoring == "sigmoid":
        return (grad * scores * (1 - scores)).to(logits.dtype)
    return (scores * (grad - (grad * scores).sum(-1, keepdim=True))).to(logits.dtype)


def _check(name: str, logits: Tensor, top_k: int, scoring: str) -> None:
    count = logits.shape[1]
    checks.require(1 <= count <= _MOST_EXPERTS, name, f"{count} experts, not 1 to 2048")
    most = min(count, 64)
    checks.require(1 <= top_k <= most, name, f"top_k is {top_k}, not 1 to {most}")
    checks.one_of(name, "scoring", scoring, _SCORINGS)
    checks.require(logits.shape[0] * top_k < 2**31, name, "2**31 choices or more")


def _launch(
    logits: Tensor, top_k: int, scoring: str, renormalise: bool, scale: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The problem and the arguments that both kernels have."""
    logits = adjacent(logits)
    tokens, count = logits.shape
    shape = {"tokens": tokens, "experts": count, "top_k": top_k, "bytes": logits.element_size()}
    return {**shape, "sigmoid": scoring == "sigmoid", "renormalise": renormalise}, {
        "logits": logits,
        "count": count,
        "scale": scale,
        "tiny": TINY,
        "EXPERTS": max(16, triton.next_power_of_2(count)),
    }


def _inputs(
    make: Make, tokens: int, experts: int, dtype: str, bias: bool = False, ties: bool = False,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    logits = make.normal((tokens, experts), dtype, 2.0)
    # the gradient does not take the bias
    bias_dtype = "float32" if dtype == "float64" else dtype
    return {
        "logits": logits.round() if ties else logits,
        "bias": make.normal((experts,), bias_dtype, 0.3) if bias else None,
        **options,
    }


def _backward_inputs(
    make: Make, tokens: int, experts: int, top_k: int, dtype: str, **options: Any
) -> dict[str, Any]:
    start = make.integers((tokens, 1), 0, experts, "int32")
    step = make.permutation(experts, "int32")[:top_k]
    option_names = ("scoring", "renormalise", "scale")
    return {
        "dweights": make.normal((tokens, top_k), "float64" if dtype == "float64" else "float32"),
        "logits": make.normal((tokens, experts), dtype, 2.0),
        "experts": (start + step) % experts,
        **{name: options[name] for name in option_names if name in options},
    }


def _flops(**case: Any) -> dict[str, float]:
    return {"vector_fp32": 4.0 * case["tokens"] * case["experts"]}


_SHAPE = "tokens experts top_k dtype"
_DEEPSEEK = f"{_SHAPE} scoring bias groups top_groups scale"

ROUTE_OPERATOR = describe.Operator(
    summary="experts and weights of every token from a router's logits",
    call=moe_route,
    inputs=_inputs,
    work=TENSORS.work(_flops, absent=("bias",)),
    batch=describe.Batch(("logits",), merged=True),
    tolerance=describe.Tolerance(ulps=8.0),
    gradient=derivative.by_operator(
        moe_route, "moe_route_backward", grads=("dweights",), of=("logits",),
        saved=("logits", "experts", "scoring", "renormalise", "scale"),
        outputs=("weights", "experts"), constants=("bias",),
    ),
    cases=(
        *sizes(_SHAPE, (5, 12, 3, "float32")),
        *sizes(f"{_SHAPE} renormalise ties", (19, 40, 4, "bfloat16", False, True)),
        *sizes(_DEEPSEEK, (7, 64, 5, "float32", "sigmoid", True, 8, 3, 2.5)),
        *sizes(f"{_SHAPE} scoring renormalise ties", (9, 30, 2, "float16", "sigmoid", False, True)),
    ),
    thorough=(
        *sizes(
            f"{_SHAPE} groups top_groups",
            (3, 256, 8, "float32", 8, 4), (4, 6, 6, "bfloat16", 6, 6), (4, 6, 2, "float32", 6, 2),
        ),
        *sizes(f"{_SHAPE} bias", (2, 700, 10, "float32", True)),
        *sizes(_SHAPE, (2, 1, 1, "float32")),
    ),
    shapes=sizes(
        _DEEPSEEK,
        *((tokens, 256, 8, "float32", "sigmoid", True, 8, 4, 2.5) for tokens in (64, 4096)),
        *(
            (tokens, experts, top_k, "float32")
            for experts, top_k in ((128, 8), (128, 4), (8, 2))
            for tokens in (64, 4096)
        ),
    ),
)  # fmt: skip
BACKWARD_OPERATOR = derivative.operator(
    ROUTE_OPERATOR,
    moe_route_backward,
    inputs=_backward_inputs,
    work=BACKWARD_TENSORS.work(_flops),
    batch=describe.Batch(("dweights", "logits", "experts"), merged=True),
    tolerance=describe.Tolerance(ulps=8.0),
    cases=tuple(
        {name: case[name] for name in case if name not in ("bias", "groups", "top_groups")}
        for case in ROUTE_OPERATOR.cases
    ),
    thorough=(),
    shapes=ROUTE_OPERATOR.shapes[1::2],
)
OPERATORS = (ROUTE_OPERATOR, BACKWARD_OPERATOR)
