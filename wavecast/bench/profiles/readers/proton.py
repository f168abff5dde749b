"""Proton's hatchet JSON (Triton's profiler): a tree of scopes with times, and the devices.

Proton adds launches of a scope up, so every launch gets the mean time; launches follow each other,
because the file has no start times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

import msgspec

from wavecast.bench.profiles.profile import (
    NONE,
    Profile,
    ProfiledDevice,
    ProfiledKernel,
    ProfiledOp,
)
from wavecast.errors import InputError

_TIME: Final = "time (ns)"


def recognise(head: bytes) -> bool:
    """JSON with frames and metrics."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"[") and b'"frame"' in head and b'"metrics"' in head


def read(stream: IO[bytes]) -> Profile:
    """Kernels with the scope that launched them as their operator. Raises InputError."""
    try:
        tree, *info = msgspec.json.decode(stream.read())
    except (msgspec.DecodeError, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"not a hatchet file of Proton: {error}") from None
    profile = Profile("Proton")
    profile.notes.append("Proton adds launches up: times are means, and there is no timeline")
    profile.devices.update(_devices(info))
    now = 0
    for scope, node in _leaves(tree, ()):
        metrics = node.get("metrics") or {}
        count, total = int(metrics.get("count") or 0), metrics.get(_TIME)
        if not count or not isinstance(total, (int, float)):
            continue
        device = int(metrics.get("device_id") or 0)
        number = profile.kernels.number(ProfiledKernel(str(node["frame"]["name"])))
        op = NONE
        if scope:
            op = len(profile.ops)
            profile.ops.add(
                profile.op_infos.number(ProfiledOp(".".join(scope))), 0, now, round(total)
            )
        for _ in range(count):
            index = len(profile.launches)
            profile.launches.add(number, device, 0, now, round(total / count))
            profile.launches.op[index] = op
            now += round(total / count)
    return profile


def _leaves(node: Mapping[str, Any], scope: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """(scopes around it, node) of nodes without children. Explicit stack: trees can be deep."""
    waiting: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [(node, scope)]
    while waiting:
        current, around = waiting.pop()
        children = current.get("children") or ()
        if not children and current.get("frame"):
            yield around, current
            continue
        name = (current.get("frame") or {}).get("name", "")
        inner = (*around, str(name)) if name and name != "ROOT" else around
        waiting.extend((child, inner) for child in reversed(children))


def _devices(info: list[Any]) -> dict[int, ProfiledDevice]:
    found: dict[int, ProfiledDevice] = {}
    for vendor in info:
        for kind, devices in vendor.items() if isinstance(vendor, dict) else ():
            for number, facts in devices.items():
                arch = str(facts.get("arch") or "")
                target = f"sm_{arch}" if kind == "CUDA" and arch.isdigit() else arch
                units = int(facts.get("num_sms") or 0)
                found[int(number)] = ProfiledDevice(target=target, units=units)
    return found


__all__ = ["read", "recognise"]
