"""Graphs that `torch.compile` makes, with operators of the library in them.

torch.compile(model, backend="wavecast")

pass_ = ops.inductor_pass()
torch.compile(model, options={"pre_grad_custom_pass": pass_})
print(pass_.replaced)
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx import Graph, GraphModule, Node

from wavecast.frameworks.torch import library
from wavecast.frameworks.torch.graphs import attention, blocks, caches, nodes, norms
from wavecast.frameworks.torch.replaced import Done, Left, Replaced, left_lines
from wavecast.frameworks.torch.substitutes import SUBSTITUTES, substitute_of, why_not

Rewrite = Callable[[Graph, Node, nodes.Report], bool]
"""Replace what ends at a node, if it is what is sought, and say so."""

REWRITES: Final[Sequence[Rewrite]] = (
    blocks.experts,
    blocks.rotary,
    caches.fuse_cache_write,
    attention.fuse_attention,
    attention.fuse_masked_attention,
    attention.fuse_operator_mask,
    blocks.fuse_gated_activation,
    norms.written_norm,
    norms.called_norm,
)
"""In this order, each over the whole graph; then the calls in `SUBSTITUTES` one by one."""


class LeftToPyTorchWarning(UserWarning):
    """Calls in a compiled graph that an operator of the library could have been, and is not."""


def warn_left(line: str) -> None:
    """Say on stderr, once in a process, which calls of a graph stay PyTorch's."""
    if line not in _warned:
        _warned.add(line)
        warnings.warn(f"wavecast: {line}", LeftToPyTorchWarning, stacklevel=2)


_warned: Final[set[str]] = set()

in_graphs: Final = Replaced()
"""What the backend did in all graphs of this process."""


class InductorPass(CustomGraphPass):
    """Before autograd sees a graph: applies `REWRITES` and `SUBSTITUTES`. `replaced` tells what it
    did in all graphs so far; `say` is called with a line for each kind of call that it leaves.

    With `cached` PyTorch may take a graph it compiled before from its cache; then the pass does not
    run, and `replaced` does not tell of that graph.
    """

    def __init__(
        self, *, cached: bool = False, say: Callable[[str], None] | None = warn_left
    ) -> None:
        library.install()
        self._cached = cached
        self._say = say
        self.replaced = Replaced()

    def __call__(self, graph: Graph) -> None:
        before = len(self.replaced.left)
        self._rewrite(graph)
        if self._say is not None:
            for line in left_lines(self.replaced.left[before:]):
                self._say(line)

    def _rewrite(self, graph: Graph) -> None:
        for rewrite in REWRITES:
            for node in nodes.calls(graph):
                if node.users or nodes.writes(node):
                    rewrite(graph, node, self._report)
            graph.eliminate_dead_code(is_impure_node=nodes.writes)
        for node in nodes.calls(graph):
            self._substitute(node)

    def uuid(self) -> Any:
        """What names the pass in caches of compiled graphs: its text; None keeps them out."""
        if not self._cached:
            return None
        here = Path(__file__)
        texts = here, here.with_name("substitutes.py"), *sorted(here.parent.glob("graphs/*.py"))
        return get_hash_for_files(tuple(map(str, texts)))

    def _report(self, node: Node, what: str, name: str) -> None:
        self.replaced.done.append(Done(nodes.origin(node), what, name))

    def _substitute(self, node: Node) -> None:
        function: Any = node.target
        if isinstance(function, str):
            function = getattr(torch.Tensor, function, None)
        if function not in SUBSTITUTES:
            return
        args, keywords = nodes.values(node.args), nodes.named_values(node.kwargs)
        substitute, name = substitute_of(function, args, keywords), nodes.name(node)
        reason = why_not(function, args, keywords)
        if reason:
            self.replaced.left.append(Left(nodes.origin(node), name, reason))
            return
        node.op, node.target = "call_function", substitute.call
        self._report(node, name, substitute.operator)


def replace_operators(note: Callable[[str], None]) -> None:
    """Have Inductor put operators of the library into all graphs of this process, and say what it
    leaves."""
    from torch._inductor import config

    config.pre_grad_custom_pass = InductorPass(say=note)


def compile_graph(graph: GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
    """The backend `wavecast` of `torch.compile`: Inductor after `InductorPass`. Takes
    Inductor's `options`. What becomes of the graph is in `in_graphs`, also where PyTorch has it in
    its cache: the pass goes over a copy of it first."""
    reading = InductorPass()
    reading.replaced = in_graphs
    for module in graph.modules():
        if isinstance(module, GraphModule):
            reading(copy.deepcopy(module.graph))
    rewriting = InductorPass(cached=True, say=None)
    patched = {"pre_grad_custom_pass": rewriting, **options.get("options", {})}
    # PyTorch's own backend: an emulated GPU has it generate kernels for itself
    return torch._TorchCompileInductorWrapper(None, patched, None)(graph, inputs)


__all__ = [
    "REWRITES",
    "InductorPass",
    "LeftToPyTorchWarning",
    "compile_graph",
    "in_graphs",
    "replace_operators",
    "warn_left",
]
