"""Measures what each field of a configuration does to the layers of its model, and compares every
variant with what Wavecast reads.

    python -m calibration.config_fields [TYPE …] [--write | --markdown]

A small configuration of each model type that Wavecast reads is changed field by field, and two
fields at once for those that switch or list something. `--write` stores the effects in
`wavecast/systems/config_fields.csv`; without it the differences are printed, and any of them is an
error. The fields are those of the class, those that its code takes out of what it is given, and
those that the modelling code asks the configuration for. `--markdown` prints the table of
`docs/configurations.md`.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import json
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import transformers

from calibration.config_variants import (
    UNMEASURED,
    WINDOWS,
    base,
    base_fields,
    depth_of,
    every_field,
    few,
    measurable,
    switched,
    switches,
    target_of,
    variants,
)
from calibration.model_layers import ModelFacts, reading, reference
from wavecast.errors import WavecastError
from wavecast.systems import config_effects, huggingface
from wavecast.systems.config_effects import EVERY_TYPE
from wavecast.systems.config_fields import Fields

TARGET = Path(__file__).parents[1] / "wavecast" / "systems" / "config_fields.csv"


@dataclasses.dataclass(frozen=True)
class Result:
    """One variant: the changed fields, what transformers makes of it (None where it refuses), and
    of the configuration that it is a variant of."""

    changed: tuple[str, ...]
    values: Mapping[str, Any]
    built: ModelFacts | None
    start: ModelFacts

    @cached_property
    def read(self) -> ModelFacts | str:
        """What Wavecast reads, or why it does not."""
        try:
            return reading(self.values)
        except WavecastError as error:
            return str(error)

    @property
    def differs(self) -> bool:
        """Whether both take it and have other layers of it."""
        return self.built is not None and not isinstance(self.read, str) and self.built != self.read


def singles(kind: str, start: dict[str, Any], names: Container[str]) -> Iterator[Result]:
    """A configuration, then each field by itself: its variants, and absent."""
    first = reference(start)
    if first is None:
        raise ValueError(f"transformers refuses {start}")
    yield Result((), start, first, first)
    for name, default in every_field(kind).items():
        if name not in names:
            continue
        target = target_of(kind, name) or name
        rest = {key: value for key, value in start.items() if key != target}
        if name in start:
            yield Result((name,), rest, reference(rest), first)
        here = start.get(target, default)
        for value in variants(name, here, depth_of(start)):
            if value != here or name not in start:
                changed = {**rest, name: value}
                yield Result((name,), changed, reference(changed), first)


def pairs(kind: str, start: dict[str, Any], names: Iterable[str]) -> Iterator[Result]:
    """Two fields at once."""
    first, fields, depth = reference(start), every_field(kind), depth_of(start)
    assert first is not None
    for name, other in itertools.combinations(names, 2):
        for one in few(name, fields[name], depth):
            for two in few(other, fields[other], depth):
                changed = {**start, name: one, other: two}
                yield Result((name, other), changed, reference(changed), first)


def measured(results: Iterable[Result]) -> dict[str, str]:
    """Field -> effect on what transformers builds (`FieldEffect`)."""
    found: dict[str, str] = {}
    for each in results:
        for name in each.changed:
            known = found.setdefault(name, "unknown")
            if each.built and known != "layers":
                found[name] = "none" if each.built == each.start else "layers"
    return {**found, **dict.fromkeys(UNMEASURED, "none")}


def joint_effects(results: Iterable[Result], effects: dict[str, str]) -> None:
    """Fields that change layers only together with another one."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for each in results:
        for own, other in (each.changed, each.changed[::-1]):
            groups.setdefault((own, other, repr(each.values[other])), []).append(each)
    for (own, _, _), members in groups.items():
        built = {each.built for each in members if each.built}
        if len(built) > 1:
            effects[own] = "layers"


def report(kind: str, results: Iterable[Result]) -> int:
    """Print what differs; the number of variants that do."""
    wrong = [each for each in results if each.differs]
    reasons = Counter(
        (each.changed, each.read) for each in results if each.built and isinstance(each.read, str)
    )
    for (changed, why), count in reasons.items():
        print(f"  refused {', '.join(changed) or 'as it is'} ({count}): {why}")
    for each in wrong:
        shown = {name: each.values.get(name, "absent") for name in each.changed}
        print(f"{kind}: {shown}: {_difference(each)}", flush=True)
    return len(wrong)


def _difference(each: Result) -> str:
    built, read = each.built, each.read
    assert built is not None
    assert isinstance(read, ModelFacts)
    if built.rest != read.rest:
        return f"outside of layers {built.rest}, read {read.rest}"
    for index, (one, other) in enumerate(zip(built.layers, read.layers, strict=False)):
        if one != other:
            fields = [f.name for f in dataclasses.fields(one)
                      if getattr(one, f.name) != getattr(other, f.name)]  # fmt: skip
            return f"layer {index}: " + ", ".join(
                f"{name} {getattr(one, name)}, read {getattr(other, name)}" for name in fields
            )
    return f"{len(built.layers)} layers, read {len(read.layers)}"


def write(rows: Mapping[str, list[tuple[str, str, str]]]) -> None:
    """Store the rows of some types, and keep those of others."""
    with TARGET.open(encoding="utf-8", newline="") as file:
        old = list(csv.reader(line for line in file if not line.startswith("#")))[1:]
    kept: dict[str, list[tuple[str, str, str]]] = {}
    for kind, *row in old:
        kept.setdefault(kind, []).append((row[0], row[1], row[2]))
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# transformers {transformers.__version__}; calibration/config_fields.py\n")
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("model_type", "field", "effect", "default"))
        for kind in (EVERY_TYPE, *measurable()):
            out.writerows((kind, *row) for row in rows.get(kind, kept.get(kind, ())))


def every_type_rows() -> list[tuple[str, str, str]]:
    """Fields of all classes; `per_layer_config` gives layers sizes of their own."""
    rows = [(name, "none", json.dumps(value)) for name, value in sorted(base_fields().items())]
    return [*rows, ("per_layer_config", "layers", "null")]


@dataclasses.dataclass(frozen=True)
class Measured:
    """Everything that was compared of a type."""

    kind: str
    results: tuple[Result, ...]
    effects: Mapping[str, str]

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Its part of the table."""
        every = every_field(self.kind)
        return [
            (name, self.effects.get(name, "none"), json.dumps(every[name]))
            for name in sorted(every)
        ]

    @property
    def summary(self) -> str:
        """Counts of fields and variants."""
        counts = Counter(self.effects.values())
        built = [each for each in self.results if each.built]
        refused = sum(isinstance(each.read, str) for each in built)
        wrong = sum(each.differs for each in built)
        fields = ", ".join(f"{counts[what]} {what}" for what in ("layers", "none", "unknown"))
        return (
            f"{self.kind}: fields {fields}; variants {len(self.results)}, built {len(built)}, "
            f"equal {len(built) - refused - wrong}, refused {refused}, different {wrong}"
        )


def measure(kind: str) -> Measured:
    """Compare all variants of a type."""
    start, other, fields = base(kind), switched(kind), every_field(kind)
    chosen = [
        name
        for name, default in fields.items()
        if switches(name, default)
        and (name not in start or name in WINDOWS)
        and not target_of(kind, name)
    ]
    own = list(singles(kind, start, fields))
    more = list(singles(kind, other, chosen)) if other != start else []
    both = list(pairs(kind, start, chosen))
    effects = measured([*own, *more])
    joint_effects(both, effects)
    return Measured(kind, (*own, *more, *both), effects)


def markdown() -> str:
    """Which fields of a type are read, and which are refused unless they have the value of an
    absent one."""
    lines = [
        f"transformers {config_effects.version()}:",
        "",
        "| model type | read | refused | without effect |",
        "|---|---|---|--:|",
    ]
    for kind in measurable():
        effects = config_effects.table()[kind]
        read = names_read(kind)
        changing = [name for name, each in effects.items() if each.effect != "none"]
        refused = [name for name in changing if name not in read]
        quiet = len(effects) - len(changing)
        cells = (", ".join(name for name in changing if name in read), ", ".join(refused))
        lines.append(f"| {kind} | {cells[0]} | {cells[1]} | {quiet} |")
    return "\n".join(lines)


def names_read(kind: str) -> set[str]:
    """The fields that the reader of a type asks for."""
    fields = Fields("config", base(kind), config_effects.defaults(kind))
    huggingface.architecture(kind, fields, huggingface.layers_of(kind, fields))
    return fields.names_read


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    if args.markdown:
        print(markdown())
        return 0
    wrong = 0
    for kind in args.kinds or measurable():
        found = measure(kind)
        if args.write:
            write({EVERY_TYPE: every_type_rows(), kind: found.rows})
            config_effects.table.cache_clear()
            config_effects.changing.cache_clear()
        print(found.summary, flush=True)
        wrong += report(kind, found.results)
    print(f"{wrong} variants differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
