"""The cycle collector stays as the caller had it."""

from __future__ import annotations

import gc

import pytest

from wavecast.isa.collector import no_collections


def test_off_inside_and_on_again_afterwards() -> None:
    assert gc.isenabled()
    with no_collections():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), no_collections():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_caller_who_switched_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        with no_collections(), no_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
