"""Facts of a chip that fit a profile, and the predictions that use them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from wavecast.arch.select import load
from wavecast.errors import NothingAnalysed
from wavecast.perfmodel.chip import Chip
from wavecast.profiles.calibration import fit_facts, overlaid, overlay
from wavecast.profiles.predicted import predict
from wavecast.profiles.profile import Profile, ProfiledKernel, ProfiledOp

pytestmark = pytest.mark.torch

_MM = ProfiledOp("aten::mm", "[[8192, 8192], [8192, 8192]]", '["c10::BFloat16", "c10::BFloat16"]')
_ADD = ProfiledOp("aten::add", "[[16, 8192, 8192], [16, 8192, 8192], []]",
                  '["float", "float", "Scalar"]', "", '["", "", "1"]')  # fmt: skip


def _profile(slower: float) -> Profile:
    """A product and a large addition that take `slower` times their predicted times, and kernels of
    one workgroup that take 4 us."""
    profile = Profile("test")
    runs = [(_MM, "Cijk_a", (304, 1, 1)), (_ADD, "at::native::elementwise_kernel", (9, 1, 1))]
    for op, name, blocks in runs:
        profile.launches.add(profile.kernels.number(ProfiledKernel(name, blocks)), 0, 0, 0, 1)
        profile.launches.op[-1] = len(profile.ops)
        profile.ops.add(profile.op_infos.number(op), 0, 0, 1)
    times = {one.name: one.predicted for one in predict(profile, load("mi300x")).operators}
    for number, (op, _, _) in enumerate(runs):
        profile.launches.duration[number] = round(slower * times[op.name] * 1e9)
    single = profile.kernels.number(ProfiledKernel("fill", (1, 1, 1)))
    for _ in range(5):
        profile.launches.add(single, 0, 0, 0, 4_000)
    return profile


def test_a_slower_machine_gives_a_lower_clock_and_bandwidth(tmp_path: Path) -> None:
    chip = load("mi300x")
    profile = _profile(1.25)
    facts = {one.field: one for one in fit_facts(profile, predict(profile, chip))}
    assert facts["peak_clock"].value == pytest.approx(facts["peak_clock"].before / 1.25, rel=1e-3)
    assert facts["meas_mem_bw"].value == pytest.approx(facts["meas_mem_bw"].before / 1.25, rel=1e-3)
    assert facts["meas_launch"].value == pytest.approx(4)
    file = tmp_path / "local.toml"
    file.write_text(overlay(chip, list(facts.values()), 'trace "1".json'))
    changed = load("mi300x", [file])
    assert Chip.of(changed).hbm == pytest.approx(facts["meas_mem_bw"].value * 1e9)
    assert Chip.of(changed).launch == pytest.approx(4e-6)
    assert any("peak_clock is" in note and "local.toml" in note for note in overlaid(changed))
    assert overlaid(chip) == []
    before, after = (predict(profile, one).median_error for one in (chip, changed))
    assert after < before


def test_a_profile_without_operators_fits_nothing() -> None:
    profile = Profile("test")
    profile.launches.add(profile.kernels.number(ProfiledKernel("k")), 0, 0, 0, 5)
    with pytest.raises(NothingAnalysed, match="nothing to fit mi300x"):
        fit_facts(profile, predict(profile, load("mi300x")))
