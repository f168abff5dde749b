"""`torch.compile(model, backend="wavecast")`. Importing this module registers the name; it is
imported as soon as a program imports TorchDynamo (`library.install`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch._dynamo.backends.registry import register_backend


@register_backend(name="wavecast")  # pyright: ignore[reportUntypedFunctionDecorator]
def compile_with_operators(graph: Any, inputs: Sequence[Any], **options: Any) -> Any:
    """Inductor, after what the library has operators for was replaced in the graph."""
    from wavecast.frameworks.torch.inductor import compile_graph

    return compile_graph(graph, inputs, **options)
