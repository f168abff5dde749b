"""Sizes of operators that users give, compared with those of the operators' own calls."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from wavecast.errors import UsageError
from wavecast.kernels import registry


@pytest.mark.parametrize("name", sorted(registry.operators()))
def test_an_operators_own_sizes_are_accepted(name: str) -> None:
    operator = registry.operator(name)
    for sizes in (*operator.shapes, *operator.cases, *operator.thorough):
        operator.check_sizes(sizes)
    operator.check_sizes(operator.complete_sizes({}))


@pytest.mark.parametrize(
    ("name", "axis", "value", "wanted"),
    [
        ("matmul", "m", 0, "an integer from 1"),
        ("matmul", "m", True, "an integer"),
        ("matmul", "m", 1 << 63, "an integer"),
        ("matmul", "dtype", 16, "text"),
        ("dropout", "p", float("nan"), "a finite number"),
        ("dropout", "p", "half", "a finite number"),
        ("dropout", "seed", -2, "an integer from -1"),
        ("attention_varlen", "q", 3, "tuple"),
        ("attention", "causal", 1, "true or false"),
        ("attention", "unknown", 1, "no axis"),
    ],
)
def test_values_that_are_refused(name: str, axis: str, value: object, wanted: str) -> None:
    operator = registry.operator(name)
    with pytest.raises(UsageError, match=wanted):
        operator.check_sizes({axis: value})  # type: ignore[dict-item]


def test_numbers_of_either_type_are_accepted_for_floats() -> None:
    registry.operator("dropout").check_sizes({"p": 1})
    assert "p" in registry.operator("dropout").size_names()
