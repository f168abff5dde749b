"""Code objects, bundles and fat binaries, made here with the HIP compiler."""

from __future__ import annotations

import contextlib
import pickle
import re
import shutil
import struct
import subprocess
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.targets import swept, thorough_beyond
from wavecast.compile import bundle, disassemble, elf, load, toolchain
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.inventory import inventory
from wavecast.errors import InputError, WavecastError
from wavecast.isa import elf as elf_file
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.elf_metadata import descriptors_from_elf
from wavecast.isa.targets import TARGETS

DATA = Path(__file__).parent / "data"
LAYOUTS = ("gfx908", "gfx942", "gfx1030", "gfx1201", "gfx1250")
"""A target of each layout of the kernel descriptor."""

pytestmark = [
    pytest.mark.hip,
    pytest.mark.llvm,
    pytest.mark.usefixtures("hip_compiler"),
]


@cache
def _compiled(target: str, source: str = "program.hip") -> list[CodeObject]:
    return load(DATA / source, target)


def _hsaco(target: str, source: str = "saxpy.hip") -> bytes:
    stage = _compiled(target, source)[0].stages.get("hsaco")
    if not isinstance(stage, bytes):
        pytest.skip("the HIP compiler here has no linker")
    return stage


def _body(text: str, kernel: str) -> list[tuple[str, tuple[str, str] | None]]:
    """(instruction, (line, column)) of one kernel, labels made equal, padding left out."""
    start = text.index(f"\n{kernel}:")
    found: list[tuple[str, tuple[str, str] | None]] = []
    place = None
    for raw in text[start:].splitlines()[2:]:
        line = re.split(r";|//", raw)[0].strip()
        if line.startswith(".Lfunc_end"):
            break
        if line.startswith(".loc"):
            words = line.split()
            place = None if words[2] == "0" else (words[2], words[3])
        elif line and line[0] != "." and not line.endswith(":") and "s_nop" not in line:
            spelled = re.sub(r"\.L\w+", "label", " ".join(line.split()))
            spelled = re.sub(r"lit\((\w+)\)", r"\1", spelled)
            found.append((re.sub(r"\b0xffff\b", "-1", spelled), place))
    return found


@pytest.mark.parametrize("target", swept(["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]))
def test_a_code_object_reads_like_the_assembly_it_came_from(target: str) -> None:
    compiled = _compiled(target)
    loaded = elf.load(_hsaco(target, "program.hip"))
    assert {code.kernel for code in loaded} == {code.kernel for code in compiled}
    texts = {code.kernel: code.assembly for code in loaded}
    for code in compiled:
        ours = _body(texts[code.kernel], code.kernel)
        theirs = _body(code.assembly, code.kernel)
        assert len(ours) == len(theirs)
        mnemonics = [(a[0].split()[0], b[0].split()[0]) for a, b in zip(ours, theirs, strict=True)]
        assert [a for a, b in mnemonics if a != b] == []
        assert [(a, b) for a, b in zip(ours, theirs, strict=True) if a[1] != b[1]] == []
        branches = [(a, b) for (a, _), (b, _) in zip(ours, theirs, strict=True) if "label" in b]
        assert [(a, b) for a, b in branches if a != b] == []


@pytest.mark.parametrize("target", thorough_beyond(LAYOUTS, TARGETS))
def test_descriptors_agree_with_the_assembly(target: str) -> None:
    compiled = _compiled(target)
    from_text = descriptors_from_assembly(compiled[0].assembly, target)
    from_elf = descriptors_from_elf(_hsaco(target, "program.hip"))
    assert from_text.keys() == from_elf.keys()
    for name, expected in from_text.items():
        found = from_elf[name]
        for field in type(expected).__dataclass_fields__:
            if field != "directives":
                assert getattr(found, field) == getattr(expected, field), (name, field)
        folded = {"next_free_sgpr", "reserve_vcc", "reserve_xnack_mask", "reserve_flat_scratch"}
        known = {k: v for k, v in expected.directives.items() if k not in folded}
        assert {k: found.directives.get(k) for k in known} == known


def test_the_text_carries_its_own_descriptors() -> None:
    (code,) = elf.load(_hsaco("gfx942"))
    assert descriptors_from_assembly(code.assembly) == descriptors_from_elf(_hsaco("gfx942"))
    assert (code.origin, code.target) == ("elf", "gfx942")
    assert "clang" in code.compiler
    assert [p.offset for p in code.parameters] == [0, 8, 16, 24]


def test_truncation_at_any_length_is_one_clear_error(tmp_path: Path) -> None:
    data = _hsaco("gfx942")
    path = tmp_path / "cut.hsaco"
    lengths = sorted({*range(1, 128, 9), *range(128, len(data), 257), len(data) - 1})
    for length in lengths:
        path.write_bytes(data[:length])
        with pytest.raises(InputError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_damage_never_escapes_the_error_tree(tmp_path: Path) -> None:
    """Flipped bytes in the header, section table, notes, and descriptor; text is not made."""
    data = _hsaco("gfx942")
    path = tmp_path / "damaged.hsaco"
    header = list(range(4, 64))
    sections = list(range(int.from_bytes(data[40:48], "little"), len(data), 5))
    notes = list(range(0x200, 0x500, 3))
    for place in header + sections + notes:
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(WavecastError):
            load(path)


def test_text_is_made_for_one_kernel_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = []
    real = disassemble.disassemble

    def counted(*arguments: Any) -> str:
        made.append(arguments[4])
        return real(*arguments)

    monkeypatch.setattr(disassemble, "disassemble", counted)
    store = DiskCache(tmp_path)
    first, *others = elf.load(_hsaco("gfx942", "program.hip"), cache=store)
    assert made == []
    assert f"\n{first.kernel}:" in first.assembly
    assert all(f"\n{other.kernel}:" not in first.assembly for other in others)
    assert made == [first.kernel]
    assert pickle.loads(pickle.dumps(first)).assembly == first.assembly
    assert made == [first.kernel]


def _bundle(members: dict[str, bytes]) -> bytes:
    head = bundle.MAGIC + struct.pack("<Q", len(members))
    size = len(head) + sum(24 + len(triple) for triple in members)
    offset, body = size, b""
    for triple, data in members.items():
        head += struct.pack("<QQQ", offset, len(data), len(triple)) + triple.encode()
        offset += len(data)
        body += data
    return head + body


def _two_targets() -> bytes:
    return _bundle(
        {
            "host-x86_64-unknown-linux--": b"",
            "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-": _hsaco("gfx942"),
            "hipv4-amdgcn-amd-amdhsa--gfx1100": _hsaco("gfx1100"),
        }
    )


def test_a_bundle_gives_every_target_or_the_one_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "kernels.co"
    path.write_bytes(_two_targets())
    assert [code.target for code in load(path)] == ["gfx942", "gfx1100"]
    assert [code.target for code in load(path, "gfx1100")] == ["gfx1100"]
    with pytest.raises(InputError, match=r"has no code for gfx950.*gfx942, gfx1100"):
        load(path, "gfx950")


def test_a_broken_member_does_not_lose_the_others(tmp_path: Path) -> None:
    data = {"hip-amdgcn-amd-amdhsa--gfx942": _hsaco("gfx942")}
    path = tmp_path / "kernels.co"
    path.write_bytes(_bundle({**data, "hip-amdgcn-amd-amdhsa--gfx1100": b"\x7fELF nonsense"}))
    assert [code.target for code in load(path)] == ["gfx942"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundles(version: int) -> None:
    plain = _two_targets()
    body = zlib.compress(plain)
    sizes = {
        1: struct.pack("<IQ", len(plain), 0),
        2: struct.pack("<IIQ", 24 + len(body), len(plain), 0),
        3: struct.pack("<QQQ", 32 + len(body), len(plain), 0),
    }
    data = b"CCOB" + struct.pack("<HH", version, 0) + sizes[version] + body
    assert [member.target for member in bundle.members(data)] == ["gfx942", "gfx1100"]
    with pytest.raises(InputError, match="truncated or damaged"):
        list(bundle.members(data[:-40]))


@pytest.mark.parametrize("compress", [False, True])
def test_bundles_of_llvm_s_own_bundler(compress: bool, tmp_path: Path) -> None:
    bundler = shutil.which("clang-offload-bundler-22") or shutil.which("clang-offload-bundler")
    if bundler is None:
        pytest.skip("needs clang-offload-bundler")
    device, host, out = tmp_path / "d.hsaco", tmp_path / "host", tmp_path / "out.hipfb"
    device.write_bytes(_hsaco("gfx942"))
    host.write_bytes(b"")
    words = [bundler, "-type=o", "-bundle-align=4096", f"-output={out}"]
    words += ["-targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx942"]
    words += [f"-input={host}", f"-input={device}", *(["-compress"] if compress else [])]
    subprocess.run(words, check=True)
    (code,) = load(out)
    assert (code.kernel, code.target) == ("saxpy", "gfx942")


def test_a_host_program_with_device_code(hip_compiler: toolchain.Toolchain, tmp_path: Path) -> None:
    fat = tmp_path / "fat.bin"
    fat.write_bytes(_two_targets() + bytes(4096) + _two_targets())
    source, out = tmp_path / "host.s", tmp_path / "host.o"
    source.write_text(f'.section .hip_fatbin,"a"\n.incbin "{fat}"\n')
    words = [*hip_compiler.compiler, "-c", "-x", "assembler", "-target", "x86_64-linux-gnu"]
    subprocess.run([*words, str(source), "-o", str(out)], check=True)
    (code,) = load(out, "gfx942")  # equal kernels are one
    assert code.kernel == "saxpy"
    listed = inventory(out, kernels="sax")
    assert [entry.target for entry in listed.entries] == ["gfx942", "gfx1100"] * 2
    assert all(entry.code_bytes for entry in listed.entries)
    assert [e.kernel for e in inventory(out, ["gfx1100"]).entries] == ["saxpy"] * 2
    assert not inventory(out, kernels="nothing").entries


def _archive(*files: tuple[str, bytes]) -> bytes:
    """A System V archive; names of more than 15 characters are in its table."""
    table = b"".join(f"{name}/\n".encode() for name, _ in files if len(name) > 15)
    out, heads = b"!<arch>\n", [("//", table), *files]
    for name, content in heads:
        shown = f"{name}/"
        if name == "//":
            shown = name
        elif len(name) > 15:
            shown = f"/{table.index(name.encode())}"
        head = f"{shown:16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n"
        out += head.encode() + content + b"\n" * (len(content) % 2)
    return out


def test_an_archive_of_code_objects(tmp_path: Path) -> None:
    path = tmp_path / "kernels.a"
    members = ("short.o", _hsaco("gfx942")), ("a_name_of_many_letters.o", _hsaco("gfx1100"))
    path.write_bytes(_archive(("notes.txt", b"odd"), *members, ("bad.o", b"\x7fELF")))
    assert [code.target for code in load(path)] == ["gfx942", "gfx1100"]
    entries = inventory(path).entries
    assert [entry.archived for entry in entries] == ["short.o", "a_name_of_many_letters.o"]
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InputError, match=r"no code for gfx950|truncated"):
        load(path, "gfx950")


def test_code_objects_among_the_data_of_a_program(
    hip_compiler: toolchain.Toolchain, tmp_path: Path
) -> None:
    """Runtimes of other compilers load code objects from arrays, without a section for them."""
    device, source, out = tmp_path / "d.co", tmp_path / "host.s", tmp_path / "host.o"
    device.write_bytes(b"\x7fELF\x02\x01\x01\x40 looks like one" + _hsaco("gfx942") + bytes(9))
    source.write_text(f'.data\n.incbin "{device}"\n.incbin "{device}"\n')
    words = [*hip_compiler.compiler, "-c", "-x", "assembler", "-target", "x86_64-linux-gnu"]
    subprocess.run([*words, str(source), "-o", str(out)], check=True)
    assert [entry.target for entry in inventory(out).entries] == ["gfx942", "gfx942"]
    assert load(out)[0].assembly == elf.load(_hsaco("gfx942"))[0].assembly


def test_only_matching_kernels_are_read() -> None:
    data = _hsaco("gfx942", "program.hip")
    every = elf.load(data)
    assert len(every) > 1
    (chosen,) = elf.load(data, kernels=f"^{every[-1].kernel}$")
    assert (chosen.digest, chosen.assembly) == (every[-1].digest, every[-1].assembly)
    assert elf.load(data, kernels="nothing") == []


def test_processor_numbers_are_those_of_the_assembler(tmp_path: Path) -> None:
    assembler = shutil.which("llvm-mc-22")
    if assembler is None:
        pytest.skip("needs llvm-mc-22")
    known = subprocess.run(
        [assembler, "-triple=amdgcn-amd-amdhsa", "-mcpu=help"],
        input="",
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    for processor in elf_file.PROCESSORS.values():
        if f"  {processor} " not in known:
            continue
        out = tmp_path / f"{processor}.o"
        words = [assembler, "-triple=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-filetype=obj"]
        subprocess.run([*words, "-o", str(out)], input="s_endpgm\n", text=True, check=True)
        assert elf_file.processor(elf_file.read(out.read_bytes())) == processor


def _generic(target: str, generic: str) -> bytes:
    """A code object whose flags name a generic target."""
    machine = next(number for number, name in elf_file.PROCESSORS.items() if name == generic)
    data = bytearray(_hsaco(target))
    data[0x30] = machine
    return bytes(data)


@pytest.mark.parametrize(
    ("built", "generic", "members"),
    [
        ("gfx942", "gfx9-4-generic", ("gfx942", "gfx950")),
        ("gfx1100", "gfx11-generic", ("gfx1100", "gfx1151", "gfx1103")),
        ("gfx1201", "gfx12-generic", ("gfx1201", "gfx1200")),
        ("gfx1250", "gfx12-5-generic", ("gfx1250",)),
    ],
)
def test_code_for_a_generic_target_is_read_for_each_member(
    tmp_path: Path, built: str, generic: str, members: tuple[str, ...]
) -> None:
    data = _generic(built, generic)
    path = tmp_path / "generic.co"
    path.write_bytes(data)
    assert elf.targets(data) == [generic]
    (plain,) = elf.load(_hsaco(built))
    assert [code.target for code in elf.load(data)] == [members[0]]
    for member in members:
        (code,) = elf.load(data, member)
        assert code.target == member
        assert _body(code.assembly, code.kernel) == _body(plain.assembly, code.kernel)
        assert len(inventory(path, targets=[member]).entries) == 1
    with pytest.raises(InputError, match="has no code for gfx90a") as error:
        elf.load(data, "gfx90a")
    assert generic in str(error.value.hint)
