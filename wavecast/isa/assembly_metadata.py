"""Kernel descriptors of assembly text: its `.amdhsa_*` directives, and the YAML document between
`.amdgpu_metadata` and `.end_amdgpu_metadata`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from wavecast.errors import ParseError
from wavecast.isa import symbols
from wavecast.isa.directives import kernel_directives
from wavecast.isa.metadata import Document, descriptor, kernel_documents, processor_of_triple
from wavecast.isa.program import KernelDescriptor

_TARGET = re.compile(r"\.amdgcn_target[ \t]+\"([^\"]+)\"")


def target_from_assembly(text: str) -> str:
    """The processor of the `.amdgcn_target` directive, features dropped; "" without one.

    Both spellings of the triple are understood: `amdgcn-amd-amdhsa--gfx942` and the subarch form
    of LLVM 24, `amdgpu9.42-amd-amdhsa-unknown-gfx942`.
    """
    match = _TARGET.search(text)
    return processor_of_triple(match[1]) if match else ""


def descriptors_from_assembly(text: str, target: str = "") -> Mapping[str, KernelDescriptor]:
    """Every kernel of an assembly text, by symbol, in the order of the text.

    A kernel that only the directives or only the metadata name is included with what is known.
    `target` decides the default wave size; the `.amdgcn_target` directive is used when it is "".
    Raises ParseError for metadata that is not YAML or lacks what every kernel has.
    """
    processor = target or target_from_assembly(text)
    return _descriptors(text, processor)


@lru_cache(maxsize=8)
def _descriptors(text: str, processor: str) -> Mapping[str, KernelDescriptor]:
    """The kernels of a text for a processor. One text is asked several times: by its loader, its
    launcher and its parser, for each of its kernels."""
    documents = kernel_documents(_yaml_metadata(text))
    directives = kernel_directives(text)
    names = tuple(dict.fromkeys((*directives, *documents)))
    vgprs = {name: symbols.function_resource(text, name, "num_vgpr") for name in names}
    return {
        name: descriptor(
            name,
            documents.get(name, {}),
            directives.get(name, {}),
            vgprs[name],
            processor,
        )
        for name in names
    }


def _yaml_metadata(text: str) -> Document:
    start = text.rfind(".amdgpu_metadata\n")
    if start < 0:
        return {}
    line = text.count("\n", 0, start) + 1
    end = text.find(".end_amdgpu_metadata", start)
    if end < 0:
        raise ParseError(".amdgpu_metadata is never closed", line=line)
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        body = text[start + len(".amdgpu_metadata\n") : text.rfind("\n", start, end) + 1]
        document = yaml.load(body, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = line + 1 + (mark.line if mark else 0)
        raise ParseError("kernel metadata is not valid YAML", line=where) from error
    if not isinstance(document, dict):
        raise ParseError("kernel metadata is not a mapping", line=line)
    return document


__all__ = ["descriptors_from_assembly", "target_from_assembly"]
