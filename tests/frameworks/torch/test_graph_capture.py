"""Operators can be recorded as a CUDA or HIP graph after a call before: they read no values of
tensors and copy nothing from the host, which a capture of a graph refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import wavecast  # noqa: E402
from tests.frameworks.framework_calls import inputs_of  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.kernels import registry  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.operators]
REFUSED = frozenset(
    {"_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select", "_unique2"}
    | {"lift_fresh", "lift_fresh_copy"}  # torch.tensor of Python values
)
HOST_DATA = frozenset[str]()
"""Operators that need data of the host for every call."""


class Capture(TorchDispatchMode):
    """Notes what a capture of a graph refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_") and any(
            one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1]
        )
        if name in REFUSED or masks:
            self.refused.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_capture_notes_what_is_refused() -> None:
    x = torch.arange(4.0)
    with Capture() as found:
        x[x > 1].sum().item()
        torch.tensor([1, 2])
    assert {one.rpartition(".")[0] for one in found.refused} == {
        "aten.index",
        "aten._local_scalar_dense",
        "aten.lift_fresh",
    }


@pytest.mark.thorough  # compiles every operator
def test_second_calls_can_be_captured() -> None:
    refused = {}
    for name in registry.operators():
        with wavecast.capture("gfx942") as launches:
            call, given = getattr(ops, name), inputs_of(name)
            call(**given)
            before = sum(one.count for one in launches)
            with Capture() as found:
                call(**given)
        assert sum(one.count for one in launches) == 2 * before > 0, name
        if found.refused:
            refused[name] = found.refused
    assert set(refused) == HOST_DATA, refused
