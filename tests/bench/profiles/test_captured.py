"""Products of replayed graphs get the sizes of a model's weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wavecast.arch.select import load
from wavecast.bench.profiles.captured import size_products
from wavecast.bench.profiles.predicted import predict
from wavecast.bench.profiles.profile import NONE, Profile, ProfiledKernel, ProfiledOp
from wavecast.errors import InputError, UnknownName

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


def test_formats_without_an_operator_have_no_sizes(config: Path) -> None:
    quantised = {**_CONFIG, "quantization_config": {"quant_method": "fp8"}}
    config.write_text(json.dumps(quantised))
    profile = _profile()
    size_products(profile, str(config), load("mi300x"))
    assert _sized(profile) == []


def test_a_model_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        size_products(_profile(), str(tmp_path / "missing.json"), load("mi300x"))
    with pytest.raises(UnknownName):
        size_products(_profile(), "no-such-model", load("mi300x"))
