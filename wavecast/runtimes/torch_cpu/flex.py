"""`flex_attention` compiled for an emulated GPU: inductor's Triton template over CPU tensors.

Inductor lowers `flex_attention` by the device of the query: C++ for the CPU, Triton for a GPU.
"""

from __future__ import annotations

import functools
from typing import Any

from wavecast.runtimes.patching import Patches


def install(patches: Patches) -> None:
    """Lower `flex_attention` of CPU tensors as that of a GPU, with a GPU's configurations. To be
    called once inductor is imported."""
    import torch
    from torch._inductor import choices, ir
    from torch._inductor.kernel.flex import flex_attention

    lowering = flex_attention.flex_attention
    get_device = ir.TensorBox.get_device
    gpu = torch.device("cuda", 0)

    def lower_for_gpu(query: Any, *rest: Any) -> Any:
        """The first question of the lowering is where the query is; the answer to all others is
        that of the tensors in the graph."""
        lowering_patches = Patches()

        def answer(box: Any) -> Any:
            if box is not query:
                return get_device(box)
            lowering_patches.restore()
            return gpu

        lowering_patches.attribute(ir.TensorBox, "get_device", answer)
        try:
            return lowering(query, *rest)
        finally:
            lowering_patches.restore()

    patches.attribute(flex_attention, "lower_cpu", lower_for_gpu)
    heuristics = choices.InductorChoices.get_config_heuristics

    @functools.wraps(heuristics)
    def of_gpu(self: Any, device_type: str | None = "cuda") -> Any:
        return heuristics(self, "cuda" if device_type == "cpu" else device_type)

    patches.attribute(choices.InductorChoices, "get_config_heuristics", of_gpu)


__all__ = ["install"]
