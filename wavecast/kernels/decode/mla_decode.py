"""Attention of one new token per sequence over compressed keys and values (multi-head latent
attention with the up-projections absorbed): all heads share one key per token, whose first part is
the value too."""

from functools import partial
from typing import Any

import torch
import triton
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels import checks, choice, describe
from wavecast.kernels.decode import arguments, mla_cdna
from wavecast.kernels.decode.combine import reduce_parts
from wavecast.kernels.decode.mla_kernel import mla_decode_kernel
from wavecast.kernels.decode.parts import FP8_NAN, LOG2E
from wavecast.kernels.decode.reference import reference_attention
from wavecast.kernels.decode.sizes import made_cache, made_lengths, made_table
from wavecast.kernels.describe import Axes, Device, KernelSpec, Problem, Settings, Signature, Work
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.ranking.cache import FAMILY, CacheLoop, latent_plan, splits

TENSORS = Signature(
    "q: [sequences, heads, width] half",
    f"cache: [blocks, block_size, width] {arguments.CACHE}",
    "lengths: [sequences] index",
    "block_table: [sequences, _] index",
    "cache_scale?: [_...] float32",
    returns=("out: [sequences, heads, width - rope] =q",),
)


@TENSORS.checked
def mla_decode(
    q: Tensor, cache: Tensor, block_table: Tensor, lengths: Tensor, scale: float,
    cache_scale: Tensor | None = None, rope: int = 64, max_length: int = 0,
) -> Tensor:  # fmt: skip
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
    arguments.cache_dtype(name, "cache", cache, q)
    checks.require(cache.shape[1] > 0, name, "the cache is empty")
    checks.require(rope in (16, 32, 64), name, f"rope is {rope}; it takes 16, 32 and 64")
    sequences, heads, width = q.shape
    latent, block_size = width - rope, cache.shape[1]
    fits = latent in (128, 256, 512)
    checks.require(fits, name, f"the latent part has {latent} elements, not 128, 256, 512")
    checks.require(max_length >= 0, name, "max_length is negative")
    scales = 1 if cache_scale is None else cache_scale.numel()
    checks.require(scales == 1, name, "cache_scale has not 1 value")
    out = torch.empty((sequences, heads, latent), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    if not block_table.shape[1] or not cache.shape[0]:
        return out.zero_()
    q, block_table = adjacent(q), adjacent(block_table)
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
    constants: dict[str, Any]
    if mla_cdna.runs(device, q, cache, rope):
        spec = mla_cdna.SPEC
        rows, parts = latent_plan(device, sequences, heads, tokens, latent, width)
        problem |= {"rows": rows}
        able = device.capabilities
        constants = {"MFMA": able.mfma_version, "ASYNC": able.direct_to_lds}
    else:
        spec = SPEC
        rows = _rows(heads)
        tiles = triton.cdiv(heads, rows)
        parts = splits(
            device, sequences * tiles, tokens, resident=1, result_bytes=4.0 * rows * latent,
            token_bytes=width * cache.element_size() / tiles,
            token_flops=2.0 * rows * (width + latent),
        )  # fmt: skip
        problem |= {"cache": str(cache.dtype).removeprefix("torch."), "wide": checks.wide(cache)}
        fnuz = "float8_e4m3fnuz" in device.capabilities.matrix_fp8
        halved = fnuz and cache.dtype == torch.float8_e4m3fn
        constants = {"HALVED": halved}
    launched = choice.run(
        spec, {**problem, "splits": parts}, q=q, cache=cache, block_table=block_table,
        lengths=lengths, cache_scale=cache_scale, out=out, scale=scale * LOG2E,
        SCALED=cache_scale is not None, **constants,
    )  # fmt: skip
    if parts > 1:
        reduce_parts(**launched.workspaces, out=out.view(-1, latent))
    return out


def mla_decode_reference(
    q, cache, block_table, lengths, scale, cache_scale=None, rope=64, max_length=0
):
    """As attention with one head of keys, whose values are the keys; their end is dropped."""
    keys = cache.unsqueeze(2)
    sequence, position = torch.arange(q.shape[0], device=q.device), lengths.long() - 1
    options = arguments.PagedOptions(cache_scale, cache_scale)
    out = reference_attention(q, sequence, position, keys, keys, block_table, scale, options)
    return out[..., : q.shape[2] - rope].contiguous()


def _fake(q, cache, block_table, lengths, scale, cache_scale=None, rope=64, max_length=0):
    return q.new_empty((*q.shape[:-1], q.shape[-1] - rope))


def _rows(heads: int) -> int:
    """Heads of a workgroup."""
    return max(16, min(64, triton.next_power_of_2(heads)))


def _axes(problem: Problem, device: Device) -> Axes:
    latent, rows = problem["latent"], _rows(problem["heads"])
    shared = {"BLOCK_N": (16, 32), **arguments.compiler_options(device)}
    if not arguments.cdna(device):
        return {
            "ROWS": tuple(sorted({min(rows, 32), rows, min(rows, 16)})),
            "VALUE": tuple({latent, min(latent, 256), 128}),
            "PIECE": (64, 128),
            **dict.fromkeys(("Q_LOADED", "TRANSPOSED", "PAIRED"), (False,)),
            "num_warps": (2, 4, 8),
            **shared,
        }
    # values whose columns are distributed over waves are read from LDS transposed
    transposed = device.capabilities.lds_transposed_reads
    # operands that are widened are not transposed in registers, unless by pairs
    paired = not transposed and problem["cache"] != problem["dtype"]
    pieces = {latent, *((128,) if transposed else ()), *((min(latent, 256),) if paired else ())}
    return {
        "ROWS": (rows,),
        "VALUE": (latent,),
        "PIECE": tuple(sorted(pieces)),
        "Q_LOADED": (True,),
        "TRANSPOSED": (False, True) if transposed else (False,),
        "PAIRED": (True, False) if paired else (False,),
        "num_warps": (1, 2, 4, 8) if transposed else (1, 2, 4),
        **shared,
    }


def _demand(problem: Problem, settings: Settings, device: Device) -> CacheLoop:
    width, tokens = problem["latent"] + problem["rope"], problem["tokens"]
    itemsize = getattr(torch, problem["cache"]).itemsize
    return CacheLoop(
        programs=SPEC.programs(problem, settings)[0],
        steps=triton.cdiv(triton.cdiv(tokens, settings["BLOCK_N"]), problem["splits"]),
        rows=settings["ROWS"],
        columns=settings["BLOCK_N"],
        depth=width,
        width=settings["VALUE"],
        itemsize=itemsize,
        read=1.0 * problem["sequences"] * tokens * width * itemsize,
        dtype=lookup(problem["dtype"]).rate,
        queries_in_registers=settings["Q_LOADED"],
        values_in_keys=settings["Q_LOADED"],
        prefetched=int(settings["Q_LOADED"]),
        columns_by_wave=settings["TRANSPOSED"],
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, waves, columns = settings["ROWS"], settings["num_warps"], settings["BLOCK_N"]
    if not settings["Q_LOADED"]:  # a chunk of queries and of keys, and the result
        k = coefficients.values(FAMILY, device)
        result = rows * settings["VALUE"] / (device.wave_lanes * waves)
        chunk = settings["PIECE"] * k["chunk_registers"]
        return result + chunk <= k["result_registers"] and rows * 2 >= 16 * waves
    latent, paired, transposed = problem["latent"], settings["PAIRED"], settings["TRANSPOSED"]
    piece = 128 if transposed else min(latent, 256) if paired else latent
    if settings["PIECE"] != piece or (transposed and latent == piece):
        return False
    if not _demand(problem, settings, device).fits(device, waves):
        return False
    if paired and (columns < 32 or problem["block_size"] % columns):
        return False
    # a wave per 16 rows, or per 16 rows and 16 tokens where all take columns of the values; with
    # fewer, a SIMD has one wave, whose every wait shows
    return waves == rows // 16 * (columns // 16) if transposed else 16 * waves <= rows


SPEC = KernelSpec(
    function=mla_decode_kernel,
    grid="cdiv(heads, ROWS) * (latent // VALUE) * splits * sequences",
    axes=_axes,
    fits=_fits,
    demand=_demand,
    workspaces=mla_cdna.SPEC.workspaces,
    strides=mla_cdna.SPEC.strides,
    contiguous=("lengths",),
    rounded=("sequences", "tokens"),
)


def _inputs(
    make, sequences, heads, length, dtype, latent=512, rope=64, block_size=64, cache="",
    scaled=False, ragged=False,
):  # fmt: skip
    lengths = made_lengths(make, sequences, length, ragged)
    table, blocks = made_table(make, lengths, block_size)
    shape = (blocks, block_size, latent + rope)
    kv_cache, scale = made_cache(make, shape, cache or dtype, int(scaled))
    return {
        "q": make.normal((sequences, heads, latent + rope), dtype),
        "cache": kv_cache,
        "block_table": table,
        "lengths": lengths,
        "scale": 0.05,
        "cache_scale": scale,
        "rope": rope,
        "max_length": 0,
    }


def _work(sequences, heads, length, dtype, latent=512, rope=64, cache="", **_):
    size, wide = getattr(torch, cache or dtype).itemsize, getattr(torch, dtype).itemsize
    flops = 2.0 * sequences * length * heads * (2 * latent + rope)
    read = 1.0 * sequences * length * (latent + rope) * size
    read += sequences * heads * (latent + rope) * wide
    written = 1.0 * sequences * heads * latent * wide
    return Work({lookup(dtype).rate: flops}, read, written, "formula", "formula")


_small = partial(dict, sequences=2, heads=16, length=100, ragged=True, latent=128, rope=32)
_deepseek = partial(dict, heads=128, dtype="bfloat16")
OPERATOR = describe.Operator(
    summary="attention of one new token per sequence over compressed keys and values",
    notes=FP8_NAN,
    call=mla_decode,
    fake=_fake,
    inputs=_inputs,
    work=_work,
    cases=(
        _small(dtype="bfloat16"),
        _small(dtype="bfloat16", latent=512, rope=64, heads=20, length=70),
        _small(dtype="float16", cache="float8_e4m3fn", scaled=True, block_size=32),
    ),
    thorough=(
        _small(dtype="bfloat16", latent=256, rope=16, cache="float8_e4m3fnuz"),
        _small(dtype="bfloat16", cache="int8", scaled=True, heads=33),
        _small(dtype="float16", cache="float8_e5m2", block_size=24),
        _small(dtype="bfloat16", sequences=1, length=600, heads=5),
        _small(dtype="float16", latent=256, heads=40, block_size=32, scaled=True),
        _small(dtype="bfloat16", heads=100, length=300),
    ),
    shapes=(
        _deepseek(sequences=1, length=16384),
        _deepseek(sequences=32, length=4096),
        _deepseek(sequences=128, length=4096),
        _deepseek(sequences=32, length=4096, cache="float8_e4m3fn", scaled=True),
    ),
    exact=("cache_scale",),
)
