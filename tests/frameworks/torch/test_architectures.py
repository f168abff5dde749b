"""The table of architectures in docs/modules.md, and models that learn and generate after it."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("transformers", reason="needs transformers")

import wavecast  # noqa: E402
from tests.frameworks.torch.architectures import (  # noqa: E402
    ARCHITECTURES,
    PAGE,
    Architecture,
    row,
    section,
    table,
)
from wavecast import ops  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
BY_NAME = {one.name: one for one in ARCHITECTURES}


def test_the_page_has_every_architecture_once() -> None:
    names = re.findall(r"^\| (\w+) \|", section(PAGE.read_text(encoding="utf-8")), re.MULTILINE)
    assert names[1:] == [one.name for one in ARCHITECTURES]
    assert len(set(names)) == len(names) > 30


@pytest.mark.parametrize(
    "name",
    [
        "Qwen3Moe",
        "DeepseekV32",
        "MiniMaxM3VL",
        pytest.param("DeepseekV4", marks=pytest.mark.thorough),
    ],
)
def test_a_row_of_the_page(name: str) -> None:
    result = row(BY_NAME[name])
    assert str(result) in PAGE.read_text(encoding="utf-8")
    assert result.error < 1e-5
    assert result.same_tokens


@pytest.mark.thorough
def test_the_page_has_what_is_replaced() -> None:
    rows = [row(one) for one in ARCHITECTURES]
    assert max(one.error for one in rows) < 1e-5
    assert all(one.same_tokens for one in rows)
    assert section(PAGE.read_text(encoding="utf-8")) == table(rows)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Llama", "Gemma2", "Qwen3Moe"])
def test_losses_of_training_are_equal(name: str) -> None:
    own = BY_NAME[name].made().train()
    replaced = copy.deepcopy(own)
    account = ops.replace(replaced)
    batches = [torch.randint(3, 50, (2, 8)) for _ in range(3)]
    expected = losses(own, batches)
    with wavecast.device("gfx942") as device:
        found = losses(replaced, batches)
    assert device.executed > 3 * len(account.done)
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)
    assert expected[-1] < expected[0]


def losses(model: Any, batches: list[Any]) -> list[float]:
    """Losses of the same tokens, step by step."""
    optimizer, found = torch.optim.SGD(model.parameters(), lr=0.1), []
    for tokens in (batches[0], batches[0], *batches):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss))
    return [*found[:2], float(model(input_ids=batches[0], labels=batches[0]).loss)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Llama", "Mistral", "Qwen3Moe"])
def test_the_same_tokens_are_generated(name: str) -> None:
    own: Architecture = BY_NAME[name]
    model, prompt = own.made(), torch.randint(3, 50, (1, 6))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(prompt, **options)
    ops.replace(model)
    with wavecast.device("gfx942") as device:
        found = model.generate(prompt, **options)
    assert device.executed > 40
    assert torch.equal(found, expected)
