"""Every PyTorch call while several GPUs are emulated: tensors say which GPU they belong to, and a
call on the host waits for the launches of its tensors' GPUs, as it would behind them in a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, assign, owner, storage
from wavecast.runtimes.torch_cpu.mode import CudaOnCpu, is_cuda

_NO_DATA: Final = frozenset(
    {
        *("__get__", "data_ptr", "stride", "size", "dim", "ndimension", "numel", "nelement"),
        *(
            "element_size",
            "storage_offset",
            "untyped_storage",
            "is_contiguous",
            "is_floating_point",
        ),
        *("is_complex", "is_signed", "is_set_to", "view", "view_as", "transpose", "permute", "t"),
        *(
            "unsqueeze",
            "squeeze",
            "expand",
            "expand_as",
            "detach",
            "narrow",
            "select",
            "as_strided",
        ),
        *("chunk", "split", "unbind", "unflatten", "empty_like", "new_empty", "requires_grad_"),
        *("movedim", "swapaxes", "__len__", "__hash__", "is_same_size", "broadcast_to"),
    }
)
"""Functions that read no elements: shapes, views and allocation."""
_RANDOM: Final = frozenset(
    {
        *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
        *("normal", "bernoulli", "multinomial", "poisson", "binomial", "random_", "uniform_"),
        *("normal_", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_"),
        *("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"),
        *("trunc_normal_", "orthogonal_", "sparse_", "gumbel_softmax", "rrelu", "rrelu_"),
        *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "native_dropout"),
        *("alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_alpha_dropout"),
        *("feature_dropout_", "feature_alpha_dropout_", "scaled_dot_product_attention"),
        *("multi_head_attention_forward", "fractional_max_pool2d", "fractional_max_pool3d"),
    }
)
"""Functions that draw random numbers."""
_ACROSS: Final = frozenset({"copy_", "to", "__set__", "type_as", "set_"})
"""Functions whose tensors may belong to different GPUs."""


class SeveralGpus(CudaOnCpu):
    """`CudaOnCpu` for the GPUs of a node."""

    def __init__(
        self, module: Any, gpus: Gpus, on_address: Callable[[Any], None] | None = None
    ) -> None:
        super().__init__(module, on_address)
        self.gpus = gpus
        tensor: Any = torch.Tensor
        self._answers |= {
            tensor.device.__get__: lambda x, *_: _device(self._index(x)),
            tensor.is_cuda.__get__: lambda x, *_: self._index(x) != HOST,
            tensor.is_cpu.__get__: lambda x, *_: self._index(x) == HOST,
            tensor.get_device: self._index,
            torch.get_device: self._index,
            tensor.cuda: self._cuda,
            tensor.cpu: lambda x, *_, **__: self._move(x, HOST),
        }

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        keywords = kwargs or {}
        name = getattr(func, "__name__", "")
        if func in self._answers:
            return super().__torch_function__(func, types, args, keywords)
        tensors = _tensors((args, keywords))
        owners = {gpu for tensor in tensors if (gpu := owner(tensor)) is not None}
        target = self._result_device(name, args, keywords)
        if name == "to" and target is not None:
            return self._to_device(func, types, args, keywords, target)
        reads = name not in _NO_DATA and not (name == "__getitem__" and _is_view(args))
        if tensors and reads:
            self._check_same(name, tensors)
            self.gpus.wait(owners)
        if name in _RANDOM:
            with self.gpus.drawing():
                result = super().__torch_function__(func, types, args, keywords)
        else:
            result = super().__torch_function__(func, types, args, keywords)
        new = target if target is not None else max(owners, default=None)
        if new is not None:
            self._assign(result, new, tensors)
        return result

    def _index(self, tensor: Any) -> int:
        """The number that a tensor calls its device: where none was asked for, the current one."""
        gpu = owner(tensor)
        return self.gpus.current if gpu is None else gpu

    def _result_device(self, name: str, args: tuple, kwargs: dict[str, Any]) -> int | None:
        """The GPU, or the host, that a call names as the device of its result."""
        device = kwargs.get("device")
        if name == "to" and len(args) > 1:
            other = args[1]
            if isinstance(other, torch.Tensor):
                return owner(other)
            device = other if isinstance(other, (str, int, torch.device)) else device
        if device is None or isinstance(device, bool):
            return None
        if isinstance(device, int) or is_cuda(device):
            return self.gpus.index(device)
        return HOST if torch.device(device).type == "cpu" else None

    def _to_device(
        self, func: Any, types: Iterable[type], args: tuple, kwargs: dict[str, Any], gpu: int
    ) -> Any:
        tensor = args[0]
        before = owner(tensor)
        self.gpus.wait({before, gpu} - {None})
        result = super().__torch_function__(func, types, args, kwargs)
        if result.is_meta:
            return result
        if storage(result) is storage(tensor):
            return self._move(result, gpu)
        assign(result, gpu)
        return result

    def _cuda(self, tensor: Any, device: Any = None, *_: Any, **__: Any) -> Any:
        return self._move(tensor, self.gpus.index(device))

    def _move(self, tensor: Any, gpu: int) -> Any:
        """A tensor on another device: itself where it is there already, else a copy."""
        before = owner(tensor)
        if before == gpu or storage(tensor) is None:
            return tensor
        self.gpus.wait({gpu} if before is None else {before, gpu})
        copy = tensor.clone()
        assign(copy, gpu)
        return copy

    def _check_same(self, name: str, tensors: list[Any]) -> None:
        """Raises RuntimeError for tensors of several devices, as PyTorch does."""
        if name in _ACROSS:
            return
        owners = {
            gpu
            for tensor in tensors
            if (gpu := owner(tensor)) is not None and (tensor.dim() or gpu >= 0)
        }
        if len(owners) > 1:
            first, second = sorted((str(_device(gpu)) for gpu in owners), reverse=True)[:2]
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{first} and {second}! (in {name})"
            )

    def _assign(self, result: Any, gpu: int, tensors: list[Any]) -> None:
        """Let memory that a call has made belong to a device."""
        for tensor in _tensors(result):
            memory = storage(tensor)
            if memory is None or owner(tensor) is not None:
                continue
            if all(storage(other) is not memory for other in tensors):
                assign(tensor, gpu)


def _tensors(values: Any) -> list[torch.Tensor]:
    """The tensors in a call, those with memory that others wrap (DTensor) included."""
    tensors = [values] if isinstance(values, torch.Tensor) else tree_leaves(values)
    tensors = [leaf for leaf in tensors if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        if type(tensor) not in _PLAIN and is_traceable_wrapper_subclass(tensor):
            names, _ = tensor.__tensor_flatten__()
            tensors += [
                getattr(tensor, name) for name in names if hasattr(getattr(tensor, name), "dim")
            ]
    return [leaf for leaf in tensors if isinstance(leaf, torch.Tensor)]


_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)


def _device(index: int) -> torch.device:
    return torch.device("cpu") if index == HOST else torch.device("cuda", index)


def _is_view(args: tuple) -> bool:
    """Whether an index has no tensors: such an index makes a view."""
    return not any(isinstance(leaf, (torch.Tensor, list)) for leaf in tree_leaves(args[1:]))


__all__ = ["SeveralGpus"]
