"""From the name a user types to a device.

A selector is a device id, a marketing name or alias (case and punctuation do not matter), a gfx
target with or without feature suffixes (`gfx942:sramecc+`), or an sm target (`sm_90`, `sm90a`). A
target of several devices takes the one whose file says `default_for_target`. `mi300x-cpx` is a
partition of a GPU (`wavecast.arch.partitions`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from wavecast.arch import partitions
from wavecast.arch.device import Device
from wavecast.arch.facts import Facts
from wavecast.arch.generic_targets import MEMBERS, processor_of
from wavecast.arch.overlay import overlay
from wavecast.arch.rates import with_consistent_peaks
from wavecast.arch.reader import ROOT, Identity, catalog, read_device
from wavecast.errors import UnknownName, UsageError, nearest_names

Files = Sequence[str | Path]

_NEAREST: Final = (
    *(("gfx90", "gfx90a"), ("gfx94", "gfx942"), ("gfx95", "gfx950"), ("gfx9", "gfx90a")),
    *(("gfx125", "gfx1250"), ("gfx12", "gfx1201"), ("gfx", "gfx1100")),
    *(("sm_9", "sm_90"), ("sm_8", "sm_80"), ("sm_", "sm_100")),
)
"""Targets that describe targets without a device, by prefix: the same generation, else the last."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A device and, in `note`, what the user should know about how it was chosen, or ""."""

    device: Device
    note: str = ""


def load(selector: str, files: Files = ()) -> Device:
    """The device `selector` names. Raises UnknownName with the nearest known names.

    `files` add devices or change their facts (`wavecast.arch.overlay`).
    """
    return resolve(selector, files).device


def nearest(name: str, target: str) -> Device:
    """The device of a GPU that a driver found: the one of its marketing name, else the usual one of
    its target, else that of the nearest target. Raises UnknownName for a target that is neither
    AMD's nor NVIDIA's."""
    near = next((other for start, other in _NEAREST if target.startswith(start)), target)
    for selector in (name, target):
        with contextlib.suppress(UnknownName):
            device = load(selector)
            if selector != name or device.target == target:
                return device
    return load(near)


def devices(files: Files = ()) -> tuple[Device, ...]:
    """Every device: AMD first, by target, then NVIDIA; devices of `files` among them."""
    identities = _identities(files)
    _check_overlays(files, identities)
    order = sorted(
        identities.values(), key=lambda item: (item.vendor, _target_key(item.target), item.id)
    )
    return tuple(_build(item.id, files) for item in order)


def resolve(selector: str, files: Files = ()) -> Resolution:
    """The device `selector` names and how it was found. Raises UnknownName."""
    if not files and _is_packaged(selector):
        return Resolution(_load_packaged(selector))
    identities = _identities(files)
    _check_overlays(files, identities)
    identity = _find_identity(selector, identities)
    if identity is not None:
        return Resolution(_build(identity.id, files))
    if (part := partitions.parse_name(selector)) is not None:
        gpu, mode, domains = part
        whole = resolve(gpu, files)
        return Resolution(partitions.partition(whole.device, mode, domains), whole.note)
    target = _target(selector)
    if target in MEMBERS:
        return _resolve_generic(target, files)
    sharing = [item for item in identities.values() if item.target == target]
    if sharing:
        return _resolve_target(target, sharing, files)
    for item in identities.values():
        if target in item.stands_in_for:
            note = (
                f"no device with {target} is known: {item.id} ({item.target}) is assumed. It has "
                "the same instruction set and registers; its size, clocks, and memory are its own"
            )
            return Resolution(_build(item.id, files), note)
    raise _unknown(selector, target, identities.values())


def _find_identity(name: str, identities: Mapping[str, Identity]) -> Identity | None:
    """The device with this id, marketing name, or alias."""
    if name in identities:
        return identities[name]
    plain = _plain(name)
    return next((item for item in identities.values() if plain in map(_plain, item.names)), None)


def _check_overlays(files: Files, identities: Mapping[str, Identity]) -> None:
    for file in files:
        about = overlay(Path(file)).device
        if _find_identity(about, identities) is None:
            raise UsageError(f"{file}: {_unknown(about, _target(about), identities.values())}")


def vendor(target: str) -> str:
    """`amd` or `nvidia`, of a compiler target (`gfx942`, `sm_90`). Raises UnknownName."""
    for prefix, name in (("gfx", "amd"), ("sm_", "nvidia")):
        if target.startswith(prefix):
            return name
    raise UnknownName("target", target, sorted({item.target for item in catalog().values()}))


def _resolve_generic(generic: str, files: Files) -> Resolution:
    """The device of the usual member. Raises UsageError where no member is supported."""
    member = processor_of(generic)
    members = ", ".join(MEMBERS[generic])
    try:
        device = resolve(member, files).device
    except UnknownName:
        raise UsageError(f"no device runs code for {generic} ({members})") from None
    note = (
        f"{generic} is code for {members}: {device.id} ({device.name}) is assumed, and sources are "
        f"compiled for {member}"
    )
    return Resolution(device, note)


def _resolve_target(target: str, sharing: list[Identity], files: Files) -> Resolution:
    default = next((item for item in sharing if item.default_for_target), sharing[0])
    others = ", ".join(item.id for item in sharing if item is not default)
    note = f"{target}: {default.id} ({default.name}) is assumed; others: {others}" if others else ""
    return Resolution(_build(default.id, files), note)


def _unknown(selector: str, target: str, identities: Iterable[Identity]) -> UnknownName:
    """Nearest by target for a target, by name for anything else."""
    items = list(identities)
    targets = sorted({item.target for item in items})
    if re.fullmatch(r"gfx\w+|sm_\d+", target):
        return UnknownName("target", selector, nearest_names(target, targets) or targets)
    ids = [item.id for item in items]
    names = [*ids, *(name for item in items for name in item.aliases), *targets]
    return UnknownName("device", selector, names if nearest_names(selector, names) else ids)


def _plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def _target(selector: str) -> str:
    """`gfx942:sramecc+:xnack-` -> `gfx942`; `sm90a` -> `sm_90`; anything else in lower case."""
    name = selector.split(":", 1)[0].strip().lower()
    match = re.fullmatch(r"sm_?(\d+)[af]?", name)
    return f"sm_{match[1]}" if match else name


def _target_key(target: str) -> tuple[int, str]:
    digits = target.removeprefix("gfx").removeprefix("sm_")
    return len(digits), digits


def _identities(files: Files) -> dict[str, Identity]:
    if not files:
        return catalog()
    extra = (overlay(Path(file)).identity for file in files)
    return {**catalog(), **{item.id: item for item in extra if item is not None}}


def _build(device_id: str, files: Files) -> Device:
    """The device with every file that is about it applied in order."""
    if not files:
        return _load_packaged(device_id)
    identities = _identities(files)
    identity = identities[device_id]
    overlays = [overlay(Path(file)) for file in files]
    base = next((item.base for item in overlays if item.identity == identity), device_id)
    facts = dict(read_device(base)[1]) if base else {}
    for item in overlays:
        if _find_identity(item.device, identities) == identity:
            facts = item.apply(facts)
    return Device(identity, with_consistent_peaks(Facts(device_id, facts)))


def _is_packaged(device_id: str) -> bool:
    """Whether the package has a file for this id: saves reading the heads of all of them."""
    return device_id.isidentifier() and os.path.isfile(ROOT / "devices" / f"{device_id}.toml")


@cache
def _load_packaged(device_id: str) -> Device:
    identity, facts = read_device(device_id)
    return Device(identity, Facts(device_id, facts))
