"""Launch profiles between processes: the same on the other side, and no damage goes unnoticed."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from tests.perfmodel.test_predict import profile
from wavecast import arch
from wavecast.errors import InputError
from wavecast.perfmodel.predict import predict
from wavecast.perfmodel.profile import LaunchProfile, ProfileSource, SampleCoverage
from wavecast.perfmodel.streams import REQUEST
from wavecast.sampling.document import VERSION, decode, encode
from wavecast.sampling.plain import from_bytes, to_bytes

DEVICE = arch.load("mi300x")


def sampled() -> LaunchProfile:
    coverage = SampleCoverage(3, 4, 0.2)
    return replace(profile(), source=ProfileSource.SAMPLE, coverage=coverage, work=1.25)


@pytest.mark.parametrize("given", [profile(), sampled(), replace(profile(), traffic=None)])
def test_a_profile_is_the_same_on_the_other_side(given: LaunchProfile) -> None:
    found = decode(encode(given), given.program)
    for name in ("target", "source", "placement", "traffic", "dtype", "notes", "work", "coverage"):
        assert getattr(found, name) == getattr(given, name), name
    for name, array in asdict(given.streams).items():
        assert np.array_equal(getattr(found.streams, name), array), name
    assert predict(found, DEVICE) == predict(given, DEVICE)


def changed(**fields: object) -> bytes:
    document = from_bytes(encode(sampled()))
    return to_bytes({**document, **fields})


def changed_streams(**arrays: object) -> bytes:
    document = from_bytes(encode(sampled()))
    return to_bytes({**document, "streams": {**document["streams"], **arrays}})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode(sampled())[:-7], "damaged"),
        (b"\x80\x04N.", "damaged|version"),
        (changed(version=VERSION + 1), "version"),
        (changed(instructions=3), "not of"),
        (changed(source="GUESS"), "GUESS"),
        (changed(notes=["NOTHING"]), "NOTHING"),
        (changed(placement={}), "placement|argument"),
        (changed_streams(steps=np.full(36, 99, np.int32)), "beyond"),
        (changed_streams(steps=np.zeros(36, np.float64)), "steps is not an array"),
        (changed_streams(rows=np.zeros((0, REQUEST), np.float32)), "starts"),
        (changed_streams(steps=np.zeros(36, np.int32)), "not those of the steps"),
        (changed_streams(start=np.array([0], np.int64)), "starts"),
    ],
)
def test_damage_is_an_error_of_one_line(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        decode(data, profile().program)
    assert "\n" not in str(error.value)


def test_plain_values_come_back_with_their_dtypes() -> None:
    value = {"a": np.arange(6, dtype=np.uint32).reshape(2, 3), "b": [True, None, 1.5, "x", b"y"]}
    found = from_bytes(to_bytes(value))
    assert found["a"].dtype == np.uint32
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    found["a"][0] = 7
    assert found["b"] == (True, None, 1.5, "x", b"y")


@pytest.mark.parametrize("value", [object(), {1j}, np.array([object()])])
def test_nothing_but_plain_values_travels(value: object) -> None:
    with pytest.raises(TypeError, match="not a plain value"):
        to_bytes(value)
