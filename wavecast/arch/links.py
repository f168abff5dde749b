"""Links between GPUs: those of a node (fabric), those between nodes (network), and which of them a
group of GPUs uses. Bandwidths are byte/s in one direction."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from wavecast.errors import UsageError

TOPOLOGIES: Final = {
    "mesh": "one link per pair of GPUs (xGMI)",
    "switch": "every GPU has a port of a switch (NVLink)",
    "pcie": "every GPU has a PCIe slot of the host",
    "packages": "dies share a package; packages are linked (MI250X)",
}

_PCIE: Final = re.compile(r"Gen([1-6])\s*x(\d{1,2})\b")
_TRANSFERS: Final = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""GT/s of a lane by generation of PCIe."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """Links between the `gpus` GPUs of a node.

    `bandwidth` is that of the link of a pair (mesh), of the port of a GPU (switch, PCIe), or of all
    links from a die to other packages (packages). `inner` is that between the `dies` of a package.
    `reduces`: the switch adds what GPUs send (NVLink SHARP).
    """

    topology: str
    gpus: int
    bandwidth: float
    inner: float = 0.0
    dies: int = 1
    reduces: bool = False

    def rate(self, ranks: int) -> float:
        """byte/s that each of `ranks` GPUs of the node sends to the others, all at once.

        A mesh uses the links between the ranks only: with 2 of 8 GPUs, one of seven. Raises
        UsageError.
        """
        if not 2 <= ranks <= self.gpus:
            raise UsageError(f"{ranks} ranks in a node of {self.gpus} GPUs")
        if self.topology == "mesh":
            return (ranks - 1) * self.bandwidth
        if self.topology == "packages" and ranks <= self.dies:
            return self.inner
        return self.bandwidth

    def scale(self, factor: float) -> Fabric:
        """With `factor` times the bandwidth of all links."""
        return replace(self, bandwidth=factor * self.bandwidth, inner=factor * self.inner)


@dataclass(frozen=True, slots=True)
class Network:
    """The NICs of a node of `gpus` GPUs: `nics` with `bandwidth` each. `rails`: NIC i of every node
    is on the same switch."""

    nics: int
    bandwidth: float
    gpus: int
    rails: bool = True

    @property
    def rate(self) -> float:
        """byte/s of the NICs for one GPU of the node."""
        return self.nics * self.bandwidth / self.gpus


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """The ranks of a collective: `local` GPUs on each of `nodes` nodes.

    Raises UsageError for a group of several GPUs of a node without a fabric, or of several nodes
    without a network.
    """

    fabric: Fabric | None
    network: Network | None
    local: int
    nodes: int = 1

    def __post_init__(self) -> None:
        if self.local < 1 or self.nodes < 1:
            raise UsageError("a group of GPUs has one or more on one or more nodes")
        if self.local > 1 and self.fabric is None:
            raise UsageError("the links between the GPUs of a node are not known")
        if self.nodes > 1 and self.network is None:
            raise UsageError("the links between nodes are not known")

    @property
    def ranks(self) -> int:
        """GPUs of the group."""
        return self.local * self.nodes


def pcie_bandwidth(text: str) -> float:
    """byte/s of `Gen4 x16` in one direction, after its line code. Raises ValueError."""
    match = _PCIE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not like 'Gen4 x16'")
    generation, lanes = int(match[1]), int(match[2])
    # 8b/10b before generation 3, then 128b/130b; in generation 6, 242 of the 256 bytes of a FLIT.
    code = 0.8 if generation < 3 else 128 / 130 if generation < 6 else 242 / 256
    return _TRANSFERS[generation] * 1e9 * lanes / 8 * code


__all__ = ["TOPOLOGIES", "Fabric", "GpuGroup", "Network", "pcie_bandwidth"]
