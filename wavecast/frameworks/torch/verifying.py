"""Whether what a call leaves in its outputs is right: fresh inputs, and outputs full of NaN before.

Memory that `torch.empty` and its like return while a call is verified is filled with ones bit by
bit (NaN in every float format but fp8 e4m3fnuz, where it is -240; -1 in integers), and so are freed
blocks of the sizes the outputs had, for allocations that happen below Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from wavecast.frameworks.torch import verify
from wavecast.kernels.operator import Operator, Sizes
from wavecast.runtimes.gpu.inputs import MakeThere

POISON = 0xFF

_MAKERS = frozenset(
    {torch.empty, torch.empty_like, torch.empty_strided}
    | {torch.Tensor.new_empty, torch.Tensor.new_empty_strided}
)


class Filled(TorchFunctionMode):
    """Fills new memory with one byte."""

    def __init__(self, byte: int) -> None:
        super().__init__()
        self._byte = byte

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple = (),
        kwargs: dict | None = None,
    ) -> Any:
        del types
        keywords = kwargs or {}
        result = func(*args, **keywords)
        if func in _MAKERS and keywords.get("out") is None and result.device.type != "meta":
            with torch._C.DisableTorchFunction():
                result.untyped_storage().fill_(self._byte)
        return result


def operator_problems(
    operator: Operator, sizes: Sizes, device: str = "cuda", seed: int = 1
) -> tuple[float | None, tuple[str, ...]]:
    """(largest error as a multiple of the tolerance, None for operators that compare results
    themselves; what is wrong) of a call on new inputs, the reference in float64 on the same
    device, or on the host if it does not run there. Raises what the call raises, torch's
    OutOfMemoryError among it."""
    inputs = operator.inputs(MakeThere(seed, device), **sizes)
    expected = _reference_results(operator, inputs)
    _poison_freed(expected.values(), device)
    with Filled(POISON):
        got = _on_host(verify.results(operator.call, inputs, operator.mutates))
    problems = verify.compare_results(operator, got, expected, sizes)
    error = None
    if operator.compare is None and list(got) == list(expected):
        errors = (verify.excess(got[name], expected[name], operator.tolerance) for name in got)
        error = max(errors, default=0.0)
    return error, tuple(problems)


def _reference_results(operator: Operator, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The reference's results."""
    wide = verify.to_float64(operator, inputs)
    try:
        return _on_host(verify.results(operator.reference, wide, operator.mutates))
    except torch.cuda.OutOfMemoryError:
        raise
    except (
        Exception
    ):  # references need only run on the host; there it is raised again, if it is one
        wide = _host_arguments(verify.to_float64(operator, inputs))
        return _on_host(verify.results(operator.reference, wide, operator.mutates))


def _host_arguments(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {name: _host_arguments(argument) for name, argument in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_host_arguments(element) for element in value)
    return value


def unwritten(make: Callable[[], Callable[[], Any]]) -> str | None:
    """What a function without a reference leaves unwritten in the tensors it returns, None for
    nothing: values that are NaN in memory full of NaN, but not in zeroed memory. `make` gives the
    same call, with the same inputs, each time."""
    results = []
    for byte in (0, POISON):
        call = make()
        with Filled(byte):
            results.append([tensor.detach().clone() for tensor in _tensors(call())])
    for number, (zeros, ones) in enumerate(zip(*results, strict=True)):
        if zeros.shape != ones.shape or not zeros.is_floating_point():
            continue
        count = int((ones.isnan() & ~zeros.isnan()).sum())
        if count:
            return f"{count} of {ones.numel()} values of result {number} are never written"
    return None


def _poison_freed(outputs: Iterable[torch.Tensor], device: str) -> None:
    """Blocks of the outputs' sizes, in float64 down to 8 bits, are filled and given back: the
    allocator hands them out again."""
    for tensor in outputs:
        blocks = []
        for width in (1, 2, 4, 8):
            blocks.append(torch.empty(tensor.numel() * width, dtype=torch.uint8, device=device))
            blocks[-1].fill_(POISON)
        del blocks


def _on_host(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}


def _tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for element in result for tensor in _tensors(element)]
    if isinstance(result, dict):
        return [tensor for value in result.values() for tensor in _tensors(value)]
    return []


__all__ = ["POISON", "Filled", "operator_problems", "unwritten"]
