"""Systems: selectors, links by topology, groups of GPUs, files of users."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.arch import STATUSES, citations, load
from wavecast.arch.links import pcie_bandwidth
from wavecast.arch.systems import figures, names, node_fabric, node_size, system
from wavecast.errors import MissingFact, UnknownName, UsageError, WavecastError

CLUSTER = """
[cluster]
device = "mi300x"
gpus = 8
nodes = 4
[cluster.fabric]
topology = "mesh"
[cluster.network]
nics = 8
bandwidth = 50
"""


@pytest.fixture
def write(tmp_path: Path):
    def _write(text: str) -> tuple[Path]:
        path = tmp_path / "own.toml"
        path.write_text(text, encoding="utf-8")
        return (path,)

    return _write


@pytest.mark.parametrize(
    ("selector", "device", "gpus", "nodes"),
    [
        ("mi300x", "mi300x", 1, 1),
        ("8xMI300X", "mi300x", 8, 1),
        ("4x8xMI300X", "mi300x", 32, 4),
        ("2 × 4 × MI355X", "mi355x", 8, 2),
        ("4x7900xtx", "rx7900xtx", 4, 1),
        ("DGX-H100", "h100_sxm", 8, 1),
        ("16xdgx-h100", "h100_sxm", 128, 16),
        ("gb200-nvl72", "gb200", 72, 1),
        ("gb300-nvl72", "gb300", 72, 1),
        ("dgx-b300", "b300", 8, 1),
        ("8xMI250X", "mi250x_gcd", 8, 1),
        ("2xRX9070XT", "rx9070xt", 2, 1),
    ],
)
def test_selectors(selector: str, device: str, gpus: int, nodes: int) -> None:
    found = system(selector)
    assert (found.device.id, found.gpus, found.nodes) == (device, gpus, nodes)


@pytest.mark.parametrize(
    ("selector", "error", "text"),
    [
        ("16xMI300X", UsageError, "2x8xmi300x"),
        ("0xMI300X", UsageError, "1 to 8 GPUs, not 0"),
        ("2xstrixhalo", UsageError, "--system-file"),
        ("2x4xRX7900XTX", MissingFact, "network.nics"),
        ("2xrx7900xtx-host", MissingFact, "network is missing"),
        ("8xMI300Q", UnknownName, "mi300x"),
        ("200000xdgx-h100", UsageError, "1,600,000 GPUs"),
    ],
)
def test_wrong_selectors(selector: str, error: type[WavecastError], text: str) -> None:
    with pytest.raises(error, match=text):
        system(selector)


def test_a_mesh_uses_the_links_between_its_ranks():
    mesh, switch = node_fabric(load("mi300x")), node_fabric(load("h100"))
    assert mesh is not None
    assert switch is not None
    assert mesh.rate(2) * 7 == mesh.rate(8) == 448e9
    assert switch.rate(2) == switch.rate(8) == 450e9
    assert switch.reduces
    assert not mesh.reduces


def test_dies_of_a_package_have_more_links():
    packages = node_fabric(load("mi250x"))
    assert packages is not None
    assert packages.rate(2) == 200e9
    assert packages.rate(8) == 100e9


def test_pcie():
    assert pcie_bandwidth("Gen4 x16") == pytest.approx(31.5e9, rel=1e-3)
    assert pcie_bandwidth("Gen1 x1") == 0.25e9
    with pytest.raises(ValueError, match="Gen4 x16"):
        pcie_bandwidth("fast")
    fabric = node_fabric(load("rx7900xtx"))
    assert fabric is not None
    assert fabric.rate(2) == pytest.approx(31.5e9, rel=1e-3)


def test_devices_without_a_machine_are_a_mesh_of_their_links():
    assert node_size(load("mi100")) == 4
    assert node_size(load("strixhalo")) == 1


@pytest.mark.parametrize(
    ("ranks", "stride", "local", "nodes"), [(8, 1, 8, 1), (32, 1, 8, 4), (4, 8, 1, 4), (8, 4, 2, 4)]
)
def test_groups(ranks: int, stride: int, local: int, nodes: int) -> None:
    group = system("4x8xMI300X").group(ranks, stride)
    assert (group.local, group.nodes, group.ranks) == (local, nodes, ranks)


def test_groups_that_do_not_divide():
    found = system("4x8xMI300X")
    for ranks, stride in ((12, 1), (64, 1), (5, 8), (0, 1)):
        with pytest.raises(UsageError):
            found.group(ranks, stride)


def test_every_figure_has_a_source():
    for name in names():
        for field, figure in figures(name).items():
            assert figure.status in STATUSES, (name, field)
            assert figure.sources, (name, field)
            assert set(figure.sources) <= citations().keys(), (name, field)
            assert figure.value, (name, field)


def test_files_of_users(write):
    found = system("cluster", system_files=write(CLUSTER))
    assert (found.gpus, found.nodes, found.node_gpus) == (32, 4, 8)
    assert found.fabric == node_fabric(load("mi300x"))
    assert found.network is not None
    assert found.network.rate == 50e9
    twice = system("2xcluster", system_files=write(CLUSTER))
    assert (twice.gpus, twice.nodes) == (64, 8)


def test_figures_of_users_have_units(write):
    text = CLUSTER.replace(
        "bandwidth = 50", 'bandwidth = { value = 0.05, unit = "TB/s", note = "test" }'
    )
    found = system("cluster", system_files=write(text))
    assert found.network is not None
    assert found.network.bandwidth == pytest.approx(50e9)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("gpus = 8", ""), "cluster: gpus is missing"),
        (("gpus = 8", "gpus = 8.5"), "gpus must be 1 to"),
        (("gpus = 8", "gpus = true"), "gpus must be 1 to"),
        (('device = "mi300x"', ""), "device is missing"),
        (('device = "mi300x"', 'device = "mi399q"'), "unknown device 'mi399q'"),
        (("nodes = 4", "nods = 4"), "unknown field .*'nods'"),
        (('topology = "mesh"', 'topology = "tree"'), "unknown .*fabric.topology 'tree'"),
        (('topology = "mesh"', 'topology = "mesh"\ndies = 2'), "fabric.dies is for topology"),
        (('topology = "mesh"', 'topology = "packages"'), "fabric.dies is missing"),
        (('topology = "mesh"', 'topology = "mesh"\nreduces = 1'), "fabric.reduces must be true"),
        (('topology = "mesh"', 'topology = "switch"'), "fabric.bandwidth is missing"),
        (('[cluster.fabric]\ntopology = "mesh"', ""), "fabric is missing"),
        (("nics = 8", ""), "network.nics is missing"),
        (("bandwidth = 50", ""), "network.bandwidth is missing"),
        (("bandwidth = 50", "bandwidth = -1"), "network.bandwidth must be a positive"),
        (("bandwidth = 50", "bandwidth = nan"), "network.bandwidth must be a positive"),
        (("bandwidth = 50", 'bandwidth = { value = 50, unit = "GHz" }'), "has unit 'GHz'"),
        (("bandwidth = 50", "bandwidth = { unit = 'GB/s' }"), "bandwidth.value is missing"),
        (("bandwidth = 50", "bandwidth = { value = 50, source = 3 }"), "bandwidth.source"),
        (("[cluster.network]\nnics = 8\nbandwidth = 50", ""), "network is missing"),
        (("[cluster]", "[cluster"), "is not TOML"),
    ],
)
def test_mistakes_name_the_field(write, change: tuple[str, str], text: str) -> None:
    with pytest.raises(WavecastError, match=text) as caught:
        system("cluster", system_files=write(CLUSTER.replace(*change)))
    assert "\n" not in str(caught.value)
