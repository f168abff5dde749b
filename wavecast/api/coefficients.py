"""`wavecast.api.coefficients.coefficients`: the numbers of the model that are not facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult, few
from wavecast.options import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.perfmodel.coefficients import Coefficient


@dataclass(frozen=True, slots=True, repr=False)
class CoefficientList(ShownResult):
    """Coefficients by family. The document is a list."""

    families: Mapping[str, Sequence[Coefficient]]

    def to_dict(self) -> list[Any]:
        from wavecast.report import coefficients

        return [coefficients.document(row) for rows in self.families.values() for row in rows]

    def render(self, console: Console) -> None:
        from wavecast.report import coefficients

        for line in coefficients.lines(self.families):
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    def markdown(self) -> str:
        """The coefficients as a page."""
        from wavecast.report import coefficients

        return coefficients.markdown(self.families)

    def subject(self) -> str:
        return few([*self.families])


def coefficients(
    *families: str,
    progress: Progress = silent,  # noqa: ARG001
) -> CoefficientList:
    """The coefficients of some families, or all, with values by chip, unit, status and source.
    Raises UnknownName."""
    from wavecast.perfmodel import coefficients as table

    names = families or table.families()
    return CoefficientList({name: tuple(table.family(name).values()) for name in names})


__all__ = ["CoefficientList", "coefficients"]
