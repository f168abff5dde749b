#!/usr/bin/env bash
# torch.func.jvp of a custom operator without a forward-mode formula is zero, without an error.
#
# Expected: an error, as for backward ("no autograd formula was registered") and as for an autograd.Function
#   without jvp (NotImplementedError).
# Happens: the operator computes the value, and the tangent is taken for zero. register_autograd, which gives a
#   backward formula, does not change it, and torch.library has no call that registers a tangent.
# Version: torch 2.13.0.
# Seen: jvp of square(x) at 3: value 9, tangent 0 (right: 6). The gradient is 6.
# Why it matters: a fused kernel wrapped as torch.library.custom_op passes gradcheck and then makes jvp and
#   jacfwd silently wrong.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import torch
from torch.func import jacfwd, jvp


@torch.library.custom_op("findings::square", mutates_args=())
def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


square.register_fake(torch.empty_like)
square.register_autograd(
    lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


x, direction = torch.tensor([3.0], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
value, tangent = jvp(square, (x,), (direction,))
leaf = x.clone().requires_grad_()
(gradient,) = torch.autograd.grad(square(leaf).sum(), leaf)
print("torch", torch.__version__)
print(f"custom_op: value {value.item()}, tangent {tangent.item()}, gradient {gradient.item()}")
print("gradcheck:", torch.autograd.gradcheck(square, leaf), " jacfwd:", jacfwd(square)(x).item())
assert value.item() == 9 and tangent.item() == 0 and gradient.item() == 6
assert jacfwd(square)(x).item() == 0
try:
    jvp(Square.apply, (x,), (direction,))
except (NotImplementedError, RuntimeError) as error:
    print("autograd.Function:", type(error).__name__, "-", str(error).splitlines()[0][:90])
else:
    raise AssertionError("autograd.Function without jvp has a tangent")
PYTHON
echo "as recorded"
