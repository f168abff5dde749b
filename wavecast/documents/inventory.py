"""`wavecast.inventory/1`: what `wavecast explain --list --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, JsonObject, doc


class ListedKernelJson(JsonObject):
    """A kernel of a code file."""

    kernel: Annotated[str, doc("symbol")]
    name: Annotated[
        str,
        doc(
            "the symbol without mangling and parameters; of template arguments, what tells "
            "instances apart"
        ),
    ]
    arch: Annotated[str, doc("target, such as gfx942")]
    library: Annotated[str, doc("the library that names kernels like this; empty when unknown")]
    category: Annotated[str, doc("gemm, attention, moe …; `other` when the name does not tell")]
    form: Annotated[str, doc("tile, dtype, layout and split by the name; empty when unknown")]
    archived: Annotated[str, doc("file of an archive that has it; empty for other files")]
    code_bytes: Annotated[Count, doc("bytes up to the next function; 0 when unknown")]
    vgpr: Annotated[Count | None, doc("vector registers; null when the processor is unknown")]
    agpr: Annotated[Count | None, doc("accumulation registers")]
    sgpr: Annotated[Count | None, doc("scalar registers")]
    lds_bytes: Annotated[Count | None, doc("bytes of LDS per workgroup, without the dynamic part")]
    scratch_bytes: Annotated[Count | None, doc("bytes of scratch memory per lane")]
    kernarg_bytes: Annotated[Count | None, doc("bytes of the argument segment")]
    threads: Annotated[Count | None, doc("threads of a workgroup; 0 when only the launch knows")]


class InventoryDocument(JsonObject, tag_field="schema", tag="wavecast.inventory/1"):
    """What `wavecast explain --list --format json` writes."""

    wavecast: Annotated[str, doc("version of wavecast")]
    input: Annotated[str, doc("the listed file")]
    objects: Annotated[Count, doc("code objects of the asked targets")]
    unread: Annotated[list[str], doc("why a code object could not be read, a line each")]
    kernels: list[ListedKernelJson]
