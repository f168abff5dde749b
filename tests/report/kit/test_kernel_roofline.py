"""Roofs of a table of kernels."""

from __future__ import annotations

from wavecast.report.kit.kernel_roofline import RoofPoint, under_roofs


def test_roofs_are_named_in_the_legend_with_operations_of_their_dtype() -> None:
    roofs = {"matrix int8": (2e15, 5e12), "matrix bf16": (1e15, 5e12)}
    drawn = str(under_roofs(roofs, [RoofPoint(4.0, 1e12, 1.0, "a kernel")], "Kernels"))
    image, legend = drawn.split("</svg>")
    assert "matrix int8</text>" not in image  # names of close roofs would overlap
    assert 'matrix int8 <span class="dim">2 POP/s, 5 TB/s</span>' in legend
    assert 'matrix bf16 <span class="dim">1 PFLOP/s, 5 TB/s</span>' in legend
