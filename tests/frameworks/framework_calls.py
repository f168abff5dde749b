"""Calls of operators for tests of other frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from wavecast import ops
from wavecast.launch.inputs import Make


def inputs_of(name: str, sizes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments of an operator, by default of its first case; tensors are contiguous, as other
    frameworks have them."""
    operator = ops.operator(name)
    found = operator.inputs(Make(seed=1), **(sizes or operator.cases[0]))
    return {
        name: one.contiguous() if isinstance(one, torch.Tensor) else one
        for name, one in found.items()
    }


def listed(found: Any) -> list[Any]:
    """What a call returns, as a list of arrays."""
    if found is None:
        return []
    return list(found) if isinstance(found, (tuple, list)) else [found]
