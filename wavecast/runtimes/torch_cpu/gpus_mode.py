"""Every PyTorch call while several GPUs are emulated: tensors say which GPU they belong to, and a
call on the host waits for the launches of its tensors' GPUs, as it would behind them in a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import _tensor_str
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, assign, memory_owner, owner, storage
from wavecast.runtimes.torch_cpu.gpus_compiling import current_function
from wavecast.runtimes.torch_cpu.host_watch import (
    HostWatch,
    is_of_other_library,
    is_pinned,
    pin,
)
from wavecast.runtimes.torch_cpu.mode import CudaOnCpu, default_device, is_cuda
from wavecast.runtimes.torch_cpu.random import check_generator
from wavecast.runtimes.torch_cpu.same_device import (
    INDEXED,
    check_same_device,
    device_of,
    first_list,
    is_by_tensor,
)

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
_SHARING: Final = frozenset({"as_tensor", "asarray"})
"""Functions that give a tensor itself if it is where they want it."""


class SeveralGpus(CudaOnCpu):
    """`CudaOnCpu` for the GPUs of a node."""

    def __init__(
        self, module: Any, gpus: Gpus, on_address: Callable[[Any], None] | None = None
    ) -> None:
        super().__init__(module, on_address)
        self._gpus = gpus
        self.current_gpu = current_function(gpus)
        self.watch: HostWatch | None = None
        """Where checks hear of what calls touch."""
        tensor: Any = torch.Tensor
        self._answers_of_one = self._answers
        self._arrays = {tensor.numpy, tensor.__array__}
        self._leaving = {tensor.cpu, tensor.cuda}
        """What graphs of `torch.compile` leave to calls between them."""
        self._answers = self._answers | {
            tensor.device.__get__: lambda x, *_: device_of(self.index(x)),
            tensor.is_cuda.__get__: lambda x, *_: self.index(x) != HOST,
            tensor.is_cpu.__get__: lambda x, *_: self.index(x) == HOST,
            tensor.get_device: self.index,
            torch.get_device: self.index,
            tensor.cuda: self._cuda,
            tensor.cpu: lambda x, *_, **__: self._move(x, HOST),
            tensor.pin_memory: lambda x, *_, **__: _pinned(x),
            tensor.is_pinned: lambda x, *_, **__: is_pinned(x),
            tensor.__repr__: self._show,
        }

    @property
    def gpus(self) -> Gpus:
        return self._gpus

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if torch.compiler.is_dynamo_compiling():
            if func in self._leaving or self._names_other_device(func, args, kwargs):
                torch._dynamo.graph_break()
            return self._rewrite(self._answers_of_one, func, args, kwargs or {})
        return self.call(func, types, args, kwargs)

    def call(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Call a function of PyTorch."""
        keywords = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "type_as":
            return self.call(self._to, types, args, keywords)
        if func is self._type and len(args) > 1 and isinstance(args[1], str):
            result = super().__torch_function__(func, types, args, keywords)
            return self._move(result, self.gpus.current if ".cuda." in args[1] else HOST)
        if func in self._answers:
            return super().__torch_function__(func, types, args, keywords)
        if func in self._arrays:
            _check_host(*args[:1])
        tensors = _tensors((args, keywords))
        indices = [self._index(tensor) for tensor in tensors]
        owners = {index for index in indices if index is not None}
        target = self._result_device(name, args, keywords)
        if name == "to" and target is not None:
            return self._to_device(func, types, args, keywords, target)
        reads = name not in _NO_DATA and not (name == "__getitem__" and _is_view(args))
        if tensors and reads:
            if not is_of_other_library(func) and not _is_collective(func):
                check_same_device(name, args, keywords, tensors, self._index)
            if name == "copy_" and self._is_asynchronous(*args, **_renamed(keywords)):
                return self._copy(*args, **_renamed(keywords))
            self.gpus.wait(owners)
            if self.watch is not None:
                passed = [x for x in _passed_tensors((args, keywords)) if not _is_wrapper(x)]
                self.watch.on_call(name, func, args, keywords, passed)
        self._check_generator(keywords, target, owners, func)
        if name in _RANDOM:
            with self.gpus.drawing():
                result = super().__torch_function__(func, types, args, keywords)
        else:
            result = super().__torch_function__(func, types, args, keywords)
        if target is None and not owners:
            target = self._default_device(func)
        if name == "_pack_padded_sequence":
            assign(result[1], HOST)  # sizes, on which the host decides
        if target is None and name in INDEXED:
            target = indices[0]
        if name == "pad_sequence":
            target = self.index(first_list(args, keywords)[0])
        if is_by_tensor(name):
            for own, one in zip(first_list(args, keywords), result or (), strict=False):
                self._assign(one, self.index(own), tensors)
            return result
        if target is not None and isinstance(result, torch.Tensor) and name in _SHARING:
            return self._move(result, target)
        self._assign(result, max(owners) if target is None else target, tensors)
        if keywords.get("pin_memory") and isinstance(result, torch.Tensor):
            assign(result, HOST)
            pin(result)
        return result

    def _names_other_device(self, func: Any, args: tuple, kwargs: dict[str, Any] | None) -> bool:
        """Whether a call that dynamo traces names a device other than the current GPU."""
        if kwargs is not None and "device" in kwargs:
            device = kwargs["device"]
        elif func is self._to and len(args) > 1:
            device = args[1]
        else:
            return False
        if isinstance(device, str):
            device = torch.device(device)
        if not isinstance(device, torch.device):
            return False
        index = device.index
        return device.type == "cpu" or (index is not None and index != self.current_gpu())

    def _is_asynchronous(self, target: Any, source: Any = None, non_blocking: bool = False) -> bool:
        """Whether `target.copy_(source, …)` is between a GPU and pinned memory, and returns before
        it is done."""
        if not non_blocking or not isinstance(source, torch.Tensor):
            return False
        gpus = [self.index(target), self.index(source)]
        return gpus.count(HOST) == 1 and (is_pinned(target) or is_pinned(source))

    def _copy(self, target: Any, source: Any = None, non_blocking: bool = False) -> Any:
        """Such a copy, which the host does not wait for."""
        self.gpus.wait({self.index(x) for x in (target, source)}, orders=False)
        target.copy_(source, non_blocking)
        if self.watch is not None:
            self.watch.on_copy(target, source)
        return target

    def _check_generator(
        self, kwargs: dict[str, Any], target: int | None, owners: set[int], func: Any
    ) -> None:
        """Raises RuntimeError for a generator of the host that is to fill memory of a GPU, and the
        reverse."""
        if kwargs.get("generator") is not None:
            known = {index for index in (target, *owners) if index is not None}
            device = max(known) if known else self._default_device(func)
            check_generator(kwargs["generator"], is_gpu=device != HOST)

    def _show(self, tensor: Any, **options: Any) -> str:
        """A tensor as text, with its device."""
        self.gpus.wait({self.index(tensor)})
        with self:
            return _tensor_str._str(tensor, **options)

    def index(self, tensor: Any) -> int:
        """The GPU a tensor belongs to, or the host. What PyTorch made out of sight is the host's;
        while gradients are computed, of the GPU they are computed on."""
        index = self._index(tensor)
        return self.gpus.backward_gpu if index is None else index

    def _index(self, tensor: Any) -> int | None:
        """The same, None for a tensor without elements here, such as a fake one."""
        memories = [memory for part in _memory(tensor) if (memory := storage(part)) is not None]
        for memory in memories:
            gpu = memory_owner(memory)
            if gpu is not None:
                return gpu
        return self.gpus.backward_gpu if memories else None

    def _default_device(self, func: Any) -> int:
        """The device of what a call makes that names none: the host, unless
        `torch.set_default_device` has chosen another."""
        device = default_device() if func in _device_constructors() else None
        return self.gpus.index(device) if is_cuda(device) else HOST

    def _result_device(self, name: str, args: tuple, kwargs: dict[str, Any]) -> int | None:
        """The GPU, or the host, that a call names as the device of its result."""
        device = kwargs.get("device")
        if name == "to" and len(args) > 1:
            other = args[1]
            if isinstance(other, torch.Tensor):
                return self.index(other)
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
        before = self.index(tensor)
        asynchronous = bool(kwargs.get("non_blocking")) and _leaves_host(tensor, before, gpu)
        self.gpus.wait({before, gpu}, orders=not asynchronous)
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
        asynchronous = non_blocking and _leaves_host(tensor, self.index(tensor), gpu)
        return self._move(tensor, gpu, asynchronous=asynchronous)

    def _move(self, tensor: Any, gpu: int, *, asynchronous: bool = False) -> Any:
        """A tensor on another device: itself where it is there already, else a copy, which the host
        does not wait for if it is `asynchronous`."""
        before = self.index(tensor)
        if before == gpu or storage(tensor) is None:
            return tensor
        self.gpus.wait({before, gpu}, orders=not asynchronous)
        if self.watch is not None and not asynchronous:
            self.watch.on_call("cpu" if gpu == HOST else "to", torch.clone, (), {}, [tensor])
        copy = tensor.clone()
        assign(copy, gpu)
        self._started(copy, tensor, asynchronous)
        return copy

    def _assign(self, result: Any, gpu: int, tensors: list[Any]) -> None:
        """Let memory that a call has made belong to a device."""
        for tensor in _tensors(result):
            for part in _memory(tensor):
                memory = storage(part)
                if memory is None or owner(part) is not None:
                    continue
                if all(storage(other) is not memory for other in tensors):
                    assign(part, gpu)


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


def _memory(tensor: Any) -> list[Any]:
    """The tensors that have a tensor's elements: itself, what it wraps, the values of a sparse
    one."""
    if type(tensor) in _PLAIN and tensor.layout is torch.strided:
        return [tensor]
    with torch._C.DisableTorchFunction():
        if tensor.layout is torch.sparse_coo:
            return [tensor._values()]
        if tensor.layout is not torch.strided and tensor.layout is not torch.jagged:
            return [tensor.values()]
    _, *parts = _tensors(tensor)
    return parts or [tensor]


def _is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory is that of others. What reads it may wait for these first."""
    return type(tensor) not in _PLAIN and is_traceable_wrapper_subclass(tensor)


_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)


def _is_collective(func: Any) -> bool:
    """Whether a function is one of `torch.distributed`, which says itself what it takes."""
    return str(getattr(func, "__module__", "")).startswith("torch.distributed")


def _renamed(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords of `copy_` as parameters."""
    return {"source" if name in ("src", "other") else name: keywords[name] for name in keywords}


def _leaves_host(tensor: Any, before: int, gpu: int) -> bool:
    """Whether a copy between a GPU and the host may return before it is done: to new memory of the
    host, which PyTorch pins, and from pinned memory."""
    if storage(tensor) is None or before == gpu:
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


def _check_host(tensor: Any) -> None:
    """Raises TypeError for a tensor of a GPU, as PyTorch does where arrays are asked for."""
    gpu = owner(tensor)
    if gpu not in (None, HOST):
        raise TypeError(
            f"can't convert {device_of(gpu)} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )


def _is_view(args: tuple) -> bool:
    """Whether an index has no tensors: such an index makes a view."""
    return not any(isinstance(leaf, (torch.Tensor, list)) for leaf in tree_leaves(args[1:]))


__all__ = ["SeveralGpus"]
