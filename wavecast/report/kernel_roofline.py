"""The kernels of a table under the roofs of their GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.model.roofline import roofline as limits
from wavecast.report import units
from wavecast.report.log_axes import LogAxes
from wavecast.report.svg import COLOURS, PlotFrame, figure, n, path

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.report.kernel_tables import KernelRow


def roofline(rows: Sequence[KernelRow], device: Device, whole: str) -> Markup | None:
    """Kernels under the roofs of a GPU; None where no rate is known.

    A point is a kernel at its predicted FLOP/s, its area its share of the `whole` (`step`). Roofs
    are those of the dtypes that occur, at sustained rates where they are known.
    """
    shown = []
    for row in rows:
        found = limits(row.priced.node.op.work(), device)
        flops = sum((found.work.flops or {}).values())
        if flops and found.intensity and found.compute and found.memory:
            shown.append((row, found, found.intensity, flops / row.priced.seconds))
    if not shown:
        return None
    roofs = {}
    for _, found, _, _ in shown:
        compute = found.compute_sustained or found.compute
        memory = found.memory_sustained or found.memory
        assert compute is not None
        assert memory is not None
        roofs[compute.name] = (compute, memory)
    corners = [(intensity, rate) for _, _, intensity, rate in shown]
    corners += [(c.rate / m.rate, c.rate) for c, m in roofs.values()]
    axes = LogAxes.around(corners, PlotFrame(960, 350, 62, 14, 12, 38))
    body = [axes.grid("FLOP per byte", "FLOP/s")]
    for number, (name, (compute, memory)) in enumerate(roofs.items()):
        ridge = compute.rate / memory.rate
        start = max(axes.x[0], axes.y[0] / memory.rate)
        points = [axes.at(start, start * memory.rate), axes.at(ridge, compute.rate)]
        points.append(axes.at(max(axes.x[1], ridge), compute.rate))
        title = f"{name} {units.si(compute.rate, 'FLOP/s')}, {units.si(memory.rate, 'B/s')}"
        right, up = points[-1]
        body.append(
            Markup(
                '<path class="roof t{}" d="{}"><title>{}</title></path>'
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(number % COLOURS, path(points), title, n(right - 4), n(up - 5), name)
        )
    total = sum(row.seconds for row in rows)
    for row, _, intensity, rate in sorted(shown, key=lambda one: -one[0].seconds):
        x, y = axes.at(intensity, rate)
        share = row.seconds / total
        title = (
            f"{row.name} x {units.count(row.count)}: {units.seconds(row.seconds)}, "
            f"{share:.0%} of the {whole}; {units.significant(intensity)} FLOP/B, "
            f"{units.si(rate, 'FLOP/s')}, limited by {row.priced.limiter}"
        )
        body.append(
            Markup(
                '<circle class="kernel" cx="{}" cy="{}" r="{}"><title>{}</title></circle>'
            ).format(n(x), n(y), n(3 + 28 * math.sqrt(share)), title)
        )
    return figure("roofline", f"Kernels of a {whole} under the roofs of the GPU", axes.frame, body)


__all__ = ["roofline"]
