"""Units of the device files: which convert into each other, and by what factor."""

from __future__ import annotations

_FACTORS: dict[str, dict[str, float]] = {
    "frequency": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "size": {
        "B": 1.0,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "KB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
    },
    "bandwidth": {"B/s": 1.0, "GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2.0**30},
    "rate": {
        "FLOP/s": 1.0,
        "GFLOPS": 1e9,
        "TFLOPS": 1e12,
        "PFLOPS": 1e15,
        "TOPS": 1e12,
        "POPS": 1e15,
    },
    "time": {"s": 1.0, "us": 1e-6, "ns": 1e-9},
    "power": {"W": 1.0, "kW": 1e3},
}
_DIMENSION = {unit: name for name, units in _FACTORS.items() for unit in units}


def dimension(unit: str) -> str:
    """What `unit` measures: `frequency`, `size` …; a unit that converts into no other is itself."""
    return _DIMENSION.get(unit, unit)


def convert(value: float, unit: str, target: str) -> float:
    """`value` in `target` instead of `unit`. Raises ValueError when they measure different things.

    The factors are ratios of powers of ten and two, so the result of a round trip may differ in
    the last bit; a value already in the wanted unit comes back unchanged.
    """
    if unit == target:
        return value
    kind = dimension(unit)
    if kind not in _FACTORS or kind != dimension(target):
        raise ValueError(f"{unit} does not convert to {target}")
    return value * _FACTORS[kind][unit] / _FACTORS[kind][target]


def alternatives(unit: str) -> tuple[str, ...]:
    """The units that convert into `unit`, itself included."""
    return tuple(_FACTORS.get(dimension(unit), {unit: 1.0}))
