"""`wavecast.api.schema.schema`: JSON Schemas of the documents Wavecast writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult, few
from wavecast.errors import UnknownName, UsageError
from wavecast.options import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.json_objects import JsonObject


@dataclass(frozen=True, slots=True, repr=False)
class DocumentSchemas(ShownResult):
    """The definitions of documents by name: those that were `named`, or all. The JSON is the schema
    of one document, or the names of all."""

    documents: Mapping[str, type[JsonObject]]
    named: bool

    def to_dict(self) -> dict[str, Any] | list[Any]:
        from wavecast.json_schema import json_schema

        if not self.named:
            return [*self.documents]
        if len(self.documents) > 1:
            raise UsageError("name one document; --format markdown takes several")
        (definition,) = self.documents.values()
        return json_schema(definition)

    def render(self, console: Console) -> None:
        text = self.json() if self.named else "\n".join(self.documents)
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    def markdown(self) -> str:
        """Tables of fields."""
        from wavecast.json_schema import markdown

        return markdown([*self.documents.values()])

    def subject(self) -> str:
        return few([*self.documents])


def schema(
    *names: str,
    progress: Progress = silent,  # noqa: ARG001
) -> DocumentSchemas:
    """The documents of some names (`explain`, `wavecast.explain/1`), or all. Raises UnknownName."""
    from wavecast.documents.registry import documents

    registry = documents()
    short = {name.removeprefix("wavecast.").partition("/")[0]: name for name in registry}
    for name in names:
        if name not in registry and name not in short:
            raise UnknownName("document", name, short)
    chosen = [short.get(name, name) for name in names] or [*registry]
    return DocumentSchemas({name: registry[name] for name in chosen}, named=bool(names))


__all__ = ["DocumentSchemas", "schema"]
