"""Launches written to a file by one process and read by another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runtimes.triton.samples import LAUNCH
from wavecast.runtimes.triton import wire
from wavecast.runtimes.triton.recorder import Recorder
from wavecast.systems.sources.calls import GraphLibraryCall, OperatorCall, TensorSizes


def test_a_launch_survives_the_way(tmp_path):
    path = tmp_path / "frames"
    writer, reader = wire.FrameWriter(path), wire.FrameReader(path)
    assert list(reader.poll()) == []
    writer.write({"code": wire.encode_code(LAUNCH.code)})
    writer.write({"launch": wire.encode_launch(LAUNCH)})
    code_frame, launch_frame = reader.poll()
    code = wire.decode_code(code_frame["code"])
    assert code == LAUNCH.code
    assert wire.decode_launch(launch_frame["launch"], {code.digest: code}) == LAUNCH
    assert list(reader.poll()) == []


def test_a_call_of_a_library_survives_the_way(tmp_path):
    path = tmp_path / "frames"
    left, right = (TensorSizes.contiguous((4, 4), "bf16", storage) for storage in (0, 1))
    arguments = {"self": left, "mat2": right, "sizes": (1, 2), "of": (left, None), "alpha": 2**70}
    call = OperatorCall("aten.mm", (left, right), (left,), arguments, flops=128.0)
    sent = GraphLibraryCall(call, ("net.py:3",), 2)
    wire.FrameWriter(path).write({"library_calls": [wire.encode_call(sent)]})
    ((frame,),) = (frame["library_calls"] for frame in wire.FrameReader(path).poll())
    changed = {**arguments, "alpha": str(2**70)}
    assert wire.decode_call(frame) == replace(sent, call=replace(call, arguments=changed))


@pytest.mark.parametrize("kept", range(1, 12))
def test_a_frame_cut_off_is_not_read(tmp_path, kept):
    path = tmp_path / "frames"
    wire.FrameWriter(path).write({"end": ""})
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:kept])
    reader = wire.FrameReader(path)
    assert list(reader.poll()) == [{"end": ""}]
    path.write_bytes(whole + whole)
    assert list(reader.poll()) == [{"end": ""}]


def test_the_same_launch_at_other_addresses_is_counted():
    recorder = Recorder("gfx942")
    moved = replace(LAUNCH.arguments[0], storage=0x9000)
    recorder.record(LAUNCH)
    recorder.record(replace(LAUNCH, arguments=(moved, *LAUNCH.arguments[1:])))
    recorder.record(replace(LAUNCH, grid=(9, 1, 1)))
    assert [(item.grid[0], item.count) for item in recorder.launches] == [(4, 2), (9, 1)]
