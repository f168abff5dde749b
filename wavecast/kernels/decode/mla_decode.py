"""Attention of one new token per sequence over compressed keys and values (multi-head latent
attention with the up-projections absorbed): all heads share one key per token, whose first part is
the value too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.decode import mla_cdna_space
from wavecast.kernels.decode.arguments import Options, cache_dtype, tables
from wavecast.kernels.decode.combine import REDUCE, reduce_parts, splits
from wavecast.kernels.decode.mla_cdna import mla_cdna_kernel
from wavecast.kernels.decode.mla_kernel import mla_decode_kernel
from wavecast.kernels.decode.parts import FP8_NAN, HALVES, LOG2E
from wavecast.kernels.decode.reference import attended
from wavecast.kernels.decode.sizes import made_cache, made_lengths, made_table
from wavecast.kernels.decode.walking import Walk, compiler_options
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import xcds
from wavecast.model.bounds import Work

_SHORTEST = 64
"""Tokens that are worth a part of their own."""


def mla_decode(
    q: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
    cache_scale: torch.Tensor | None = None,
    rope: int = 64,
    max_length: int = 0,
) -> torch.Tensor:
    """Attention of one new token per sequence over a paged cache of compressed keys and values.

    `q` is [sequences, heads, latent + rope] of float16 or bfloat16, with the up-projection of keys
    absorbed, `cache` [blocks, block size, latent + rope] of the dtype of `q`, float8_e4m3fn,
    float8_e4m3fnuz (AMD GPUs), float8_e5m2 or int8, times `cache_scale` (float32, one value). All
    heads share a token's key, whose first `latent` elements are its value too; `latent` is 128, 256
    or 512 and `rope` 16, 32 or 64. `block_table`, `lengths` and `max_length` are as in
    `paged_decode`; `scale` multiplies q·k and has no default, since it belongs to the keys before
    compression.

    Returns [sequences, heads, latent] in the dtype of `q`, zeros for a length of 0. Raises
    ArgumentError.
    """
    name = "mla_decode"
    _check(name, q, cache, block_table, lengths, cache_scale, rope, max_length)
    sequences, heads, whole = q.shape
    latent, block_size = whole - rope, cache.shape[1]
    out = torch.empty((sequences, heads, latent), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    if not block_table.shape[1] or not cache.shape[0]:
        return out.zero_()
    q = q if q.stride(2) == 1 else q.contiguous()
    block_table = adjacent(block_table)
    device = gpu.launching()
    tokens = min(block_table.shape[1] * block_size, max_length or 2**31)
    problem: dict[str, Any] = {
        "sequences": sequences,
        "heads": heads,
        "latent": latent,
        "rope": rope,
        "block_size": block_size,
        "tokens": tokens,
        "dtype": str(q.dtype).removeprefix("torch."),
    }
    constants: dict[str, Any] = {
        "LATENT": latent,
        "ROPE": rope,
        "BLOCK_SIZE": block_size,
        "SCALED": cache_scale is not None,
        "XCDS": xcds(device),
    }
    if mla_cdna_space.runs(device, q, cache, rope):
        kernel, space = mla_cdna_kernel, mla_cdna_space.SPACE
        rows, parts = mla_cdna_space.plan(device, sequences, heads, tokens, latent, rope)
        problem |= {"rows": rows}
        constants |= {"TARGET": device.target}
    else:
        kernel, space = mla_decode_kernel, SPACE
        rows = _rows(heads)
        tiles = triton.cdiv(heads, rows)
        parts = splits(
            device,
            sequences * tiles,
            tokens,
            beside=1,
            token_bytes=whole * cache.element_size() / tiles,
            token_flops=2.0 * rows * (whole + latent),
            result_bytes=4.0 * rows * latent,
            least=_SHORTEST,
        )
        wide = checks.wide(cache)
        problem |= {"cache": str(cache.dtype).removeprefix("torch."), "wide": wide}
        halved = cache.dtype == torch.float8_e4m3fn and device.target == "gfx942"
        constants |= {"HALVED": halved, "WIDE": wide}
    some = parts if parts > 1 else 0
    part = torch.empty((sequences * heads, some, latent), dtype=torch.float32, device=q.device)
    stat = torch.empty((2, sequences * heads, some), dtype=torch.float32, device=q.device)

    def grid(settings: Settings) -> tuple[int, ...]:
        tiles = triton.cdiv(heads, settings["ROWS"]) * (latent // settings.get("VALUE", latent))
        return (tiles * parts * sequences,)

    launch(
        kernel,
        grid,
        (
            *(q, cache, block_table, lengths.contiguous(), cache_scale, out, part, stat),
            *(scale * LOG2E, sequences, heads, q.stride(0), q.stride(1), block_table.stride(0)),
            *cache.stride()[:2],
        ),
        space,
        {**problem, "splits": parts},
        SPLITS=parts,
        **constants,
    )
    if parts > 1:
        reduce_parts(part, stat, out.view(-1, latent))
    return out


def mla_decode_reference(
    q: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
    cache_scale: torch.Tensor | None = None,
    rope: int = 64,
    max_length: int = 0,
) -> torch.Tensor:
    """As attention with one head of keys, whose values are the keys; their end is dropped."""
    keys = cache.unsqueeze(2)
    found = attended(
        q,
        torch.arange(q.shape[0], device=q.device),
        lengths.long() - 1,
        keys,
        keys,
        block_table,
        scale,
        Options(cache_scale, cache_scale),
    )
    return found[..., : q.shape[2] - rope].contiguous()


def _check(
    name: str,
    q: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    cache_scale: torch.Tensor | None,
    rope: int,
    max_length: int,
) -> None:
    checks.require(q.dim() == 3, name, f"q has {q.dim()} dimensions, not 3")
    checks.dtype_in(name, "q", q, HALVES)
    checks.shape_is(name, "cache", cache, (-1, -1, q.shape[2]))
    cache_dtype(name, "cache", cache, q)
    checks.require(cache.shape[1] > 0, name, "the cache is empty")
    checks.require(rope in (16, 32, 64), name, f"rope is {rope}; it takes 16, 32 and 64")
    latent = q.shape[2] - rope
    checks.require(
        latent in (128, 256, 512), name, f"the latent part has {latent} elements, not 128, 256, 512"
    )
    tables(name, block_table, lengths)
    checks.shape_is(name, "lengths", lengths, q.shape[:1])
    checks.require(max_length >= 0, name, "max_length is negative")
    if cache_scale is not None:
        checks.dtype_in(name, "cache_scale", cache_scale, (torch.float32,))
        checks.require(cache_scale.numel() == 1, name, "cache_scale has not 1 value")
    checks.same_device(
        name,
        q=q,
        cache=cache,
        block_table=block_table,
        lengths=lengths,
        cache_scale=cache_scale,
    )


def _rows(heads: int) -> int:
    """Heads that a workgroup takes."""
    return max(16, min(64, triton.next_power_of_2(heads)))


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    latent, rows = problem["latent"], _rows(problem["heads"])
    shared: dict[str, Sequence[Any]] = {"BLOCK_N": (16, 32), "num_stages": (1,)}
    if device.target.startswith("gfx9"):
        # values whose wave takes columns are read across tokens, which gfx950 has instructions for
        turned = device.target == "gfx950"
        # what is widened before it is turned round is not turned in registers, unless by pairs
        paired = not turned and problem["cache"] != problem["dtype"]
        pieces = {latent, *((128,) if turned else ()), *((min(latent, 256),) if paired else ())}
        return {
            "ROWS": (rows,),
            "VALUE": (latent,),
            "PIECE": tuple(sorted(pieces)),
            "HELD": (True,),
            "TURNED": (False, True) if turned else (False,),
            "PAIRED": (True, False) if paired else (False,),
            "num_warps": (1, 2, 4, 8) if turned else (1, 2, 4),
            **shared,
            **compiler_options(device),
        }
    return {
        "ROWS": tuple(sorted({min(rows, 32), rows, min(rows, 16)})),
        "VALUE": tuple({latent, min(latent, 256), 128}),
        "PIECE": (64, 128),
        "HELD": (False,),
        "TURNED": (False,),
        "PAIRED": (False,),
        "num_warps": (2, 4, 8),
        **shared,
        **compiler_options(device),
    }


def _walk(problem: Problem, settings: Settings) -> Walk:
    latent, rope = problem["latent"], problem["rope"]
    rows, columns, value = settings["ROWS"], settings["BLOCK_N"], settings["VALUE"]
    tiles = triton.cdiv(problem["heads"], rows) * (latent // value)
    size = getattr(torch, problem["cache"]).itemsize
    return Walk(
        programs=problem["sequences"] * tiles * problem["splits"],
        warps=settings["num_warps"],
        steps=triton.cdiv(triton.cdiv(problem["tokens"], columns), problem["splits"]),
        rows=rows,
        columns=columns,
        depth=latent + rope,
        width=value,
        size=size,
        bytes=1.0 * problem["sequences"] * problem["tokens"] * (latent + rope) * size,
        held=settings["HELD"],
        shared=settings["HELD"],
        ahead=int(settings["HELD"]),
        turned=settings["TURNED"],
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    walk = _walk(problem, settings)
    rows, waves = settings["ROWS"], settings["num_warps"]
    if walk.held:
        latent, paired = problem["latent"], settings["PAIRED"]
        piece = 128 if walk.turned else min(latent, 256) if paired else latent
        if settings["PIECE"] != piece or (walk.turned and latent == piece):
            return False
        if not walk.fits(device):
            return False
        if paired and (settings["BLOCK_N"] < 32 or problem["block_size"] % settings["BLOCK_N"]):
            return False
        # a wave per 16 rows, or per 16 rows and 16 tokens where all take columns of the values;
        # fewer would leave a SIMD with one, whose every wait shows
        if walk.turned:
            return waves == rows // 16 * (settings["BLOCK_N"] // 16)
        return 16 * waves <= rows
    # a chunk of queries and of keys, and the result; from what compiles without spills
    threads = device.wave_lanes * waves
    most = 72 if device.target == "gfx1100" else 136
    pieces = settings["PIECE"] * (1 if device.target == "gfx1201" else 2) / 4
    return rows * settings["VALUE"] / threads + pieces <= most + 32 and rows * 2 >= 16 * waves


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    kind = "fp16" if problem["dtype"] == "float16" else "bf16"
    return _walk(problem, settings).seconds(device, kind)


SPACE = Space(
    kernel="mla_decode_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("sequences", "tokens"),
)


def _inputs(
    make: Make,
    sequences: int,
    heads: int,
    length: int,
    dtype: str,
    latent: int = 512,
    rope: int = 64,
    block_size: int = 64,
    cache: str = "",
    scaled: bool = False,
    ragged: bool = False,
) -> dict[str, Any]:
    lengths = made_lengths(make, sequences, length, ragged)
    table, blocks = made_table(make, lengths, block_size)
    shape = (blocks, block_size, latent + rope)
    made, scale = made_cache(make, shape, cache or dtype, int(scaled))
    return {
        "q": make.normal((sequences, heads, latent + rope), dtype),
        "cache": made,
        "block_table": table,
        "lengths": lengths,
        "scale": 0.05,
        "cache_scale": scale,
        "rope": rope,
        "max_length": 0,
    }


def _work(
    sequences: int,
    heads: int,
    length: int,
    dtype: str,
    latent: int = 512,
    rope: int = 64,
    cache: str = "",
    **_: Any,
) -> Work:
    size, wide = getattr(torch, cache or dtype).itemsize, getattr(torch, dtype).itemsize
    kind = "fp16" if dtype == "float16" else "bf16"
    flops = 2.0 * sequences * length * heads * (2 * latent + rope)
    read = 1.0 * sequences * length * (latent + rope) * size
    read += sequences * heads * (latent + rope) * wide
    written = 1.0 * sequences * heads * latent * wide
    return Work({kind: flops}, read, written, "formula", "formula")


_SMALL = {"sequences": 2, "heads": 16, "length": 100, "ragged": True, "latent": 128, "rope": 32}
_CASES = (
    {**_SMALL, "dtype": "bfloat16"},
    {**_SMALL, "dtype": "bfloat16", "latent": 512, "rope": 64, "heads": 20, "length": 70},
    {**_SMALL, "dtype": "float16", "cache": "float8_e4m3fn", "scaled": True, "block_size": 32},
)
_THOROUGH = (
    {**_SMALL, "dtype": "bfloat16", "latent": 256, "rope": 16, "cache": "float8_e4m3fnuz"},
    {**_SMALL, "dtype": "bfloat16", "cache": "int8", "scaled": True, "heads": 33},
    {**_SMALL, "dtype": "float16", "cache": "float8_e5m2", "block_size": 24},
    {**_SMALL, "dtype": "bfloat16", "sequences": 1, "length": 600, "heads": 5},
    {**_SMALL, "dtype": "float16", "latent": 256, "heads": 40, "block_size": 32, "scaled": True},
    {**_SMALL, "dtype": "bfloat16", "heads": 100, "length": 300},
)
_DEEPSEEK = {"heads": 128, "dtype": "bfloat16"}
_SHAPES = (
    {**_DEEPSEEK, "sequences": 1, "length": 16384},
    {**_DEEPSEEK, "sequences": 32, "length": 4096},
    {**_DEEPSEEK, "sequences": 128, "length": 4096},
    {**_DEEPSEEK, "sequences": 32, "length": 4096, "cache": "float8_e4m3fn", "scaled": True},
)

OPERATORS = (
    Operator(
        name="mla_decode",
        notes=FP8_NAN,
        summary="attention of one new token per sequence over compressed keys and values",
        call=mla_decode,
        reference=mla_decode_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(SPACE, mla_cdna_space.SPACE, REDUCE),
        exact=("cache_scale",),
    ),
)
