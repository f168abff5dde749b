"""What PyTorch has in the place of an operator: calls on the same inputs, for `ops.py`.

Every family gives, for one shape of one operator, the operator's own call and the others'. What
PyTorch refuses is a reason instead of a call. All of it runs on the CPU as well, where the test
compares results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from wavecast.frameworks.torch.library import function
from wavecast.kernels.moe import activations
from wavecast.kernels.operator import Operator

Call = Callable[[], Any]
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Given = dict[str, Any]


@dataclass
class Contest:
    """One shape: `ours` and the `others` by name, `refused` others with the reason."""

    ours: Call
    others: dict[str, Call] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def enter(self, name: str, make: Callable[[], Call]) -> None:
        """Add what PyTorch can do, after it has done it once."""
        try:
            call = make()
            call()
        except Exception as error:  # what PyTorch raises for what it cannot do is of many kinds
            lines = str(error).strip().splitlines() or ["no message"]
            self.refused[name] = f"{type(error).__name__}: {lines[0]}"[:200]
        else:
            self.others[name] = call


def products(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """`torch.matmul`, which is cuBLASLt or hipBLASLt."""
    del compiled
    _plain(given, "bias", "residual", "gate")
    contest = Contest(_ours(operator, given))
    contest.enter("torch.matmul", lambda: lambda: torch.matmul(given["a"], given["b"]))
    return contest


def scaled_products(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """`torch._scaled_mm`, with and without its fast accumulation."""
    del compiled
    _plain(given, "bias", "residual", "gate", "out_scale")
    contest = Contest(_ours(operator, given))

    def scaled(fast: bool) -> Call:
        return lambda: torch._scaled_mm(  # pyright: ignore[reportPrivateImportUsage]
            given["a"],
            given["b"],
            scale_a=given["scale_a"],
            scale_b=given["scale_b"],
            out_dtype=given["out_dtype"],
            use_fast_accum=fast,
        )

    contest.enter("torch._scaled_mm", lambda: scaled(False))
    contest.enter("torch._scaled_mm fast", lambda: scaled(True))
    return contest


def attention(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """Every backend of `scaled_dot_product_attention`."""
    del compiled
    contest = Contest(lambda: function(operator.name)(**given)[0])
    for name, backend in _backends(given, contest).items():
        contest.enter(name, lambda backend=backend: lambda: _sdpa(given, backend).transpose(1, 2))
    return contest


def attention_backward(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """The same, its gradients only."""
    del compiled
    given = {**given, "dlse": None}
    contest = Contest(lambda: function(operator.name)(**given)[:3])

    def gradients(backend: SDPBackend) -> Call:
        leaves = {name: given[name].detach().requires_grad_() for name in ("q", "k", "v")}
        out = _sdpa({**given, **leaves}, backend).transpose(1, 2)
        inputs = tuple(leaves.values())
        return lambda: torch.autograd.grad(out, inputs, given["dout"], retain_graph=True)

    for name, backend in _backends(given, contest).items():
        contest.enter(name, lambda backend=backend: gradients(backend))
    return contest


def streaming(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """The reference through `torch.compile`. `ops.py` adds a copy of as many bytes."""
    contest = Contest(_ours(operator, given))
    reference = compiled(operator.reference)
    contest.enter("torch.compile", lambda: lambda: reference(**given))
    return contest


def experts(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """A loop over the experts; which tokens go where is known before it is timed."""
    del compiled
    contest = Contest(_ours(operator, given))
    hidden, chosen = given["hidden"], given["experts"]
    places = [(chosen == expert).nonzero() for expert in range(given["w1"].shape[0])]

    def loop() -> torch.Tensor:
        total = torch.zeros_like(hidden)
        for expert, place in enumerate(places):
            if not len(place):
                continue
            tokens = place[:, 0]
            before = hidden[tokens] @ given["w1"][expert].T
            if given.get("bias1") is not None:
                before = before + given["bias1"][expert]
            gate, up = activations.halves(before, given.get("interleaved", False))
            alpha, limit = given.get("alpha", 1.702), given.get("limit", 7.0)
            one = activations.reference(given.get("activation", "silu"), gate, up, alpha, limit)
            one = one @ given["w2"][expert].T
            if given.get("bias2") is not None:
                one = one + given["bias2"][expert]
            share = given["weights"][place[:, 0], place[:, 1]].to(one.dtype)
            total.index_add_(0, tokens, one * share[:, None])
        return total

    contest.enter("loop of torch.matmul", lambda: loop)
    return contest


def convolution(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """`torch.convolution`: cuDNN or MIOpen."""
    del compiled
    if given.get("activation", "none") != "none":
        raise ValueError("an activation is no part of torch.convolution")
    contest = Contest(_ours(operator, given))
    x, weight, bias = given["x"], given["weight"], given["bias"]
    stride, padding, dilation = given["stride"], given["padding"], given["dilation"]
    none, groups = [0] * len(stride), given["groups"]

    def convolve() -> torch.Tensor:
        return torch.convolution(x, weight, bias, stride, padding, dilation, False, none, groups)

    contest.enter("torch.convolution", lambda: convolve)
    return contest


def convolution_data(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """`aten.convolution_backward`, the gradient of the input only."""
    del compiled
    contest = Contest(_ours(operator, given))
    dy, weight = given["dy"], given["weight"]
    shape = (dy.shape[0], weight.shape[1] * given["groups"], *given["size"])
    x = _like(dy, shape)
    contest.enter(
        "torch.convolution",
        lambda: lambda: _convolution_backward(given, dy, x, weight, (True, False, False))[0],
    )
    return contest


def convolution_weight(operator: Operator, given: Given, compiled: Compile) -> Contest:
    """`aten.convolution_backward`, the gradients of weight and bias."""
    del compiled
    contest = Contest(_ours(operator, given))
    dy, x = given["dy"], given["x"]
    weight = _like(dy, (dy.shape[1], x.shape[1] // given["groups"], *given["kernel"]))
    contest.enter(
        "torch.convolution",
        lambda: lambda: _convolution_backward(given, dy, x, weight, (False, True, True))[1:],
    )
    return contest


def _ours(operator: Operator, given: Given) -> Call:
    call = function(operator.name)
    return lambda: call(**given)


def _plain(given: Given, *names: str) -> None:
    present = [name for name in names if given.get(name) is not None]
    if present or given.get("activation", "none") != "none":
        raise ValueError(f"{', '.join(present) or 'an activation'}: no part of PyTorch's product")


_SDPA = {
    "SDPA flash": SDPBackend.FLASH_ATTENTION,
    "SDPA efficient": SDPBackend.EFFICIENT_ATTENTION,
    "SDPA cuDNN": SDPBackend.CUDNN_ATTENTION,
    "SDPA math": SDPBackend.MATH,
}


def _backends(given: Given, contest: Contest) -> dict[str, SDPBackend]:
    """The backends; none for what SDPA does not have."""
    options = {
        "sinks": None,
        "alibi": None,
        "soft_cap": 0.0,
        "dropout": 0.0,
        "left": -1,
        "right": -1,
    }
    other = [name for name, usual in options.items() if given.get(name, usual) != usual]
    if given["causal"] and given["q"].shape[1] != given["k"].shape[1]:
        other.append("causal with other lengths")
    if other:
        contest.refused["SDPA"] = f"has no {', '.join(other)}"
        return {}
    return _SDPA


def _sdpa(given: Given, backend: SDPBackend) -> torch.Tensor:
    """[B, H, S, D]. A backend that does not share heads of k and v refuses those that do."""
    q, k, v = (given[name].transpose(1, 2) for name in ("q", "k", "v"))
    options = {"is_causal": given["causal"], "scale": given.get("scale")}
    with sdpa_kernel([backend]):
        if q.shape[1] == k.shape[1]:
            return scaled_dot_product_attention(q, k, v, **options)
        return scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)


def _like(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Zeros in the dtype and memory format of a tensor of images."""
    made = torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    last = formats.get(tensor.dim())
    if last is not None and tensor.is_contiguous(memory_format=last):
        return made.contiguous(memory_format=last)
    return made


def _convolution_backward(
    given: Given, dy: Any, x: Any, weight: Any, mask: tuple[bool, bool, bool]
) -> Any:
    rest = given["stride"], given["padding"], given["dilation"], False, [0] * len(given["stride"])
    return torch.ops.aten.convolution_backward(
        dy, x, weight, [dy.shape[1]], *rest, given["groups"], mask
    )
