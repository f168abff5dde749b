"""What the corpus runner says of a case that ends in an error."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
errors = pytest.importorskip("triton.errors", reason="needs Triton")

from tests.emulate import corpus, corpus_cases  # noqa: E402
from wavecast.emulate.errors import ExecutionError, Unsupported  # noqa: E402

pytestmark = pytest.mark.torch


def _verdict(monkeypatch: pytest.MonkeyPatch, error: Exception) -> str:
    def case(kernels: object, torch: object) -> corpus_cases.Triples:
        raise error

    monkeypatch.setitem(corpus.CASES, "one", case)
    return corpus.executed(None, "one", nullcontext())[0]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Unsupported("this"), "unsupported"),
        (ExecutionError("a wild address"), "broken"),
        (errors.TritonError("no such type"), "refused"),
    ],
)
def test_errors_that_are_expected(monkeypatch, error: Exception, state: str) -> None:
    assert _verdict(monkeypatch, error) == state


@pytest.mark.parametrize("error", [AssertionError("here"), KeyError("here"), RuntimeError("here")])
def test_mistakes_of_ours_are_not_taken_for_refusals(monkeypatch, error: Exception) -> None:
    with pytest.raises(type(error), match="here"):
        _verdict(monkeypatch, error)
