"""Plots of profiles: time by module as a treemap, and operators under the roofs of the chip."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import Chip
from wavecast.profiles.kernel_names import recognise
from wavecast.profiles.profile import NONE
from wavecast.profiles.summary import module_of
from wavecast.report.kit import units
from wavecast.report.kit.kernel_roofline import RoofPoint, under_roofs
from wavecast.report.kit.svg import COLOURS, PlotFrame, figure, n

if TYPE_CHECKING:
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.predicted import PredictedProfile

_NANO: Final = 1e-9
_DTYPES: Final = ("fp8", "bf16", "fp32")
_LEAST_WIDTH: Final = 46
"""Pixels of a box that has its name in it."""
_LINE: Final = 15
_CHARACTER: Final = 6.6
_BOLD: Final = 7.6
"""Pixels of a character of names, and of heads."""
_SAME_ROOF: Final = 0.1
"""Rates that differ by less are one roof."""
_LEAST_SHARE: Final = 0.001
"""The least share of the time of the kernels for a point under the roofs."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float


def colours(answer: ProfileAnswer) -> dict[str, int]:
    """The colour of every category, those of most time first."""
    names = [*answer.summary.by_category, "copy"]
    return {name: min(number, COLOURS - 1) for number, name in enumerate(dict.fromkeys(names))}


def boxes(sizes: Sequence[float], around: Box) -> list[Box]:
    """Rectangles with areas in proportion to `sizes` (descending, positive), which fill `around`
    and are close to squares (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000)."""
    rectangles: list[Box] = []
    remainder, total, at = around, sum(sizes), 0
    while at < len(sizes):
        scale = remainder.width * remainder.height / total if total > 0 else 0.0
        side = min(remainder.width, remainder.height)
        end = at + 1
        while end < len(sizes) and _worst(sizes[at : end + 1], side, scale) <= _worst(
            sizes[at:end], side, scale
        ):
            end += 1
        row = sizes[at:end]
        thickness = sum(row) * scale / side if side > 0 else 0.0
        offset = 0.0
        for size in row:
            length = size * scale / thickness if thickness else 0.0
            if remainder.width >= remainder.height:
                rectangles.append(Box(remainder.x, remainder.y + offset, thickness, length))
            else:
                rectangles.append(Box(remainder.x + offset, remainder.y, length, thickness))
            offset += length
        if remainder.width >= remainder.height:
            remainder = Box(
                remainder.x + thickness,
                remainder.y,
                max(0.0, remainder.width - thickness),
                remainder.height,
            )
        else:
            remainder = Box(
                remainder.x,
                remainder.y + thickness,
                remainder.width,
                max(0.0, remainder.height - thickness),
            )
        total -= sum(row)
        at = end
    return rectangles


def _worst(row: Sequence[float], side: float, scale: float) -> float:
    """The largest ratio of sides in a row along `side`."""
    area = sum(row) * scale
    if area <= 0 or side <= 0:
        return math.inf
    return max(
        max(side**2 * size * scale / area**2, area**2 / (side**2 * size * scale)) for size in row
    )


def treemap(answer: ProfileAnswer) -> Markup:
    """Time of all kernels: modules, and in them operators; colours by category."""
    modules = _modules(answer)
    frame, colour = PlotFrame(960, 420, 0, 0, 0, 0), colours(answer)
    whole = max(1, answer.summary.kernel_time)
    parts: list[Markup] = []
    ordered = sorted(modules.items(), key=lambda item: -sum(item[1].values()))
    sizes = [float(sum(operators.values())) for _, operators in ordered]
    around = Box(0, 0, frame.width, frame.height)
    for (module, operators), box in zip(ordered, boxes(sizes, around), strict=True):
        head = _LINE if box.width > 2 * _LEAST_WIDTH and box.height > 3 * _LINE else 0
        name = module or "(module not known)"
        rows = sorted(operators.items(), key=lambda item: -item[1])
        inner = Box(box.x, box.y + head, box.width, box.height - head)
        share = sum(operators.values()) / whole
        for ((operator, category), time), rectangle in zip(
            rows, boxes([float(time) for _, time in rows], inner), strict=True
        ):
            title = (
                f"{name}: {operator or category}, {units.seconds(time * _NANO)}, "
                f"{time / whole:.1%}, {category}"
            )
            parts.append(_rectangle(rectangle, f"t{colour[category]}", title, operator or category))
        parts.append(
            Markup('<rect class="module" x="{}" y="{}" width="{}" height="{}"/>').format(
                n(box.x), n(box.y), n(box.width), n(box.height)
            )
        )
        if head:
            text = _fit_text(f"{name} {share:.0%}", box.width - 6, _BOLD)
            parts.append(
                Markup('<text class="head" x="{}" y="{}">{}<title>{}</title></text>').format(
                    n(box.x + 4), n(box.y + 11), text, name
                )
            )
    return figure("treemap", "Time of kernels by module and operator", frame, parts)


def _modules(answer: ProfileAnswer) -> Mapping[str, dict[tuple[str, str], int]]:
    """Nanoseconds by (operator, category) of every module."""
    profile = answer.profile
    modules: defaultdict[str, defaultdict[tuple[str, str], int]] = defaultdict(
        lambda: defaultdict(int)
    )
    launches = profile.launches
    categories = [recognise(kernel.name).category for kernel in profile.kernels.values]
    for number, (info, op, time) in enumerate(
        zip(launches.info, launches.op, launches.duration, strict=True)
    ):
        if time:
            name = "" if op == NONE else profile.op_infos[profile.ops.info[op]].name
            modules[module_of(profile, number)][name, categories[info]] += time
    return {module: dict(operators) for module, operators in modules.items()}


def _rectangle(box: Box, style: str, title: str, text: str) -> Markup:
    label = Markup("")
    if box.width > _LEAST_WIDTH and box.height > _LINE:
        label = Markup('<text x="{}" y="{}">{}</text>').format(
            n(box.x + 4), n(box.y + 12), _fit_text(text, box.width - 6)
        )
    return Markup(
        '<g class="{}"><rect x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>{}</g>'
    ).format(style, n(box.x), n(box.y), n(box.width), n(box.height), title, label)


def _fit_text(text: str, width: float, character: float = _CHARACTER) -> str:
    """The end of a path is what tells modules apart, so the beginning is left out."""
    most = max(2, int(width / character))
    return text if len(text) <= most else f"…{text[1 - most :]}"


def roofline(predicted: PredictedProfile) -> Markup | None:
    """Operators at their measured FLOP/s under the chip's sustained roofs, their area by their
    time; None where none has FLOPs."""
    whole = predicted.measured
    points = [
        RoofPoint(
            op.flops / op.bytes,
            op.flops / op.measured,
            op.measured / whole,
            f"{op.name} {op.sizes}: {units.seconds(op.measured)}, {op.measured / whole:.1%}; "
            f"{units.significant(op.flops / op.bytes)} FLOP/B, "
            f"{units.si(op.flops / op.measured, 'FLOP/s')}",
        )
        for op in predicted.known
        if op.flops and op.bytes and op.measured >= _LEAST_SHARE * whole
    ]
    if not points:
        return None
    chip = Chip.of(predicted.device)
    roofs = {"vector fp32": (chip.vector_flops * chip.units * chip.clock, chip.hbm)}
    for dtype in _DTYPES:
        try:
            rate = chip.matrix_rate(dtype) * chip.units * chip.clock
        except MissingFact:
            continue
        if all(abs(rate / roof - 1) > _SAME_ROOF for roof, _ in roofs.values()):
            roofs[f"matrix {dtype}"] = (rate, chip.hbm)
    return under_roofs(roofs, points, "Operators under the roofs of the chip, measured")


__all__ = ["Box", "boxes", "colours", "roofline", "treemap"]
