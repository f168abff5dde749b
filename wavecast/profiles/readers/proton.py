"""Proton's hatchet JSON (Triton's profiler): a tree of scopes with times, and the devices.

Proton adds launches of a scope up, so every launch gets the mean time; launches follow each other,
because the file has no start times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

import msgspec

from wavecast.errors import InputError
from wavecast.profiles.json_stream import read_whole
from wavecast.profiles.profile import (
    NONE,
    Profile,
    ProfiledDevice,
    ProfiledKernel,
    ProfiledOp,
)

_MOST: Final = 10_000_000
"""Launches of a file: each has a row in the profile."""
_LONGEST: Final = 1e18
"""Nanoseconds of a scope: 32 years."""


class _Frame(msgspec.Struct, frozen=True):
    name: str = ""


class _Metrics(msgspec.Struct, frozen=True):
    count: float | None = None
    nanoseconds: float | None = msgspec.field(default=None, name="time (ns)")
    device: int | str | None = msgspec.field(default=None, name="device_id")


class _Node(msgspec.Struct, frozen=True):
    frame: _Frame | None = None
    metrics: _Metrics = _Metrics()
    children: list[_Node] = msgspec.field(default_factory=list)


class _Gpu(msgspec.Struct, frozen=True):
    arch: int | str | None = None
    units: int | None = msgspec.field(default=None, name="num_sms")


def recognise(head: bytes) -> bool:
    """JSON with frames and metrics."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"[") and b'"frame"' in head and b'"metrics"' in head


def read(stream: IO[bytes]) -> Profile:
    """Kernels with the scope that launched them as their operator. Raises InputError."""
    try:
        tree, *info = msgspec.json.decode(read_whole(stream), type=list[msgspec.Raw])
        root = msgspec.json.decode(tree, type=_Node)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"not a hatchet file of Proton: {error}") from None
    profile = Profile("Proton", timeline=False)
    profile.notes.append("Proton adds launches up: times are means, and there is no timeline")
    profile.devices.update(_devices(info))
    now = 0
    for scope, node in _leaves(root):
        launches, total = node.metrics.count, node.metrics.nanoseconds
        if not launches or total is None:
            continue
        if not 0 < launches <= _MOST - len(profile.launches):
            raise InputError(f"{launches:g} launches of one scope; a file has at most {_MOST:,}")
        now = _add(profile, scope, node, int(launches), total / launches, now)
    return profile


def _add(
    profile: Profile, scope: tuple[str, ...], node: _Node, launches: int, mean: float, now: int
) -> int:
    """Launches of `mean` nanoseconds that follow each other from `now`. Returns their end."""
    if not 0 <= mean * launches < _LONGEST:
        profile.damaged += 1
        return now
    duration, name = round(mean), node.frame.name if node.frame else ""
    device = _number(node.metrics.device)
    number = profile.kernels.number(ProfiledKernel(name or "unnamed kernel"))
    op = NONE
    try:
        if scope:
            op = len(profile.ops)
            info = profile.op_infos.number(ProfiledOp(".".join(scope)))
            profile.ops.add(info, 0, now, round(mean * launches))
        for _ in range(launches):
            index = len(profile.launches)
            profile.launches.add(number, device, 0, now, duration)
            profile.launches.op[index] = op
            now += duration
    except ValueError:
        profile.damaged += 1
    return now


def _leaves(root: _Node) -> Iterator[tuple[tuple[str, ...], _Node]]:
    """(scopes around it, node) of nodes without children. Explicit stack: trees can be deep."""
    waiting: list[tuple[_Node, tuple[str, ...]]] = [(root, ())]
    while waiting:
        current, around = waiting.pop()
        if not current.children and current.frame:
            yield around, current
            continue
        name = current.frame.name if current.frame else ""
        inner = (*around, name) if name and name != "ROOT" else around
        waiting.extend((child, inner) for child in reversed(current.children))


def _devices(info: list[msgspec.Raw]) -> dict[int, ProfiledDevice]:
    """The GPUs of all vendors; what cannot be read is left out."""
    devices: dict[int, ProfiledDevice] = {}
    for text in info:
        try:
            vendor = msgspec.json.decode(text, type=dict[str, dict[int, _Gpu]])
        except (msgspec.DecodeError, RecursionError):
            continue
        for kind, gpus in vendor.items():
            for number, gpu in gpus.items():
                arch = "" if gpu.arch is None else str(gpu.arch)
                target = f"sm_{arch}" if kind == "CUDA" and arch.isdigit() else arch
                devices[number] = ProfiledDevice(target=target, units=gpu.units or 0)
    return devices


def _number(device: int | str | None) -> int:
    """A device number; 0 where the file has none."""
    try:
        return int(device or 0)
    except ValueError:
        return 0


__all__ = ["read", "recognise"]
