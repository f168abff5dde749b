"""Programs, code objects and launches of the sample report, written by hand."""

from __future__ import annotations

from types import MappingProxyType

from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter
from wavecast.isa.instruction import Decoded, Instruction, SourceLocation
from wavecast.isa.opcode import Opcode
from wavecast.isa.program import Block, Loop, Program

SOURCE_FILE = "/home/user/matmul.py"
LIBRARY_FILE = "/opt/python/triton/language/standard.py"
MATMUL_SOURCE = '''\
@triton.jit
def matmul_kernel(a, b, c, M, N, K, stride_am, stride_bk, stride_cm,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A @ B, one tile of C per program."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BLOCK_N)
    rows = (pid // tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (pid % tiles) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    left = a + rows[:, None] * stride_am + depth[None, :]
    right = b + depth[:, None] * stride_bk + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        x = tl.load(left)
        y = tl.load(right)
        total = tl.dot(x, y, total)
        left += BLOCK_K
        right += BLOCK_K * stride_bk
    out = c + rows[:, None] * stride_cm + columns[None, :]
    tl.store(out, total.to(tl.bfloat16), mask=(rows[:, None] < M) & (columns[None, :] < N))
'''
SOFTMAX_SOURCE = """\
@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + offsets, mask=offsets < n, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * n + offsets, values / tl.sum(values, 0), mask=offsets < n)
"""
MATMUL_LINE = 10
SOFTMAX_LINE = 40

_OPCODE = Opcode(
    name="sample",
    form="VOP3",
    operands=(),
    implicit_reads=(),
    implicit_writes=(),
    cost_class="valu",
    flops=0.0,
    mnemonics=MappingProxyType({}),
)

# (source line relative to the kernel, assembly); "name:" starts a block.
_MATMUL = [
    (4, "s_load_dwordx8 s[4:11], s[0:1], 0x0"),
    (4, "v_and_b32_e32 v1, 63, v0"),
    (6, "v_lshrrev_b32_e32 v2, 3, v1"),
    (7, "v_lshl_or_b32 v3, v2, 4, v1"),
    (9, "v_mul_lo_u32 v4, v2, s8"),
    (10, "v_mul_lo_u32 v5, v3, s9"),
    (10, "s_waitcnt lgkmcnt(0)"),
    (11, "v_accvgpr_write_b32 a0, 0"),
    (0, ".LBB0_1:"),
    (13, "buffer_load_dwordx4 v[16:19], v4, s[4:7], 0 offen"),
    (13, "buffer_load_dwordx4 v[20:23], v4, s[4:7], 0 offen offset:16"),
    (14, "buffer_load_ushort v24, v5, s[8:11], 0 offen"),
    (14, "buffer_load_ushort v25, v5, s[8:11], 0 offen offset:2"),
    (13, "s_waitcnt vmcnt(0)"),
    (13, "ds_write_b128 v6, v[16:19]"),
    (14, "ds_write_b16 v7, v24"),
    (15, "s_waitcnt lgkmcnt(0)"),
    (15, "s_barrier"),
    (15, "ds_read_b128 v[32:35], v8"),
    (15, "ds_read_b128 v[36:39], v9 offset:512"),
    (15, "s_waitcnt lgkmcnt(0)"),
    (15, "v_mfma_f32_32x32x8_bf16_1k a[0:15], v[32:33], v[36:37], a[0:15]"),
    (15, "v_mfma_f32_32x32x8_bf16_1k a[0:15], v[34:35], v[38:39], a[0:15]"),
    (15, "v_mfma_f32_32x32x8_bf16_1k a[16:31], v[32:33], v[38:39], a[16:31]"),
    (15, "v_mfma_f32_32x32x8_bf16_1k a[16:31], v[34:35], v[36:37], a[16:31]"),
    (16, "v_add_u32_e32 v4, 64, v4"),
    (17, "v_add_u32_e32 v5, s12, v5"),
    (12, "s_add_i32 s13, s13, -1"),
    (12, "s_cmp_lg_u32 s13, 0"),
    (12, "s_cbranch_scc1 .LBB0_1"),
    (0, ".LBB0_2:"),
    (19, "v_accvgpr_read_b32 v40, a0"),
    (19, "v_cvt_pk_bf16_f32 v41, v40, v42"),
    (18, "v_mul_lo_u32 v43, v2, s14"),
    (19, "v_cmp_gt_i32_e32 vcc, s10, v2"),
    (19, "s_and_saveexec_b64 s[2:3], vcc"),
    (19, "buffer_store_dwordx4 v[44:47], v43, s[4:7], 0 offen"),
    (19, "s_endpgm"),
]
_SOFTMAX = [
    (4, "s_load_dwordx4 s[4:7], s[0:1], 0x0"),
    (3, "v_lshlrev_b32_e32 v1, 4, v0"),
    (4, "buffer_load_dwordx4 v[2:5], v1, s[4:7], 0 offen"),
    (4, "s_waitcnt vmcnt(0)"),
    (5, "v_max3_f32 v6, v2, v3, v4"),
    (5, "ds_bpermute_b32 v7, v8, v6"),
    (5, "v_exp_f32_e32 v2, v2"),
    (6, "v_rcp_f32_e32 v9, v10"),
    (6, "buffer_store_dwordx4 v[2:5], v1, s[8:11], 0 offen"),
    (6, "s_endpgm"),
]
_SASS = """\
        .section .text.matmul_kernel,"ax",@progbits
matmul_kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        //## File "/home/user/matmul.py", line 14
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/                   ULDC.64 UR4, c[0x0][0x208] ;
        //## File "/home/user/matmul.py", line 23
.L_x_0:
        /*0030*/                   LDG.E.128 R4, [R2.64] ;
        //## File "/home/user/matmul.py", line 25
        /*0040*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0050*/               @P0 BRA `(.L_x_0) ;
        //## File "/home/user/matmul.py", line 29
        /*0060*/                   STG.E.128 [R6.64], R8 ;
        /*0070*/                   EXIT ;
"""


def at(line: int, file: str = SOURCE_FILE, column: int = 8) -> SourceLocation:
    """A line of the sample's source file."""
    return SourceLocation(file, line, column)


def _location(first: int, relative: int, text: str) -> SourceLocation | None:
    if text == "s_barrier":
        return None
    own = at(first + relative)
    if "max3" in text or "bpermute" in text:
        return SourceLocation(LIBRARY_FILE, 168, 12, own)
    return own


def _program(name: str, target: str, first: int, rows: list[tuple[int, str]]) -> Program:
    instructions: list[Instruction] = []
    starts: list[tuple[str, int]] = [(name, 0)]
    for line, (relative, text) in enumerate(rows, 1):
        if text.endswith(":"):
            starts.append((text[:-1], len(instructions)))
            continue
        mnemonic = text.split(" ", 1)[0]
        decoded = Decoded(text, _OPCODE, mnemonic, "", (), {}, 0, 0, 0)
        location = _location(first, relative, text)
        instructions.append(Instruction(decoded, len(instructions), line, location))
    stops = [start for _, start in starts[1:]] + [len(instructions)]
    looped = len(starts) > 1
    successors = {0: (1,), 1: (1, 2), 2: ()} if looped else {0: ()}
    predecessors = {0: (), 1: (0, 1), 2: (1,)} if looped else {0: ()}
    blocks = tuple(
        Block(i, label, start, stop, successors[i], predecessors[i])
        for i, ((label, start), stop) in enumerate(zip(starts, stops, strict=True))
    )
    loops = (Loop(0, 1, (1,), frozenset({1}), 1, None, (), at(first + 12)),) if looped else ()
    return Program(
        name=name,
        target=target,
        instructions=tuple(instructions),
        blocks=blocks,
        immediate_dominators=tuple(i - 1 for i in range(len(blocks))),
        loops=loops,
        reverse_postorder=tuple(range(len(blocks))),
        innermost_loop=(None, 0, None) if looped else (None,),
    )


def matmul_program(target: str, name: str = "matmul_kernel") -> Program:
    """37 instructions: a prologue, one loop, an epilogue."""
    return _program(name, target, MATMUL_LINE, _MATMUL)


def softmax_program(target: str) -> Program:
    """Ten instructions without a loop, two inlined from a library."""
    return _program("softmax_kernel", target, SOFTMAX_LINE, _SOFTMAX)


def code(kernel: str, target: str, program: Program | None) -> CodeObject:
    """A Triton code object; SASS stands in for NVIDIA targets."""
    matmul = kernel != "softmax_kernel"
    if program is None:
        stages: dict[str, str | bytes] = {"sass": _SASS if matmul else ""}
    else:
        stages = {"amdgcn": "\n".join(i.decoded.text for i in program.instructions)}
    return CodeObject(
        kernel=kernel,
        target=target,
        origin="triton",
        stages=MappingProxyType(stages),
        parameters=(
            Parameter("a", "*bf16", 0, 8, None, ("divisibility=16", "pointer_range=32")),
            Parameter("n", "i32", 8, 4),
            Parameter("BLOCK_M", "constexpr", None, None, 128),
        ),
        options={"num_warps": 4, "num_stages": 2, "arch": target, "unset": None},
        workgroup_size=256,
        dynamic_lds=32768 if matmul else 0,
        source=SOURCE_FILE,
        source_line=MATMUL_LINE if matmul else SOFTMAX_LINE,
        source_text=MATMUL_SOURCE if matmul else SOFTMAX_SOURCE,
        compiler="triton 3.9.0",
        digest=f"{kernel}-{target}",
    )


def launch(compiled: CodeObject) -> Launch:
    """A launch over a 4096-cubed product, or over 1024 rows."""
    if compiled.kernel == "softmax_kernel":
        arguments = (Argument("x", "tensor", "float32", (1024, 781), (781, 1), 3198976, 1),)
        return Launch(compiled, (1024, 1, 1), (256, 1, 1), arguments, count=3)
    arguments = (
        Argument("a", "tensor", "bfloat16", (4096, 4096), (4096, 1), 33554432, 1),
        Argument("b", "tensor", "bfloat16", (4096, 4096), (4096, 1), 33554432, 2),
        Argument("c", "tensor", "bfloat16", (4096, 4096), (4096, 1), 33554432, 3),
        Argument("n", "scalar", "i32", value=4096),
        Argument("scale", "scalar", value=float("inf")),
    )
    return Launch(compiled, (1024, 1, 1), (256, 1, 1), arguments, dynamic_lds=32768)
