"""Models that are ready for loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from wavecast.arch.systems import system
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.parallel import Parallelism

Ready = Callable[..., ModelOnSystem]


@pytest.fixture(scope="session")
def ready() -> Ready:
    """`ready(model, machine, tensor=8, engine="vllm", …)`."""

    def make(model: str, machine: str, tensor: int = 1, **given: Any) -> ModelOnSystem:
        parallel = Parallelism(
            tensor=tensor,
            pipeline=given.pop("pipeline", 1),
            expert=given.pop("expert", 1),
            attention_data=given.pop("attention_data", False),
        )
        deployment = Deployment(parallel=parallel, **given)
        return ModelOnSystem(huggingface.load(model), system(machine), deployment)

    return make
