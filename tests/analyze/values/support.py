"""Small kernels to evaluate: a body of assembly, its arguments and a launch."""

from __future__ import annotations

from dataclasses import dataclass, field

from wavecast import isa
from wavecast.analyze import values
from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter
from wavecast.isa.program import KernelArgument, KernelDescriptor, Program

KERNARG_ONLY = {"user_sgpr_kernarg_segment_ptr": 1, "user_sgpr_count": 2}
"""The argument segment's address in s[0:1], workgroup ids from s2 on (gfx9, gfx11)."""

BASE = 0x10_0000_0000
"""Where the first tensor lies; the n-th lies n * 4 GiB behind."""

STEP = 1 << 32


@dataclass
class Kernel:
    """A kernel `k`: `pointers` and `scalars` (32 bits) are its arguments, in that order."""

    body: str
    target: str = "gfx942"
    lanes: int = 64
    pointers: tuple[str, ...] = ()
    scalars: dict[str, int] = field(default_factory=dict)
    threads: int = 64
    scratch: int = 0
    directives: dict[str, int] = field(default_factory=lambda: dict(KERNARG_ONLY))
    hidden: tuple[KernelArgument, ...] = ()

    @property
    def program(self) -> Program:
        text = f"\t.text\n\t.type k,@function\nk:\n{self.body}\n\ts_endpgm\n.Lfunc_end0:\n"
        module = isa.parse(text, self.target, wave_lanes=self.lanes)
        return module.functions["k"]

    @property
    def descriptor(self) -> KernelDescriptor:
        return KernelDescriptor(
            vgprs=32,
            agprs=0,
            sgprs=32,
            lds_bytes=0,
            scratch_bytes=self.scratch,
            vgpr_spills=0,
            sgpr_spills=0,
            wave_size=self.lanes,
            max_workgroup_size=self.threads,
            kernarg_bytes=64,
            arguments=self.hidden,
            directives=self.directives,
        )

    @property
    def code(self) -> CodeObject:
        parameters = [
            Parameter(name, "*f32", 8 * index, 8) for index, name in enumerate(self.pointers)
        ]
        start = 8 * len(self.pointers)
        parameters += [
            Parameter(name, "i32", start + 4 * index, 4) for index, name in enumerate(self.scalars)
        ]
        return CodeObject(
            "k", self.target, "assembly", {}, tuple(parameters), {}, self.threads, 0,
            "", 0, "", "", "",
        )  # fmt: skip

    def launch(self, grid: tuple[int, int, int] = (1, 1, 1)) -> Launch:
        data = b"".join(
            (BASE + index * STEP).to_bytes(8, "little") for index in range(len(self.pointers))
        )
        data += b"".join(
            (value & 0xFFFFFFFF).to_bytes(4, "little") for value in self.scalars.values()
        )
        arguments = tuple(
            Argument(name, "tensor", "float32", (1,), (1,), 4, BASE + index * STEP)
            for index, name in enumerate(self.pointers)
        )
        return Launch(self.code, grid, (self.threads, 1, 1), arguments, data)

    def evaluate(self, grid: tuple[int, int, int] | None = (1, 1, 1)) -> values.Values:
        """Evaluate a launch on `grid`; None evaluates the kernel without a launch."""
        launch = self.launch(grid) if grid is not None else None
        return values.evaluate(self.program, self.descriptor, self.code, launch)

    def access(
        self, text: str, grid: tuple[int, int, int] | None = (1, 1, 1)
    ) -> values.AddressPattern:
        """The access of the first instruction whose text starts with `text`."""
        found = self.evaluate(grid)
        for instruction in self.program.instructions:
            if instruction.decoded.text.startswith(text):
                access = found.memory(instruction.index)
                assert access is not None
                return access
        raise AssertionError(text)
