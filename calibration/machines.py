"""`python -m calibration.machines`: the table of machines in docs/machines.md."""

from __future__ import annotations

from wavecast.arch.links import TOPOLOGIES
from wavecast.arch.quantity import Quantity
from wavecast.arch.systems import figures, names

HEAD = (
    "| name | machine | GPUs | links of a node | GB/s | NICs | GB/s of one | status, sources |",
    "|---|---|--:|---|--:|--:|--:|---|",
)


def rows() -> list[str]:
    """A row of Markdown per machine of `systems.toml`. Bandwidths are in one direction."""
    return [*HEAD, *(_row(name) for name in names())]


def _row(name: str) -> str:
    table, known = names()[name], figures(name)
    links = f"{table.topology}{', adds' if table.reduces else ''}"
    nics, nic = known.get("network.nics"), known.get("network.bandwidth")
    sources = dict.fromkeys(
        f"{figure.status}: {source}" for figure in known.values() for source in figure.sources
    )
    cells = (
        f"`{name}`",
        table.name,
        str(table.gpus),
        links,
        _gigabytes(known["fabric.bandwidth"]),
        str(nics.value) if nics else "–",
        _gigabytes(nic) if nic else "–",
        "; ".join(sources),
    )
    return f"| {' | '.join(cells)} |"


def _gigabytes(figure: Quantity) -> str:
    return f"{figure.to('GB/s').number:.4g}"


if __name__ == "__main__":
    print("\n".join(rows()))
    print()
    print("\n".join(f"- `{name}`: {meaning}" for name, meaning in TOPOLOGIES.items()))
