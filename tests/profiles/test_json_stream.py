"""Long arrays are cut where elements end, whatever is in their strings."""

from __future__ import annotations

import io
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavecast.errors import InputError
from wavecast.profiles import json_stream
from wavecast.profiles.json_stream import ArrayReader

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1000, 1000)
    | st.text(alphabet='ab"\\{}[],: \n', max_size=8),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=4), children, max_size=3)
    ),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.text(alphabet='x"\\{}', max_size=4), _VALUES, max_size=3)


def _read(text: bytes) -> tuple[list[object], ArrayReader]:
    reader = ArrayReader(io.BytesIO(text), "events")
    return [item for batch in reader.batches(msgspec.json.decode) for item in batch], reader


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(_OBJECTS, max_size=8),
    chunk=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
)
def test_elements_are_those_of_a_whole_parse(
    items: list[object], chunk: int, indent: int | None
) -> None:
    text = json.dumps({"first": [1], "events": items, "last": {"a": "]"}}, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        found, reader = _read(text)
    assert found == items
    assert (reader.damaged, reader.truncated) == (0, False)
    assert {name: reader.rest[name] for name in ("first", "last")} == {
        "first": [1],
        "last": {"a": "]"},
    }


def test_an_element_that_is_not_json_is_counted_and_the_others_are_read() -> None:
    found, reader = _read(b'{"events": [{"a": 1}, {"a": oops}, {"a": 3}], "x": 2}')
    assert found == [{"a": 1}, {"a": 3}]
    assert reader.damaged == 1
    assert reader.rest["x"] == 2


def test_numbers_that_json_lacks_are_read_as_null() -> None:
    found, reader = _read(b'{"events": [{"a": NaN, "b": [-inf, "nan"]}, {"a": Infinity}]}')
    assert found == [{"a": None, "b": [None, "nan"]}, {"a": None}]
    assert reader.damaged == 0


def test_an_early_end_keeps_the_whole_elements() -> None:
    found, reader = _read(b'{"events": [{"a": 1}, {"a": 2}, {"a": "}')
    assert found == [{"a": 1}, {"a": 2}]
    assert reader.truncated


def test_a_file_without_the_array_is_an_error() -> None:
    with pytest.raises(InputError, match='no array "events"'):
        _read(b'{"other": []}')
