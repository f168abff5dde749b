"""Changes of a deployed model and their predicted speedups."""

from __future__ import annotations

import pytest

from wavecast.arch.systems import system
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.systems.answer import Deployment, answer, loads
from wavecast.systems.changes import parse, together
from wavecast.systems.huggingface import load
from wavecast.systems.parallel import Parallelism
from wavecast.systems.whatif import what_if

LOADS = loads(256, 64, concurrency=(8,), requests=16)


def changed(text: str, machine: str = "8xMI300X", tensor: int = 8, **given):
    how = {"engine": "vllm@0.11", **given}
    deployment = Deployment(dtype="fp8", parallel=Parallelism(tensor=tensor), **how)
    config, gpus = load("Llama-3.1-8B"), system(machine)
    before = answer(config, gpus, deployment, LOADS)
    return what_if(config, gpus, deployment, LOADS, before, parse(text))


def test_every_part_is_changed() -> None:
    found = changed("hbm*1.5; matrix*2; interconnect*2; attention free; host 0; tp 2; kv-dtype fp8")
    speedups = {row.change.text: row.servings[0].tpot for row in found.changes}
    assert min(one.value for text, one in speedups.items() if text[:2] not in ("tp", "kv")) >= 1
    assert 1 < speedups["hbm*1.5"].value < 1.5
    assert speedups["attention free"].low > 1
    assert speedups["host 0"].low > 1
    assert found.together is not None
    assert found.together.answer is not None
    assert str(found.together.answer.parallel) == "TP2"
    free = next(r for r in found.changes if r.change.text == "attention free").answer
    assert free is not None
    assert free.servings[0].decode.modules["attention"] == 0


def test_speedups_are_the_ratio_of_both_predictions() -> None:
    (row,) = changed("tp 2").changes
    (serving,) = row.servings
    before, after = serving.before, serving.after
    assert serving.tpot.value == pytest.approx(before.tpot.value / after.tpot.value)
    per_gpu = after.output_rate.value / 2 / (before.output_rate.value / 8)
    assert serving.rate_per_gpu.value == pytest.approx(per_gpu)


def test_an_error_of_all_modules_cancels() -> None:
    """Twice the time of everything on the GPU and host is half the speed, whatever the errors."""
    names = ("attention", "projections", "mlp", "norm", "collective", "head", "host")
    found = changed("; ".join(f"{name}*2" for name in names))
    assert found.together is not None
    (serving,) = found.together.servings
    assert serving.tpot.value == pytest.approx(0.5, rel=1e-6)
    assert serving.tpot.high / serving.tpot.low < 1.02


def test_a_kernel_is_changed_by_its_name() -> None:
    found = changed("all_reduce free; collective free")
    one, all_ = (row.servings[0].tpot.value for row in found.changes)
    assert 1 < one < all_


def test_a_change_that_is_impossible_has_a_reason() -> None:
    found = changed("tp 7; memory/1000; ep 2; nvlink_links*2; xgmi_links*2")
    reasons = [row.why_not for row in found.changes]
    assert "do not divide among 7" in reasons[0]
    assert "needs" in reasons[1]
    assert "no experts" in reasons[2]
    assert "no known nvlink_links" in reasons[3]
    assert reasons[4] == ""


def test_factors_of_one_thing_multiply() -> None:
    change = together(parse("hbm*2; hbm*1.5; attention*0.5; attention/2; tp 2; tp 4"))
    assert change.facts == {"mem_bw": 3.0}
    assert change.scale == {"attention": 0.25}
    assert change.settings == {"tp": 4}


def test_links_of_a_system_follow_those_of_the_chip() -> None:
    before = system("8xMI300X")
    (change,) = parse("interconnect*2")
    after, _ = change.apply(before, Deployment())
    assert after.fabric is not None
    assert before.fabric is not None
    assert after.fabric.bandwidth == 2 * before.fabric.bandwidth
    (other,) = parse("hbm*2")
    assert other.apply(before, Deployment())[0].fabric == before.fabric


def test_experts_follow_the_gpus_of_a_replica() -> None:
    deployment = Deployment(parallel=Parallelism(tensor=8, expert=8))
    (change,) = parse("tp 4")
    _, after = change.apply(system("8xMI300X"), deployment)
    assert (after.parallel.tensor, after.parallel.expert) == (4, 4)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (" ; ", UsageError, "no change is named"),
        ("hbm", UsageError, "'hbm' is not a change"),
        ("hbm free", UsageError, "takes a factor"),
        ("hbm*0", UsageError, "the factor is not a number"),
        ("hbm*nan", UsageError, "is not a change"),
        ("hbm*1e9", UsageError, "the factor is not a number"),
        ("tp*2", UsageError, "tp takes a value"),
        ("tp four", UsageError, "four is not a number from 1"),
        ("dp-attention maybe", UsageError, "neither on nor off"),
        ("mem_type*2", UsageError, "mem_type is not a number"),
        ("atention free", UnknownName, "unknown part of a model or chip 'atention'"),
    ],
)
def test_what_is_not_a_change(text, error, message) -> None:
    with pytest.raises(error, match=message):
        changed(text)


def test_facts_keep_their_bounds() -> None:
    from wavecast.arch.scaling import scale_device

    device = system("mi300x").device
    bandwidth, before = (
        scale_device(device, {"mem_bw": 2.0}, "test").peak_bandwidth(),
        device.peak_bandwidth(),
    )
    assert bandwidth is not None
    assert before is not None
    assert bandwidth.number == 2 * before.number
    rate, before = (
        scale_device(device, {"peak_clock": 2.0}, "test").peak_flops("bf16"),
        device.peak_flops("bf16"),
    )
    assert rate is not None
    assert before is not None
    assert rate.number == pytest.approx(2 * before.number, rel=1e-3)
    with pytest.raises(UsageError, match="peak_clock must be from"):
        scale_device(device, {"peak_clock": 1e6}, "test")
    with pytest.raises(MissingFact, match="no known nvlink_links"):
        scale_device(device, {"nvlink_links": 2.0}, "test")
