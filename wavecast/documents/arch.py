"""`wavecast.arch/1`: what `wavecast arch --format json` writes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from wavecast.json_objects import JsonObject, doc


class AlternativeFactJson(JsonObject):
    """Another published value."""

    value: Any
    sources: list[str]
    note: str


class FactJson(JsonObject):
    """A fact of a device with its origin."""

    value: Annotated[Any, doc("number, text, list or table")]
    unit: str
    status: Annotated[str, doc("spec, measured, derived, conflict …")]
    sources: Annotated[list[str], doc("keys of `sources`")]
    note: str
    alternatives: list[AlternativeFactJson]


class DeviceJson(JsonObject):
    """A GPU."""

    id: str
    name: Annotated[str, doc("marketing name")]
    vendor: Literal["amd", "nvidia"]
    target: Annotated[str, doc("gfx942, sm_90 …")]
    generation: Annotated[str, doc("cdna3, hopper …")]
    aliases: list[str]
    note: Annotated[str, doc("which of several devices was taken; empty otherwise")]
    fields: Annotated[dict[str, FactJson], doc("by name of the field")]


class ArchDocument(JsonObject, tag_field="schema", tag="wavecast.arch/1"):
    """What `wavecast arch --format json` writes."""

    devices: list[DeviceJson]
    sources: Annotated[dict[str, str], doc("citations by key")]
