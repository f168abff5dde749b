"""The kernels of a table under the roofs of their GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.perfmodel.roofline import roofline as limits
from wavecast.report.kit import units
from wavecast.report.kit.log_axes import LogAxes
from wavecast.report.kit.svg import COLOURS, PlotFrame, figure, n, path

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.report.kit.kernel_tables import KernelRow


def roofline(rows: Sequence[KernelRow], device: Device, whole: str) -> Markup | None:
    """Kernels under the roofs of a GPU; None where no rate is known.

    A point is a kernel at its predicted FLOP/s, its area its share of the `whole` (`step`). Roofs
    are those of the dtypes that occur, at sustained rates where they are known.
    """
    entries = []
    for row in rows:
        bounds = limits(row.priced.node.op.work(), device)
        flops = sum((bounds.work.flops or {}).values())
        if flops and bounds.intensity and bounds.compute and bounds.memory:
            entries.append((row, bounds, bounds.intensity, flops / row.priced.seconds))
    if not entries:
        return None
    roofs = {}
    for _, bounds, _, _ in entries:
        compute = bounds.compute_sustained or bounds.compute
        memory = bounds.memory_sustained or bounds.memory
        assert compute is not None
        assert memory is not None
        roofs[compute.name] = (compute.rate, memory.rate)
    total = sum(row.seconds for row in rows)
    points = [
        RoofPoint(
            intensity,
            rate,
            row.seconds / total,
            f"{row.name} x {units.count(row.count)}: {units.seconds(row.seconds)}, "
            f"{row.seconds / total:.0%} of the {whole}; "
            f"{units.significant(intensity)} {units.operations(bounds.work.flops or ())}/B, "
            f"{units.si(rate, f'{units.operations(bounds.work.flops or ())}/s')}, "
            f"limited by {row.priced.limiter}",
        )
        for row, bounds, intensity, rate in entries
    ]
    return under_roofs(roofs, points, f"Kernels of a {whole} under the roofs of the GPU")


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """FLOP per byte, FLOP/s, share of the time, and what is shown of a point."""

    intensity: float
    rate: float
    share: float
    title: str


def under_roofs(
    roofs: Mapping[str, tuple[float, float]], points: Sequence[RoofPoint], label: str
) -> Markup:
    """Points with areas by their shares under `roofs`, operations and bytes per second by name, and
    the legend that names them."""
    corners = [(point.intensity, point.rate) for point in points]
    corners += [(compute / memory, compute) for compute, memory in roofs.values()]
    axes = LogAxes.around(corners, PlotFrame(960, 370, 104, 28, 12, 58))
    body, legend = [axes.grid("FLOP or OP per byte", "FLOP/s or OP/s")], []
    for number, (name, (compute, memory)) in enumerate(roofs.items()):
        ridge = compute / memory
        start = max(axes.x[0], axes.y[0] / memory)
        line = [axes.at(start, start * memory), axes.at(ridge, compute)]
        line.append(axes.at(max(axes.x[1], ridge), compute))
        unit = units.operations([name.split()[-1]])
        figures = f"{units.si(compute, f'{unit}/s')}, {units.si(memory, 'B/s')}"
        body.append(
            Markup('<path class="roof t{}" d="{}"><title>{} {}</title></path>').format(
                number % COLOURS, path(line), name, figures
            )
        )
        legend.append(
            Markup('<span><b class="dot t{}"></b>{} <span class="dim">{}</span></span>').format(
                number % COLOURS, name, figures
            )
        )
    for point in sorted(points, key=lambda roof_point: -roof_point.share):
        x, y = axes.at(point.intensity, point.rate)
        body.append(
            Markup(
                '<circle class="kernel" cx="{}" cy="{}" r="{}"><title>{}</title></circle>'
            ).format(n(x), n(y), n(3 + 28 * math.sqrt(point.share)), point.title)
        )
    names = Markup('<p class="legend">{}</p>').format(Markup("").join(legend))
    return figure("roofline", label, axes.frame, body) + names


__all__ = ["RoofPoint", "roofline", "under_roofs"]
