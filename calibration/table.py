"""Coefficients as numbers of a search: set for the running process, fitted to cases, written back.

A `Setting` is one value of the table: family, name and scope. A command names the settings of a
part of the model, the cases they are fitted to, and what is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from calibration.common import FOLDER, coordinate_search, scores
from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel import chip, coefficients
from wavecast.perfmodel.ops.base import Op

Setting = tuple[str, str, str]

SMALLEST = 0.01
"""Errors below this are noise: the search does not tell them apart."""
LARGEST = 0.5
"""Errors above this (log ratio) count no more."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One problem: the median of its repeats, in seconds."""

    op: Op
    device: str
    function: str
    source: str
    seconds: float

    @property
    def target(self) -> str:
        """The compiler target of the device it ran on."""
        return arch.load(self.device).target


def samples(cases: Sequence[Case]) -> list[Sample]:
    """Cases with an op and a device, repeats joined."""
    found: dict[tuple[Op, str], list[Case]] = {}
    for case in cases:
        if case.op is not None and case.device and not case.reason:
            found.setdefault((case.op, case.device), []).append(case)
    return [
        Sample(
            op,
            device,
            same[0].labels.get("function", ""),
            same[0].source,
            float(np.median([case.seconds for case in same])),
        )
        for (op, device), same in found.items()
    ]


def thinned(all_samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most `most` samples per function and device, evenly over their times."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in all_samples:
        groups.setdefault((sample.function, sample.device), []).append(sample)
    chosen = []
    for group in groups.values():
        group.sort(key=lambda sample: sample.seconds)
        places = np.unique(np.linspace(0, len(group) - 1, min(most, len(group))).astype(int))
        chosen += [group[place] for place in places]
    return chosen


def get(setting: Setting) -> float:
    """The value of a setting; that of `default` where its scope has none."""
    family, name, scope = setting
    values = coefficients.coefficient(family, name).values
    return values.get(scope, values.get("default", 1.0))


def put(known: Mapping[Setting, float]) -> None:
    """Use these values in this process."""
    for (family, name, scope), value in known.items():
        rows = coefficients.family(family)
        assert isinstance(rows, dict)
        rows[name] = replace(rows[name], values={**rows[name].values, scope: value})
    coefficients.values.cache_clear()
    chip.of_device.cache_clear()


def drop(scope: str, families: Sequence[str]) -> None:
    """Do without the values of a scope in this process."""
    for family in families:
        rows = coefficients.family(family)
        assert isinstance(rows, dict)
        for name, row in rows.items():
            kept = {key: value for key, value in row.values.items() if key != scope}
            if kept:
                rows[name] = replace(row, values=kept)
    coefficients.values.cache_clear()
    chip.of_device.cache_clear()


def ratios(chosen: Sequence[Sample]) -> np.ndarray:
    """Predicted over measured."""
    return np.array(
        [sample.op.predict(arch.load(sample.device)).seconds / sample.seconds for sample in chosen]
    )


def fit(settings: Sequence[Setting], chosen: Sequence[Sample], rounds: int) -> None:
    """Search the settings that predict the samples best, and put them; all stay positive.

    A function on a device counts as the root of its number of samples. Without samples the settings
    stay as they are.
    """
    if not chosen:
        return
    groups = [f"{sample.function} {sample.device}" for sample in chosen]
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weight = counts[index] ** -0.5

    def loss(known: Mapping[str, float]) -> float:
        put({settings[int(place)]: value for place, value in known.items()})
        error = np.minimum(np.abs(np.log(ratios(chosen))), LARGEST)
        return float(np.average(np.hypot(error, SMALLEST), weights=weight))

    names = [str(place) for place in range(len(settings))]
    start = {name: get(setting) for name, setting in zip(names, settings, strict=True)}
    found = coordinate_search(loss, start, names, rounds)
    best = minimize(
        lambda logs: loss(dict(zip(names, np.exp(logs), strict=True))),
        np.log([found[name] for name in names]),
        method="Nelder-Mead",
        options={"maxfev": 10 * rounds * len(names), "adaptive": True, "fatol": 1e-6},
    )
    put(dict(zip(settings, np.exp(best.x), strict=True)))


def table(title: str, chosen: Sequence[Sample], *, by_function: bool = True) -> None:
    """Print the scores of samples, by function."""
    found = ratios(chosen)
    print(f"{title}: {scores(found)}")
    if not by_function:
        return
    names = np.array([f"{sample.function} {sample.device}" for sample in chosen])
    for name in sorted(set(names)):
        print(f"  {name:40s} {scores(found[names == name])}")


def write(settings: Sequence[Setting]) -> None:
    """Write the values in use to the files of the table, adding scopes that are new."""
    for family, name, scope in settings:
        path = FOLDER / f"{family}.toml"
        text = path.read_text(encoding="utf-8")
        found = re.search(rf"\[{name}\]\n(?:(?!\[).*\n?)*", text)
        if found is None:
            raise ValueError(f"{path.name} has no {name}")
        line = f"{scope} = {float(f'{get((family, name, scope)):.3g}')!r}"
        row, count = re.subn(rf"(?m)^{scope} = .*$", line, found.group())
        if not count:
            row = f"{row.rstrip()}\n{line}\n" + "\n" * row.endswith("\n\n")
        path.write_text(text[: found.start()] + row + text[found.end() :], encoding="utf-8")


__all__ = ["Sample", "Setting", "drop", "fit", "get", "put", "samples", "table", "thinned", "write"]
