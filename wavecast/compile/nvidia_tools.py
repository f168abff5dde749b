"""NVIDIA's assembler and disassemblers, of Triton's wheel or of a CUDA toolkit: what they print."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final

from wavecast.compile import process
from wavecast.compile.cache import DiskCache
from wavecast.compile.digest import key
from wavecast.errors import CompileError, InputError, MissingTool

_FORMAT: Final = 1


def tool(name: str) -> str:
    """The path of `nvdisasm`, `cuobjdump`, or `ptxas`. Raises MissingTool when there is none."""
    path = process.find_program((name,), folders=_folders())
    if not path:
        raise MissingTool(
            f"{name} is not installed", hint="Triton's wheel has it, and so has a CUDA toolkit"
        )
    return path


def _folders() -> list[str]:
    spec = importlib.util.find_spec("triton")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    folders = [str(Path(root) / "backends" / "nvidia" / "bin") for root in roots]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            folders.append(str(Path(os.environ[variable]) / "bin"))
    return [*folders, "/usr/local/cuda/bin"]


@lru_cache(maxsize=8)
def _version(program: str) -> str:
    printed = process.run([program, "--version"]).text.strip().splitlines()
    return printed[-1] if printed else "unknown version"


def assemble(text: str, gpu: str, cache: DiskCache, file: str) -> tuple[bytes, str]:
    """(cubin, log of `ptxas -v`) of PTX for the gpu-name. Raises CompileError with the message of
    ptxas, MissingTool."""
    programs = [process.find_program((n,), folders=_folders()) for n in _ptxas_names(gpu)]
    programs = [program for program in programs if program]
    if not programs:
        tool("ptxas")
    entry = key("ptx", _FORMAT, [_version(program) for program in programs], gpu, text)
    cache_entry = cache.get(entry)
    if isinstance(cache_entry, dict) and cache_entry.keys() == {"cubin", "log"}:
        return cache_entry["cubin"], cache_entry["log"]
    data, log = _run_ptxas(programs, gpu, text, file)
    cache.put(entry, {"cubin": data, "log": log})
    return data, log


def _ptxas_names(gpu: str) -> tuple[str, ...]:
    """Triton ships a second, newer ptxas for Blackwell and for late PTX versions."""
    match = re.fullmatch(r"sm_(\d+)[af]?", gpu)
    newer_first = match is not None and int(match[1]) >= 100
    return ("ptxas-blackwell", "ptxas") if newer_first else ("ptxas", "ptxas-blackwell")


def _run_ptxas(programs: list[str], gpu: str, text: str, file: str) -> tuple[bytes, str]:
    log = ""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source, output = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text, encoding="utf-8")
        for program in programs:
            ptxas_run = process.run(
                [program, "-v", "-lineinfo", f"--gpu-name={gpu}", source, "-o", output]
            )
            if ptxas_run.status == 0:
                return output.read_bytes(), ptxas_run.log + ptxas_run.text
            log = (ptxas_run.log + ptxas_run.text).replace(str(source), file or "kernel.ptx")
    first = next((line for line in log.splitlines() if "error" in line or "fatal" in line), log)
    raise CompileError(f"ptxas: {first.strip() or 'failed without a message'}", log=log)


def disassemble(data: bytes, cache: DiskCache, file: str) -> tuple[str, str]:
    """(SASS listing, resource usage) of a cubin, as the tools print them. Raises InputError where
    they refuse it, MissingTool."""
    nvdisasm, cuobjdump = tool("nvdisasm"), tool("cuobjdump")
    entry = key("sass", _FORMAT, _version(nvdisasm), _version(cuobjdump), data)
    cache_entry = cache.get(entry)
    if isinstance(cache_entry, tuple) and len(cache_entry) == 2:
        return cache_entry[0], cache_entry[1]
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(data)
        listing = process.run([nvdisasm, "-c", "-gi", path])
        usage = process.run([cuobjdump, "--dump-resource-usage", path])
    for output, program in ((listing, "nvdisasm"), (usage, "cuobjdump")):
        if output.status:
            first = (output.log.strip().splitlines() or ["no message"])[0].replace(str(path), "")
            raise InputError(f"{file or 'cubin'}: {program} refused it: {first.strip()}")
    cache.put(entry, (listing.text, usage.text))
    return listing.text, usage.text


__all__ = ["assemble", "disassemble", "tool"]
