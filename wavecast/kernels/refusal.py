"""What a call refuses, found without running it: so references refuse what kernels do."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from wavecast.errors import ArgumentError
from wavecast.kernels.operator import Operator
from wavecast.launch import gpu


def refuse(operator: Operator, arguments: Mapping[str, Any]) -> None:
    """Raise the ArgumentError that a call with these arguments raises before its first launch.

    It is made with tensors that have no data; one that has to look at data is not refused. What
    else it raises is a mistake of the operator's, and raised. References also take float64: the
    check replaces it by a dtype that the kernels take.
    """
    error = _refusal(operator, arguments, torch.float32)
    if error is not None and _refusal(operator, arguments, torch.bfloat16) is not None:
        raise error


def _refusal(
    operator: Operator, arguments: Mapping[str, Any], wide: torch.dtype
) -> ArgumentError | None:
    try:
        with gpu.without_launches():
            operator.call(**{name: _stand_in(value, wide) for name, value in arguments.items()})
    except ArgumentError as error:
        return error
    except gpu.WouldLaunch:
        return None
    except (NotImplementedError, RuntimeError) as error:
        if not _is_for_want_of_data(error):
            raise
    return None


def _is_for_want_of_data(error: Exception) -> bool:
    """Whether PyTorch raised it as a meta tensor has no data. A copy of it, or a function whose
    result's shape is that of data, is not implemented; an element, and what needs one, is a
    RuntimeError that says so."""
    return isinstance(error, NotImplementedError) or "meta tensor" in str(error)


def _stand_in(value: Any, wide: torch.dtype) -> Any:
    """Without data, and with another dtype for float64."""
    if isinstance(value, Tensor):
        dtype = _stand_in(value.dtype, wide)
        return torch.empty_strided(value.shape, value.stride(), dtype=dtype, device="meta")
    if isinstance(value, torch.dtype):
        return wide if value is torch.float64 else value
    if isinstance(value, (list, tuple)):
        return [_stand_in(element, wide) for element in value]
    return value
