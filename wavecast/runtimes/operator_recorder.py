"""Operator calls as a dispatch mode sees them, with sizes, modules and dependencies."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from wavecast.dtypes import Spelling, lookup
from wavecast.runtimes.function_mode import FunctionMode
from wavecast.systems.sources.calls import OperatorCall, TensorSizes

_NAMESPACES_LEFT_OUT = ("prim", "profiler", "prims_only")


class OperatorRecorder(TorchDispatchMode):
    """Records calls while it is active. `module` and `phase` are what calls are recorded under;
    backward calls take the module of the forward call that they are the gradient of."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[OperatorCall] = []
        self.module = ""
        self.phase = "forward"
        self.stored: set[int] = set()
        self._storages: dict[int, int] = {}
        self._alive: list[Any] = []
        self._writer: dict[int, int] = {}
        self._module_of: dict[int, str] = {}

    def keep(self, tensors: Iterable[torch.Tensor]) -> float:
        """Register tensors that exist before the calls; the bytes of their storages."""
        total = 0.0
        for tensor in tensors:
            spec = self.spec(tensor)
            if spec.storage not in self.stored:
                self.stored.add(spec.storage)
                total += spec.bytes
        return total

    def spec(self, tensor: torch.Tensor) -> TensorSizes:
        """The sizes of a tensor; storages are numbered in the order in which they are seen."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            self._storages[key] = len(self._storages)
            self._alive.append(storage)  # its address stays its own
        name = str(tensor.dtype).removeprefix("torch.")
        short = lookup(name, Spelling.TORCH).short
        strides = tuple(map(int, tensor.stride()))
        return TensorSizes(tuple(map(int, tensor.shape)), short, strides, self._storages[key])

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        keywords = dict(kwargs or {})
        result = func(*args, **keywords)
        if func.namespace not in _NAMESPACES_LEFT_OUT:
            self.record(func, args, keywords, result)
        return result

    def record(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Add a call of the operator `func` with its result. The CPU's fused attention is recorded
        as what runs on a GPU."""
        namespace, _, name = func._schema.name.partition("::")
        inputs = list(_tensors((args, kwargs)))
        outputs = list(_tensors(result))
        written = list(_tensors(mutated_arguments(func, args, kwargs)))
        outputs += [tensor for tensor in written if all(tensor is not other for other in outputs)]
        if inputs or outputs:
            self.add(
                f"{namespace}.{name.replace('_for_cpu', '')}",
                inputs,
                outputs,
                self._arguments(func, args, kwargs),
                view=bool(func.is_view),
                pointwise=torch.Tag.pointwise in func.tags,
                flops=_flops(func, args, kwargs, result),
            )

    def add(
        self,
        name: str,
        inputs: Iterable[torch.Tensor],
        outputs: Iterable[torch.Tensor],
        arguments: Mapping[str, Any],
        *,
        view: bool = False,
        pointwise: bool = False,
        flops: float | None = None,
    ) -> None:
        """Add a call of the operator `name`; `arguments` by the names of its schema."""
        number = len(self.calls)
        read = tuple(self.spec(tensor) for tensor in inputs)
        written = tuple(self.spec(tensor) for tensor in outputs)
        after = {self._writer[spec.storage] for spec in read if spec.storage in self._writer}
        for spec in written:
            # A view of memory that no call has written depends on nothing.
            if not view or spec.storage in self._writer:
                self._writer[spec.storage] = number
        self.calls.append(
            OperatorCall(
                name,
                read,
                written,
                {key: self._plain(value) for key, value in arguments.items()},
                self._module(),
                self.phase,
                tuple(sorted(after)),
                view=view,
                pointwise=pointwise,
                flops=flops,
            )
        )

    def _module(self) -> str:
        """The module of a call. The autograd node of a forward call is made just before it and has
        the last sequence number; a backward call runs in a node."""
        node = torch._C._current_autograd_node()
        if self.phase == "backward" and node is not None:
            return self._module_of.get(node._sequence_nr(), "")
        if self.phase == "forward":
            self._module_of[torch.autograd._get_sequence_nr() - 1] = self.module  # type: ignore[attr-defined]
        return self.module if self.phase == "forward" else ""

    def _arguments(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        names = [argument.name for argument in func._schema.arguments]
        defaults = {
            argument.name: argument.default_value
            for argument in func._schema.arguments
            if argument.has_default_value()
        }
        return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}

    def _plain(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.spec(value)
        if isinstance(value, list | tuple):
            return tuple(self._plain(element) for element in value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)


class GpuChoices(FunctionMode):
    """Has functions take the operators that PyTorch chooses on a GPU, instead of the CPU's:
    fused attention and the fused RMS norm."""

    def __init__(self, recorder: OperatorRecorder) -> None:
        super().__init__()
        self.notes: set[str] = set()
        self._recorder = recorder

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`func`, or the operator of a GPU instead of it."""
        if func is torch.nn.functional.scaled_dot_product_attention:
            return self.attention(func, *args, **kwargs)
        if func is torch.nn.functional.rms_norm:
            return self.rms_norm(*args, **kwargs)
        return func(*args, **kwargs)

    def attention(
        self,
        func: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """The fused operator where it has the form, else `func`."""
        if query.dim() != 4 or (attn_mask is not None and attn_mask.requires_grad):
            return func(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                enable_gqa=enable_gqa,
            )  # fmt: skip
        if dropout_p:
            self.notes.add("dropout of attention is not counted: the fused kernel draws it")
        if attn_mask is not None:
            self.notes.add("attention with a mask is priced as attention to all keys")
        attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return attention(query, key, value, 0.0, is_causal, attn_mask=None, scale=scale)[0]

    def rms_norm(
        self,
        input: torch.Tensor,
        normalized_shape: Sequence[int],
        weight: torch.Tensor | None = None,
        eps: float | None = None,
    ) -> torch.Tensor:
        """The fused operator."""
        shape = [int(size) for size in normalized_shape]
        return _FusedRmsNorm.apply(self._recorder, input, shape, weight, eps)  # type: ignore[return-value]

    def of(self, target: Any) -> Any:
        """The function to call for an operator of a graph that PyTorch divides on the CPU."""
        if target is torch.ops.aten.rms_norm.default:
            return self.rms_norm
        if target is torch.ops.aten.scaled_dot_product_attention.default:
            return functools.partial(self.attention, target)
        return target


class _FusedRmsNorm(torch.autograd.Function):
    """Records the fused operator and its gradient, which PyTorch divides on the CPU."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        recorder: OperatorRecorder,
        x: torch.Tensor,
        shape: list[int],
        weight: torch.Tensor | None,
        eps: float | None,
    ) -> torch.Tensor:
        ctx.recorder, ctx.shape = recorder, shape
        ctx.save_for_backward(x, weight)
        result = torch.empty_like(x)
        arguments = {"input": x, "normalized_shape": shape, "weight": weight, "eps": eps}
        recorder.add("aten._fused_rms_norm", _tensors(arguments), [result], arguments)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        of_input = torch.empty_like(x)
        of_weight = None if weight is None else torch.empty_like(weight)
        arguments = {
            "grad_out": grads[0],
            "input": x,
            "normalized_shape": ctx.shape,
            "weight": weight,
            "output_mask": [True, weight is not None],
        }
        gradients = _tensors((of_input, of_weight))
        ctx.recorder.add("aten._fused_rms_norm_backward", _tensors(arguments), gradients, arguments)
        return None, of_input, None, of_weight, None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


def mutated_arguments(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments that an operator writes."""
    arguments = []
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.name in kwargs:
                arguments.append(kwargs[argument.name])
            elif number < len(args):
                arguments.append(args[number])
    return arguments


def _flops(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
) -> float | None:
    formula = flop_registry.get(func._overloadpacket)
    return None if formula is None else float(formula(*args, **kwargs, out_val=result))


__all__ = ["GpuChoices", "OperatorRecorder", "mutated_arguments"]
