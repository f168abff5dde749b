"""Files with tensors of GPUs where one GPU is emulated."""

from __future__ import annotations

import io

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402

pytestmark = pytest.mark.torch


def test_tensors_of_several_gpus_are_loaded_on_one() -> None:
    file = io.BytesIO()
    with wavecast.device("gfx942", count=2):
        torch.save([torch.ones(2, device="cuda:1")], file)
    with wavecast.device("gfx942"):
        for where in ("cuda", "cpu", {"cuda:1": "cuda:0"}):
            file.seek(0)
            (x,) = torch.load(file, map_location=where)
            assert x.tolist() == [1.0, 1.0]
        file.seek(0)
        with pytest.raises(RuntimeError, match=r"CUDA device 1 but torch.cuda.device_count.. is 1"):
            torch.load(file)
        for device, generator in (("cuda", "cpu"), ("cpu", "cuda")):
            with pytest.raises(RuntimeError, match="device type for generator"):
                torch.randn(2, device=device, generator=torch.Generator(generator))
