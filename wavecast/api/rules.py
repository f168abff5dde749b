"""`wavecast.api.rules.rules`: the findings wavecast looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult, few
from wavecast.options import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.rules import Rule


@dataclass(frozen=True, slots=True, repr=False)
class RuleList(ShownResult):
    """Rules, `explained` or in a line each. The document is a list."""

    rules: Sequence[Rule]
    explained: bool = False

    def to_dict(self) -> list[Any]:
        from wavecast.report import rules

        return [rules.document(rule) for rule in self.rules]

    def render(self, console: Console) -> None:
        from wavecast.report import rules

        if self.explained:
            text = "\n\n".join(rules.explanation(rule) for rule in self.rules)
        else:
            text = rules.table(self.rules)
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    def markdown(self) -> str:
        """The rules as a page."""
        from wavecast.report import rules

        return rules.markdown(self.rules)

    def subject(self) -> str:
        return few([rule.name for rule in self.rules])


def rules(
    *names: str,
    progress: Progress = silent,  # noqa: ARG001
) -> RuleList:
    """The rules behind findings, or those of some names with their explanation. Raises
    UnknownName."""
    from wavecast import rules as registry

    chosen = tuple(map(registry.rule, names)) or registry.all_rules()
    return RuleList(chosen, explained=bool(names))


__all__ = ["RuleList", "rules"]
