"""Rows of measured collectives of systems as cases, and the tables of docs/machines.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration import machines
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.collective_runs import cases
from wavecast.perfmodel.ops.collectives import Collective

pd = pytest.importorskip("pandas")

ROW = {"source_repo": "a/b", "source_path": "c", "model": "all_reduce", "gpu": "H100",
       "n_gpus": 8.0, "nodes": 1.0, "framework": "nccl 2.27.3", "phase": "collective",
       "isl": 4096.0, "metric": "latency", "value": 16.0, "unit": "us",
       "notes": "kernel_source=NCCL", "precision": "half"}  # fmt: skip


def case(**changes: object) -> Case:
    (found,) = cases(pd.DataFrame([{**ROW, **changes}]))
    return found


def op(**changes: object) -> Collective:
    found = case(**changes)
    assert isinstance(found.op, Collective), found.reason
    return found.op


def test_collectives():
    assert op() == Collective("all_reduce", 4096, 8)
    assert op(model="alltoall").function == "all_to_all"
    assert op(framework="vllm 0.19.0", notes="kernel_source=vLLM_custom_graph").library == "vllm"
    assert case().seconds == pytest.approx(16e-6)
    assert case().device == "h100_sxm"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "L40S"}, "host"),
        ({"notes": "kernel_source=vLLM_custom_eager"}, "host"),
        ({"framework": "trtllm 1.0"}, "trtllm"),
        ({"model": "alltoallv"}, "alltoallv"),
        ({"unit": "GB/s"}, "another metric"),
        ({"model": "ep_dispatch_normal_notify", "notes": "hidden_size=8; num_topk=2"}, "sizes"),
    ],
)
def test_rows_that_are_not_predicted(changes: dict[str, object], reason: str):
    found = case(**changes)
    assert found.op is None
    assert reason in found.reason


def test_rows_of_other_phases_are_not_cases():
    assert not list(cases(pd.DataFrame([{**ROW, "phase": "train"}])))


def test_exchanges():
    notes = "hidden_size=7168; num_topk=8; num_experts=256"
    found = op(model="ep_dispatch_ll", isl=128.0, notes=notes, n_gpus=16.0, nodes=2.0)
    assert (found.function, found.topk, found.gpus, found.library) == (
        "dispatch", 8, 16, "low-latency",
    )  # fmt: skip
    assert found.group is not None
    assert (found.group.local, found.group.nodes) == (8, 2)
    combine = op(model="ep_combine_normal_transmit", isl=64.0, notes=notes)
    assert combine.bytes == 64 * 7168 * 2
    assert combine.library == "grouped"


def test_bandwidths_are_bytes_to_nodes_over_time():
    notes = "normal kernels, bottleneck bandwidth, DeepSeek shape 4096 tok x 7168, top-8"
    found = case(model="ep_combine", gpu="MI355X", n_gpus=16.0, nodes=2.0, unit="GB/s", value=80.0,
                 notes=notes, framework="uccl", precision="bf16")  # fmt: skip
    # Almost every token goes to both nodes.
    assert found.seconds == pytest.approx(4096 * 7168 * 2 * 2 / 80e9, rel=0.01)


def test_the_page_has_the_table_of_machines():
    page = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
    assert "\n".join(machines.rows()) in page
