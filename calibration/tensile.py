"""Fits what predictions of Tensile's kernels need to the winners of its logic files: hipBLASLt's
(library `tensile`) and rocBLAS's.

`python -m calibration.tensile DATA_DIR [--write]`, after `calibration.gemm`. Chips count equally;
files whose times contain the host's are left out (`problems.without_host`). Without measurements a
launch between events is one of an empty kernel.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from calibration import common
from calibration.problems import PublishedProblem, implausible, load, without_host
from wavecast import arch
from wavecast.errors import MissingFact
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.problem import FAMILY, bounds
from wavecast.perfmodel.timing import FAMILY as TIMING

SHARED: Final = (
    *("client_launch", "client_launch@gfx908", "client_launch@gfx1030", "client_launch@gfx1102"),
    "client_launch@gfx1200",
    *("serial_tensile", "step_tensile"),
    *("filled_rocblas@rdna", "serial_rocblas@rdna", "step_rocblas@rdna"),
)
"""Coefficients by name, with the scope where it is not the default. Own values of other scopes stay
as they are."""
DRAWN: Final = 120
"""Problems of a chip that the fit sees."""
LEAST: Final = 30
"""Problems that a chip needs."""
ROUNDS: Final = 2


def drawn(known: Sequence[PublishedProblem]) -> dict[str, list[PublishedProblem]]:
    """Some problems of every chip (id), always the same."""
    found: dict[str, list[PublishedProblem]] = defaultdict(list)
    for problem in sorted(known, key=lambda one: zlib.crc32(str(one.op).encode())):
        if len(found[problem.device]) < DRAWN and _predictable(problem):
            found[problem.device].append(problem)
    return {device: some for device, some in found.items() if len(some) >= LEAST}


def logs(
    device_id: str, some: Sequence[PublishedProblem], known: Mapping[str, float]
) -> np.ndarray:
    """log(predicted / measured) of problems of a chip, with `known` of both families."""
    device = arch.load(device_id)
    chip = Chip.of(device)
    mine = {
        name: value
        for name, value in common.resolved(known, coefficients.scopes(device)[::-1]).items()
        if not _scoped(name, device)
    }
    values = {**coefficients.values(FAMILY, device), **coefficients.values(TIMING, device), **mine}
    seconds = []
    for problem in some:
        op = problem.op
        assert isinstance(op, Gemm)
        kernel = bounds(op, op.candidates(device.generation), chip, values).seconds.min()
        seconds.append(float(kernel) - values["call"] + values["client_launch"])
    return np.log(np.array(seconds) / [problem.seconds for problem in some])


def fit(path: Path) -> dict[str, dict[str, float]]:
    """By family, the coefficients that make the mean bounded |log| of the chips least."""
    chosen = drawn(without_host([one for one in load(path) if not implausible(one)]))
    if not chosen:
        empty = coefficients.coefficient("chips", "launch").values["default"]
        return {TIMING: {name: empty for name in SHARED if _family(name) == TIMING}}
    table = {**common.starting(TIMING), **common.starting(FAMILY)}
    names = [name for name in SHARED if _measured(name, chosen)]

    def loss(known: Mapping[str, float]) -> float:
        return float(
            np.mean(
                [common.bounded(logs(name, some, known)).mean() for name, some in chosen.items()]
            )
        )

    start = {name: table[name] for name in SHARED}
    found = common.coordinate_search(loss, start, names, ROUNDS)
    for device, some in chosen.items():
        print(f"  tensile {device:12} {common.scores(np.exp(logs(device, some, found)))}")
    families = {name: _family(name) for name in names}
    return {
        family: {name: found[name] for name in names if families[name] == family}
        for family in set(families.values())
    }


def _family(name: str) -> str:
    plain = name.partition("@")[0]
    return TIMING if plain in coefficients.family(TIMING) else FAMILY


def _scoped(name: str, device: arch.Device) -> bool:
    """Whether the table has a value for the chip that no fit here changes."""
    row = coefficients.coefficient(_family(name), name)
    scope = row.scope(device)
    return scope not in (None, "default") and f"{name}@{scope}" not in SHARED


def _measured(name: str, chosen: Mapping[str, object]) -> bool:
    """Whether a chip of the scope of a coefficient has problems."""
    scope = name.partition("@")[2]
    return not scope or any(scope in coefficients.scopes(arch.load(device)) for device in chosen)


def _predictable(problem: PublishedProblem) -> bool:
    try:
        problem.op.predict(arch.load(problem.device))
    except MissingFact:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    for family, values in fit(given.data / "gemm_tensile.parquet").items():
        for name, value in values.items():
            print(f"{name:24} {value:10.4g}")
        if given.write:
            common.write(family, values)


__all__ = ["drawn", "fit", "logs"]

if __name__ == "__main__":
    main()
