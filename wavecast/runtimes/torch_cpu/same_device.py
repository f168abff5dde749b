"""Which tensors of a call must be of one device, and what PyTorch raises where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from wavecast.runtimes.torch_cpu.gpus import HOST

INDEXED: Final = frozenset({"__getitem__", "__setitem__", "index_put", "index_put_"})
"""Functions of a tensor and of indices, which may be the host's."""
_PREFIX: Final = "_foreach_"
"""What names of functions begin with that do for every tensor of lists what one does for it."""
_ACROSS: Final = frozenset(
    {
        *("copy_", "to", "__set__", "type_as", "set_", "result_type", "broadcast_tensors"),
        *("tensor_split", "pack_padded_sequence", "_pack_padded_sequence", "ctc_loss"),
        *("_pad_packed_sequence", "lstm", "gru", "rnn_tanh", "rnn_relu", "share_memory_"),
        *("pad_sequence", "atleast_1d", "atleast_2d", "atleast_3d", "unflatten_dense_tensors"),
        *("_foreach_copy_", "_has_compatible_shallow_copy_type", "_nested_view_from_jagged"),
    }
)
"""Functions whose tensors may belong to different devices: copies, those that do each of several
tensors alone, and those with indices or lengths on the host."""
_Index = Callable[[Any], int | None]


def check_same_device(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    tensors: Sequence[torch.Tensor],
    index: _Index,
) -> None:
    """Raises RuntimeError where the `tensors` of a call are of several devices and may not be, as
    PyTorch does. `index` gives the GPU of a tensor, or the host."""
    if name in INDEXED:
        _check_indices(name, args, kwargs, index)
    elif name in _ACROSS:
        return
    elif is_by_tensor(name):
        for row in _rows(args, kwargs):
            _check(name, row, index)
    else:
        _check(name, tensors, index)


def is_by_tensor(name: str) -> bool:
    """Whether a function does the same for every tensor of a list. PyTorch launches one kernel
    where all are of one GPU, else one for each."""
    return name.startswith(_PREFIX)


def first_list(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[torch.Tensor]:
    """The first list of tensors of a call."""
    return next(_lists(args, kwargs), ())


def device_of(index: int) -> torch.device:
    """The device of a number of `Gpus`."""
    return torch.device("cpu") if index == HOST else torch.device("cuda", index)


def _rows(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[list[torch.Tensor]]:
    """The tensors at each position of all lists, with those that are in none."""
    alone = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    for row in zip_longest(*_lists(args, kwargs)):
        yield [value for value in row if isinstance(value, torch.Tensor)] + alone


def _lists(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Sequence[torch.Tensor]]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (list, tuple)) and any(isinstance(x, torch.Tensor) for x in value):
            yield value


def _check_indices(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], index: _Index
) -> None:
    """An indexed tensor, its indices, and what is stored there. A number that is a tensor is read
    by the host; elements are copied, or stored by a kernel where there are other indices."""
    where: dict[int, Any] = dict(enumerate(args))
    own = where.get(0, kwargs.get("input"))
    indices = where.get(1, kwargs.get("indices"))
    value = where.get(2, kwargs.get("values", kwargs.get("value")))
    gpu, leaves = index(own), tree_leaves(indices)
    of_kernel = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and not _number(leaf)]
    if {index(leaf) for leaf in of_kernel} - {gpu, HOST, None}:
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor "
            f"({device_of(HOST if gpu is None else gpu)})"
        )
    is_kernels = bool(of_kernel) or _has_list(indices) or name.startswith("index_put")
    if is_kernels and isinstance(value, torch.Tensor) and value.dim():
        check_operands(name, [(gpu, 1), (index(value), value.dim())])


def _has_list(indices: Any) -> bool:
    """Whether indices have a list, which is an index as a tensor is."""
    parts = indices if isinstance(indices, tuple) else (indices,)
    return any(isinstance(part, list) for part in parts)


def _number(tensor: torch.Tensor) -> bool:
    is_integer = not (tensor.is_floating_point() or tensor.is_complex())
    return not tensor.dim() and is_integer and tensor.dtype not in (torch.bool, torch.uint8)


def _check(name: str, tensors: Iterable[torch.Tensor], index: _Index) -> None:
    check_operands(name, [(index(tensor), tensor.dim()) for tensor in tensors])


def check_operands(name: str, operands: Iterable[tuple[int | None, int]]) -> None:
    """Raises RuntimeError for operands of several devices, each a GPU or the host (None for an
    unknown one) and a number of dimensions: numbers of the host go anywhere."""
    owners = {gpu for gpu, dims in operands if gpu is not None and (gpu != HOST or dims)}
    if len(owners) > 1:
        first, second = sorted((str(device_of(gpu)) for gpu in owners), reverse=True)[:2]
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{first} and {second}! (in {name})"
        )


__all__ = [
    "INDEXED",
    "check_operands",
    "check_same_device",
    "device_of",
    "first_list",
    "is_by_tensor",
]
