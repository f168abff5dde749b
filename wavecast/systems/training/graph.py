"""The kernels of a training step of one layer on one GPU, derived from the forward kernels.

The forward kernels are those of a prefill (`systems.graph`). Their gradients follow by kind: a
product has two products with transposed sizes (of its input, of its weights), attention its
backward kernel, a norm or an element-wise kernel one that moves the gradient and what it needs of
the forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from wavecast.perfmodel.ops.attention import BEST
from wavecast.perfmodel.ops.attention import Attention as AttentionOp
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.formats import SCALINGS
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.perfmodel.ops.norm import Norm
from wavecast.systems import windows
from wavecast.systems.architecture import (
    ExpertMlp,
    GroupedQueryAttention,
    Layer,
    ModelArchitecture,
)
from wavecast.systems.engine import engine
from wavecast.systems.graph import Builder, Node, Step, layer_nodes
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import Precision, WeightFormat
from wavecast.systems.training.setup import LORA_TARGETS, TrainingSetup

_DIVIDED: Final = frozenset({"input_norm", "post_norm", "router", "topk", "add shared"})
"""Kernels whose rows sequence parallelism divides."""
_ROW_PARALLEL: Final = frozenset({"o_proj", "down_proj", "shared down_proj"})
"""Products whose inputs tensor parallelism divides; others gather theirs."""
_FORWARD: Final = "vllm@0.11"
"""The engine whose forward kernels they are; what it fuses does not matter here."""
_WIDE: Final = 2.0
"""Bytes of an element of bf16."""


@dataclass(frozen=True, slots=True)
class TrainedKernel:
    """A forward kernel (none: only its gradient is a kernel) with its gradients: `input_grad` and
    `weight_grad` are the kernels of the backward pass, `saved` the bytes the backward pass needs of
    the forward pass; `avoidable` are those of them that come from a cheap kernel."""

    forward: tuple[Node, ...]
    input_grad: tuple[Node, ...]
    weight_grad: tuple[Node, ...]
    saved: float
    avoidable: float = 0.0

    @property
    def cheap(self) -> bool:
        """Whether selective recomputation computes it again: a norm or an activation function."""
        return bool(self.forward) and all(_cheap(node.op) for node in self.forward)


@dataclass(frozen=True, slots=True)
class TrainingGraph:
    """The kernels of one micro-batch of a model that is trained as a setup says."""

    architecture: ModelArchitecture
    setup: TrainingSetup

    def layer(self, layer: Layer) -> list[TrainedKernel]:
        """The kernels of a layer."""
        setup = self.setup
        nodes = layer_nodes(
            self._builder,
            layer,
            Step(chunks=setup.micro_batch, tokens=setup.sequence // setup.context),
        )
        kernels: list[TrainedKernel] = []
        before: Op | None = None
        for node in nodes:
            if node.module == "collective":
                continue
            op = node.op
            if isinstance(op, FusedMoe) and isinstance(layer.mlp, ExpertMlp):
                parts: Iterator[Node] = self._experts(layer.mlp)
            else:
                parts = iter((self._share(node, layer),))
            for part in parts:
                kernels += list(self._cast(part, fused=isinstance(before, Norm)))
                kernel = self._with_backward(part)
                if isinstance(part.op, Gemm) and before is not None and _cheap(before):
                    kernel = replace(kernel, avoidable=kernel.saved)
                kernels.append(kernel)
                kernels += list(self._adapters(part))
                before = part.op
        return kernels

    def embedding(self) -> list[TrainedKernel]:
        """The lookup of the first stage."""
        shape = (self.setup.rows // self.setup.norm_ranks, self.architecture.hidden)
        return [
            self._with_backward(Node("embedding", "head", Elementwise.of("copy", shape, "bf16")))
        ]

    def head(self) -> list[TrainedKernel]:
        """The last norm, the output projection and the loss of the last stage."""
        rows, hidden, setup = self.setup.rows, self.architecture.hidden, self.setup
        part = -(-self.architecture.vocabulary // setup.tensor)
        norm = Norm(self.architecture.norm, rows // setup.norm_ranks, hidden, "bf16")
        nodes = (
            Node("norm", "norm", norm),
            Node("lm_head", "head", Gemm(m=rows, n=part, k=hidden, dtype="bf16")),
            Node("loss", "head", Elementwise.of("exp", (rows, part), "fp32")),
        )
        return [self._with_backward(node) for node in nodes]

    # --- forward -------------------------------------------------------------------------------

    @property
    def _builder(self) -> Builder:
        # Norms are separate from all-reduces; conversions of dtypes are added by `_cast`.
        profile = replace(
            engine(_FORWARD),
            fused_reduce_norm=False,
            fused_products=False,
            fused_quantisation=SCALINGS,
            attention_quantisation=SCALINGS,
            attention_prefill=BEST,
            latent_prefill=BEST,
            products_library="",
            expert_kernels=("sort",),
        )
        return Builder(
            self.architecture, self.formats, Parallelism(tensor=self.setup.tensor), profile
        )

    @property
    def formats(self) -> Precision:
        """Formats of the products. The router and the output projection keep 16 bits."""
        wide = WeightFormat("bf16", "bf16", "none")
        narrow = {
            "bf16": wide,
            "fp8": WeightFormat("fp8", "fp8", "none"),
            "mxfp8": WeightFormat("fp8", "fp8", "none"),  # at the rate of fp8
        }[self.setup.dtype]
        return Precision(narrow, narrow, narrow, wide, "bf16")

    def _share(self, node: Node, layer: Layer) -> Node:
        """The part of a kernel that one GPU computes."""
        op, setup = node.op, self.setup
        if isinstance(op, AttentionOp):
            return replace(node, op=self._attention(op, layer))
        ranks = setup.norm_ranks
        if node.name not in _DIVIDED or ranks == 1:
            return node
        if isinstance(op, Norm):
            return replace(node, op=replace(op, rows=op.rows // ranks))
        if isinstance(op, Gemm):
            return replace(node, op=replace(op, m=op.m // ranks))
        assert isinstance(op, Elementwise)
        rows, *rest = op.result[0]
        shape = (rows // ranks, *rest)
        return replace(node, op=Elementwise.of(op.function, shape, op.result[1]))

    def _attention(self, op: AttentionOp, layer: Layer) -> AttentionOp:
        """Attention of one GPU's queries. The GPUs of a sequence have early and late tokens alike,
        so each sees the average number of keys. Windows are blocks of queries that see the window
        before them."""
        attention, keys = layer.attention, (self.setup.sequence + op.seq_q) // 2
        if not isinstance(attention, GroupedQueryAttention) or not attention.window:
            return replace(op, seq_k=keys)
        if self.setup.sequence <= attention.window:
            return replace(op, seq_k=keys)
        return windows.of_layer(replace(op, seq_k=max(op.seq_q, keys)), attention)

    def _experts(self, mlp: ExpertMlp) -> Iterator[Node]:
        """Routed experts as grouped products, every expert with the same number of tokens. Tokens
        of other GPUs arrive by sender: a GPU with several experts sorts them again, and back."""
        setup, hidden = self.setup, self.architecture.hidden
        divided = setup.expert > 1
        rows = setup.rows // (setup.norm_ranks if divided else 1)
        inter = mlp.inter if divided else mlp.inter // setup.tensor
        experts = mlp.experts // setup.expert
        each = max(1, rows * mlp.topk // experts)
        pairs, groups = each * experts, (each,) * experts
        form = self.formats.experts
        dtype, scaling = form.activations, form.scaling
        permutation = Elementwise.of("copy", (pairs, hidden), "bf16")
        yield Node("permute", "experts", permutation)
        resorted = divided and experts > 1
        if resorted:
            yield Node("sort by expert", "experts", permutation)
        up = Gemm(m=pairs, n=2 * inter, k=hidden, groups=groups, dtype=dtype, scaling=scaling)
        yield Node("experts gate_up", "experts", up)
        act = Elementwise.of("silu_mul", (pairs, inter), "bf16")
        yield Node("experts activation", "experts", act)
        down = Gemm(m=pairs, n=hidden, k=inter, groups=groups, dtype=dtype, scaling=scaling)
        yield Node("experts down", "experts", down)
        if resorted:
            yield Node("sort by sender", "experts", permutation)
        yield Node("combine", "experts", permutation)

    def _cast(self, node: Node, *, fused: bool) -> Iterator[TrainedKernel]:
        """Conversion of a product's input, and of the gradient of its output, to fp8. The norm
        before a product converts its output itself."""
        op = node.op
        if not isinstance(op, Gemm) or op.dtype != "fp8":
            return
        forward = Elementwise.of("copy", (op.m * op.batch, op.k), "bf16")
        backward = Elementwise.of("copy", (op.m * op.batch, op.n), "bf16")
        name = f"{node.name} to fp8"
        yield TrainedKernel(
            () if fused else (Node(name, node.module, forward),),
            (Node(f"{name}, gradient", node.module, backward),),
            (),
            0.0,
        )

    def _adapters(self, node: Node) -> Iterator[TrainedKernel]:
        """The two products of a LoRA adapter."""
        op, rank = node.op, self.setup.lora
        if not rank or node.name not in LORA_TARGETS or not isinstance(op, Gemm):
            return
        for name, n, k in (("A", rank, op.k), ("B", op.n, rank)):
            product = Gemm(m=op.m, n=n, k=k, dtype="bf16")
            yield self._with_backward(
                Node(f"{node.name} LoRA {name}", node.module, product), lora=True
            )

    # --- backward ------------------------------------------------------------------------------

    def _with_backward(self, node: Node, *, lora: bool = False) -> TrainedKernel:
        op = node.op
        frozen = bool(self.setup.lora) and not lora
        name, module = f"{node.name} backward", node.module
        match op:
            case Gemm():
                weighted = node.module != "attention" or node.name == "kv_b_proj"
                grads, weights = _products(op, node)
                size = op.m * op.k * op.batch * (1.0 if op.dtype == "fp8" else _WIDE)
                if op.k == self.architecture.hidden and node.name not in _ROW_PARALLEL:
                    size /= self.setup.norm_ranks  # only this GPU's part is stored
                if not weighted:  # both operands are activations
                    both = size + op.n * op.k * op.batch * _WIDE
                    return TrainedKernel((node,), (*grads, *weights), (), both)
                if frozen:
                    return TrainedKernel((node,), grads, (), 0.0)
                return TrainedKernel((node,), grads, weights, size)
            case AttentionOp():
                backward = Node(name, module, replace(op, backward=True))
                # In bf16 the output is the input that the projection after it stores.
                output = op.head_v if self.setup.dtype != "bf16" and not frozen else 0
                elements = op.heads * (op.head + output) + op.kv_heads * (op.head + op.head_v)
                saved = op.batch * op.seq_q * (elements * _WIDE + op.heads * 4)
                return TrainedKernel((node,), (backward,), (), saved)
            case Norm():
                shape = (op.rows, op.columns)
                function = "addcmul" if op.residual else "mul"
                grads = (Node(name, module, Elementwise.of(function, shape, "bf16")),)
                return TrainedKernel((node,), grads, (), op.rows * op.columns * _WIDE)
            case Elementwise():
                return TrainedKernel(
                    (node,), (_elementwise(op, name, module),), (), self._saved_bytes(op)
                )
            case _:
                raise AssertionError(f"no gradient of {op}")

    def _saved_bytes(self, op: Elementwise) -> float:
        """Bytes of operands that the gradient of an element-wise function needs."""
        if op.function in ("copy", "add", "scale"):
            return 0.0
        width = 4.0 if op.result[1] == "fp32" else _WIDE
        if self.setup.fp8_activations and op.function.endswith("_mul"):
            width = 1.0
        operands = 2 if op.function.endswith("_mul") or op.function == "mul" else 1
        return op.elements * width * operands


def _cheap(op: Op) -> bool:
    return isinstance(op, Norm) or (isinstance(op, Elementwise) and op.function != "copy")


def _products(op: Gemm, node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Gradients of the input (m x n by n x k) and of the weights (n x m by m x k), the latter in
    fp32 for accumulation."""
    grad = replace(op, n=op.k, k=op.n)
    depth, batch = (op.groups[0], len(op.groups)) if op.groups else (op.m, op.batch)
    weight = replace(op, m=op.n, n=op.k, k=depth, batch=batch, groups=(), out="fp32")
    return (
        (Node(f"{node.name} input grad", node.module, grad),),
        (Node(f"{node.name} weight grad", node.module, weight),),
    )


def _elementwise(op: Elementwise, name: str, module: str) -> Node:
    """A kernel that reads the gradient and the operands, and writes the operands' gradients."""
    shape, dtype = op.result
    if op.function.endswith("_mul"):
        # gradient and two operands read, two gradients written: five tensors, one call has four
        rows, columns = shape[0], -(-shape[-1] * 5 // 4)
        return Node(name, module, Elementwise.of("addcmul", (rows, columns), dtype))
    function = "copy" if op.function in ("copy", "add") else "mul"
    return Node(name, module, Elementwise.of(function, shape, dtype))


__all__ = ["TrainedKernel", "TrainingGraph"]
