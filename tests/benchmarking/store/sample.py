"""Records of any kind, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Environment,
    Figure,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Anything a string may hold but halves of surrogate pairs, which no file can hold."""
number = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
scalars = st.dictionaries(text, text | number | st.booleans(), max_size=3)
figures = st.builds(
    Figure,
    value=number,
    origin=st.sampled_from(["measured", "predicted", "executed", "static", "imported"]),
    low=st.none() | number,
    high=st.none() | number,
    samples=st.lists(number, max_size=4).map(tuple),
)
records = st.builds(
    BenchRecord,
    subject=st.builds(BenchSubject, kind=text, name=text, axes=scalars, part=text),
    environment=st.builds(
        Environment,
        device=text,
        target=text,
        emulated=st.booleans(),
        commit=text,
        dirty=st.booleans(),
        more=scalars,
    ),
    conditions=st.builds(Conditions, text, text, text, text),
    figures=st.dictionaries(st.text("abc_", min_size=1, max_size=4), figures, max_size=3),
    digest=text,
    floor_seconds=st.none() | number,
    refused=text,
    notes=st.lists(text, max_size=2).map(tuple),
    sensors=st.dictionaries(text, number, max_size=2),
)


@st.composite
def measured(draw: st.DrawFn) -> list[tuple[BenchRun, list[BenchRecord]]]:
    """A few runs with their records."""
    return [
        (
            BenchRun(f"run{index}", draw(text), draw(text), draw(text), draw(text),
                     draw(st.booleans()), draw(text)),
            draw(st.lists(records, max_size=3)),
        )
        for index in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
