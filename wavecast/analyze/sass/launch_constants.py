"""What a launch fixes before its first instruction: constant banks and special registers."""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable

Array = np.ndarray[Any, Any]


STACK: Final = 1 << 20
"""The stack pointer that kernels are given here; only offsets from it matter."""
PARAMETERS: Final = 1 << 50
"""The generic address of the parameters that kernels are given here."""


@dataclass(frozen=True, slots=True)
class ArrayOfLaunch:
    """A tensor argument: its first address, bytes, and its content where the launch carries it."""

    first: int
    bytes: int
    content: bytes


def arrays(launch: Launch) -> tuple[ArrayOfLaunch, ...]:
    """The tensors among the arguments of a launch."""
    return tuple(named_arrays(launch).values())


def named_arrays(launch: Launch) -> dict[str, ArrayOfLaunch]:
    """The tensors among the arguments of a launch, by name."""
    tensors = {a.name: a for a in launch.arguments if a.kind == "tensor" and a.bytes}
    by_name = {
        a.name: ArrayOfLaunch(a.storage, a.bytes, b"")
        for a in launch.arguments
        if a.kind == "descriptor" and a.bytes
    }
    for parameter in launch.code.named_parameters:
        offset, tensor = parameter.offset, tensors.get(parameter.name)
        if offset is None or tensor is None or len(launch.kernarg) < offset + 8:
            continue
        first = int.from_bytes(launch.kernarg[offset : offset + 8], "little")
        by_name[parameter.name] = ArrayOfLaunch(first, tensor.bytes, tensor.content)
    return by_name


class LaunchConstants:
    """The constants of a launch for some of its workgroups.

    `workgroups` (i64[w, 3]) are the ids (x, y, z) of the workgroup of each warp,
    `warps` (i64[w]) the number of each warp in its workgroup. Raises Unpredictable for a target
    whose constant bank has an unknown layout, and for a launch without arguments.
    """

    def __init__(self, launch: Launch, workgroups: Array, warps: Array) -> None:
        self._bank = _bank(launch)
        self._tables = [array for array in arrays(launch) if array.content]
        x, y, _ = launch.block
        threads = warps[:, None] * 32 + np.arange(32)
        self._special: Mapping[str, Array] = {
            "SR_TID.X": threads % x,
            "SR_TID.Y": threads // x % y,
            "SR_TID.Z": threads // (x * y),
            "SR_CTAID.X": workgroups[:, 0, None],
            "SR_CTAID.Y": workgroups[:, 1, None],
            "SR_CTAID.Z": workgroups[:, 2, None],
            "SR_LANEID": np.arange(32)[None, :],
            "SR_VIRTID": np.zeros((1, 1), np.int64),
            "SR_CgaCtaId": np.zeros((1, 1), np.int64),
            "SR_CLUSTERID.X": workgroups[:, 0, None],
            "SRZ": np.zeros((1, 1), np.int64),
        }

    def special(self, name: str) -> Array | None:
        """The lanes of a special register, None for one that the launch does not determine."""
        value = self._special.get(name)
        return None if value is None else value.astype(np.uint32)

    def load_values(self, addresses: Array, width: int, *, sign: bool) -> Array | None:
        """What lanes read at `addresses` (u64): integers of `width` bytes (u64), extended by their
        sign where asked. None where a lane reads what the launch does not carry."""
        if not len(self._tables) or not addresses.size:
            return None
        least, most = int(addresses.min()), int(addresses.max())
        for table in self._tables:
            if least >= table.first and most + width <= table.first + table.bytes:
                break
        else:
            return None
        kind = np.dtype(f"{'i' if sign else 'u'}{width}")
        data = np.frombuffer(table.content, np.uint8)
        offsets = (addresses - np.uint64(table.first)).astype(np.int64)
        parts = data[offsets[..., None] + np.arange(width)]
        values = np.ascontiguousarray(parts).view(kind)[..., 0]
        return values.astype(np.int64).view(np.uint64) if sign else values.astype(np.uint64)

    def words(self, bank: int, base: Array | None, offset: int) -> Array | None:
        """The words of a constant bank at `base` + `offset`, None for those not known."""
        if bank != 0 or base is None:
            return None
        if base.size == 1:
            at = int(base.flat[0]) + offset
            value = self._bank.get(at)
            return None if value is None else np.full((1, 1), value, np.uint32)
        offsets = base.astype(np.int64) + offset
        values = [self._bank.get(int(at)) for at in offsets.flat]
        if any(value is None for value in values):
            return None
        return np.array(values, np.uint32).reshape(offsets.shape)


def parameters_offset(launch: Launch) -> int:
    """Where parameters begin in constant bank 0. Raises Unpredictable for a target whose bank has
    an unknown layout."""
    return _layout(launch)["parameters"]


def _layout(launch: Launch) -> Mapping[str, int]:
    layout = _layouts().get(launch.code.target)
    if layout is None:
        raise Unpredictable(f"the constant bank of {launch.code.target} has an unknown layout")
    return layout


def _bank(launch: Launch) -> dict[int, int]:
    layout = _layout(launch)
    if not launch.kernarg and launch.code.parameters:
        raise Unpredictable(
            "the arguments of the launch are not known (run the script, or give --arg)"
        )
    bank = {layout["block"] + 4 * n: size for n, size in enumerate(launch.block)}
    bank[layout["stack"]] = STACK
    bank |= {layout["grid"] + 4 * n: size for n, size in enumerate(launch.grid)}
    if "parameters_address" in layout:
        bank[layout["parameters_address"]] = PARAMETERS & 0xFFFFFFFF
        bank[layout["parameters_address"] + 4] = PARAMETERS >> 32
    whole = len(launch.kernarg) // 4
    words = struct.unpack_from(f"<{whole}I", launch.kernarg)
    bank |= {layout["parameters"] + 4 * n: value for n, value in enumerate(words)}
    return bank


@cache
def _layouts() -> Mapping[str, Mapping[str, int]]:
    file = resources.files("wavecast.analyze.sass") / "launch_constants.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


__all__ = [
    "PARAMETERS",
    "ArrayOfLaunch",
    "LaunchConstants",
    "arrays",
    "named_arrays",
    "parameters_offset",
]
