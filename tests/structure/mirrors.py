"""Classes of documents that repeat a result class: similar names, and most keys are its fields.

python -m tests.structure.mirrors    # every pair, with the keys that the result class lacks
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.structure.sources import ROOT, files, nodes

SUFFIXES = ("Json", "Document")
SHARE = 0.7
"""Of the keys of a document's class that are fields of the result class."""


@dataclass(frozen=True)
class Fields:
    """A class with its fields in order, and its properties."""

    name: str
    path: Path
    fields: tuple[str, ...]
    properties: frozenset[str]


@dataclass(frozen=True)
class Mirror:
    """A class of a document and the result class that it repeats."""

    document: Fields
    result: Fields

    @property
    def missing(self) -> list[str]:
        """Keys that are no field of the result class; with parentheses, a property of it."""
        names = (name for name in self.document.fields if name not in self.result.fields)
        return [f"({name})" if name in self.result.properties else name for name in names]

    @property
    def extra(self) -> list[str]:
        """Fields of the result class that are no key."""
        return [name for name in self.result.fields if name not in self.document.fields]


def classes(path: Path) -> Iterator[Fields]:
    """The classes of a file that have annotated fields."""
    for node in nodes(path, ast.ClassDef):
        fields = [
            part.target.id
            for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        ]
        properties = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
        if fields:
            yield Fields(node.name, path, tuple(fields), frozenset(properties))


def similar(document: str, result: str) -> bool:
    """Whether two class names differ by a suffix and by a word at one end."""
    name = document.removesuffix("Json").removesuffix("Document")
    return name in result or result in name


def mirrors(root: Path = ROOT) -> list[Mirror]:
    """The nearest result class of every class of a document (`…Json`, `…Document`) that repeats
    one."""
    everything = [one for path in files(root) for one in classes(path)]
    documents = [one for one in everything if one.name.endswith(SUFFIXES)]
    results = [one for one in everything if not one.name.endswith(SUFFIXES)]
    found = []
    for document in documents:
        keys = set(document.fields)
        pairs = [
            (len(keys.intersection(result.fields)) / len(keys), -len(result.fields), number)
            for number, result in enumerate(results)
            if similar(document.name, result.name)
        ]
        if pairs and max(pairs)[0] >= SHARE:
            found.append(Mirror(document, results[max(pairs)[2]]))
    return found


if __name__ == "__main__":
    pairs = mirrors()
    for pair in sorted(pairs, key=lambda pair: (len(pair.missing), -len(pair.document.fields))):
        file = pair.result.path.relative_to(ROOT)
        text = f"{pair.document.path.name} {pair.document.name} = {file} {pair.result.name}"
        print(f"{len(pair.document.fields):3} {text}")
        for label, names in (("lacks", pair.missing), ("extra", pair.extra)):
            if names:
                print(f"        {label}: {', '.join(names)}")
    whole = sum(not pair.missing for pair in pairs)
    print(f"{len(pairs)} pairs, {whole} with all keys")
