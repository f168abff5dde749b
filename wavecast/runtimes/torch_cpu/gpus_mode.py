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
from wavecast.runtimes.torch_cpu.host_watch import HostWatch, is_pinned, pin
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
        self.watch: HostWatch | None = None
        """Where checks hear of what calls touch."""
        tensor: Any = torch.Tensor
        self._answers |= {
            tensor.device.__get__: lambda x, *_: _device(self._index(x)),
            tensor.is_cuda.__get__: lambda x, *_: self._index(x) != HOST,
            tensor.is_cpu.__get__: lambda x, *_: self._index(x) == HOST,
            tensor.get_device: self._index,
            torch.get_device: self._index,
            tensor.cuda: self._cuda,
            tensor.cpu: lambda x, *_, **__: self._move(x, HOST),
            tensor.pin_memory: lambda x, *_, **__: _pinned(x),
            tensor.is_pinned: lambda x, *_, **__: is_pinned(x),
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
            if name == "copy_" and self._is_asynchronous(*args, **_renamed(keywords)):
                return self._copy(*args, **_renamed(keywords))
            self.gpus.wait(owners)
            if self.watch is not None:
                passed = [x for x in _passed_tensors((args, keywords)) if not _is_wrapper(x)]
                self.watch.on_call(name, func, args, keywords, passed)
        if name in _RANDOM:
            with self.gpus.drawing():
                result = super().__torch_function__(func, types, args, keywords)
        else:
            result = super().__torch_function__(func, types, args, keywords)
        new = target if target is not None else max(owners, default=None)
        if new is not None:
            self._assign(result, new, tensors)
        if keywords.get("pin_memory") and isinstance(result, torch.Tensor):
            assign(result, HOST)
            pin(result)
        return result

    @staticmethod
    def _is_asynchronous(target: Any, source: Any = None, non_blocking: bool = False) -> bool:
        """Whether `target.copy_(source, …)` is between a GPU and pinned memory, and returns before
        it is done."""
        if not non_blocking or not isinstance(source, torch.Tensor):
            return False
        gpus = [owner(target), owner(source)]
        return (
            gpus.count(HOST) == 1 and None not in gpus and (is_pinned(target) or is_pinned(source))
        )

    def _copy(self, target: Any, source: Any = None, non_blocking: bool = False) -> Any:
        """Such a copy, which the host does not wait for."""
        self.gpus.wait(
            {gpu for x in (target, source) if (gpu := owner(x)) is not None}, orders=False
        )
        target.copy_(source, non_blocking)
        if self.watch is not None:
            self.watch.on_copy(target, source)
        return target

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
        asynchronous = bool(kwargs.get("non_blocking")) and _leaves_host(tensor, before, gpu)
        self.gpus.wait({before, gpu} - {None}, orders=not asynchronous)
        result = super().__torch_function__(func, types, args, kwargs)
        if result.is_meta:
            return result
        if storage(result) is storage(tensor):
            return self._move(result, gpu, asynchronous=asynchronous)
        assign(result, gpu)
        if self.watch is not None and not asynchronous:
            self.watch.on_call("to", func, args, kwargs, [tensor])
        self._started(result, tensor, asynchronous)
        return result

    def _started(self, copy: Any, tensor: Any, asynchronous: bool) -> None:
        """A copy of a tensor on another device is under way: to the host it is pinned."""
        if not asynchronous:
            return
        if owner(copy) == HOST:
            pin(copy)
        if self.watch is not None:
            self.watch.on_copy(copy, tensor)

    def _cuda(
        self, tensor: Any, device: Any = None, non_blocking: bool = False, *_: Any, **__: Any
    ) -> Any:
        gpu = self.gpus.index(device)
        asynchronous = non_blocking and _leaves_host(tensor, owner(tensor), gpu)
        return self._move(tensor, gpu, asynchronous=asynchronous)

    def _move(self, tensor: Any, gpu: int, *, asynchronous: bool = False) -> Any:
        """A tensor on another device: itself where it is there already, else a copy, which the host
        does not wait for if it is `asynchronous`."""
        before = owner(tensor)
        if before == gpu or storage(tensor) is None:
            return tensor
        self.gpus.wait({gpu} if before is None else {before, gpu}, orders=not asynchronous)
        if self.watch is not None and not asynchronous:
            self.watch.on_call("cpu" if gpu == HOST else "to", torch.clone, (), {}, [tensor])
        copy = tensor.clone()
        assign(copy, gpu)
        self._started(copy, tensor, asynchronous)
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
    tensors = _passed_tensors(values)
    for tensor in tensors:
        if _is_wrapper(tensor):
            names, _ = tensor.__tensor_flatten__()  # pyright: ignore[reportAttributeAccessIssue]
            tensors += [
                getattr(tensor, name) for name in names if hasattr(getattr(tensor, name), "dim")
            ]
    return [leaf for leaf in tensors if isinstance(leaf, torch.Tensor)]


def _passed_tensors(values: Any) -> list[torch.Tensor]:
    tensors = [values] if isinstance(values, torch.Tensor) else tree_leaves(values)
    return [leaf for leaf in tensors if isinstance(leaf, torch.Tensor)]


def _is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory is that of others. What reads it may wait for these first."""
    return type(tensor) not in _PLAIN and is_traceable_wrapper_subclass(tensor)


_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)


def _renamed(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords of `copy_` as parameters."""
    return {"source" if name in ("src", "other") else name: keywords[name] for name in keywords}


def _leaves_host(tensor: Any, before: int | None, gpu: int) -> bool:
    """Whether a copy between a GPU and the host may return before it is done: to new memory of the
    host, which PyTorch pins, and from pinned memory."""
    if storage(tensor) is None or before in (None, gpu):
        return False
    return gpu == HOST or (before == HOST and is_pinned(tensor))


def _pinned(tensor: Any) -> Any:
    """A tensor in pinned memory: itself if it is."""
    if is_pinned(tensor) or storage(tensor) is None:
        return tensor
    copy = tensor.clone()
    assign(copy, HOST)
    pin(copy)
    return copy


def _device(index: int) -> torch.device:
    return torch.device("cpu") if index == HOST else torch.device("cuda", index)


def _is_view(args: tuple) -> bool:
    """Whether an index has no tensors: such an index makes a view."""
    return not any(isinstance(leaf, (torch.Tensor, list)) for leaf in tree_leaves(args[1:]))


__all__ = ["SeveralGpus"]
