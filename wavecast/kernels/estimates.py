"""Formulas that rank configurations before anything is compiled: `wavecast.model.ranking`."""

from __future__ import annotations

from typing import Any

from wavecast.arch import Device
from wavecast.kernels.space import Settings
from wavecast.model.ranking import StreamingKernel, TiledProduct
from wavecast.model.ranking.product import LIBRARY


def tile(
    device: Device, settings: Settings, *, rows: int, columns: int, depth: int, **sizes: Any
) -> float:
    """Seconds of a `TiledProduct`."""
    product = TiledProduct(tile_m=rows, tile_n=columns, tile_k=depth, **sizes)
    return product.seconds(device, int(settings.get("num_warps", 4)))


def streaming(
    device: Device,
    settings: Settings,
    *,
    operations: float = 8.0,
    held: float = 1.0,
    **sizes: Any,
) -> float:
    """Seconds of a `StreamingKernel`."""
    kernel = StreamingKernel(instructions=operations, live_registers=held, **sizes)
    return kernel.seconds(device, int(settings.get("num_warps", 4)))


__all__ = ["LIBRARY", "streaming", "tile"]
