"""A served model as an operation runs on the device that it is predicted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast import arch
from wavecast.errors import Unpredictable
from wavecast.systems.answer import Deployment
from wavecast.systems.op import ServedModel
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load


def served(metric: str = "tpot", tensor: int = 1) -> ServedModel:
    deployment = Deployment(engine="vllm", parallel=Parallelism(tensor=tensor))
    return ServedModel(metric, "Llama-3.1-8B", deployment, Load(1024, 64, concurrency=1))


def test_a_file_that_changes_the_device_changes_the_prediction(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text('device = "mi300x"\n[fields]\nmem_bw = { value = 2.6625, unit = "TB/s" }\n')
    stock = served().predict(arch.load("mi300x"))
    slower = served().predict(arch.load("mi300x", (path,)))
    assert slower.device == stock.device == "mi300x"
    assert 1.4 < slower.seconds / stock.seconds < 2.0
    assert served().predict(arch.load("mi300x")).seconds == stock.seconds


def test_several_nodes_are_not_predicted() -> None:
    with pytest.raises(Unpredictable, match="16 GPUs are several nodes"):
        served(tensor=16).predict(arch.load("mi300x"))
