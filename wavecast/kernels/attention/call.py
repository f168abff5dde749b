"""One call, of rectangular or of packed sequences: its checks, its problem, its launches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from wavecast.kernels import checks, gpu, tiles
from wavecast.kernels.attention import reference, spaces
from wavecast.kernels.attention.backward import (
    attention_backward_kv_kernel,
    attention_backward_q_kernel,
    attention_delta_kernel,
)
from wavecast.kernels.attention.forward import attention_kernel
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Problem, Settings

LARGEST_HEAD = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The arguments of `attention` or, with `starts_q`, of `attention_varlen`."""

    name: str
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    causal: bool
    scale: float | None
    left: int
    right: int
    sinks: torch.Tensor | None
    alibi: torch.Tensor | None
    soft_cap: float
    dropout: float
    seed: int
    starts_q: torch.Tensor | None = None
    starts_k: torch.Tensor | None = None
    longest_q: int = 0
    longest_k: int = 0

    @property
    def varlen(self) -> bool:
        return self.starts_q is not None

    @property
    def batch(self) -> int:
        return self.q.shape[0] if self.starts_q is None else self.starts_q.shape[0] - 1

    @property
    def queries(self) -> int:
        """Of the longest sequence."""
        return self.longest_q if self.varlen else self.q.shape[1]

    @property
    def keys(self) -> int:
        return self.longest_k if self.varlen else self.k.shape[1]

    @property
    def heads(self) -> int:
        return self.q.shape[-2]

    @property
    def shared(self) -> int:
        """Heads of the keys."""
        return self.k.shape[-2]

    @property
    def factor(self) -> float:
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    @property
    def window(self) -> tuple[int, int]:
        """(left, right) as the kernels take it: a causal mask is a window without a right side."""
        return self.left, 0 if self.causal else self.right

    @property
    def out_shape(self) -> tuple[int, ...]:
        return (*self.q.shape[:-1], self.v.shape[-1])

    @property
    def lse_shape(self) -> tuple[int, ...]:
        if self.varlen:
            return self.heads, self.q.shape[0]
        return self.batch, self.heads, self.queries

    def check(self, *, reference: bool = False) -> None:
        """Raises ArgumentError. The `reference` takes any floating dtype."""
        name, q, k, v = self.name, self.q, self.k, self.v
        dims = 3 if self.varlen else 4
        for label, tensor in (("q", q), ("k", k), ("v", v)):
            checks.require(
                tensor.dim() == dims,
                name,
                f"{label} has {tensor.dim()} dimensions, expected {dims}",
            )
            if not reference:
                checks.dtype_in(name, label, tensor, checks.FLOATS)
            checks.require(
                tensor.dtype == q.dtype, name, f"{label} is {_kind(tensor)}, q is {_kind(q)}"
            )
        lead = () if self.varlen else (q.shape[0],)
        checks.shape_is(name, "k", k, (*lead, -1, -1, q.shape[-1]))
        checks.shape_is(name, "v", v, (*k.shape[:-1], -1))
        for label, size in (("q", q.shape[-1]), ("v", v.shape[-1])):
            checks.require(
                0 < size <= LARGEST_HEAD,
                name,
                f"heads of {label} have {size} elements, it takes 1 to {LARGEST_HEAD}",
            )
        checks.require(
            self.shared > 0 and self.heads % self.shared == 0,
            name,
            f"{self.heads} heads of q are no multiple of {self.shared} heads of k",
        )
        checks.require(self.factor > 0, name, f"scale is {self.factor}, not positive")
        checks.require(
            self.left >= -1 and self.right >= -1, name, "a side of the window is below -1"
        )
        checks.require(self.soft_cap >= 0, name, f"soft_cap is {self.soft_cap}, negative")
        checks.require(
            0 <= self.dropout < 1, name, f"dropout is {self.dropout}, not from 0 to below 1"
        )
        for label, tensor in (("sinks", self.sinks), ("alibi", self.alibi)):
            if tensor is not None:
                if not reference:
                    checks.dtype_in(name, label, tensor, checks.FLOATS)
                checks.shape_is(name, label, tensor, (self.heads,))
        if self.starts_q is not None and self.starts_k is not None:
            for label, tensor in (("cu_seqlens_q", self.starts_q), ("cu_seqlens_k", self.starts_k)):
                checks.dtype_in(name, label, tensor, (torch.int32,))
                checks.require(
                    tensor.dim() == 1 and len(tensor) > 0, name, f"{label} is not a list of starts"
                )
            checks.shape_is(name, "cu_seqlens_k", self.starts_k, self.starts_q.shape)
            checks.require(
                min(self.longest_q, self.longest_k) >= 0, name, "a longest length is negative"
            )
        checks.same_device(
            name, q=q, k=k, v=v, sinks=self.sinks, alibi=self.alibi,
            cu_seqlens_q=self.starts_q, cu_seqlens_k=self.starts_k,
        )  # fmt: skip

    def problem(self) -> Problem:
        """What configurations depend on."""
        left, right = self.window
        return {
            "batch": self.batch,
            "queries": self.queries,
            "keys": self.keys,
            "heads": self.heads,
            "shared": self.shared,
            "head": self.q.shape[-1],
            "head_v": self.v.shape[-1],
            "dtype": str(self.q.dtype).removeprefix("torch."),
            "window": (left >= 0, right >= 0),
            "left": left,
            "right": right,
            "flags": self.flags,
            "varlen": self.varlen,
        }

    @property
    def flags(self) -> str:
        given = {
            "sinks": self.sinks is not None,
            "alibi": self.alibi is not None,
            "cap": self.soft_cap > 0,
            "dropout": self.dropout > 0,
        }
        return " ".join(name for name, there in given.items() if there)

    def constants(self, *tensors: torch.Tensor) -> dict[str, object]:
        """Those of all kernels over these tensors."""
        head, head_v = self.q.shape[-1], self.v.shape[-1]
        left, right = self.window
        return {
            "HEAD": head,
            "HEAD_V": head_v,
            "DIM": spaces.padded(head),
            "DIM_V": spaces.padded(head_v),
            "GROUP": self.heads // self.shared,
            "VARLEN": self.varlen,
            "LEFT": left >= 0,
            "RIGHT": right >= 0,
            "CAP": self.soft_cap > 0,
            "ALIBI": self.alibi is not None,
            "DROPOUT": self.dropout > 0,
            "PRECISION": "ieee",
            "WIDE": checks.wide(*tensors),
            "SHORT": gpu.launching().target in spaces.NO_BFLOAT_CONVERSION,
            "XCDS": tiles.xcds(gpu.launching()),
        }

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(out, lse). Raises ArgumentError."""
        self.check()
        empty = torch.zeros if self.varlen else torch.empty
        out = empty(self.out_shape, dtype=self.q.dtype, device=self.q.device)
        lse = empty(self.lse_shape, dtype=torch.float32, device=self.q.device)
        if not lse.numel() or not self.batch or not self.queries:
            return out, lse
        q, k, v = (_dense(tensor) for tensor in (self.q, self.k, self.v))

        def grid(settings: Settings) -> tuple[int, ...]:
            return (triton.cdiv(self.queries, settings["BLOCK_M"]) * self.heads * self.batch,)

        launch(
            attention_kernel,
            grid,
            (
                *(q, k, v, out, lse, self.sinks, self.alibi, self.starts_q, self.starts_k),
                *(step for tensor in (q, k, v, out) for step in self.steps(tensor)),
                *self.scalars(lse),
            ),
            spaces.FORWARD,
            self.problem(),
            **self.constants(q, k, v, out),
            SINKS=self.sinks is not None,
        )
        return out, lse

    def backward(
        self,
        dout: torch.Tensor,
        dlse: torch.Tensor | None,
        out: torch.Tensor,
        lse: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """(dq, dk, dv, dsinks). Raises ArgumentError."""
        self.check()
        self.check_gradients(dout, dlse, out, lse)
        dq, dk, dv = (
            torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            if self.varlen or not (self.q.numel() and self.k.numel())
            else torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            for tensor in (self.q, self.k, self.v)
        )
        delta = self.delta(dout.contiguous(), dlse, out.contiguous())
        if dq.numel() and dk.numel() and self.queries and self.keys:
            self.launch_gradients(_dense(dout), lse.contiguous(), delta, dq, dk, dv)
        if self.sinks is None:
            return dq, dk, dv, self.q.new_empty(0)
        share = torch.exp(self.sinks.float()[:, None] - lse) * delta
        over = (1,) if self.varlen else (0, 2)
        return dq, dk, dv, -share.sum(over).to(self.sinks.dtype)

    def delta(
        self, dout: torch.Tensor, dlse: torch.Tensor | None, out: torch.Tensor
    ) -> torch.Tensor:
        """rowsum(dout · out) - dlse in the shape of lse."""
        delta = torch.empty(self.lse_shape, dtype=torch.float32, device=out.device)
        rows, head_v = delta.numel(), self.v.shape[-1]
        if not rows:
            return delta
        lse_batch, lse_head = self.lse_steps(delta)
        launch(
            attention_delta_kernel,
            lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
            (
                *(out, dout, None if dlse is None else dlse.contiguous(), delta, rows),
                *(self.heads, delta.shape[-1], lse_batch, lse_head),
            ),
            spaces.DELTA,
            {"rows": rows, "head": head_v, "bytes": out.element_size(), "dlse": dlse is not None},
            HEAD=head_v,
            DIM=spaces.padded(head_v),
            DLSE=dlse is not None,
            WIDE=checks.wide(out),
        )
        return delta

    def launch_gradients(
        self,
        dout: torch.Tensor,
        lse: torch.Tensor,
        delta: torch.Tensor,
        dq: torch.Tensor,
        dk: torch.Tensor,
        dv: torch.Tensor,
    ) -> None:
        """Fill dk and dv, then dq."""
        q, k, v = (_dense(tensor) for tensor in (self.q, self.k, self.v))
        read = (q, k, v, dout)
        constants = self.constants(*read)
        strides = [step for tensor in read for step in self.steps(tensor)]
        starts = (self.alibi, self.starts_q, self.starts_k)

        def over_keys(settings: Settings) -> tuple[int, ...]:
            blocks = triton.cdiv(self.keys, settings["BLOCK_N"])
            return blocks * self.shared * self.batch, 2 if settings["SPLIT"] else 1

        def over_queries(settings: Settings) -> tuple[int, ...]:
            return (triton.cdiv(self.queries, settings["BLOCK_M"]) * self.heads * self.batch,)

        launch(
            attention_backward_kv_kernel,
            over_keys,
            (
                *(*read, lse, delta, dk, dv, *starts, *strides),
                *(*self.steps(dk), *self.steps(dv), *self.scalars(lse)),
            ),
            spaces.BACKWARD_KV,
            self.problem(),
            **constants,
        )
        launch(
            attention_backward_q_kernel,
            over_queries,
            (
                *(*read, lse, delta, dq, *starts, *strides),
                *(*self.steps(dq), *self.scalars(lse)),
            ),
            spaces.BACKWARD_Q,
            self.problem(),
            **constants,
        )

    def scalars(self, lse: torch.Tensor) -> tuple[object, ...]:
        """The last arguments of all kernels."""
        return (
            *self.lse_steps(lse),
            *(self.queries, self.keys, self.heads, *self.window, self.factor, self.soft_cap),
            *(reference.threshold(self.dropout), 1 / (1 - self.dropout), self.seed, 0),
        )

    def lse_steps(self, lse: torch.Tensor) -> tuple[int, int]:
        """Strides of batch and head."""
        return (0, lse.shape[1]) if self.varlen else (lse.shape[1] * lse.shape[2], lse.shape[2])

    def check_gradients(
        self,
        dout: torch.Tensor,
        dlse: torch.Tensor | None,
        out: torch.Tensor,
        lse: torch.Tensor,
    ) -> None:
        """Raises ArgumentError."""
        for label, tensor, shape in (
            ("dout", dout, self.out_shape),
            ("out", out, self.out_shape),
            ("lse", lse, self.lse_shape),
            ("dlse", dlse, self.lse_shape),
        ):
            if tensor is not None:
                wanted = (self.q.dtype,) if "out" in label else (torch.float32,)
                checks.dtype_in(self.name, label, tensor, wanted)
                checks.shape_is(self.name, label, tensor, shape)
        checks.same_device(self.name, q=self.q, dout=dout, dlse=dlse, out=out, lse=lse)

    def steps(self, tensor: torch.Tensor) -> tuple[int, int, int]:
        """Strides of batch, row and head."""
        if self.varlen:
            return 0, tensor.stride(0), tensor.stride(1)
        return tensor.stride(0), tensor.stride(1), tensor.stride(2)

    def options(self) -> reference.Options:
        return reference.Options(
            self.causal, self.factor, self.left, self.right, self.soft_cap, self.dropout, self.seed
        )


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """With the elements of a head in a row."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _kind(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


__all__ = ["LARGEST_HEAD", "Call"]
