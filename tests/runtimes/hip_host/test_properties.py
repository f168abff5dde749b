"""What a HIP program learns of its GPU is known, or the program is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import wavecast
from wavecast import arch
from wavecast.errors import MissingFact
from wavecast.runtimes.hip_host.properties import properties

PROGRAM = "#include <hip/hip_runtime.h>\nint main() { return hipDeviceSynchronize(); }\n"
ASKED = ("totalGlobalMem", "clockRate", "memoryClockRate", "memoryBusWidth", "l2CacheSize")


@pytest.mark.parametrize(
    "device", ["mi100", "mi300x", "mi355x", "rx6800xt", "rx9070xt", "strixhalo", "mi455x"]
)
def test_no_number_is_zero(device: str) -> None:
    found = properties(arch.load(device), 1)
    assert all(int(found[name]) > 0 for name in ASKED)


def test_the_memory_of_an_mi355x() -> None:
    found = properties(arch.load("mi355x"), 1)
    assert (found["memoryBusWidth"], found["clockRate"]) == (8192, 2_400_000)
    assert found["memoryClockRate"] == pytest.approx(3.9e6, rel=0.01)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(MissingFact, match="the size of its memory is not known") as error:
        properties(arch.load("mi308x"), 1)
    assert "--arch-file" in str(error.value.hint)


@pytest.mark.hip
def test_a_program_on_a_gpu_with_unknown_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.hip"
    path.write_text(PROGRAM)
    with pytest.raises(MissingFact, match="MI308X: the size of its memory is not known"):
        wavecast.run(path, arch="mi308x")
