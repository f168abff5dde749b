"""Operations of a profile with the kernels of another library: `attention=flash3`.

`wavecast` are the kernels of this package: they are compiled for the device and predicted from
their code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from wavecast.arch.device import Device
from wavecast.errors import Unpredictable, UsageError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.ops.attention import Attention
from wavecast.perfmodel.ops.base import Op, UnstatedOp
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.prediction import Prediction
from wavecast.profiles.changes import OWN
from wavecast.systems.sources.kernels import CallKernel

_KINDS: Final[Mapping[str, type[Op]]] = {"attention": Attention, "gemm": Gemm}
_TORCH: Final = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@dataclass(frozen=True, slots=True)
class LibraryPrices:
    """Replaces operations by those of the `libraries` of their classes, on one device."""

    device: Device
    libraries: Mapping[str, str]

    def choose(self, launched: Iterable[CallKernel]) -> Iterator[CallKernel]:
        """The same kernels, of the chosen libraries."""
        for kernel in launched:
            op = kernel.part.op
            library = self.libraries.get(op.kind, "")
            if library and isinstance(op, _KINDS[op.kind]):
                part = replace(kernel.part, op=_of(op, library), instead=())
                yield replace(kernel, part=part)
            else:
                yield kernel


def _of(op: Op, library: str) -> Op:
    if library == OWN:
        return OwnKernel(op)
    if isinstance(op, Attention | Gemm):
        return replace(op, library=library)
    raise UsageError(f"{op.kind} has no library")


@dataclass(frozen=True, slots=True)
class OwnKernel(UnstatedOp):
    """An operation computed by the kernel of this package, predicted from its code."""

    kind: ClassVar[str] = "own kernel"
    shape_help: ClassVar[str] = "see wavecast profile"
    predicted_by: ClassVar[str] = "wavecast ops predicts operators"

    op: Op

    def work(self) -> Work:
        return self.op.work()

    def predict(self, device: Device) -> Prediction:
        """Raises Unpredictable where the kernel does not compile or has no prediction."""
        from wavecast.pipeline.library.library import survey_call

        name, sizes = _operator(self.op)
        survey = survey_call((name, sizes, device.id))
        if survey.seconds is None:
            why = survey.failure or next((k.why_not for k in survey.kernels if k.why_not), "")
            raise Unpredictable(f"wavecast's {name} on {device.id}: {why}")
        ends = [
            sum((getattr(k, end) or k.seconds or 0.0) * k.count for k in survey.kernels)
            for end in ("low", "high")
        ]
        longest = max(survey.kernels, key=lambda kernel: (kernel.seconds or 0.0) * kernel.count)
        return Prediction(
            device=device.id,
            seconds=survey.seconds,
            low=ends[0],
            high=ends[1],
            limiter=longest.limiter,
            fidelity=longest.fidelity,
            bounds={},
            assumed={"library": OWN},
        )

    def __str__(self) -> str:
        return f"{self.op} of wavecast"


def _operator(op: Op) -> tuple[str, dict[str, Any]]:
    """Name and sizes of the operator of this package. Raises Unpredictable for other problems."""
    if isinstance(op, Attention) and not op.latent and not op.lengths and op.dtype in _TORCH:
        name = "attention_backward" if op.backward else "attention"
        return name, {
            "b": op.batch, "hq": op.heads, "hkv": op.kv_heads, "s": op.seq_q, "t": op.seq_k,
            "d": op.head, "dv": op.head_v, "dtype": _TORCH[op.dtype], "causal": op.causal,
        }  # fmt: skip
    if isinstance(op, Gemm) and op.batch == 1 and not op.scaling and op.dtype in _TORCH:
        return "matmul", {"m": op.m, "n": op.n, "k": op.k, "dtype": _TORCH[op.dtype]}
    raise Unpredictable(f"wavecast has no kernel for {op}")


__all__ = ["LibraryPrices", "OwnKernel"]
