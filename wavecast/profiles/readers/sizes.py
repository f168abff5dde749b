"""Sizes of launches."""

from __future__ import annotations

Axes = tuple[int, int, int]


def blocks(work_items: Axes, threads: Axes) -> Axes:
    """Workgroups per axis of a grid that is given in work-items; 0 where a size is unknown."""
    x, y, z = (
        -(-count // size) if size else 0 for count, size in zip(work_items, threads, strict=True)
    )
    return (x, y, z)


__all__ = ["Axes", "blocks"]
