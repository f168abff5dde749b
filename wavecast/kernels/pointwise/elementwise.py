"""What kernels over elements have in common: their configurations, demand and work.

A program takes `ROWS` x `BLOCK` elements. Bytes read and written per element, and vector
instructions on each, are enough to rank the configurations.
"""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import choice
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, Signature

WIDEST = 2048
"""Elements of a row that a program takes at most."""
_WARPS = f"(1, 2, 4) if {{}} < {1 << 21} else (4, 8)"
"""Workgroups of one wave spread small tensors; for large ones they are too many to start."""
_PER_LANE = (4, 64)
"""Elements of a program per lane, at least (16 bytes of float32) and at most."""
_LIVE_REGISTERS = 96
"""Registers of a lane that elements may take, in addition to addresses and masks."""


def flat_kernel(
    function: Any, *, instructions: float, live_registers: float, widest: int = 8192,
    narrowest: int = 256,
) -> KernelSpec:  # fmt: skip
    """A kernel over `problem["count"]` elements in `BLOCK`s, which moves `problem["read"]` and
    `problem["written"]` bytes per element (`problem["mixed"]`: of tensors with several dtypes)."""

    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        lanes = settings["num_warps"] * device.wave_lanes
        if problem.get("mixed") and settings["BLOCK"] > 4 * lanes:
            return False  # tensors of several dtypes have one layout only where lanes take 4 each
        return _sensible(settings["BLOCK"], lanes, live_registers)

    blocks = _powers(narrowest, widest)
    return KernelSpec.streaming(
        function,
        grid="cdiv(count, BLOCK)",
        axes={
            "BLOCK": f"up_to(max({narrowest}, next_power_of_2(count)), {blocks})",
            "num_warps": _WARPS.format("count"),
        },
        fits=fits,
        read="count * read",
        written="count * written",
        elements="BLOCK",
        instructions=instructions,
        live_registers=live_registers,
        rounded=("count",),
    )


def row_kernel(
    function: Any, *, instructions: float, live_registers: float, strides: Any = None
) -> KernelSpec:
    """As `flat_kernel`, over `rows` x `columns` elements in tiles of `ROWS` x `BLOCK`."""

    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        lanes = settings["num_warps"] * device.wave_lanes
        return _sensible(settings["ROWS"] * settings["BLOCK"], lanes, live_registers)

    return KernelSpec.streaming(
        function,
        grid="cdiv(rows, ROWS) * cdiv(columns, BLOCK)",
        axes={
            "BLOCK": f"up_to(next_power_of_2(columns), {_powers(64, WIDEST)})[-4:]",
            "ROWS": f"(1, 2, 4, 8, 16) if columns <= {WIDEST // 2} else (1, 2, 4)",
            "num_warps": _WARPS.format("rows * columns"),
        },
        fits=fits,
        read="rows * columns * read",
        written="rows * columns * written",
        elements="ROWS * BLOCK",
        instructions=instructions,
        live_registers=live_registers,
        strides=strides or {},
        rounded=("rows",),
    )


def tensors(*names: str, result: str) -> Signature:
    """Tensors of one shape, each of any dtype, and a result of the dtype of the first."""
    lines = (f"{name}: [...] float" for name in names)
    return Signature(*lines, returns=(f"{result}: [...] ={names[0]}",), leading="rows columns")


def run(spec: KernelSpec, result: str, like: Tensor, **arguments: Any) -> Tensor:
    """The result of a kernel of `flat_kernel`, named `result` among its parameters: a tensor of the
    shape and dtype of `like`. All tensors among `arguments` have that shape; constants (names in
    capitals) are part of the problem."""
    tensors = {n: v.contiguous() for n, v in arguments.items() if isinstance(v, Tensor)}
    output = torch.empty(like.shape, dtype=like.dtype, device=like.device)
    if not output.numel():
        return output
    problem = {"count": output.numel(), **traffic_entries(tuple(tensors.values()), (output,))}
    if len(tensors) > 1:
        problem["mixed"] = any(tensor.dtype != like.dtype for tensor in tensors.values())
    problem |= {name.lower(): value for name, value in arguments.items() if name.isupper()}
    choice.run(spec, problem, **{**arguments, **tensors, result: output})
    return output


def traffic_entries(read: tuple[Tensor | None, ...], written: tuple[Tensor, ...]) -> dict[str, int]:
    """The entries `read` and `written` of a problem: bytes per element of all tensors together."""
    return {"read": bytes_of(*read), "written": bytes_of(*written)}


def bytes_of(*tensors: Tensor | None) -> int:
    """Bytes per element of these tensors together."""
    return sum(tensor.element_size() for tensor in tensors if tensor is not None)


def _powers(low: int, high: int) -> str:
    """Powers of two, as the values that `up_to` takes."""
    return ", ".join(str(1 << n) for n in range(low.bit_length() - 1, high.bit_length()))


def _sensible(elements: int, lanes: int, live: float) -> bool:
    low, high = _PER_LANE
    return elements < 256 or low * lanes <= elements <= min(high, _LIVE_REGISTERS / live) * lanes
