"""Coefficients of attention as if some libraries had not been measured."""

from __future__ import annotations

import pytest

from calibration import attention, common

TABLE = common.starting("attention")


def test_a_lost_library_has_the_costs_of_its_schedule() -> None:
    found = attention.without(TABLE, ("asm",))
    for direction in attention.DIRECTIONS:
        other = TABLE[f"vector_hipkittens_{direction}"]
        assert found[f"vector_asm_{direction}"] == other
        assert found[f"vector_interleaved_{direction}"] == other
        assert found[f"call_asm_{direction}"] == TABLE[f"call_sdpa_{direction}"]
    assert found["bandwidth_asm"] == TABLE["bandwidth_split"]
    latent = attention.without(TABLE, (attention.LATENT,))
    assert latent["stream_asm"] == latent["stream_split"] != TABLE["stream_split"]
    assert attention.without(TABLE, ("triton",))["bandwidth_triton"] == TABLE["bandwidth_split"]
    assert found["vector_hipkittens_forward"] == TABLE["vector_hipkittens_forward"]


def test_a_schedule_without_measurements_is_a_guess() -> None:
    found = attention.without(TABLE, ("asm", "hipkittens", "ck"))
    assert found["vector_asm_forward"] == found["vector_hipkittens_forward"] == attention.HIDDEN
    assert found["vector_independent_backward"] < TABLE["vector_independent_backward"]
    assert found["latencies_forward"] == 1.0


def test_measured_schedules_are_the_mean_of_their_kernels() -> None:
    found = attention.without(TABLE, ())
    for direction in attention.DIRECTIONS:
        own = [TABLE[f"vector_{name}_{direction}"] for name in attention.INTERLEAVED]
        mean = sum(own) / len(own)
        assert found[f"vector_interleaved_{direction}"] == mean
        assert TABLE[f"vector_interleaved_{direction}"] == pytest.approx(mean, rel=0.02)


def test_a_table_without_a_library_does_not_know_it(monkeypatch, tmp_path) -> None:
    """A calibration on measurements without latent decoding has its guesses, not fitted values."""
    assert attention.LATENT in attention.FITTED
    assert {"asm", "ck", "hipkittens", "triton"} <= attention.FITTED
    lost: set[str] = set()

    def fit_all(chosen, known, parts=attention.PARTS, lost=lost):
        del chosen, parts
        return attention.without(known, lost)

    written: dict[str, float] = {}
    monkeypatch.setattr(attention, "problems", lambda folder: [])
    monkeypatch.setattr(attention, "report", lambda *given: None)
    monkeypatch.setattr(attention, "fit_all", fit_all)
    monkeypatch.setattr(common, "write", lambda family, known: written.update(known))
    monkeypatch.setattr("sys.argv", ["attention", str(tmp_path), "--write"])
    attention.main()
    guesses = attention.GUESSES[attention.LATENT]
    assert written["start_workgroup"] == guesses["start_workgroup"]
    assert written["vector_triton_forward@gfx942"] == TABLE["vector_serial_forward"]
