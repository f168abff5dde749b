"""Products of replayed graphs get the sizes of a model's weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wavecast.arch.select import load
from wavecast.errors import InputError, UnknownName
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.profiles.captured import size_products
from wavecast.profiles.changes import parse
from wavecast.profiles.groups import LaunchGroups
from wavecast.profiles.predicted import predict
from wavecast.profiles.profile import NONE, Profile, ProfiledKernel, ProfiledOp

_CONFIG = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
}  # fmt: skip
_HEAD = "[[7, 512], [512, 1000]]"
_OF_A_LAYER = [("qkv_proj", 768, 512), ("o_proj", 512, 512), ("gate_up", 2048, 512),
               ("down_proj", 512, 1024)]  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "small.json"
    file.write_text(json.dumps(_CONFIG))
    return file


def _profile(products: int = 8, head: str = _HEAD, attention: str = "", steps: int = 1) -> Profile:
    """Steps of captured products, with another kernel between, that end with a projection."""
    profile = Profile("test")
    product, other = (
        profile.kernels.number(ProfiledKernel(name)) for name in ("Cijk_x_MT16x16x256", "norm")
    )

    def launch(kernel: int, op: str = "", sizes: str = "") -> None:
        now = 10 * len(profile.launches)
        profile.launches.add(kernel, 0, 0, now, 5)
        if op:
            profile.launches.op[-1] = len(profile.ops)
            profile.ops.add(profile.op_infos.number(ProfiledOp(op, sizes)), 0, now, 5)

    for _ in range(steps):
        for number in range(products):
            launch(product)
            launch(other)
            if attention and number % 4 == 0:
                launch(other, "vllm::unified_attention", attention)
        launch(product, "aten::mm", head)
    return profile


def _sized(profile: Profile) -> list[list[Any]]:
    """The sizes of the captured products, in order."""
    launches = profile.launches
    infos = [
        profile.op_infos[profile.ops.info[op]]
        for info, op in zip(launches.info, launches.op, strict=True)
        if op != NONE and profile.kernels[info].name.startswith("Cijk")
    ]
    return [json.loads(info.sizes) for info in infos if info.dtypes]


@pytest.mark.parametrize("steps", [1, 2])
def test_products_of_a_graph_have_the_sizes_of_the_layers(config: Path, steps: int) -> None:
    profile = _profile(steps=steps)
    size_products(profile, str(config), load("mi300x"))
    layer = [[[7, depth], [depth, columns]] for _, columns, depth in _OF_A_LAYER]
    assert _sized(profile) == 2 * steps * layer
    assert profile.notes == [
        f"{8 * steps} products of replayed graphs: sizes from the layers of small, in order"
    ]
    assert profile.modules.values[0] == "layers_0.qkv_proj_0"
    assert len(profile.modules) == 8


@pytest.mark.torch
def test_sized_products_are_predicted(config: Path) -> None:
    profile = _profile()
    size_products(profile, str(config), load("mi300x"))
    found = predict(profile, load("mi300x"))
    known = {one.name for one in found.known}
    assert known == {"aten::mm"}
    assert len(found.known) == 4


def test_attention_outside_the_graphs_has_the_tokens(config: Path) -> None:
    profile = _profile(attention="[[96, 8, 64], [96, 2, 64]]")
    size_products(profile, str(config), load("mi300x"))
    assert {sizes[0][0] for sizes in _sized(profile)} == {96}


def test_a_divided_vocabulary_divides_the_layers(config: Path) -> None:
    profile = _profile(head="[[7, 512], [500, 512]]")
    size_products(profile, str(config), load("mi300x"))
    assert _sized(profile)[:2] == [[[7, 512], [512, 384]], [[7, 256], [256, 512]]]


@pytest.mark.parametrize(
    ("profile", "note"),
    [
        (_profile(products=7), "small: a step has 7 captured products, the model has 8: they have "
                               "no sizes"),
        (_profile(head="[[7, 511], [511, 1000]]"), "the tokens of a step are not known"),
        (_profile(head="not JSON"), "the tokens of a step are not known"),
        (_profile(head=""), "the tokens of a step are not known"),
        (_profile(head='[[7, "512"], null, [[]], [512, 0]]'), "the tokens of a step are not known"),
        (_profile(products=0), "the tokens of a step are not known"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_note(config: Path, profile: Profile, note: str) -> None:
    size_products(profile, str(config), load("mi300x"))
    assert _sized(profile) == []
    assert note in profile.notes[0]


@pytest.mark.torch
def test_formats_without_an_operator_of_pytorch_are_operations(config: Path) -> None:
    quantised = {**_CONFIG, "quantization_config": {"quant_method": "fp8"}}
    config.write_text(json.dumps(quantised))
    profile = _profile()
    size_products(profile, str(config), load("mi300x"))
    assert _sized(profile) == []
    found = predict(profile, load("mi300x")).known
    assert [(one.name, one.count) for one in found] == [("captured product", 2)] * 4


_EXPERT_CONFIG = {
    "model_type": "mixtral", "hidden_size": 512, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
    "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip
_LAYER = "norm qkv o norm router topk sort experts copy experts sum"


def _steps_with_experts(layers: str, steps: int = 1) -> Profile:
    """Steps whose layers launch kernels by name: those of experts, products, and others."""
    profile = Profile("test")
    product = ("qkv", "o", "router")
    experts = {
        "topk": "_topk_forward", "sort": "moe_align_block_size", "experts": "fused_moe_kernel",
        "sum": "moe_sum",
    }  # fmt: skip
    for _ in range(steps):
        for word in layers.split():
            name = "Cijk_x_MT16x16x256" if word in product else experts.get(word, word)
            now = 10 * len(profile.launches)
            profile.launches.add(profile.kernels.number(ProfiledKernel(name)), 0, 0, now, 5)
        now = 10 * len(profile.launches)
        profile.launches.add(profile.kernels.number(ProfiledKernel("Cijk")), 0, 0, now, 5)
        profile.launches.op[-1] = len(profile.ops)
        profile.ops.add(profile.op_infos.number(ProfiledOp("aten::mm", _HEAD)), 0, now, 5)
    return profile


@pytest.fixture
def expert_config(tmp_path: Path) -> str:
    file = tmp_path / "experts.json"
    file.write_text(json.dumps(_EXPERT_CONFIG))
    return str(file)


def test_kernels_of_experts_between_products_are_one_operation(expert_config: str) -> None:
    profile = _steps_with_experts(f"{_LAYER} {_LAYER}", steps=2)
    size_products(profile, expert_config, load("mi300x"))
    assert profile.notes == [
        "12 products of replayed graphs: sizes from the layers of experts, in order",
        "4 blocks of experts of replayed graphs: sizes from the layers of experts, in order",
    ]
    ((number, ops),) = profile.operations.items()
    (moe,) = (op for op in ops if isinstance(op, FusedMoe))
    assert (moe.tokens, moe.model, moe.inter, moe.experts, moe.topk) == (7, 512, 256, 8, 2)
    launches, name = profile.launches, profile.op_infos[number].name
    assert name == "experts"
    groups = LaunchGroups(profile).groups
    assert groups[number, NONE].count == 4
    of_experts = {
        profile.kernels[info].name
        for info, op in zip(launches.info, launches.op, strict=True)
        if op != NONE and profile.ops.info[op] == number
    }
    assert of_experts == {"_topk_forward", "moe_align_block_size", "fused_moe_kernel", "moe_sum"}


@pytest.mark.torch
def test_experts_are_predicted_but_not_with_another_batch(expert_config: str) -> None:
    profile = _steps_with_experts(f"{_LAYER} {_LAYER}")
    size_products(profile, expert_config, load("mi300x"))
    (found,) = (one for one in predict(profile, load("mi300x")).known if one.name == "experts")
    assert (found.category, found.count) == ("moe", 2)
    assert found.low < found.predicted < found.high
    three = ProfiledOp("aten::add", "[[2, 7, 64]]", '["float"]', "[[448, 64, 1]]", '[""]')
    profile.launches.add(0, 0, 0, 9_000, 5)
    profile.launches.op[-1] = len(profile.ops)
    profile.ops.add(profile.op_infos.number(three), 0, 9_000, 5)
    changed = predict(profile, load("mi300x"), parse("batch*2"))
    (why,) = (one.why_not for one in changed.operators if one.name == "experts")
    assert why == "sizes of --model are those of the batch that ran"


def test_experts_at_other_positions_keep_no_sizes(expert_config: str) -> None:
    profile = _steps_with_experts(f"topk {_LAYER} {_LAYER}")
    size_products(profile, expert_config, load("mi300x"))
    assert profile.operations == {}
    assert profile.notes == [
        "experts: kernels of experts are not where the model has them: they have no sizes",
        "6 products of replayed graphs: sizes from the layers of experts, in order",
    ]


def test_a_model_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        size_products(_profile(), str(tmp_path / "missing.json"), load("mi300x"))
    with pytest.raises(UnknownName):
        size_products(_profile(), "no-such-model", load("mi300x"))
