from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wavecast.compile.digest import digest, key

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine is not a slow strategy
@given(plain)
def test_a_value_differs_from_its_neighbours(value: object) -> None:
    assert digest(value) == digest(value)
    assert digest(value) != digest(value, None)
    assert digest(value) != digest([value])


def test_boundaries_between_parts_count() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("1") != digest(1)
    assert digest(b"x") != digest("x")


def test_the_order_of_a_mapping_does_not_count() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        digest(object())


def test_a_key_names_its_kind() -> None:
    assert key("hip", "x").startswith("hip-")
    assert key("hip", "x") != key("ptx", "x").replace("ptx", "hip")
    with pytest.raises(ValueError, match="kind"):
        key("Not A Kind", "x")
