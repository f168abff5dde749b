"""The kernels of a code file: as lines of text, or as JSON (`wavecast.inventory/1`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from wavecast import json_objects, wording
from wavecast.compile.inventory import Inventory, KernelEntry
from wavecast.compile.names import distinct_names
from wavecast.documents.inventory import InventoryDocument, ListedKernelJson
from wavecast.profiles.kernel_forms import form
from wavecast.profiles.kernel_names import OTHER, recognise
from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe
from wavecast.version import __version__

_HEAD = ("target", "VGPR", "AGPR", "LDS", "code", "kernel")
_LONGEST = 72
"""Characters of a name; Tensile's names have several hundred."""


def lines(inventory: Inventory, path: str) -> Iterator[str]:
    """A line per kernel, and what they are in all."""
    names = distinct_names(entry.kernel for entry in inventory.entries)
    rows = [_HEAD, *(_cells(entry, names[entry.kernel]) for entry in inventory.entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [text.rjust(width) for text, width in zip(row[1:-1], widths[1:], strict=True)]
        yield "  ".join([*cells, row[-1]])
    count = wording.count(len(inventory.entries), "kernel")
    yield f"{count} in {wording.count(inventory.objects, 'code object')} of {path}"
    yield from (f"not read: {safe(reason)}" for reason in inventory.unread)


def _cells(entry: KernelEntry, name: str) -> tuple[str, ...]:
    descriptor = entry.descriptor
    figures = ("?", "?", "?")
    if descriptor is not None:
        lds = _size(descriptor.lds_bytes) if descriptor.lds_bytes else "-"
        figures = str(descriptor.vgprs), str(descriptor.agprs or "-"), lds
    code = _size(entry.code_bytes) if entry.code_bytes else "?"
    return (entry.target, *figures, code, _entry_name(entry.kernel, name, entry.archived))


_size = lru_cache(maxsize=1 << 14)(units.size)


@lru_cache(maxsize=1 << 16)
def _entry_name(kernel: str, name: str, archive: str) -> str:
    """Libraries have the code of a kernel for several targets."""
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    description = describe_kernel(kernel)
    archived = f" ({archive})" if archive else ""
    return safe(f"{name}{archived}") + (f"  [{safe(description)}]" if description else "")


def describe_kernel(kernel: str) -> str:
    """What a kernel's name tells, such as `AITER gemm 128x128 fp8`; "" where it tells nothing."""
    kernel_name = recognise(kernel)
    category = "" if kernel_name.category == OTHER else kernel_name.category
    return " ".join(filter(None, (kernel_name.library, category, form(kernel).text)))


def document(inventory: Inventory, path: str) -> dict[str, Any]:
    """The inventory as plain dicts, lists, strings and numbers."""
    names = distinct_names(entry.kernel for entry in inventory.entries)
    inventory_document = InventoryDocument(
        wavecast=__version__,
        input=path,
        objects=inventory.objects,
        unread=list(inventory.unread),
        kernels=[_entry(entry, names[entry.kernel]) for entry in inventory.entries],
    )
    return json_objects.values(inventory_document)


def _entry(entry: KernelEntry, kernel_name: str) -> ListedKernelJson:
    descriptor, name = entry.descriptor, recognise(entry.kernel)
    return ListedKernelJson(
        kernel=entry.kernel,
        name=kernel_name,
        arch=entry.target,
        library=name.library,
        category=name.category,
        form=form(entry.kernel).text,
        archived=entry.archived,
        code_bytes=entry.code_bytes,
        vgpr=descriptor.vgprs if descriptor else None,
        agpr=descriptor.agprs if descriptor else None,
        sgpr=descriptor.sgprs if descriptor else None,
        lds_bytes=descriptor.lds_bytes if descriptor else None,
        scratch_bytes=descriptor.scratch_bytes if descriptor else None,
        kernarg_bytes=descriptor.kernarg_bytes if descriptor else None,
        threads=descriptor.required_threads if descriptor else None,
    )
