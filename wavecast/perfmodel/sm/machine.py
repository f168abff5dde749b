"""One streaming multiprocessor of a chip in a launch, as the numbers the simulator runs on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast.perfmodel.chip import Chip

FAMILY = "sm"


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """An SM that shares its chip with others like it.

    Clocks of `clock` Hz. Rates are bytes per clock: `data` of the path that L1 and shared memory
    share, `l2` and `hbm` this SM's share, `tensor_load` between tensor memory and registers of a
    sub-partition. Latencies in clocks, by what is waited for. `queue_lsu` and `queue_matrix` are
    clocks of work taken before a sub-partition stalls, `start` those from room for a workgroup to
    its first instruction; `lds_rate` scales the work of shared memory, `tag` that of the L1.
    """

    clock: float
    simds: int
    data: float
    l2: float
    hbm: float
    tensor_load: float
    latency_lds: float
    latency_l1: float
    latency_l2: float
    latency_hbm: float
    latency_xu: float
    latency_constant: float
    latency_shuffle: float
    latency_fp64: float
    latency_matrix: float
    latency_read: float
    latency_bulk: float
    queue_lsu: float
    queue_matrix: float
    barrier: float
    branch: float
    start: float
    lds_rate: float = 1.0
    tag: float = 1.0

    @staticmethod
    def of(chip: Chip, *, simds: int, active: int, clock: float | None = None) -> Multiprocessor:
        """The SM of a chip whose `active` SMs share L2 and memory evenly."""
        frequency = chip.clock if clock is None else clock

        def coefficient(name: str) -> float:
            return chip.coefficient(FAMILY, name)

        l2_clocks = chip.latency["l2"] * chip.clock
        hbm_clocks = max(l2_clocks, chip.latency["hbm"] * frequency * coefficient("memory_wait"))

        def share(rate: float | None, latency: float) -> float:
            """An even share, no more than the path takes and outstanding bytes allow."""
            most = min(coefficient("l2_bytes"), coefficient("misses") / latency)
            return most if rate is None else min(most, rate / active / frequency)

        return Multiprocessor(
            clock=frequency,
            simds=simds,
            data=chip.lds_rate,
            l2=share(chip.l2_bandwidth, l2_clocks),
            hbm=share(chip.hbm, hbm_clocks),
            tensor_load=coefficient("tensor_load"),
            latency_lds=chip.latency["lds"] * chip.clock,
            latency_l1=chip.latency["l1"] * chip.clock,
            latency_l2=l2_clocks,
            latency_hbm=hbm_clocks,
            latency_xu=coefficient("latency_xu"),
            latency_constant=coefficient("latency_constant"),
            latency_shuffle=coefficient("latency_shuffle"),
            latency_fp64=coefficient("latency_fp64"),
            latency_matrix=coefficient("latency_matrix"),
            latency_read=coefficient("latency_read"),
            latency_bulk=coefficient("latency_bulk"),
            queue_lsu=coefficient("queue_lsu"),
            queue_matrix=coefficient("queue_matrix"),
            barrier=coefficient("barrier"),
            branch=coefficient("branch"),
            start=coefficient("start"),
        )

    def with_(self, **changes: float) -> Multiprocessor:
        """The same SM with some numbers changed."""
        return replace(self, **changes)


__all__ = ["FAMILY", "Multiprocessor"]
