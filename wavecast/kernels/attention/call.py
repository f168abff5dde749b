"""One call, of rectangular or of packed sequences: its options, its shapes and its checks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, dtype

from wavecast.kernels import checks
from wavecast.kernels.attention.specs import padded_head_size
from wavecast.kernels.spec import Problem
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu

LARGEST_HEAD = 256


@dataclass(frozen=True, slots=True)
class AttentionOptions:
    """Arguments of a call besides its tensors, in the order of the operators' arguments."""

    causal: bool = False
    scale: float | None = None
    left: int = -1
    right: int = -1
    sinks: Tensor | None = None
    alibi: Tensor | None = None
    soft_cap: float = 0.0
    dropout: float = 0.0
    seed: int = 0
    mask: Tensor | None = None

    @property
    def window(self) -> tuple[int, int]:
        """(left, right) as the kernels take it: a causal mask is a window without a right side."""
        return self.left, 0 if self.causal else self.right

    @property
    def threshold(self) -> int:
        """Dropout drops where a 32-bit random word is below it."""
        return min(2**32 - 1, int(self.dropout * 2**32))

    @property
    def flags(self) -> str:
        flags = {
            "sinks": self.sinks is not None,
            "alibi": self.alibi is not None,
            "cap": self.soft_cap > 0,
            "dropout": self.dropout > 0,
            "mask": self.mask is not None,
        }
        return " ".join(name for name, there in flags.items() if there)


@dataclass(frozen=True, slots=True)
class Packed:
    """Where packed sequences start, and the most rows one has."""

    starts_q: Tensor
    starts_k: Tensor
    longest_q: int
    longest_k: int


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of an operator called `name`. `rope` are second parts of heads: those of q, and
    [K, R] for all heads of k. `descales` multiply q, k and v in fp8, whose results have the dtype
    `result`."""

    name: str
    q: Tensor
    k: Tensor
    v: Tensor
    options: AttentionOptions
    packed: Packed | None = None
    rope: tuple[Tensor, Tensor] | None = None
    descales: tuple[Tensor, Tensor, Tensor] | None = None
    result: dtype | None = None

    @property
    def batch(self) -> int:
        return len(self.packed.starts_q) - 1 if self.packed else self.q.shape[0]

    @property
    def queries(self) -> int:
        """Queries of the longest sequence."""
        return self.packed.longest_q if self.packed else self.q.shape[1]

    @property
    def keys(self) -> int:
        return self.packed.longest_k if self.packed else self.k.shape[1]

    @property
    def heads(self) -> int:
        return self.q.shape[-2]

    @property
    def kv_heads(self) -> int:
        return self.k.shape[-2]

    @property
    def scale(self) -> float:
        """What q · kᵀ is multiplied by."""
        if self.options.scale is not None:
            return self.options.scale
        return (self.q.shape[-1] + self.rope_size) ** -0.5

    @property
    def rope_size(self) -> int:
        return self.rope[0].shape[-1] if self.rope else 0

    @property
    def out_dtype(self) -> dtype:
        return self.result or self.q.dtype

    @property
    def out_shape(self) -> tuple[int, ...]:
        return (*self.q.shape[:-1], self.v.shape[-1])

    @property
    def lse_shape(self) -> tuple[int, ...]:
        if self.packed:
            return self.heads, self.q.shape[0]
        return self.batch, self.heads, self.queries

    def sequences(self) -> Iterator[tuple[Any, Any, Any]]:
        """Indices of each one in the queries, in the keys and in the lse."""
        if self.packed is None:
            yield from ((batch, batch, batch) for batch in range(self.batch))
            return
        q, k = self.packed.starts_q.tolist(), self.packed.starts_k.tolist()
        for n in range(len(q) - 1):
            queries = slice(q[n], q[n + 1])
            yield queries, slice(k[n], k[n + 1]), (slice(None), queries)

    def check(self) -> None:
        """Raise ArgumentError for values that no signature refuses."""
        options = self.options
        sizes = {"q": self.q.shape[-1], "v": self.v.shape[-1]}
        if self.rope is not None:
            sizes["q_rope"] = self.rope_size
        for label, size in sizes.items():
            self._require(
                0 < size <= LARGEST_HEAD,
                f"heads of {label} have {size} elements, it takes 1 to {LARGEST_HEAD}",
            )
        self._require(
            self.kv_heads > 0 and self.heads % self.kv_heads == 0,
            f"{self.heads} heads of q do not share {self.kv_heads} heads of k evenly",
        )
        self._require(self.scale > 0, f"scale is {self.scale}, not positive")
        self._require(min(options.left, options.right) >= -1, "a side of the window is below -1")
        self._require(options.soft_cap >= 0, f"soft_cap is {options.soft_cap}, negative")
        self._require(
            0 <= options.dropout < 1, f"dropout is {options.dropout}, not from 0 to below 1"
        )
        if options.mask is not None:
            for size, whole in zip(options.mask.shape, (self.batch, self.heads), strict=False):
                shape = "x".join(map(str, options.mask.shape))
                self._require(
                    size in (1, whole), f"mask is {shape}: it has 1 or {whole}, not {size}"
                )
        if self.packed is not None:
            self._require(len(self.packed.starts_q) > 0, "cu_seqlens_q is empty")
            longest = min(self.packed.longest_q, self.packed.longest_k)
            self._require(longest >= 0, "max_q or max_k is negative")

    def _require(self, condition: bool, message: str) -> None:
        checks.require(condition, self.name, message)

    def problem(self) -> Problem:
        """What configurations depend on."""
        left, right = self.options.window
        return {
            "batch": self.batch,
            "queries": self.queries,
            "keys": self.keys,
            "heads": self.heads,
            "shared": self.kv_heads,
            "head": self.q.shape[-1],
            "head_v": self.v.shape[-1],
            "rope": self.rope_size,
            "dtype": str(self.q.dtype).removeprefix("torch."),
            "window": (left >= 0, right >= 0),
            "left": left,
            "right": right,
            "flags": self.options.flags,
            "varlen": self.packed is not None,
        }

    def arguments(self, **tensors: Tensor) -> dict[str, Any]:
        """Arguments that all kernels over `tensors` [..., heads, elements] take: these and their
        strides, scalars, and constants."""
        head, head_v = self.q.shape[-1], self.v.shape[-1]
        options, (left, right) = self.options, self.options.window
        operands: dict[str, Any] = {**tensors, **self.lse_strides(), **self._mask()}
        for name, tensor in tensors.items():
            strides = (0, *tensor.stride()[:2]) if self.packed else tensor.stride()[:3]
            operands |= zip((f"{name}_batch", f"{name}_row", f"{name}_head"), strides, strict=True)
        return {
            **operands,
            "alibi": options.alibi,
            "starts_q": self.packed.starts_q if self.packed else None,
            "starts_k": self.packed.starts_k if self.packed else None,
            "scale": self.scale,
            "soft_cap": options.soft_cap,
            "threshold": options.threshold,
            "keep": 1 / (1 - options.dropout),
            "seed": options.seed,
            "zero": 0,
            "DIM": padded_head_size(head),
            "DIM_V": padded_head_size(head_v),
            "GROUP": self.heads // self.kv_heads,
            "LEFT": left >= 0,
            "RIGHT": right >= 0,
            "CAP": options.soft_cap > 0,
            "ALIBI": options.alibi is not None,
            "DROPOUT": options.dropout > 0,
            "MASK": options.mask is not None,
            "PRECISION": "ieee",
            "SHORT": not gpu.launching().capabilities.bf16_conversion,
        }

    def _mask(self) -> dict[str, Any]:
        """The mask as bytes, with its strides; that of a dimension which all share is 0."""
        mask = self.options.mask
        if mask is None:
            return {"mask": None, "mask_batch": 0, "mask_head": 0, "mask_row": 0}
        mask = adjacent(mask).view(torch.uint8)
        batch, head, row = (
            0 if size == 1 else stride
            for size, stride in zip(mask.shape[:3], mask.stride(), strict=False)
        )
        return {"mask": mask, "mask_batch": batch, "mask_head": head, "mask_row": row}

    def lse_strides(self) -> dict[str, int]:
        """Strides of batch and head in the lse, which is contiguous."""
        shape = self.lse_shape
        if self.packed:
            return {"lse_batch": 0, "lse_head": shape[1]}
        return {"lse_batch": shape[1] * shape[2], "lse_head": shape[2]}
