"""Training runs as cases."""

from __future__ import annotations

import pandas as pd
import pytest

from wavecast.arch import load
from wavecast.benchmarking.accuracy.importers import all_importers
from wavecast.benchmarking.accuracy.importers.training import TrainingRuns
from wavecast.systems.training.op import TrainedModel

MLPERF = {
    "source_repo": "made", "source_path": "up", "model": "llama2_70b_lora", "precision": None,
    "gpu": "MI300X", "n_gpus": 8.0, "tp": 1.0, "pp": 1.0, "ep": None, "phase": "train",
    "isl": 8192.0, "batch_or_concurrency": 8.0, "metric": "train_throughput_median", "value": 2.0,
    "notes": "MLPerf Training v5.0; accelerator=AMD Instinct MI300X; grad_accum=1; "
    "config={'tp': '1', 'pp': '1', 'cp': '1', 'mbs': '1'}; runs=10",
}  # fmt: skip
TABLE = {
    **MLPERF, "model": "Qwen3_30B_a3B", "precision": "BF16", "gpu": "B200", "ep": 8.0,
    "isl": 4096.0, "batch_or_concurrency": 512.0, "metric": "train_tokens_per_gpu",
    "value": 10000.0, "notes": "Pre-Training Performance; MBS=4 CP=1 VP=n/a FSDP=0 GA=None",
}  # fmt: skip


def only(row: dict[str, object]):
    (case,) = TrainingRuns().cases(pd.DataFrame([row]))
    return case


def test_a_run_of_mlperf() -> None:
    case = only(MLPERF)
    assert (case.device, case.group, case.seconds) == ("mi300x", "Llama-2-70B", 4.0)
    assert isinstance(case.op, TrainedModel)
    setup = case.op.setup
    assert (setup.lora, setup.recompute_layers, setup.dtype, setup.data) == (16, 21, "fp8", 8)
    prediction = case.op.predict(load("mi300x"))
    assert 0.5 < prediction.low / prediction.seconds < 0.95  # LoRA: published runs within 30 %
    assert 1.02 < prediction.high / prediction.seconds < 1.5
    assert prediction.seconds == pytest.approx(4.0, rel=0.3)


def test_parallelism_is_read_from_the_name_of_the_configuration() -> None:
    notes = MLPERF["notes"].replace(
        "{'tp': '1', 'pp': '1', 'cp': '1', 'mbs': '1'}",
        "{'tp': '8', 'file': 'config_DGXH100_64x8x288xtp8pp8cp2.sh'}",
    )
    row = {**MLPERF, "model": "llama31_405b", "gpu": "H100", "n_gpus": 512.0,
           "batch_or_concurrency": 1152.0, "notes": notes}  # fmt: skip
    case = only(row)
    assert isinstance(case.op, TrainedModel)
    assert str(case.op.setup) == "TP8 PP8 CP2 DP4 ZeRO-1 interleaved x8"


def test_a_row_of_a_published_table() -> None:
    case = only(TABLE)
    assert (case.device, case.group) == ("b200", "Qwen3-30B-A3B")
    assert case.seconds == pytest.approx(512 * 4096 / 80000)
    assert isinstance(case.op, TrainedModel)
    assert str(case.op.setup) == "TP1 EP8 DP8 ZeRO-1"


def test_rows_of_a_table_have_the_settings_of_their_recipes() -> None:
    def setup(**changes: object):
        op = only({**TABLE, **changes}).op
        assert isinstance(op, TrainedModel)
        return op.setup

    plain = setup()
    assert (plain.gradients, plain.recompute, plain.expert_overlap) == ("bf16", "none", False)
    assert setup(model="GPT OSS 120B").recompute == "selective"
    pipeline = {"model": "Qwen3_235B_a22B", "gpu": "GB200", "precision": "MXFP8", "n_gpus": 256.0,
                "pp": 8.0, "ep": 32.0, "batch_or_concurrency": 8192.0}  # fmt: skip
    notes = "Pre-Training Performance; MBS=1 CP=1 VP={} FSDP=0 GA=None"
    assert setup(**pipeline, notes=notes.format("3")).expert_overlap
    assert not setup(**pipeline, notes=notes.format("n/a")).expert_overlap


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "bert"}, "the layers of bert are not modelled"),
        ({"notes": "MLPerf Training v5.0; config={}; runs=10"}, "does not have the parallelism"),
        ({"notes": "MLPerf; accelerator=NVIDIA H200-NVL-141GB; config={}"}, "H200 NVL"),
        ({"metric": "time_to_train_mlperf_mean"}, "is not the time of a step"),
        ({"gpu": "GPU7"}, "unknown system or device"),
        ({"batch_or_concurrency": 9.0}, "a batch of 9 does not divide"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(changes, reason) -> None:
    case = only({**MLPERF, **changes})
    assert case.op is None
    assert reason in case.reason


def test_the_importer_is_registered() -> None:
    columns = list(MLPERF)
    best = max(all_importers(), key=lambda importer: importer.match(columns))
    assert best.name == "training"
