"""Source locations as entries of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavecast.documents.kernel import CallSiteJson, LocationJson

if TYPE_CHECKING:
    from wavecast.isa.instruction import SourceLocation


def location(source_location: SourceLocation | None) -> LocationJson | None:
    """With the chain of call sites of inlined code."""
    if source_location is None:
        return None
    return LocationJson.of(source_location, inlined_at=location(source_location.inlined_at))


def call_site(source_location: SourceLocation | None) -> CallSiteJson | None:
    """In the kernel's own body."""
    return None if source_location is None else CallSiteJson.of(source_location.outermost)


__all__ = ["call_site", "location"]
