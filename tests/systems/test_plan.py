"""Plans of transformers against what is divided here."""

from __future__ import annotations

import pytest

from wavecast.arch.systems import system
from wavecast.errors import Unpredictable
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.parallel import Parallelism
from wavecast.systems.plan import replication_notes

pytest.importorskip("transformers")


def modules(model: str, parallel: Parallelism) -> list[str]:
    name, values, *_ = huggingface.load(model)
    found = replication_notes(values, huggingface.read(values, name), parallel)
    return [line.partition("does not divide ")[2].partition(":")[0] for line in found]


def test_plans_that_agree():
    assert modules("Llama-3.3-70B", Parallelism(tensor=8)) == []
    assert modules("Mixtral-8x7B", Parallelism(tensor=8)) == []
    assert modules("Mixtral-8x7B", Parallelism(tensor=8, expert=8)) == []
    assert modules("DeepSeek-R1", Parallelism()) == []


def test_modules_that_a_plan_keeps_whole():
    assert modules("DeepSeek-R1", Parallelism(tensor=8)) == ["self_attn"]
    assert modules("DeepSeek-R1", Parallelism(tensor=8, attention_data=True)) == []
    assert modules("gpt-oss-120b", Parallelism(tensor=8)) == ["self_attn", "mlp.experts"]
    assert modules("gpt-oss-120b", Parallelism(tensor=8, expert=8)) == ["self_attn"]


def test_a_plan_two_levels_down():
    text = {
        "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1024,
        "num_key_value_heads": 4, "intermediate_size": 512,
    }  # fmt: skip
    values = {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": text}}
    assert replication_notes(values, huggingface.read(values, "omni"), Parallelism(tensor=2)) == ()


def test_a_model_type_without_a_class():
    name, values, *_ = huggingface.load("Llama-3.3-70B")
    architecture = huggingface.read(values, name)
    with pytest.raises(Unpredictable, match="'nothing'"):
        replication_notes({**values, "model_type": "nothing"}, architecture, Parallelism())


def test_the_answer_notes_them():
    deployment = Deployment(parallel=Parallelism(tensor=8), check_plan=True)
    ready = ModelOnSystem(huggingface.load("gpt-oss-120b"), system("8xMI300X"), deployment)
    assert any("mlp.experts" in note for note in ready.notes)
