"""How the attention kernels are launched, and the configurations they can run in."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton

from wavecast.dtypes import lookup
from wavecast.kernels.attention.backward import (
    attention_backward_kv_kernel,
    attention_backward_q_kernel,
    attention_delta_kernel,
)
from wavecast.kernels.attention.forward import attention_kernel
from wavecast.kernels.describe import Axes, Device, KernelSpec, Problem, Settings
from wavecast.perfmodel.ranking.attention import (
    AttentionForward,
    AttentionKeyGradients,
    AttentionPass,
    AttentionQueryGradients,
)

_BY_ILP = "amdgpu-sched-strategy=iterative-ilp"
"""The order of instructions by LLVM that keeps pipelined loops within their registers."""
_SIZES = ("batch", "queries", "keys", "heads", "left", "right")
_LARGE_HEAD = 128
"""Elements of a head beyond which accumulators of whole heads leave few registers."""


def padded_head_size(head: int) -> int:
    """Elements of a head in tiles."""
    return max(16, triton.next_power_of_2(head))


def _large(problem: Problem) -> bool:
    rope = padded_head_size(problem["rope"]) if problem["rope"] else 0
    return (
        max(padded_head_size(problem["head"]) + rope, padded_head_size(problem["head_v"]))
        > _LARGE_HEAD
    )


def _rdna(device: Device) -> bool:
    return device.vendor == "amd" and device.capabilities.matrix_unit != "mfma"


def _demand(
    kernel: Callable[..., AttentionPass], problem: Problem, settings: Settings, device: Device,
    **kernel_options: Any,
) -> AttentionPass:  # fmt: skip
    """The demand of the forward kernel, or of a gradient kernel."""
    dtype, flags = problem["dtype"], problem["flags"].split()
    rate = lookup(dtype).rate
    if rate == "fp8" and dtype not in device.capabilities.matrix_fp8:
        rate = "bf16"  # what it is widened to
    rope = padded_head_size(problem["rope"]) if problem["rope"] else 0
    by_keys = kernel is AttentionKeyGradients
    return kernel(
        **{name: problem[name] for name in _SIZES}, kv_heads=problem["shared"],
        head=padded_head_size(problem["head"]) + rope,
        head_v=padded_head_size(problem["head_v"]), dtype=rate, itemsize=getattr(torch,
        dtype).itemsize,
        rows=settings["BLOCK_N" if by_keys else "BLOCK_M"],
        columns=settings["BLOCK_M" if by_keys else "BLOCK_N"], edge=settings["EDGE"],
        soft_cap="cap" in flags, alibi="alibi" in flags, dropout="dropout" in flags,
        chunk=settings["CHUNK"], num_stages=settings["num_stages"], ahead=settings["AHEAD"],
        twice=settings.get("TWICE", False), **kernel_options,
    )  # fmt: skip


def _forward_demand(problem: Problem, settings: Settings, device: Device) -> AttentionPass:
    return _demand(AttentionForward, problem, settings, device, pack=settings["PACK"])


def _keys_demand(problem: Problem, settings: Settings, device: Device) -> AttentionPass:
    return _demand(AttentionKeyGradients, problem, settings, device, split=settings["SPLIT"])


_queries_demand = partial(_demand, AttentionQueryGradients)


def _axes(problem: Problem, device: Device) -> dict[str, Any]:
    """Those all kernels have."""
    nvidia = device.vendor == "nvidia"
    axes: dict[str, Any] = {
        "num_warps": (4, 8) if nvidia else (1, 2, 4, 8),
        "num_stages": (1,) if problem["dtype"] == "float32" else (2, 1),
        "CHUNK": (0, 64, 32) if _rdna(device) else (0, 64) if _large(problem) else (0,),
        "waves_per_eu": (0, 2),
        "allow_flush_denorm": (True,),
    }
    if nvidia:
        del axes["waves_per_eu"], axes["allow_flush_denorm"]
    if device.capabilities.matrix_unit == "mfma":
        axes["matrix_instr_nonkdim"] = (32, 16)
    if device.capabilities.matrix_half_k:
        axes |= {"kpack": (1, 2), "llvm_fn_attrs": ("", _BY_ILP)}
    return axes


def _forward_axes(problem: Problem, device: Device) -> Axes:
    if problem["dtype"] == "float32":
        blocks = {"BLOCK_M": (16, 32, 64), "BLOCK_N": (16, 32), "EDGE": (16,)}
    elif _rdna(device):
        blocks = {"BLOCK_M": (16, 32, 64, 128), "BLOCK_N": (16, 32, 64), "EDGE": (32, 16)}
    else:
        amd_direct = device.vendor == "amd" and device.capabilities.direct_to_lds
        edges = (64, 32) if amd_direct else (32, 64)
        blocks = {"BLOCK_M": (16, 32, 64, 128), "BLOCK_N": (32, 64, 128), "EDGE": edges}
    group = problem["heads"] // problem["shared"]
    few = problem["left"] >= 0 or problem["queries"] <= 64
    packs = (1, min(16, group & -group)) if few and group % 2 == 0 else (1,)
    # windows have few tiles, and the first one of each part is waited for
    ahead = (True, False) if problem["left"] >= 0 and not problem["rope"] else (False,)
    return {**blocks, **_axes(problem, device), "PACK": packs, "AHEAD": ahead}


def _forward_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    columns, edge = settings["BLOCK_N"], settings["EDGE"]
    if settings["AHEAD"] and (edge != columns or settings["CHUNK"] or settings["num_stages"] > 1):
        return False
    half = max(columns // 2, 32 if columns > 16 else 16)
    if edge not in (columns, half) and problem["dtype"] != "float32":
        return False
    if not _tiles_fit(_forward_demand, problem, settings, device):
        return False
    early = settings["num_stages"] > 1 or settings["AHEAD"]
    pipelined = "kpack" in settings and early and settings.get("matrix_instr_nonkdim", 16) == 32
    if "kpack" in settings:
        both = settings["kpack"] == 2, settings["llvm_fn_attrs"] != ""
        if both != (pipelined, pipelined) or early != pipelined:
            return False
    return settings.get("waves_per_eu", 0) == (2 if pipelined else 0)


def _backward_axes(problem: Problem, device: Device) -> dict[str, Any]:
    wide = problem["dtype"] == "float32"
    return {
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (16, 32, 64, 128),
        "EDGE": (16,) if wide else (32, 16),
        **_axes(problem, device),
        "AHEAD": (False,) if wide else (False, True),
        "TWICE": (False,) if wide else (True, False),
    }


def _backward_kv_axes(problem: Problem, device: Device) -> Axes:
    split = _large(problem) or device.capabilities.matrix_unit != "mfma"
    return {**_backward_axes(problem, device), "SPLIT": (False, True) if split else (False,)}


def _backward_fits(
    demand: Callable[..., AttentionPass], columns: str, problem: Problem, settings: Settings,
    device: Device,
) -> bool:  # fmt: skip
    """Also whether loads go with stages: operands of two products are slow to read from LDS once
    pipelined, unless they are loaded twice, or transposed as they are read."""
    if settings["EDGE"] != min(32 if problem["dtype"] != "float32" else 16, settings[columns]):
        return False
    pipelined, nvidia = settings["num_stages"] > 1, device.vendor == "nvidia"
    if settings["TWICE"] and (not pipelined or settings["CHUNK"] or nvidia):
        return False
    if settings["AHEAD"] and (pipelined or nvidia):
        return False
    if "kpack" in settings:
        wide = settings["TWICE"] or settings["AHEAD"]
        if (settings["kpack"] == 2) != wide or settings["llvm_fn_attrs"]:
            return False
    if pipelined and not settings["TWICE"] and not device.capabilities.direct_to_lds:
        return False
    if settings.get("waves_per_eu", 0):
        return False
    return _tiles_fit(demand, problem, settings, device)


def _tiles_fit(
    demand: Callable[..., AttentionPass], problem: Problem, settings: Settings, device: Device
) -> bool:
    """Whether matrix instructions, tiles and LDS go together."""
    attention_pass, warps = demand(problem, settings, device), settings["num_warps"]
    rows, columns = attention_pass.rows, attention_pass.columns
    shape = settings.get("matrix_instr_nonkdim", 16)
    if attention_pass.without_matrix(device):
        if rows * columns < 32 * warps:
            return False
    elif rows * _waves_per_row(problem, settings, device) < shape * warps:
        return False
    if settings["EDGE"] < shape or columns < shape:
        return False
    if rows == 16 and problem["queries"] > 16 and warps == 1 and shape == 32:
        return False
    parts = (
        padded_head_size(problem["head"]),
        padded_head_size(problem["head_v"]),
        padded_head_size(problem["rope"] or 256),
    )
    if settings["CHUNK"] and (settings["CHUNK"] > min(parts) or shape == 32):
        return False
    if problem["dtype"] == "float32" and rows * columns > 2048:
        return False
    return attention_pass.lds(device) <= device.limits().lds_max_per_workgroup


def _waves_per_row(problem: Problem, settings: Settings, device: Device) -> int:
    """Waves that may share the rows of one matrix instruction: where a wave has 256 registers for
    everything, it cannot have all the sums of wide heads over keys."""
    return 2 if _large(problem) and _rdna(device) and settings.get("SPLIT", False) else 1


_ROUNDED = ("batch", "queries", "keys", "left")
_CONTIGUOUS = ("alibi", "starts_q", "starts_k")

FORWARD = KernelSpec(
    function=attention_kernel,
    grid="cdiv(queries, BLOCK_M // PACK) * (heads // PACK) * batch",
    axes=_forward_axes,
    fits=_forward_fits,
    demand=_forward_demand,
    strides={"q_rope": "q_rope_row q_rope_head", "k_rope": "k_rope_row"},
    contiguous=(*_CONTIGUOUS, "sinks", "q_scale", "k_scale", "v_scale"),
    rounded=_ROUNDED,
)
BACKWARD_KV = KernelSpec(
    function=attention_backward_kv_kernel,
    grid="cdiv(keys, BLOCK_N) * shared * batch, 2 if SPLIT else 1",
    axes=_backward_kv_axes,
    fits=partial(_backward_fits, _keys_demand, "BLOCK_M"),
    demand=_keys_demand,
    contiguous=_CONTIGUOUS,
    rounded=_ROUNDED,
)
BACKWARD_Q = KernelSpec(
    function=attention_backward_q_kernel,
    grid="cdiv(queries, BLOCK_M) * heads * batch",
    axes=_backward_axes,
    fits=partial(_backward_fits, _queries_demand, "BLOCK_N"),
    demand=_queries_demand,
    contiguous=_CONTIGUOUS,
    rounded=_ROUNDED,
)
DELTA = KernelSpec.streaming(
    attention_delta_kernel,
    grid="cdiv(rows, ROWS)",
    axes={"ROWS": (4, 8, 16, 32, 64), "num_warps": (1, 2, 4)},
    read="2.0 * rows * head * bytes",
    written="4.0 * rows",
    elements="ROWS * max(16, next_power_of_2(head))",
    instructions=4.0,
    live_registers=1.5,
    contiguous=("dlse",),
    rounded=("rows",),
)
