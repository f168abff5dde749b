"""Published attention times: dense forward and backward, latent and paged decoding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each, truth
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.attention import Attention

if TYPE_CHECKING:
    import pandas as pd

LIBRARIES = tuple(
    (re.compile(words), name)
    for words, name in (
        (r"thunderkittens", "thunderkittens"),
        (r"hipkittens|\bhk\b", "hipkittens"),
        (r"unfused|\bnaive\b|\bstandard\b", "unfused"),
        (r"\bmath\b", "math"),
        (r"flydsl", "flydsl"),
        (r"aotriton", "aotriton"),
        (r"tilelang", "tilelang"),
        (r"triton|gluon", "triton"),
        (r"\bck\b|ck[ _-]?tile|composable", "ck"),
        (r"aiter|\basm\b|assembly", "asm"),
        (r"flashinfer", "flashinfer"),
        (r"flash ?mla", "flashmla"),
        (r"trt-?llm|tensorrt", "trtllm"),
        (r"cudnn", "cudnn"),
        (r"(\bfa|flash[ _-]?att\w*[ _-]?v?)4", "flash4"),
        (r"(\bfa|flash[ _-]?att\w*[ _-]?v?)3", "flash3"),
        (r"(\bfa|flash[ _-]?att\w*[ _-]?v?)2", "flash2"),
        (r"xformers|efficient|cutlass", "efficient"),
        (r"sdpa|torch|scaled_dot", "sdpa"),
        (r"vllm", "vllm"),
    )
)
"""Words in the name of a library and the op's name of it; the first that occur decide."""

_SPLITS = re.compile(r"num_kv_splits=(\d+)")
_LENGTHS = re.compile(r"n_ctx=\[([\d, ]+)\]")
_CALLED = ("HazyResearch/HipKittens", "")
"""Repositories that time single calls from Python on an idle GPU, except those of CK, which a C++
program times; rows that name no repository count as these. The others time kernels in a row, except
those of JAX, which times calls."""
_JAX = re.compile(r"\bjax\b")
_DIRECTIONS = {"bwd": True, "backward": True}
_LATENT_BOARD = "gfx950"
"""Board of the latent decode rows that state none: their times rise every 256 workgroups, the CUs
of gfx950 boards (gfx942 boards have 304, 228 or 80), and their bytes exceed gfx942's memory."""


class AttentionPublished(Importer):
    """One row per time, with sizes, mask, library and the known properties of the kernel."""

    name: ClassVar[str] = "attention_published"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {
                *("direction", "dtype", "batch", "heads_q", "heads_kv", "seq_q", "seq_k"),
                *("head_dim", "head_dim_v", "causal", "library", "time_us"),
            }
        ),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(map(_filled, frame.to_dict("records")), _case)


def _filled(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items() if _present(value)}


def _case(row: Mapping[str, Any]) -> Case:
    device, unsure = _device(row)
    direction, library = str(row["direction"]), str(row["library"])
    op, reason = None, "" if device else unsure
    try:
        op = _op(row, direction, library)
    except WavecastError as error:
        reason = str(error)
    dtype = str(row["dtype"]).split(" ")[0].rstrip("?")
    return Case(
        kind="attention",
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        problem=_problem(row, direction, dtype),
        group=str(row.get("source_path", "")),
        labels={"dtype": dtype, "direction": direction, "library": library},
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


def _present(value: Any) -> bool:
    return value is not None and value == value


def _device(row: Mapping[str, Any]) -> tuple[str, str]:
    name = str(row.get("device", "")).split(" (")[0]
    target = str(row.get("arch", ""))
    if row["direction"] == "mla_decode" and name in ("", "not stated"):
        return device_of(_LATENT_BOARD)
    if not target and name in ("", "not stated"):
        return "", "the board is not stated"
    return device_of(target, row.get("cu_count"), name)


def _op(row: Mapping[str, Any], direction: str, library: str) -> Attention:
    dtype = str(row["dtype"])
    splits = _SPLITS.search(str(row.get("kernel", "")))
    lengths = _LENGTHS.search(str(row.get("kernel", "")))
    ragged = tuple(int(n) for n in lengths[1].split(",")) if lengths else ()
    same = len(set(ragged)) <= 1
    return Attention(
        batch=int(row["batch"]),
        heads=int(row["heads_q"]),
        kv_heads=int(row["heads_kv"]),
        seq_q=int(row["seq_q"]),
        seq_k=int(row["seq_k"]),
        head=int(row["head_dim"]),
        head_v=int(row["head_dim_v"]),
        dtype=dtype.split(" ")[0].rstrip("?"),
        kv_dtype="fp8" if "fp8 kv" in dtype else "",
        causal=truth(row["causal"]),
        backward=_DIRECTIONS.get(direction, False),
        latent=direction == "mla_decode",
        library=_library(library),
        splits=int(splits[1]) if splits else 0,
        lengths=() if same else ragged,
        timing="eager" if _called(row, direction, library) else "kernel",
    )


def _called(row: Mapping[str, Any], direction: str, library: str) -> bool:
    if _JAX.search(library.lower()):
        return True
    called = str(row.get("source_repo", "")) in _CALLED and not direction.endswith("decode")
    return called and _library(library) != "ck"


def _library(name: str) -> str:
    """The op's name of a library; an unknown one counts as what PyTorch or vLLM run."""
    return next((known for words, known in LIBRARIES if words.search(name.lower())), "")


def _problem(row: Mapping[str, Any], direction: str, dtype: str) -> str:
    names = ("batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim", "causal")
    return " ".join([direction, dtype, *(f"{name}={row[name]}" for name in names)])


__all__ = ["AttentionPublished"]
