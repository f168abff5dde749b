"""Exported programs, in memory and in files, of which only the JSON is read."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from wavecast.errors import InputError, UsageError
from wavecast.pipeline.models.sources import graph
from wavecast.runtimes.torch_graph import archive_graph, exported_graph, module_graph
from wavecast.systems.sources.kernels import kernels


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv = nn.RMSNorm(32), nn.Linear(32, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return mixed.transpose(1, 2).reshape(x.shape[0], -1, 32) + x


WEIGHT = {"dtype": 7, "sizes": [{"as_int": 8}, {"as_int": 16}], "strides": [{"as_int": 16},
          {"as_int": 1}]}  # fmt: skip
INPUT = {
    "dtype": 7,
    "sizes": [{"as_expr": {"expr_str": "s0", "hint": {"as_int": 4}}}, {"as_int": 16}],
    "strides": [{"as_int": 16}, {"as_int": 1}],
}


def _tensor(name: str) -> dict:
    return {"as_tensor": {"name": name}}


WRITTEN = {
    "schema_version": {"major": 8, "minor": 20},
    "graph_module": {
        "signature": {"input_specs": [{"parameter": {}}, {"user_input": {}}]},
        "graph": {
            "inputs": [_tensor("w"), _tensor("x")],
            "tensor_values": {"w": WEIGHT, "x": INPUT},
            "nodes": [
                {
                    "target": "torch.ops.aten.linear.default",
                    "inputs": [{"name": "input", "arg": _tensor("x"), "kind": 1},
                               {"name": "weight", "arg": _tensor("w"), "kind": 1}],
                    "outputs": [_tensor("y")],
                    "metadata": {"nn_module_stack": "L__self__,,N;L__self___up,up,torch.Linear"},
                },
                {
                    "target": "torch.ops.aten.relu.default",
                    "inputs": [{"name": "self", "arg": _tensor("y"), "kind": 1}],
                    "outputs": [_tensor("z")],
                    "metadata": {},
                },
            ],
        },
    },
}  # fmt: skip
"""A graph as `torch.export.save` writes it, less what is not read."""


@pytest.fixture(scope="module")
def program():
    batch = torch.export.Dim("batch", min=2, max=64)
    x = torch.randn(4, 10, 32)
    return torch.export.export(Block().eval(), (x,), dynamic_shapes=({0: batch},))


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "block.pt2"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("block/models/model.json", json.dumps(WRITTEN))
        file.writestr("block/data/weights/weight_0", b"")
    return path


def operations(found) -> list[tuple[str, str]]:
    return [(str(kernel.part.op), kernel.module) for kernel in kernels(found)]


@pytest.mark.thorough
def test_a_program_has_the_kernels_of_its_module(program) -> None:
    expected = module_graph(Block(), torch.empty(4, 10, 32))
    found = exported_graph(program)
    assert operations(found) == operations(expected)
    assert found.parameters == expected.parameters
    assert found.parameter_bytes == expected.parameter_bytes


@pytest.mark.thorough
def test_a_file_has_the_graph_of_its_program(program, tmp_path) -> None:
    path = tmp_path / "saved.pt2"
    torch.export.save(program, path)
    found = archive_graph(path)
    assert operations(found) == operations(exported_graph(program))
    assert found.parameters == exported_graph(program).parameters


def test_a_file_is_a_graph_with_the_sizes_of_its_example(archive) -> None:
    found = archive_graph(archive)
    assert operations(found) == [("gemm 4x8x16 fp32 TN blas", "up"), ("relu 4x8 fp32", "up")]
    assert (found.parameters, found.parameter_bytes, found.input_bytes) == (128, 512, 256)


class Planted:
    def __reduce__(self):
        return (pytest.fail, ("a pickle of the file was read",))


def rewritten(archive: Path, change) -> Path:
    """The archive with other contents: `change(name, data)`."""
    path = archive.with_name("other.pt2")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return path


def test_nothing_pickled_is_read(archive) -> None:
    planted = pickle.dumps(Planted())
    path = rewritten(archive, lambda name, data: data if name.endswith(".json") else planted)
    assert operations(archive_graph(path)) == operations(archive_graph(archive))


def changed(path: Path, change) -> Path:
    def one(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        document = json.loads(data)
        change(document)
        return json.dumps(document).encode()

    return rewritten(path, one)


def test_graphs_that_need_more_than_json_are_refused(archive) -> None:
    def foreign(document) -> None:
        document["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mine.attention.default"

    def inner(document) -> None:
        node = document["graph_module"]["graph"]["nodes"][0]
        node["inputs"][0]["arg"] = {"as_graph": {"name": "true_graph"}}

    def newer(document) -> None:
        document["schema_version"]["major"] = 9

    def damaged(document) -> None:
        del document["graph_module"]["graph"]["nodes"][1]["inputs"]

    for change, message in (
        (foreign, "torch.ops.mine.attention.default is not one of PyTorch's own"),
        (inner, "an argument of the form graph is not read"),
        (newer, "version 9 of exported graphs"),
        (damaged, "the graph is damaged"),
    ):
        with pytest.raises(InputError, match=message) as error:
            archive_graph(changed(archive, change))
        assert "\n" not in str(error.value)


def _calls(target: str, *values: int) -> dict:
    inputs = [{"name": "", "arg": {"as_int": value}, "kind": 1} for value in values]
    return {"target": target, "inputs": inputs, "outputs": [_tensor("y")], "metadata": {}}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema_version",), 5, "the graph is damaged"),
        (("graph_module", "graph", "tensor_values", "w", "sizes"), [{}, {}], "damaged"),
        (("graph_module", "graph", "tensor_values", "w", "sizes", 0), {"as_int": -1}, "damaged"),
        (("graph_module", "graph", "tensor_values", "w", "sizes", 0), {"as_int": 1 << 62},
         "damaged"),
        (("graph_module", "graph", "nodes", 0), _calls("torch.ops.aten.__class__.mro"),
         "has no torch.ops.aten.__class__.mro"),
        (("graph_module", "graph", "nodes", 0), _calls("torch.ops.aten.relu.__init__"),
         "has no torch.ops.aten.relu.__init__"),
        (("graph_module", "graph", "nodes", 0), _calls("torch.ops.aten.nothing.default"),
         "has no torch.ops.aten.nothing.default"),
        (("graph_module", "graph", "nodes", 0), _calls("_operator.pow", 10, 10**12),
         "a size to the power of 1000000000000"),
        (("graph_module", "graph", "nodes", 0), _calls("_operator.mul", 10**30, 2),
         "is not a size"),
    ],
)  # fmt: skip
def test_hostile_graphs_are_refused(archive, path, value, message) -> None:
    def change(document) -> None:
        *inner, last = path
        for name in inner:
            document = document[name]
        document[last] = value

    with pytest.raises(InputError, match=message) as error:
        archive_graph(changed(archive, change))
    assert "\n" not in str(error.value)


def test_an_archive_with_damaged_data_is_refused(archive) -> None:
    data = bytearray(archive.read_bytes())
    at = data.index(b"schema_version")
    data[at : at + 4] = b"\0\0\0\0"
    archive.write_bytes(data)
    with pytest.raises(InputError, match="is not an archive that can be read"):
        archive_graph(archive)


def test_files_that_are_no_programs(tmp_path) -> None:
    path = tmp_path / "x.pt2"
    with pytest.raises(InputError):
        archive_graph(path)
    path.write_text("not a zip")
    with pytest.raises(InputError, match="not a zip file"):
        archive_graph(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", b"")
    with pytest.raises(InputError, match=r"has no models/model\.json"):
        archive_graph(path)


def test_programs_are_not_trained(archive) -> None:
    with pytest.raises(UsageError, match="a forward pass only"):
        graph(str(archive), train=True)
