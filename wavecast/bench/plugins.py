"""Objects that other distributions add by entry point, together with those of this package.

The package's own objects are a list in code (`own`), which a checkout has without an installation.
Entry points are for other distributions only.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from wavecast.errors import InputError

_OWN = "wavecast"


def names(group: str, own: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the objects of `group`: those of `own` in order, then those of entry points.

    Raises InputError when two distributions use one name.
    """
    return (*own, *_added(group, own))


def load(group: str, own: Mapping[str, str], name: str) -> Any:
    """The object with this name: `own` maps names to `module:attribute` or `module`.

    Raises InputError for an entry point that cannot be imported, KeyError for an unknown name.
    """
    if name in own:
        module, _, attribute = own[name].partition(":")
        found = import_module(module)
        return getattr(found, attribute) if attribute else found
    point = _added(group, own)[name]
    try:
        return point.load()
    except Exception as error:
        raise InputError(
            f"the plug-in {name} ({point.value}) cannot be imported: {error}",
            hint=f"install or remove the distribution {_distribution(point)}",
        ) from error


def _added(group: str, own: Mapping[str, str]) -> dict[str, EntryPoint]:
    """Entry points by name."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        distribution = _distribution(point)
        if point.name in own or point.name in found:
            other = _OWN if point.name in own else _distribution(found[point.name])
            raise InputError(
                f"{distribution} and {other} both register {point.name!r} in {group}",
                hint="remove one of the two distributions",
            )
        found[point.name] = point
    return found


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"


__all__ = ["load", "names"]
