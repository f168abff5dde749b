"""What is fuzzed: for every kind of input, where cases come from and what reads them."""

from __future__ import annotations

import io
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz import mutate, shapes
from tests.fuzz.execution import execute
from wavecast import isa
from wavecast.errors import WavecastError
from wavecast.pipeline import SourceOptions, explain_path, select

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "compile" / "data"
_GRIDS = (None, (1, 1, 1), (7, 3, 1), (2**31 - 1, 65535, 65535))
_BLOCKS = (None, (1, 1, 1), (64, 1, 1), (1024, 1, 1), (2**30, 4, 1))


@dataclass(frozen=True, slots=True)
class Kind:
    """`make` gives a damaged input for a seed, `read` is what must not crash on it.

    `suffix` names the file the input is written to when it is kept.
    """

    suffix: str
    make: Callable[[random.Random], bytes]
    read: Callable[[bytes, random.Random], None]


class Seeds:
    """Undamaged inputs: those of the tests, and those of a folder the user names."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @cache  # noqa: B019 - one object per process
    def of(self, *suffixes: str) -> tuple[bytes, ...]:
        """The contents of every seed file with one of these suffixes."""
        paths = [path for path in sorted(DATA.iterdir()) if path.suffix in suffixes]
        if self._folder is not None:
            paths += [p for p in sorted(self._folder.iterdir()) if p.suffix in suffixes]
        return tuple(path.read_bytes() for path in paths)

    @cache  # noqa: B019
    def assembly(self) -> tuple[str, ...]:
        """Assembly texts; large ones are left to the folder's owner."""
        named = tuple(data.decode() for data in self.of(".s", ".amdgcn") if len(data) < 400_000)
        return (*named, *shapes.FIXED.values(), shapes.nested_loops(4))

    @cache  # noqa: B019
    def objects(self) -> tuple[bytes, ...]:
        """Code objects: of the folder, else assembled by llvm-mc from the texts."""
        from tests.corpus import roundtrip

        found = self.of(".hsaco", ".co")
        if found:
            return found
        program = roundtrip.llvm_mc()
        if program is None:
            return ()
        return tuple(_assembled(program, text) for text in self.of(".s"))


def _assembled(program: str, text: bytes) -> bytes:
    from wavecast.compile import process

    done = process.run(
        [program, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj"], stdin=text
    )
    return done.output


def kinds(seeds: Seeds) -> dict[str, Kind]:
    """Every kind by name."""
    return {
        "parse": Kind(".s", _text_maker(seeds.assembly), _parse),
        "assembly": Kind(".s", _text_maker(seeds.assembly), _explain(".s")),
        "shapes": Kind(".s", _shape, _explain(".s")),
        "execution": Kind(".s", _text_maker(seeds.assembly), execute),
        "elf": Kind(
            ".hsaco",
            lambda rng: mutate.binary(rng, rng.choice(seeds.objects())),
            _explain(".hsaco"),
        ),
        "hip": Kind(".hip", _text_maker(lambda: _decoded(seeds.of(".hip"))), _explain(".hip")),
        "ptx": Kind(".ptx", _text_maker(lambda: _decoded(seeds.of(".ptx"))), _explain(".ptx")),
        "arch-file": Kind(".toml", _text_maker(_arch_files), _arch_file),
        "settings": Kind(".toml", _text_maker(lambda: _SETTINGS), _settings),
    }


def _decoded(contents: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(content.decode("utf-8", "replace") for content in contents)


def _text_maker(texts: Callable[[], Sequence[str]]) -> Callable[[random.Random], bytes]:
    def make(rng: random.Random) -> bytes:
        return mutate.text(rng, rng.choice(texts())).encode("utf-8", "surrogatepass")

    return make


def _shape(rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        return shapes.nested_loops(rng.randint(1, 40)).encode()
    if kind == 1:
        return shapes.counted_loops(rng, rng.randint(1, 5), rng.randint(0, 20)).encode()
    return shapes.random_flow(rng, rng.randint(1, 60), rng.randint(0, 8)).encode()


def _parse(data: bytes, rng: random.Random) -> None:
    target = rng.choice(("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"))
    module = isa.parse(data.decode("utf-8", "replace"), target, file="case.s")
    for kernel in module.kernels.values():
        isa.liveness(kernel.program)


_DEVICES = {
    ".s": ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"),
    ".hsaco": ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"),
    ".hip": ("gfx942",),
    ".ptx": ("sm_90",),
}


def _explain(suffix: str) -> Callable[[bytes, random.Random], None]:
    def read(data: bytes, rng: random.Random) -> None:
        from rich.console import Console

        from wavecast.report.explain import html, json, sarif, terminal
        from wavecast.rules import all_rules

        text = data.decode("latin-1")
        named = [target for target in _DEVICES[suffix] if target in text]
        selection = select([named[0] if named else rng.choice(_DEVICES[suffix])])
        options = SourceOptions(
            grid=rng.choice(_GRIDS),
            block=rng.choice(_BLOCKS),
            dynamic_lds=rng.choice((0, 1, 1 << 40)),
        )
        with tempfile.TemporaryDirectory(prefix="wavecast-fuzz-") as folder:
            path = Path(folder) / f"case{suffix}"
            path.write_bytes(data)
            report = explain_path(path, selection, options)
        json.document(report)
        sarif.document(report, all_rules())
        html.render(report)
        terminal.render(report, Console(file=io.StringIO(), width=100), detail="full")

    return read


def _arch_files() -> tuple[str, ...]:
    return _OVERLAYS


def _arch_file(data: bytes, rng: random.Random) -> None:
    with tempfile.TemporaryDirectory(prefix="wavecast-fuzz-") as folder:
        path = Path(folder) / "chip.toml"
        path.write_bytes(data)
        name = rng.choice(("chip", "mi300x", "gfx942", "rx7900xtx"))
        selection = select([name], [path])
        code = Path(folder) / "copy.s"
        code.write_text((DATA / "saxpy.gfx942.s").read_text())
        explain_path(code, selection, SourceOptions(grid=(64, 1, 1), block=(256, 1, 1)))


def _settings(data: bytes, rng: random.Random) -> None:
    del rng
    from wavecast.cli.settings import default_map

    with tempfile.TemporaryDirectory(prefix="wavecast-fuzz-") as folder:
        (Path(folder) / "pyproject.toml").write_bytes(data)
        default_map(Path(folder))


_OVERLAYS = (
    'device = "mi300x"\n[fields]\npeak_clock = 1200\ncu = 152\n'
    'mem_bw = { value = 6, unit = "TB/s", note = "HBM4" }\nlds_per_cu = 65536\n',
    'id = "chip"\nbase = "mi300x"\nname = "A Chip"\naliases = ["chippy", "x1"]\n'
    '[fields]\ncu = 320\npeak_clock = { value = 3, unit = "GHz", source = "a slide" }\n',
    'id = "chip"\nname = "Bare"\nvendor = "amd"\ntarget = "gfx942"\ngeneration = "cdna3"\n',
    'id = "chip"\nbase = "h100"\n[memory]\nmem_bw = { value = 0, unit = "TB/s" }\n',
)
_SETTINGS = (
    '[project]\nname = "x"\n[tool.wavecast]\narch = "gfx942,gfx1100"\nformat = "json"\n'
    '[tool.wavecast.explain]\ntimeout = 3\ndisable = ["a", "b"]\nfail-on = "error"\n',
    '[tool.wavecast]\narch = ["gfx942", "sm_90"]\ndetail = "full"\n',
)


@contextmanager
def quiet_environment() -> Iterator[None]:
    """A cache of its own, gone afterwards."""
    before: Mapping[str, str | None] = {"WAVECAST_CACHE_DIR": os.environ.get("WAVECAST_CACHE_DIR")}
    with tempfile.TemporaryDirectory(prefix="wavecast-fuzz-cache-") as folder:
        os.environ["WAVECAST_CACHE_DIR"] = folder
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def outcome(kind: Kind, data: bytes, seed: str) -> str:
    """`result`, `refused`; anything but a WavecastError is raised on."""
    try:
        kind.read(data, random.Random(f"{seed} read"))
    except WavecastError as error:
        str(error)
        return "refused"
    return "result"
