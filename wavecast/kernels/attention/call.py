"""One call, of rectangular or of packed sequences: what it is told, its shapes and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from wavecast.kernels import checks, gpu, tiles
from wavecast.kernels.attention.ranking import NO_BFLOAT_CONVERSION, padded
from wavecast.kernels.quantise import formats
from wavecast.kernels.space import Problem

LARGEST_HEAD = 256


@dataclass(frozen=True, slots=True)
class Options:
    """What a call is told besides its tensors, in the order of the operators' arguments."""

    causal: bool = False
    scale: float | None = None
    left: int = -1
    right: int = -1
    sinks: torch.Tensor | None = None
    alibi: torch.Tensor | None = None
    soft_cap: float = 0.0
    dropout: float = 0.0
    seed: int = 0

    @property
    def window(self) -> tuple[int, int]:
        """(left, right) as the kernels take it: a causal mask is a window without a right side."""
        return self.left, 0 if self.causal else self.right

    @property
    def threshold(self) -> int:
        """Of the 32-bit words of dropout: those below are dropped."""
        return min(2**32 - 1, int(self.dropout * 2**32))

    @property
    def flags(self) -> str:
        given = {
            "sinks": self.sinks is not None,
            "alibi": self.alibi is not None,
            "cap": self.soft_cap > 0,
            "dropout": self.dropout > 0,
        }
        return " ".join(name for name, there in given.items() if there)


@dataclass(frozen=True, slots=True)
class Packed:
    """Where packed sequences start, and the most rows one has."""

    starts_q: torch.Tensor
    starts_k: torch.Tensor
    longest_q: int
    longest_k: int


@dataclass(frozen=True, slots=True)
class Rope:
    """Second parts of heads: `q` as the first ones of all heads, `k` [K, R] for all heads."""

    q: torch.Tensor
    k: torch.Tensor


@dataclass(frozen=True, slots=True)
class Eight:
    """What q, k and v in fp8 are multiplied by, in float32, and the dtype of the result."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    result: torch.dtype


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of an operator called `name`."""

    name: str
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    options: Options
    packed: Packed | None = None
    rope: Rope | None = None
    eight: Eight | None = None

    @property
    def batch(self) -> int:
        return len(self.packed.starts_q) - 1 if self.packed else self.q.shape[0]

    @property
    def queries(self) -> int:
        """Of the longest sequence."""
        return self.packed.longest_q if self.packed else self.q.shape[1]

    @property
    def keys(self) -> int:
        return self.packed.longest_k if self.packed else self.k.shape[1]

    @property
    def heads(self) -> int:
        return self.q.shape[-2]

    @property
    def shared(self) -> int:
        """Heads of the keys."""
        return self.k.shape[-2]

    @property
    def factor(self) -> float:
        """What products are multiplied by."""
        if self.options.scale is not None:
            return self.options.scale
        return (self.q.shape[-1] + self.rope_size) ** -0.5

    @property
    def rope_size(self) -> int:
        return self.rope.q.shape[-1] if self.rope and self.rope.q.dim() else 0

    @property
    def out_dtype(self) -> torch.dtype:
        return self.eight.result if self.eight else self.q.dtype

    @property
    def out_shape(self) -> tuple[int, ...]:
        return (*self.q.shape[:-1], self.v.shape[-1])

    @property
    def lse_shape(self) -> tuple[int, ...]:
        if self.packed:
            return self.heads, self.q.shape[0]
        return self.batch, self.heads, self.queries

    def sequences(self) -> Iterator[tuple[Any, Any, Any]]:
        """Each one's place in the queries, in the keys and in the lse."""
        if self.packed is None:
            yield from ((batch, batch, batch) for batch in range(self.batch))
            return
        q, k = self.packed.starts_q.tolist(), self.packed.starts_k.tolist()
        for n in range(len(q) - 1):
            own = slice(q[n], q[n + 1])
            yield own, slice(k[n], k[n + 1]), (slice(None), own)

    def check(self, *, reference: bool = False) -> None:
        """Raises ArgumentError. The `reference` takes any floating dtype."""
        name, q, k, v = self.name, self.q, self.k, self.v
        dims = 3 if self.packed else 4
        for label, tensor in (("q", q), ("k", k), ("v", v)):
            checks.require(
                tensor.dim() == dims,
                name,
                f"{label} has {tensor.dim()} dimensions, expected {dims}",
            )
            if not reference:
                checks.dtype_in(name, label, tensor, EIGHT if self.eight else checks.FLOATS)
            checks.require(
                tensor.dtype == q.dtype, name, f"{label} is {_kind(tensor)}, q is {_kind(q)}"
            )
        lead = () if self.packed else (q.shape[0],)
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
        self._check_options(reference)
        self._check_packed()
        self._check_rope()
        self._check_eight(reference)

    def _check_options(self, reference: bool) -> None:
        name, given = self.name, self.options
        checks.require(self.factor > 0, name, f"scale is {self.factor}, not positive")
        checks.require(
            given.left >= -1 and given.right >= -1, name, "a side of the window is below -1"
        )
        checks.require(given.soft_cap >= 0, name, f"soft_cap is {given.soft_cap}, negative")
        checks.require(
            0 <= given.dropout < 1, name, f"dropout is {given.dropout}, not from 0 to below 1"
        )
        for label, tensor in (("sinks", given.sinks), ("alibi", given.alibi)):
            if tensor is not None:
                if not reference:
                    checks.dtype_in(name, label, tensor, checks.FLOATS)
                checks.shape_is(name, label, tensor, (self.heads,))
        checks.same_device(name, q=self.q, k=self.k, v=self.v, sinks=given.sinks, alibi=given.alibi)

    def _check_packed(self) -> None:
        if self.packed is None:
            return
        name, given = self.name, self.packed
        for label, tensor in (("cu_seqlens_q", given.starts_q), ("cu_seqlens_k", given.starts_k)):
            checks.dtype_in(name, label, tensor, (torch.int32,))
            checks.require(
                tensor.dim() == 1 and len(tensor) > 0, name, f"{label} is not a list of starts"
            )
        checks.shape_is(name, "cu_seqlens_k", given.starts_k, given.starts_q.shape)
        checks.require(
            min(given.longest_q, given.longest_k) >= 0, name, "a longest length is negative"
        )
        checks.same_device(name, q=self.q, cu_seqlens_q=given.starts_q, cu_seqlens_k=given.starts_k)

    def _check_rope(self) -> None:
        if self.rope is None:
            return
        name, size = self.name, self.rope_size
        for label, tensor, shape in (
            ("q_rope", self.rope.q, (*self.q.shape[:-1], -1)),
            ("k_rope", self.rope.k, (self.k.shape[0], size)),
        ):
            checks.shape_is(name, label, tensor, shape)
            checks.require(
                tensor.dtype == self.q.dtype,
                name,
                f"{label} is {_kind(tensor)}, q_nope is {_kind(self.q)}",
            )
        checks.require(
            0 < size <= LARGEST_HEAD,
            name,
            f"rope parts have {size} elements, it takes 1 to {LARGEST_HEAD}",
        )
        checks.same_device(name, q_nope=self.q, q_rope=self.rope.q, k_rope=self.rope.k)

    def _check_eight(self, reference: bool) -> None:
        if self.eight is None:
            return
        name, given = self.name, self.eight
        checks.require(
            given.result in checks.FLOATS, name, f"no result of {given.result}, it gives floats"
        )
        by_head = given.q.numel() != 1
        shape = (self.batch, self.shared) if by_head else given.q.shape
        for label, tensor in (("q", given.q), ("k", given.k), ("v", given.v)):
            if not reference:
                checks.dtype_in(name, f"{label}_descale", tensor, (torch.float32,))
            checks.shape_is(name, f"{label}_descale", tensor, shape)
        checks.same_device(name, q=self.q, q_descale=given.q, k_descale=given.k, v_descale=given.v)

    def problem(self) -> Problem:
        """What configurations depend on."""
        left, right = self.options.window
        return {
            "batch": self.batch,
            "queries": self.queries,
            "keys": self.keys,
            "heads": self.heads,
            "shared": self.shared,
            "head": self.q.shape[-1],
            "head_v": self.v.shape[-1],
            "rope": self.rope_size,
            "dtype": _kind(self.q),
            "window": (left >= 0, right >= 0),
            "left": left,
            "right": right,
            "flags": self.options.flags,
            "varlen": self.packed is not None,
        }

    def constants(self, *tensors: torch.Tensor) -> dict[str, object]:
        """Those of all kernels over these tensors."""
        head, head_v = self.q.shape[-1], self.v.shape[-1]
        left, right = self.options.window
        device = gpu.launching()
        return {
            "HEAD": head,
            "HEAD_V": head_v,
            "DIM": padded(head),
            "DIM_V": padded(head_v),
            "GROUP": self.heads // self.shared,
            "VARLEN": self.packed is not None,
            "LEFT": left >= 0,
            "RIGHT": right >= 0,
            "CAP": self.options.soft_cap > 0,
            "ALIBI": self.options.alibi is not None,
            "DROPOUT": self.options.dropout > 0,
            "PRECISION": "ieee",
            "WIDE": checks.wide(*tensors),
            "SHORT": device.target in NO_BFLOAT_CONVERSION,
            "XCDS": tiles.xcds(device),
        }


EIGHT = (torch.float8_e4m3fn, torch.float8_e4m3fnuz)
"""The fp8 dtypes of queries, keys and values."""


def native(call: Call) -> bool:
    """Whether the GPU at hand multiplies the call's fp8 dtype."""
    return formats.native(formats.FP8[call.q.dtype], gpu.launching())


def _kind(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


__all__ = ["EIGHT", "LARGEST_HEAD", "Call", "Eight", "Options", "Packed", "Rope", "native"]
