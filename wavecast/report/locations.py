"""Source locations as entries of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavecast.documents.kernel import CallSiteJson, LocationJson

if TYPE_CHECKING:
    from wavecast.isa.instruction import SourceLocation


def location(found: SourceLocation | None) -> LocationJson | None:
    """With the chain of call sites of inlined code."""
    if found is None:
        return None
    return LocationJson.of(found, inlined_at=location(found.inlined_at))


def call_site(found: SourceLocation | None) -> CallSiteJson | None:
    """In the kernel's own body."""
    return None if found is None else CallSiteJson.of(found.outermost)


__all__ = ["call_site", "location"]
