"""What fake tensors say of their device while a GPU is emulated.

Compilers such as Helion trace with their own fake tensors and compare devices. A fake tensor has
a Python property for its device, which function modes do not see. In graphs of dynamo and inductor
tensors are the CPU's (`compiling`), so there the property is left alone.
"""

from __future__ import annotations

from typing import Any

from wavecast.integrations.patching import Patches


def install(patches: Patches) -> None:
    """Have fake tensors of the CPU say `cuda:0` wherever PyTorch compiles no graph."""
    import torch
    from torch._guards import CompileContext, TracingContext
    from torch._subclasses.fake_tensor import FakeTensor

    here = torch.device("cuda", 0)
    original: Any = vars(FakeTensor)["device"]

    def device(tensor: Any) -> torch.device:
        found = original.fget(tensor)
        compiling = CompileContext.try_get() or TracingContext.try_get()
        return here if found.type == "cpu" and compiling is None else found

    patches.attribute(FakeTensor, "device", property(device, original.fset))


__all__ = ["install"]
