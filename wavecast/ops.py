"""`wavecast.ops`: the kernel library as functions on PyTorch tensors.

    from wavecast import ops

    y = ops.rms_norm(x, weight)                    # a GPU's tensors: Triton kernels
    with wavecast.device("gfx942"):
        y = ops.rms_norm(x, weight)                # the CPU's: the machine code of a GPU, executed

Every function is `torch.ops.wavecast.<name>` as well, with autograd, gradients of gradients (in
plain PyTorch), `torch.func` but for its forward mode, and `torch.compile`. Importing this module
defines them. `names()` lists them, `register` adds one of your own (docs/adding-an-op.md).

`distributed` has collectives over the GPUs of a node (docs/multi-gpu.md).

Whole models: `replace(model)` gives modules another forward, `substituted()` answers PyTorch's
functions while a block runs, and `inductor_pass()` rewrites what `torch.compile` is about to
compile, as its backend `wavecast` does. Each tells what it did. `predicted(model, inputs)` tells
what `replace` would change; `replace(model, inputs=x)` tells it, too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from wavecast.errors import MissingTool
from wavecast.extras import install_hint

try:
    from wavecast.frameworks.torch import library
    from wavecast.frameworks.torch.mode import substituted
    from wavecast.frameworks.torch.verify import verify
    from wavecast.kernels.distributed import functions as distributed
    from wavecast.kernels.operator import Gradient, Operator, Tolerance
    from wavecast.kernels.registry import operator, operators, register
    from wavecast.kernels.sparse.compression import (
        compress_sparse24,
        expand_sparse24,
        prune_sparse24,
    )
except ModuleNotFoundError as error:
    if error.name not in ("torch", "triton"):
        raise
    raise MissingTool(f"operators need {error.name}", hint=install_hint("torch")) from None

if TYPE_CHECKING:
    from wavecast.frameworks.torch.inductor import InductorPass
    from wavecast.frameworks.torch.replaced import Replaced
    from wavecast.pipeline.models.replacing import ReplacedModule

library.install()
sys.modules[f"{__name__}.distributed"] = distributed  # `import wavecast.ops.distributed`


def names() -> tuple[str, ...]:
    """The names of all operators."""
    return tuple(operators())


def inductor_pass(*, cached: bool = False) -> InductorPass:
    """A pass for `torch.compile(…, options={"pre_grad_custom_pass": …})`; its `replaced` tells what
    it did. With `cached` PyTorch may reuse graphs compiled before, of which it then does not tell.
    """
    from wavecast.frameworks.torch.inductor import InductorPass

    return InductorPass(cached=cached)


def in_graphs() -> Replaced:
    """What `torch.compile(…, backend="wavecast")` replaced and left in this process so far."""
    from wavecast.frameworks.torch import inductor

    return inductor.in_graphs


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Any = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    return_lse: bool = False,
) -> Any:
    """PyTorch's FlexAttention by the library's attention: [batch, heads, tokens, width].

    Modifiers may be soft caps, ALiBi, bands of positions (causal, sliding
    windows) and documents, or several of them. Raises UsageError with the reason for others.
    """
    from wavecast.frameworks.torch import flex

    arguments = query, key, value, score_mod, block_mask, scale, enable_gqa
    return flex.flex_attention(*arguments, return_lse=return_lse)


def replace(
    model: Any,
    *,
    attention: bool = True,
    inputs: Any = None,
    system: str = "mi300x",
    jobs: int = 1,
) -> Replaced:
    """Have the modules of `model` run operators of the library, in place.

    Linear, RMSNorm, LayerNorm, Conv, gated MLPs, and of Hugging Face models the attention function
    and the experts. What was replaced, and what was left for which reason, is in the result, whose
    `undo()` takes everything back. Models look attention up at every call: it is `pending` in the
    result until a call is answered, or is not, as those with padding are not.

    With `inputs` (a tensor, a tuple, or a mapping by name) the result has `predicted`: seconds by
    module on the GPU `system` before and after, as the function of that name gives them, before
    anything runs. Raises UsageError if `model` is not a module, and as `predicted`.
    """
    from wavecast.frameworks.torch.replace import replace as replaced

    outlook = None if inputs is None else predicted(model, inputs, system, jobs=jobs)
    account = replaced(model, attention=attention)
    account.predicted = outlook
    return account


def predicted(model: Any, inputs: Any, system: str = "mi300x", *, jobs: int = 1) -> ReplacedModule:
    """What `replace` would change in the forward pass of a module, before anything runs: seconds by
    module as PyTorch runs it, and replaced, by the kernels of the library, compiled for the GPU
    `system` and predicted from their machine code. The model is as it was then. Print it for a
    table.

    `inputs` are a tensor, a tuple, or a mapping by name; nothing is computed. Raises UsageError for
    other arguments, CaptureError where the module does not run on tensors without values.
    """
    from wavecast.arch.systems import system as find_system
    from wavecast.frameworks.torch.replace import replace as replaced
    from wavecast.pipeline.models.replacing import compare_replaced
    from wavecast.runtimes.torch_graph import module_graph

    machine, before = find_system(system), module_graph(model, inputs)
    account = replaced(model)
    try:
        after = module_graph(model, inputs)
    finally:
        account.undo()
    return compare_replaced(before, after, machine, jobs=jobs)


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in operators():
        raise AttributeError(f"module 'wavecast.ops' has no operator {name!r}")
    function = globals()[name] = library.function(name)  # found without this function from now on
    return function


def __dir__() -> list[str]:
    return sorted([*__all__, *names()])


__all__ = [
    "Gradient",
    "Operator",
    "Tolerance",
    "compress_sparse24",
    "distributed",
    "expand_sparse24",
    "flex_attention",
    "in_graphs",
    "inductor_pass",
    "names",
    "operator",
    "predicted",
    "prune_sparse24",
    "register",
    "replace",
    "substituted",
    "verify",
]
