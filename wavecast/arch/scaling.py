"""A device with some of its facts multiplied: what a chip like it would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wavecast.arch.device import Device
from wavecast.arch.facts import Facts
from wavecast.arch.fields import fields
from wavecast.arch.quantity import Alternative, Quantity
from wavecast.arch.rates import with_consistent_peaks
from wavecast.arch.units import dimension
from wavecast.errors import MissingFact, UsageError


def scale_device(device: Device, factors: Mapping[str, float], source: str) -> Device:
    """`device` with numeric facts times factors by field; facts that it lacks stay unknown. Changed
    facts have status `override` and `source`, as those of an overlay.

    Raises MissingFact where it has none of the facts, UsageError for a value out of bounds.
    """
    changed = {}
    for name, factor in factors.items():
        fact = device.facts.find(name)
        if fact is not None:
            changed[name] = _scale_fact(name, fact, factor, source)
    if not changed:
        raise MissingFact(f"{source}: {device.id} has no known {', '.join(factors)}")
    facts = Facts(device.facts.device, {**device.facts.mapping, **changed})
    return Device(device.identity, with_consistent_peaks(facts))


def _scale_fact(name: str, fact: Quantity, factor: float, source: str) -> Quantity:
    field, value = fields()[name], fact.number * factor
    if field.whole:
        value = round(value)
    new = replace(
        fact,
        value=value,
        status="override",
        sources=(source,),
        alternatives=(Alternative(fact.number, fact.sources, "before the change"),),
    )
    same = dimension(fact.unit) == dimension(field.unit)
    why = field.why_refused(new.to(field.unit).number if same else value)
    if why:
        raise UsageError(f"{source}: {name} {why}")
    return new


__all__ = ["scale_device"]
