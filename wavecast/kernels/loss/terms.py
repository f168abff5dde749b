"""The terms of cross entropy, which its kernels over logits and over their factors share.

Of a row of logits x with classes c, target t and lse = log(sum(exp(x))):

    loss = lse - (1 - smoothing) · x[t] - smoothing · mean(x) + z_loss · lse²

with x = soft_cap · tanh(x / soft_cap) before, where there is a cap. Rows whose target is
`ignore_index` have loss 0; other targets that are no class give NaN.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks


@triton.jit
def capped(x, cap, CAPPED: tl.constexpr):
    """cap · tanh(x / cap), with tanh by an exponential; -inf becomes -cap."""
    return cap - 2.0 * cap / (1.0 + tl.exp(x * (2.0 / cap))) if CAPPED else x


@triton.jit
def loss_of(lse, chosen, mean, target, classes, ignored, smoothing, z_loss):
    """Loss per row; `chosen` is the logit of the target, `mean` that of all."""
    loss = lse - (1.0 - smoothing) * chosen - smoothing * mean + z_loss * lse * lse
    loss = tl.where((target >= 0) & (target < classes), loss, float("nan"))
    return tl.where(target == ignored, 0.0, loss)


@triton.jit
def weights_of(lse, dloss, dlse, ignored, z_loss):
    """What a row's probabilities and one-hot target count for in its gradient, `ignored` or not."""
    dloss = tl.where(ignored, 0.0, dloss)
    return dloss * (1.0 + 2.0 * z_loss * lse) + dlse, dloss


@triton.jit
def slope_of(
    x, place, lse, target, along, dloss, classes, smoothing, cap, CAPPED: tl.constexpr
):  # fmt: skip
    """The gradient of logits `x` (not yet capped), given what `weights_of` returns, all shaped to
    go together."""
    high = capped(x, cap, CAPPED)
    wanted = tl.where(place == target, 1.0 - smoothing, 0.0) + smoothing / classes
    slope = tl.exp(high - lse) * along - wanted * dloss
    if CAPPED:
        tangent = high / cap
        slope *= 1.0 - tangent * tangent
    return slope


def reference(
    logits: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss per row, lse) of wide logits."""
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    classes = logits.shape[-1]
    lse = torch.logsumexp(logits, -1)
    known = targets.long().clamp(0, classes - 1)
    chosen = logits.gather(-1, known[:, None])[:, 0]
    loss = lse - (1 - label_smoothing) * chosen + z_loss * lse.square()
    if label_smoothing:
        loss = loss - label_smoothing * logits.mean(-1)
    loss = torch.where(known == targets, loss, torch.nan)
    return torch.where(targets == ignore_index, 0.0, loss), lse


def reference_slope(
    logits: torch.Tensor,
    targets: torch.Tensor,
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    soft_cap: float,
) -> torch.Tensor:
    """The gradient of wide logits, by the formula."""
    high = soft_cap * torch.tanh(logits / soft_cap) if soft_cap else logits
    classes = logits.shape[-1]
    lse = torch.logsumexp(high, -1)
    dloss = torch.where(targets == ignore_index, 0.0, dloss.to(logits.dtype))
    along = dloss * (1 + 2 * z_loss * lse)
    if dlse is not None:
        along = along + dlse.to(logits.dtype)
    numbers = torch.arange(classes, device=logits.device)
    hot = (numbers == targets[:, None]).to(logits.dtype)
    wanted = hot * (1 - label_smoothing) + label_smoothing / classes
    slope = torch.exp(high - lse[:, None]) * along[:, None] - wanted * dloss[:, None]
    return slope * (1 - (high / soft_cap).square()) if soft_cap else slope


def check(
    operator: str,
    rows: int,
    targets: torch.Tensor,
    label_smoothing: float,
    soft_cap: float,
    **per_row: torch.Tensor | None,
) -> None:
    """Targets, options and tensors of one float32 number per row. Raises ArgumentError."""
    checks.dtype_in(operator, "targets", targets, (torch.int64, torch.int32))
    checks.shape_is(operator, "targets", targets, (rows,))
    for name, tensor in per_row.items():
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, (torch.float32,))
            checks.shape_is(operator, name, tensor, (rows,))
    within = 0.0 <= label_smoothing <= 1.0
    checks.require(within, operator, f"label_smoothing is {label_smoothing}, not from 0 to 1")
    checks.require(soft_cap >= 0.0, operator, f"soft_cap is {soft_cap}, below 0")


__all__ = [
    "capped", "check", "loss_of", "reference", "reference_slope", "slope_of", "weights_of",
]  # fmt: skip
