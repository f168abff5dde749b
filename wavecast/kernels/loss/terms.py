"""The terms of cross entropy, which its kernels over logits and over their factors share.

Of a row of logits x with classes c, target t and lse = log(sum(exp(x))):

    loss = lse - (1 - smoothing) · x[t] - smoothing · mean(x) + z_loss · lse²

with x = soft_cap · tanh(x / soft_cap) before, where there is a cap. Rows whose target is
`ignore_index` have loss 0; other targets outside the classes give NaN.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks
from wavecast.kernels.signature import Signature
from wavecast.launch.inputs import Make


@triton.jit
def capped(x, cap, CAPPED: tl.constexpr):
    """cap · tanh(x / cap), with tanh by an exponential; -inf becomes -cap."""
    return cap - 2.0 * cap / (1.0 + tl.exp(x * (2.0 / cap))) if CAPPED else x


@triton.jit
def loss_of(lse, target_logit, mean, target, classes, ignored, smoothing, z_loss):
    """Loss per row; `target_logit` is the logit of the target, `mean` that of all."""
    loss = lse - (1.0 - smoothing) * target_logit - smoothing * mean + z_loss * lse * lse
    loss = tl.where((target >= 0) & (target < classes), loss, float("nan"))
    return tl.where(target == ignored, 0.0, loss)


@triton.jit
def weights_of(lse, dloss, dlse, ignored, z_loss):
    """What a row's probabilities and one-hot target count for in its gradient, `ignored` or not."""
    dloss = tl.where(ignored, 0.0, dloss)
    return dloss * (1.0 + 2.0 * z_loss * lse) + dlse, dloss


@triton.jit
def grad_of(
    x, class_index, lse, target, weight, dloss, classes, smoothing, cap, CAPPED: tl.constexpr
):  # fmt: skip
    """The gradient of logits `x` (not yet capped), given what `weights_of` returns, all shaped to
    go together."""
    capped_x = capped(x, cap, CAPPED)
    target_share = tl.where(class_index == target, 1.0 - smoothing, 0.0) + smoothing / classes
    grad = tl.exp(capped_x - lse) * weight - target_share * dloss
    if CAPPED:
        tangent = capped_x / cap
        grad *= 1.0 - tangent * tangent
    return grad


class LossOptions(NamedTuple):
    """The options of a loss, in the order of the operators' arguments."""

    ignore_index: int = -100
    label_smoothing: float = 0.0
    z_loss: float = 0.0
    soft_cap: float = 0.0

    @property
    def arguments(self) -> dict[str, float]:
        """As the kernels take them that know a whole row."""
        names = ("ignored", "smoothing", "z_loss")
        return dict(zip(names, self, strict=False))


def reference(logits: Tensor, targets: Tensor, options: LossOptions) -> tuple[Tensor, Tensor]:
    """(loss per row, lse) of wide logits."""
    ignore_index, label_smoothing, z_loss, soft_cap = options
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    classes = logits.shape[-1]
    lse = torch.logsumexp(logits, -1)
    class_index = targets.long().clamp(0, classes - 1)
    target_logit = logits.gather(-1, class_index[:, None])[:, 0]
    loss = lse - (1 - label_smoothing) * target_logit + z_loss * lse.square()
    if label_smoothing:
        loss = loss - label_smoothing * logits.mean(-1)
    loss = torch.where(class_index == targets, loss, torch.nan)
    return torch.where(targets == ignore_index, 0.0, loss), lse


def reference_gradient(
    logits: Tensor, targets: Tensor, dloss: Tensor, dlse: Tensor | None, options: LossOptions
) -> Tensor:
    """The gradient of wide logits, by the formula."""
    ignore_index, label_smoothing, z_loss, soft_cap = options
    capped_x = soft_cap * torch.tanh(logits / soft_cap) if soft_cap else logits
    classes = logits.shape[-1]
    lse = torch.logsumexp(capped_x, -1)
    dloss = torch.where(targets == ignore_index, 0.0, dloss.to(logits.dtype))
    weight = dloss * (1 + 2 * z_loss * lse)
    if dlse is not None:
        weight = weight + dlse.to(logits.dtype)
    classes_index = torch.arange(classes, device=logits.device)
    one_hot = (classes_index == targets[:, None]).to(logits.dtype)
    target_share = one_hot * (1 - label_smoothing) + label_smoothing / classes
    grad = torch.exp(capped_x - lse[:, None]) * weight[:, None] - target_share * dloss[:, None]
    return grad * (1 - (capped_x / soft_cap).square()) if soft_cap else grad


def check(
    operator: str, tensors: Signature, arguments: Mapping[str, Any], options: LossOptions
) -> None:
    """Tensors and options of a loss. Raises ArgumentError."""
    tensors.check(operator, arguments)
    smoothing, cap = options.label_smoothing, options.soft_cap
    valid = 0.0 <= smoothing <= 1.0
    checks.require(valid, operator, f"label_smoothing is {smoothing}, not from 0 to 1")
    checks.require(cap >= 0.0, operator, f"soft_cap is {cap}, below 0")


def made_targets(make: Make, rows: int, classes: int) -> Tensor:
    """Targets of a test; the last of several is ignored."""
    targets = make.integers((rows,), 0, classes)
    if rows > 1:
        targets[-1] = -100
    return targets


def backward_inputs(
    inputs: Callable[..., dict[str, Any]], reference: Callable[..., tuple[Tensor, Tensor]]
) -> Callable[..., dict[str, Any]]:
    """`Operator.inputs` of the gradient of a loss that has these `inputs` and this `reference`."""

    def make_inputs(
        make: Make, rows: int, dtype: str, dlse: bool = True, **sizes: Any
    ) -> dict[str, Any]:
        arguments = inputs(make, rows=rows, dtype=dtype, **sizes)
        wide = "float64" if dtype == "float64" else "float32"
        lse = reference(**arguments)[1] if make.values else make.normal((rows,), wide)
        grads = [make.normal((rows,), wide) for _ in range(1 + dlse)]
        return {"dloss": grads[0], "dlse": grads[1] if dlse else None, **arguments, "lse": lse}

    return make_inputs


PER_ROW = ("dloss: [rows] float32", "dlse?: [rows] float32", "lse: [rows] float32")
"""What the gradient of a loss takes in addition to the arguments of the loss."""
LOSS = ("loss: [rows] float32", "lse: [rows] float32")
"""The results of a loss."""
