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


def names(group: str, built_in: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the objects of `group`: those of `built_in` in order, then those of entry points.

    Raises InputError when two distributions use one name.
    """
    return (*built_in, *_entry_points(group, built_in))


def load(group: str, built_in: Mapping[str, str], name: str) -> Any:
    """The object with this name: `built_in` maps names to `module:attribute` or `module`.

    Raises InputError for an entry point that cannot be imported, KeyError for an unknown name.
    """
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        namespace = import_module(module)
        return getattr(namespace, attribute) if attribute else namespace
    point = _entry_points(group, built_in)[name]
    try:
        return point.load()
    except Exception as error:
        raise InputError(
            f"the plug-in {name} ({point.value}) cannot be imported: {error}",
            hint=f"install or remove the distribution {_distribution(point)}",
        ) from error


def _entry_points(group: str, built_in: Mapping[str, str]) -> dict[str, EntryPoint]:
    """Entry points by name."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        distribution = _distribution(point)
        if point.name in built_in or point.name in points:
            other = _OWN if point.name in built_in else _distribution(points[point.name])
            raise InputError(
                f"{distribution} and {other} both register {point.name!r} in {group}",
                hint="remove one of the two distributions",
            )
        points[point.name] = point
    return points


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"


__all__ = ["load", "names"]
