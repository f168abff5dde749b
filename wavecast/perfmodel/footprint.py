"""How many different bytes a set of tensors covers.

Tensors that share a storage may overlap: the same tensor passed twice, `q`, `k` and `v` as views of
one allocation. Of each storage counts the smaller of

- the bytes of its elements, dimensions of stride 0 once, equal views once;
- the union of the address ranges the views span.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from wavecast.compile.codeobject import Argument, Launch


def distinct_bytes(
    launch: Launch, tensors: Iterable[Argument], limits: Mapping[str, float]
) -> float:
    """Distinct bytes of tensors of a launch; of a tensor in `limits` at most that many bytes."""
    by_storage: dict[int, list[Argument]] = {}
    for tensor in tensors:
        by_storage.setdefault(tensor.storage or -len(by_storage) - 1, []).append(tensor)
    return sum(_covered_bytes(launch, views, limits) for views in by_storage.values())


def _covered_bytes(launch: Launch, views: list[Argument], limits: Mapping[str, float]) -> float:
    elements: dict[tuple[object, ...], float] = {}
    spans = []
    for view in views:
        start = _address(launch, view)
        spans.append((start, start + view.bytes))
        key = (start, view.shape, view.strides, view.dtype)
        size = min(element_bytes(view), limits.get(view.name, math.inf))
        elements[key] = max(elements.get(key, 0.0), size)
    return min(sum(elements.values()), float(_union(spans)))


def element_bytes(tensor: Argument) -> float:
    """Bytes of a tensor's different elements: what it spans, without the gaps of its strides."""
    steps = [
        (size, step)
        for size, step in zip(tensor.shape, tensor.strides, strict=False)
        if step and size > 1
    ]
    reach = sum((size - 1) * abs(step) for size, step in steps) + 1
    width = tensor.bytes / reach
    return min(float(tensor.bytes), width * math.prod(size for size, _ in steps))


def _address(launch: Launch, tensor: Argument) -> int:
    """Where a tensor starts, by its pointer in the kernel argument segment; else its storage."""
    named = (p.offset for p in launch.code.named_parameters if p.name == tensor.name)
    for offset in (tensor.slot, *named):
        data = b"" if offset is None else launch.kernarg[offset : offset + 8]
        if len(data) == 8:
            return int.from_bytes(data, "little")
    return tensor.storage


def _union(spans: list[tuple[int, int]]) -> int:
    total, end = 0, None
    for start, stop in sorted(spans):
        if end is None or start > end:
            total += stop - start
            end = stop
        elif stop > end:
            total += stop - end
            end = stop
    return total
