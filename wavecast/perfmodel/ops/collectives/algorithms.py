"""Algorithms of collectives, and the time of each from latency, links and steps.

S bytes on n ranks: m on each of N nodes. R is what the links of a node carry for a rank, W what the
NICs of a node carry for its ranks, both at sustained rates (`link_rate`, `network_rate`).

    ring           start + steps · hop + (wire + copy) / min(R, W)
    direct         as ring in one step per phase: every pair has a link (mesh)
    switch         start + S / R · n / (n - 1) / efficiency: the switch adds (NVLink SHARP)
    tree           start + 2 (m - 1) · hop + 2 ⌈log2 N⌉ · network hop + 2 S / min(R, W)
    hierarchical   reduce-scatter in a node, all-reduce of S / m over nodes, all-gather in a node
    one-shot       start + (n - 1) S / R: every rank reads the data of all others
    two-shot       start + hop + 2 (n - 1) / n · S / R: reduce-scatter, all-gather by direct reads
    low-latency    start + network + max(links, NICs): a copy of a token for each of its experts
    grouped        start + network + max(links, NICs): a copy to every other node that has one of
                   its experts, and from there to every GPU that does, by few workgroups

A ring has 2 (n - 1) steps for an all-reduce and n - 1 for others; those that cross nodes cost a
network hop. `wire` are the bytes a rank sends; `copy` those it copies to its own output. Two
protocols are weighed for a ring: one that sends a flag with every word (short hops, about half of
the bandwidth) and one that hands over whole slices. A copy goes at the rate of all links of a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.arch.links import GpuGroup

FUNCTIONS: Final = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "all_to_all": 1.0,
    "broadcast": 0.0,
    "reduce": 0.0,
}
"""Name -> how often (n - 1) / n of the bytes leave a rank; 0: all of them once."""

EXCHANGES: Final = ("dispatch", "combine")
"""Tokens to the ranks that have their experts, and back. The bytes are those of the tokens of one
rank, each once."""
EXCHANGE_KERNELS: Final = ("low-latency", "grouped")
"""A copy of a token for each of its experts, or one for each node and GPU that has some."""

PROTOCOLS: Final = ("flags", "slices")

Known = Mapping[str, float]
"""Coefficients of the family `collectives` by name."""


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """Seconds of an algorithm: `latency` and the transfer, whose limits are `bounds`."""

    algorithm: str
    protocol: str
    latency: float
    bounds: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """Latency, and the slowest of the links that work at once."""
        return self.latency + max(self.bounds.values())


def wire(function: str, size: float, ranks: int) -> float:
    """Bytes every rank sends, for `size` as nccl-tests counts it: the buffer that is reduced, the
    whole of what is gathered or scattered."""
    times = FUNCTIONS[function]
    return size * (times * (ranks - 1) / ranks if times else 1.0)


def link_rate(group: GpuGroup, ranks: int, constants: Known) -> float:
    """Sustained byte/s a rank sends to `ranks` - 1 others of its node."""
    assert group.fabric is not None
    fraction = constants[f"{group.fabric.topology}_fraction"]
    return group.fabric.rate(ranks) * fraction


def network_rate(group: GpuGroup, constants: Known) -> float:
    """Sustained byte/s of the NICs that belong to one rank."""
    assert group.network is not None
    return group.network.rate * constants["network_fraction"]


def library_estimates(
    function: str, size: float, group: GpuGroup, constants: Known
) -> Iterator[CollectiveTime]:
    """The algorithms of NCCL and RCCL, of which the library takes the fastest."""
    if function == "all_to_all":
        yield _all_to_all(size, group, constants)
        return
    for protocol in PROTOCOLS:
        yield _ring(function, size, group, constants, protocol)
    if function != "all_reduce":
        return
    if group.nodes > 1:
        for protocol in PROTOCOLS:
            yield _tree(size, group, constants, protocol)
        if group.local > 1:
            yield hierarchical(size, group, constants)
    elif group.fabric and group.fabric.reduces and group.local > 2:
        yield _switch(size, group, constants)


def hierarchical(size: float, group: GpuGroup, constants: Known) -> CollectiveTime:
    """All-reduce as reduce-scatter in a node, all-reduce over nodes, all-gather in a node."""
    inner = GpuGroup(group.fabric, None, group.local)
    outer = GpuGroup(None, group.network, 1, group.nodes)
    parts = [
        _fastest(function, share, where, constants)
        for function, share, where in (
            ("reduce_scatter", size, inner),
            ("all_reduce", size / group.local, outer),
            ("all_gather", size, inner),
        )
    ]
    # Phases follow each other: their transfers add up under one bound.
    total = sum(max(part.bounds.values()) for part in parts)
    network = max(parts[1].bounds.values())
    return CollectiveTime(
        "hierarchical",
        parts[1].protocol,
        sum(part.latency for part in parts) - 2 * constants["start"],
        {"network" if network > total / 2 else "links": total},
    )


def direct_reads(
    size: float,
    group: GpuGroup,
    constants: Known,
    *,
    shots: int,
    width: float = 1.0,
    blocks: int = 0,
) -> CollectiveTime:
    """All-reduce of an engine: every rank reads from every other, in one step or in two.

    `width` is the share of the bytes that a quantised all-reduce sends, `blocks` the number of
    workgroups that read (0: enough).
    """
    ranks = group.local
    sent = width * size * ((ranks - 1) if shots == 1 else 2 * (ranks - 1) / ranks)
    assert group.fabric is not None
    bounds = {"links": sent / (group.fabric.rate(ranks) * constants["read_fraction"])}
    if blocks:
        bounds["channels"] = sent / (blocks * constants["read_block_bandwidth"])
    latency = constants["read_start"] + (shots - 1) * constants["read_hop"]
    return CollectiveTime(("one-shot", "two-shot")[shots - 1], "reads", latency, bounds)


def multimem(size: float, group: GpuGroup, constants: Known) -> CollectiveTime:
    """All-reduce of an engine by a switch that adds."""
    assert group.fabric is not None
    rate = group.fabric.bandwidth * constants["multimem_fraction"]
    return CollectiveTime("switch", "multimem", constants["multimem_start"], {"links": size / rate})


def exchange_estimates(
    size: float, topk: int, group: GpuGroup, constants: Known, kernels: str = ""
) -> Iterator[CollectiveTime]:
    """Dispatch or combine of tokens whose `topk` experts are equally likely on every rank, by each
    of `EXCHANGE_KERNELS`, or by `kernels` alone."""
    ranks, nodes, local = group.ranks, group.nodes, group.local
    on_ranks = ranks * (1 - (1 - 1 / ranks) ** topk)
    on_nodes = nodes * (1 - (1 - 1 / nodes) ** topk)
    copies = {
        "low-latency": (topk * (local - 1) / ranks, topk * (1 - local / ranks)),
        "grouped": (on_ranks * (local - 1) / local, on_nodes * (1 - 1 / nodes)),
    }
    for name in [kernels] if kernels else EXCHANGE_KERNELS:
        near, far = (size * share for share in copies[name])
        bounds, latency = {}, constants[f"{name.replace('-', '_')}_start"]
        if local > 1:
            assert group.fabric is not None
            bounds["links"] = near / (group.fabric.rate(local) * constants["dispatch_fraction"])
            if name == "grouped":
                bounds["channels"] = near / constants["grouped_bandwidth"]
        if nodes > 1:
            bounds["network"] = far / network_rate(group, constants)
            latency += constants["dispatch_network"]
        yield CollectiveTime(name, "copies", latency, bounds)


def _fastest(function: str, size: float, group: GpuGroup, constants: Known) -> CollectiveTime:
    rings = (_ring(function, size, group, constants, protocol) for protocol in PROTOCOLS)
    return min(rings, key=lambda estimate: estimate.seconds)


def _ring(
    function: str, size: float, group: GpuGroup, constants: Known, protocol: str
) -> CollectiveTime:
    ranks, nodes = group.ranks, group.nodes
    phases = 2 if function == "all_reduce" else 1
    share = constants["flag_fraction"] if protocol == "flags" else 1.0
    hop, over = constants[f"{protocol[:-1]}_hop"], constants[f"{protocol[:-1]}_network_hop"]
    steps = phases * (ranks - 1)
    crossing = min(steps, phases * nodes) if nodes > 1 else 0
    fabric = group.fabric
    direct = protocol == "flags" and nodes == 1 and fabric and fabric.topology == "mesh"
    if direct:
        steps = phases
    sent = wire(function, size, ranks)
    copied = size / ranks / phases * constants["own_copy"] if FUNCTIONS[function] else 0.0
    bounds = {}
    if group.local > 1:
        assert fabric is not None
        rate, all_links = (link_rate(group, n, constants) for n in (group.local, fabric.gpus))
        bounds["links"] = (sent / rate + copied / all_links) / share
    if nodes > 1:
        # A ring enters and leaves a node once: all NICs of the ranks of a node carry its bytes.
        bounds["network"] = sent / (group.local * network_rate(group, constants) * share)
    latency = constants["start"] + (steps - crossing) * hop + crossing * over
    return CollectiveTime("direct" if direct else "ring", protocol, latency, bounds)


def _switch(size: float, group: GpuGroup, constants: Known) -> CollectiveTime:
    rate = link_rate(group, group.local, constants) * constants["switch_efficiency"]
    ranks = group.local
    bounds = {"links": size / rate * ranks / (ranks - 1)}
    return CollectiveTime("switch", "slices", constants["switch_latency"], bounds)


def _tree(size: float, group: GpuGroup, constants: Known, protocol: str) -> CollectiveTime:
    """Up and down a tree of nodes, and a chain through the ranks of each."""
    share = constants["flag_fraction"] if protocol == "flags" else 1.0
    hop, over = constants[f"{protocol[:-1]}_hop"], constants[f"{protocol[:-1]}_tree_hop"]
    depth = math.ceil(math.log2(group.nodes))
    latency = constants["start"] + 2 * (group.local - 1) * hop + 2 * depth * over
    bounds = {"network": 2 * size / (group.local * network_rate(group, constants) * share)}
    if group.local > 1:
        bounds["links"] = 2 * size / (link_rate(group, group.local, constants) * share)
    return CollectiveTime("tree", protocol, latency, bounds)


def _all_to_all(size: float, group: GpuGroup, constants: Known) -> CollectiveTime:
    ranks, nodes, local = group.ranks, group.nodes, group.local
    bounds = {}
    latency = constants["exchange_start"]
    if local > 1:
        rate = link_rate(group, local, constants) * constants["exchange_fraction"]
        bounds["links"] = size * (local - 1) / ranks / rate
    if nodes > 1:
        bounds["network"] = size * (ranks - local) / ranks / network_rate(group, constants)
        latency += constants["flag_network_hop"]
    return CollectiveTime("all at once", "slices", latency, bounds)


__all__ = [
    "EXCHANGES",
    "EXCHANGE_KERNELS",
    "FUNCTIONS",
    "PROTOCOLS",
    "CollectiveTime",
    "Known",
    "direct_reads",
    "exchange_estimates",
    "hierarchical",
    "library_estimates",
    "link_rate",
    "multimem",
    "network_rate",
    "wire",
]
