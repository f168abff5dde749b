"""docs/adding-an-op.md does what it says."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-op.md"


@pytest.fixture
def _unregistered():
    from wavecast.kernels import registry

    yield
    registry._added.clear()


@pytest.mark.usefixtures("_unregistered")
def test_the_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "squared_relu_example.py"
    path.write_text("\n\n".join(blocks), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("squared_relu_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        assert torch.equal(module.y > 0, module.y != 0)
        torch.library.opcheck(torch.ops.wavecast.squared_relu.default, (torch.randn(7),))
    finally:
        del sys.modules[spec.name]


@pytest.mark.usefixtures("_unregistered")
def test_a_name_that_is_taken() -> None:
    from wavecast import ops
    from wavecast.errors import UsageError

    with pytest.raises(UsageError, match="rms_norm already"):
        ops.register(ops.operator("rms_norm"))
