"""Useful work of a launch: what counts once, what another target lends, what is said if unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report import sample
from wavecast.compile.codeobject import Argument, Launch
from wavecast.perfmodel.work import work
from wavecast.pipeline.explain.steps import Given, with_hint

AMD, NVIDIA = sample.report().explanations[0], sample.report().explanations[3]


def test_products_that_several_waves_compute_count_once() -> None:
    analysis = replace(
        AMD.analysis, matrix_flops_static={"bf16": 1.0}, executed_flops={"bf16": 8e9}
    )
    found = work(AMD.launch, analysis, replication=2.0)
    assert found.flops == {"bf16": 4e9}
    assert "2 times" in found.flops_source


@pytest.mark.parametrize(
    ("explanation", "grid", "says"),
    [
        (AMD, (0, 0, 0), "the launch is not known"),
        (NVIDIA, (4, 1, 1), "SASS"),
        (AMD, (4, 1, 1), "depends on data"),
    ],
)
def test_unknown_flops_say_what_is_missing(explanation, grid, says: str) -> None:
    analysis = replace(
        explanation.analysis, loops=(), matrix_flops_static={}, executed_vector_flops=None
    )
    found = work(Launch(explanation.code, grid, (256, 1, 1)), analysis)
    assert found.flops is None
    assert says in found.flops_source


def test_another_target_lends_its_flops_for_the_same_call_under_another_configuration() -> None:
    tensor = Argument("x", "tensor", "bf16", (8, 8), (8, 1), 128, storage=3)
    block = Argument("BLOCK", "constant", value=64)
    lender = replace(
        AMD,
        launch=Launch(AMD.code, (4, 1, 1), (256, 1, 1), (tensor, block), configuration="BLOCK=64"),
    )
    again = (replace(tensor, storage=7), replace(block, value=128))
    call = Launch(NVIDIA.code, (2, 1, 1), (128, 1, 1), again, configuration="BLOCK=128")
    assert with_hint(Given(), [lender], call).flops_hint == lender.roofline.work.flops
    larger = replace(call, arguments=(replace(again[0], shape=(16, 8)), again[1]))
    assert not with_hint(Given(), [lender], larger).flops_hint
