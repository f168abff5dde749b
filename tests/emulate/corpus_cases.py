"""Inputs and torch references for the kernels of the shared corpus, odd sizes and masks included.

A case is a function of (kernels, torch) that launches and returns (name, got, expected) triples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

Triples = list[tuple[str, Any, Any]]
Case = Callable[[Any, Any], Triples]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def register(function: Case) -> Case:
        CASES[name] = function
        return function

    return register


def _gemm(k: Any, torch: Any, dtype: Any, m: int, n: int, depth: int, **tiles: int) -> Triples:
    import triton.language as tl

    out = torch.int32 if dtype is torch.int8 else torch.float32
    if dtype is torch.int8:
        a = torch.randint(-9, 9, (m, depth), dtype=dtype)
        b = torch.randint(-9, 9, (depth, n), dtype=dtype)
        want = a.to(torch.int32) @ b.to(torch.int32)
    else:
        a = torch.randn(m, depth).to(dtype)
        b = torch.randn(depth, n).to(dtype)
        want = a.float() @ b.float()
    c = torch.full((m, n), 7, dtype=out)
    bm, bn, bk = tiles.get("bm", 64), tiles.get("bn", 64), tiles.get("bk", 32)
    grid = (-(-m // bm) * -(-n // bn),)
    acc = tl.int32 if dtype is torch.int8 else tl.float32
    k.gemm[grid](
        a, b, c, m, n, depth, *a.stride(), *b.stride(), *c.stride(), BM=bm, BN=bn, BK=bk, GM=4,
        ACC=acc,
    )  # fmt: skip
    # float32 products may be of reduced precision (xf32, TF32)
    return [("c_short" if dtype is torch.float32 else "c", c, want)]


for _name in ("bfloat16", "float16", "float32", "int8"):

    def _run(k: Any, torch: Any, name: str = _name) -> Triples:
        return _gemm(k, torch, getattr(torch, name), 100, 130, 96 if name != "int8" else 128)

    CASES[f"gemm_{_name}"] = _run


@case("fa_fwd")
def fa_fwd(k: Any, torch: Any) -> Triples:
    found = []
    for causal in (False, True):
        q, key, v = (torch.randn(1, 2, 100, 64).to(torch.bfloat16) for _ in range(3))
        o = torch.zeros(1, 2, 100, 64, dtype=torch.bfloat16)
        lse = torch.zeros(2, 100)
        scale = 0.125
        k.fa_fwd[(2, 2)](
            q, key, v, o, lse, scale, q.stride(0), q.stride(1), q.stride(2), 2, 100,
            CAUSAL=causal, BM=64, BN=32, D=64,
        )  # fmt: skip
        scores = q.float() @ key.float().transpose(-1, -2) * scale
        if causal:
            later = torch.ones(100, 100, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        want = torch.softmax(scores, -1) @ v.float()
        found.append((f"o causal={causal}", o, want))
    return found


@case("fa_bwd")
def fa_bwd(k: Any, torch: Any) -> Triples:
    shape, scale = (1, 2, 64, 32), 0.2
    q, key, v, do = (torch.randn(shape).to(torch.bfloat16) for _ in range(4))
    wide = [t.float().requires_grad_() for t in (q, key, v)]
    scores = wide[0] @ wide[1].transpose(-1, -2) * scale
    scores = scores.masked_fill(torch.ones(64, 64, dtype=torch.bool).triu(1), -math.inf)
    o = torch.softmax(scores, -1) @ wide[2]
    o.backward(do.float())
    lse = torch.logsumexp(scores, -1).detach() * 1.44269504
    delta = (o * do.float()).sum(-1).detach().contiguous()
    dq = torch.zeros(shape)
    dk, dv = torch.zeros(shape), torch.zeros(shape)
    k.fa_bwd[(2, 2)](
        q, key, v, do, lse.contiguous(), delta, dq, dk, dv, scale, *q.stride()[:3], 2, 64,
        BM=32, BN=32, D=32,
    )  # fmt: skip
    got = {"bf16 dq": dq, "bf16 dk": dk, "bf16 dv": dv}
    return [(name, value, w.grad) for (name, value), w in zip(got.items(), wide, strict=True)]


@case("mxdot")
def mxdot(k: Any, torch: Any) -> Triples:
    m, n, depth = 64, 64, 128
    a, b = (torch.randint(0, 256, (rows, depth // 2), dtype=torch.uint8) for rows in (m, n))
    sa, sb = (torch.randint(122, 132, (rows, depth // 32), dtype=torch.uint8) for rows in (m, n))
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])

    def wide(packed: Any, scales: Any) -> Any:
        codes = torch.stack([packed & 15, packed >> 4], -1).flatten(1).long()
        numbers = values[codes & 7] * torch.where(codes >= 8, -1.0, 1.0)
        return numbers * torch.exp2(scales.float() - 127).repeat_interleave(32, 1)

    c, columns = torch.zeros(m, n), b.T.contiguous()
    k.mxdot[(1, 1)](
        a, sa, columns, sb, c, m, n, depth, depth // 2, n, 1, depth // 32, depth // 32, n,
        BM=64, BN=64, BK=128, AT="e2m1", BT="e2m1", PA=2, PB=2,
    )  # fmt: skip
    return [("c", c, wide(a, sa) @ wide(b, sb).T)]


@case("paged_decode")
def paged_decode(k: Any, torch: Any) -> Triples:
    blocks, heads, group, d, page = 8, 2, 16, 64, 16
    kc, vc = (torch.randn(blocks, heads, page, d).to(torch.bfloat16) for _ in range(2))
    q = torch.randn(2, heads, group, d).to(torch.bfloat16)
    o = torch.zeros_like(q)
    bt = torch.tensor([[1, 3, 5, 0], [2, 4, 6, 7]], dtype=torch.int32)
    lengths = torch.tensor([41, 64], dtype=torch.int32)
    k.paged_decode[(2, heads)](
        q, kc, vc, o, bt, lengths, 0.125, 4, kc.stride(0), kc.stride(1), heads, G=group, D=d,
        PB=page,
    )  # fmt: skip
    want = torch.zeros(2, heads, group, d)
    for b in range(2):
        n = int(lengths[b])
        keys = kc[bt[b].long()].float().permute(1, 0, 2, 3).reshape(heads, -1, d)[:, :n]
        values = vc[bt[b].long()].float().permute(1, 0, 2, 3).reshape(heads, -1, d)[:, :n]
        p = torch.softmax(q[b].float() @ keys.transpose(-1, -2) * 0.125, -1)
        want[b] = p @ values
    return [("o", o, want)]


@case("softmax")
def softmax(k: Any, torch: Any) -> Triples:
    x = torch.randn(5, 777)
    y = torch.zeros_like(x)
    k.softmax[(5,)](x, y, 777, 777, B=1024)
    return [("y", y, torch.softmax(x, -1))]


@case("layernorm")
def layernorm(k: Any, torch: Any) -> Triples:
    x, w, b = torch.randn(4, 1000), torch.randn(1000), torch.randn(1000)
    y, mean, rstd = torch.zeros_like(x), torch.zeros(4), torch.zeros(4)
    k.layernorm[(4,)](x, w, b, y, mean, rstd, 1000, 1000, 1e-5, B=256)
    want = torch.nn.functional.layer_norm(x, (1000,), w, b, 1e-5)
    return [("y", y, want), ("mean", mean, x.mean(-1))]


@case("rmsnorm_add")
def rmsnorm_add(k: Any, torch: Any) -> Triples:
    x, res = (torch.randn(3, 500).to(torch.bfloat16) for _ in range(2))
    w = torch.randn(500).to(torch.bfloat16)
    y, total = torch.zeros_like(x), x.float() + res.float()
    k.rmsnorm_add[(3,)](x, res, w, y, 500, 500, 1e-6, B=512)
    norm = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6)
    return [("res", res, total), ("y", y, total * norm * w.float())]


@case("rope")
def rope(k: Any, torch: Any) -> Triples:
    heads, half, tokens = 3, 32, 5
    x = torch.randn(tokens, heads, 2 * half)
    before = x.clone()
    pos = torch.arange(tokens, dtype=torch.int32) * 7
    k.rope[(tokens,)](x, pos, heads, D2=half, BH=4, base=10000.0)
    f = torch.exp2(-(torch.arange(half) / half) * math.log2(10000.0))
    a = pos.float()[:, None, None] * f
    c, s = torch.cos(a), torch.sin(a)
    x0, x1 = before[..., :half], before[..., half:]
    return [("x", x, torch.cat([x0 * c - x1 * s, x1 * c + x0 * s], -1))]


@case("silu_mul")
def silu_mul(k: Any, torch: Any) -> Triples:
    x = torch.randn(3, 600).to(torch.float16)
    y = torch.zeros(3, 300, dtype=torch.float16)
    k.silu_mul[(3, 3)](x, y, 300, B=128)
    g, u = x.float().chunk(2, -1)
    return [("y", y, torch.nn.functional.silu(g) * u)]


@case("gelu_erf")
def gelu_erf(k: Any, torch: Any) -> Triples:
    x = torch.randn(1000)
    y = torch.zeros_like(x)
    k.gelu_erf[(4,)](x, y, 1000, B=256)
    return [("y", y, torch.nn.functional.gelu(x))]


@case("fused_moe")
def fused_moe(k: Any, torch: Any) -> Triples:
    tokens, top, experts, n, depth, bm = 10, 2, 3, 70, 64, 16
    a = torch.randn(tokens, depth).to(torch.bfloat16)
    b = torch.randn(experts, depth, n).to(torch.bfloat16)
    ids = torch.randint(0, experts, (tokens * top,))
    weights = torch.rand(tokens * top)
    rows, owner = [], []
    for e in range(experts):
        mine = [i for i in range(tokens * top) if int(ids[i]) == e]
        mine += [tokens * top] * (-len(mine) % bm)
        rows += mine
        owner += [e] * (len(mine) // bm)
    sid = torch.tensor(rows, dtype=torch.int32)
    eid = torch.tensor(owner, dtype=torch.int32)
    npost = torch.tensor([len(rows)], dtype=torch.int32)
    c = torch.zeros(tokens * top, n)
    k.fused_moe[(len(owner) * -(-n // 32),)](
        a, b, c, weights, sid, eid, npost, n, depth, len(rows), tokens * top, *a.stride(),
        *b.stride(), *c.stride(), BM=bm, BN=32, BK=32, GM=2, TOPK=top,
    )  # fmt: skip
    want = torch.stack(
        [(a[i // top].float() @ b[int(ids[i])].float()) * weights[i] for i in range(tokens * top)]
    )
    return [("c", c, want)]


@case("conv_igemm")
def conv_igemm(k: Any, torch: Any) -> Triples:
    x, w = torch.randn(1, 5, 9, 11), torch.randn(12, 5, 3, 3)
    xh, wh = x.to(torch.float16), w.to(torch.float16)
    y = torch.zeros(1, 12, 9, 11)
    k.conv_igemm[(7, 1)](
        xh, wh, y, 1, 5, 9, 11, 12, 9, 11, R=3, S=3, st=1, pad=1, BM=16, BN=16, BK=32
    )
    return [("y", y, torch.nn.functional.conv2d(xh.float(), wh.float(), padding=1))]


@case("atomics")
def atomics(k: Any, torch: Any) -> Triples:
    n = 600
    x = torch.randint(-20, 20, (n,)).float()
    idx = torch.randint(0, 16, (n,), dtype=torch.int32)
    f, mx, mn = torch.zeros(n), torch.full((n,), -99.0), torch.full((n,), 99, dtype=torch.int32)
    i, cas = torch.zeros(5 * n, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    k.atomics[(3,)](x, idx, f, i, mx, mn, cas, n, B=256)
    sums = torch.zeros(n).index_add_(0, idx.long(), x)
    counts = torch.zeros(n, dtype=torch.int32).index_add_(
        0, idx.long(), torch.ones(n, dtype=torch.int32)
    )
    most = torch.full((n,), -99.0).scatter_reduce_(0, idx.long(), x, "amax")
    least = torch.where(counts > 0, 0, 99).to(torch.int32)
    return [
        ("sum", f, sums), ("count", i[:n], counts), ("max", mx, most), ("min", mn, least),
        ("lock", cas, torch.tensor([0, 3], dtype=torch.int32)),
    ]  # fmt: skip


@case("atomics16")
def atomics16(k: Any, torch: Any) -> Triples:
    x = torch.randint(-4, 4, (300,)).to(torch.float16)
    idx = torch.randint(0, 16, (300,), dtype=torch.int32)
    f = torch.zeros(16, dtype=torch.float16)
    k.atomics16[(2,)](x, idx, f, 300, B=256)
    return [("sum", f, torch.zeros(16).index_add_(0, idx.long(), x.float()))]


@case("sort")
def sort(k: Any, torch: Any) -> Triples:
    x = torch.randn(3, 200)
    y = torch.zeros_like(x)
    k.sortk[(3,)](x, y, 200, B=256)
    return [("y", y, torch.sort(x, -1).values)]


@case("topk")
def topk(k: Any, torch: Any) -> Triples:
    x = torch.randn(3, 200)
    y = torch.zeros(3, 8)
    k.topk_[(3,)](x, y, 200, B=256, K=8)
    return [("y", y, torch.topk(x, 8, -1).values)]


@case("scan")
def scan(k: Any, torch: Any) -> Triples:
    x, a = torch.randn(4, 100), torch.rand(4, 100)
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    k.scank[(2,)](x, a, y, z, 100, B=128, R=2)
    h, rows = torch.zeros(4), []
    for t in range(100):
        h = h * a[:, t] + x[:, t]
        rows.append(h)
    return [("y", y, torch.cumsum(x, 1)), ("z", z, torch.stack(rows, 1))]


@case("histogram")
def histogram(k: Any, torch: Any) -> Triples:
    x = torch.randint(0, 32, (512,), dtype=torch.int32)
    h = torch.zeros(32, dtype=torch.int32)
    k.histo[(2,)](x, h, 512, B=256, NB=32)
    return [("h", h, torch.bincount(x, minlength=32).int())]


@case("argmax")
def argmax(k: Any, torch: Any) -> Triples:
    x = torch.randn(3, 200)
    y = torch.zeros(3, dtype=torch.int32)
    k.argmaxk[(3,)](x, y, 200, B=256)
    return [("y", y, x.argmax(-1).int())]


@case("rand")
def rand(k: Any, torch: Any) -> Triples:
    """No reference of its own: uniform in range, normal of the right moments."""
    y, z = torch.full((2000,), 9.0), torch.full((2000,), 9.0)
    k.randk[(8,)](y, z, 123, 2000, B=256)
    ok = torch.tensor([
        bool((y >= 0).all() and (y < 1).all()), abs(float(y.mean()) - 0.5) < 0.05,
        abs(float(z.mean())) < 0.1, abs(float(z.std()) - 1) < 0.1,
    ])  # fmt: skip
    return [("moments", ok, torch.ones(4, dtype=torch.bool))]


@case("dropout")
def dropout(k: Any, torch: Any) -> Triples:
    x = torch.rand(2000) + 1
    y = torch.zeros_like(x)
    k.dropout[(8,)](x, y, 5, 0.25, 2000, B=256)
    kept = y != 0
    share = abs(float(kept.float().mean()) - 0.75) < 0.05
    return [("y", y, torch.where(kept, x / 0.75, 0.0)),
            ("share", torch.tensor(share), torch.tensor(True))]  # fmt: skip


@case("fp8quant")
def fp8quant(k: Any, torch: Any) -> Triples:
    x = torch.randn(3, 200)
    y = torch.zeros(3, 200, dtype=torch.float8_e5m2)
    s = torch.zeros(3)
    k.fp8quant[(3,)](x, y, s, 200, 200, B=256, MAXV=57344.0)
    scale = x.abs().amax(-1) / 57344.0
    want = (x / scale[:, None]).to(torch.float8_e5m2)
    return [("s", s, scale), ("y", y.float() * s[:, None], want.float() * scale[:, None])]


@case("int8quant")
def int8quant(k: Any, torch: Any) -> Triples:
    x = torch.randn(3, 200)
    y, s = torch.zeros(3, 200, dtype=torch.int8), torch.zeros(3)
    k.int8quant[(3,)](x, y, s, 200, 200, B=256)
    scale = x.abs().amax(-1) / 127
    want = (x / scale[:, None] + torch.where(x >= 0, 0.5, -0.5)).to(torch.int8)
    return [("s", s, scale), ("y", y, want)]


@case("w4a16")
def w4a16(k: Any, torch: Any) -> Triples:
    m, n, depth = 32, 32, 64
    a = torch.randn(m, depth).to(torch.float16)
    b = torch.randint(-(2**31), 2**31 - 1, (depth // 8, n), dtype=torch.int32)
    sc = torch.rand(2, n)
    c = torch.zeros(m, n)
    k.w4a16[(1, 1)](a, b, sc, c, m, n, depth, depth, n, n, BM=32, BN=32, BK=32)
    shifts = torch.arange(8)[None, :, None] * 4
    w = ((b[:, None, :] >> shifts) & 15).reshape(depth, n) - 8
    w = (w.float() * sc.repeat_interleave(32, 0)).to(torch.float16)
    return [("c", c, a.float() @ w.float())]


@case("xent")
def xent(k: Any, torch: Any) -> Triples:
    x, t = torch.randn(4, 700), torch.randint(0, 700, (4,))
    loss, dx = torch.zeros(4), torch.zeros(4, 700)
    k.xent[(4,)](x, t, loss, dx, 700, 700, B=256)
    want = torch.softmax(x, -1) - torch.nn.functional.one_hot(t, 700)
    return [("loss", loss, torch.nn.functional.cross_entropy(x, t, reduction="none")),
            ("dx", dx, want)]  # fmt: skip


@case("adamw")
def adamw(k: Any, torch: Any) -> Triples:
    p, g, m, v = torch.randn(999), torch.randn(999), torch.randn(999), torch.rand(999)
    mm, vv = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    pp = p - 0.01 * 0.1 * p
    pp = pp - 0.01 * (mm / 0.5) / ((vv / 0.25).sqrt() + 1e-8)
    k.adamw[(4,)](p, g, m, v, 999, 0.01, 0.9, 0.99, 1e-8, 0.1, 0.5, 0.25, B=256)
    return [("p", p, pp), ("m", m, mm), ("v", v, vv)]


@case("embed")
def embed(k: Any, torch: Any) -> Triples:
    w, idx = torch.randn(50, 64), torch.randint(0, 50, (32,), dtype=torch.int32)
    y = torch.zeros(32, 64)
    k.embed[(4,)](w, idx, y, 64, B=8, D=64)
    return [("y", y, w[idx.long()])]


@case("transpose")
def transpose(k: Any, torch: Any) -> Triples:
    x = torch.randn(64, 96).to(torch.float16)
    y = torch.zeros(96, 64, dtype=torch.float16)
    k.transpose[(2, 3)](x, y, 64, 96, B=32)
    return [("y", y, x.T)]


@case("ssm_chunk")
def ssm_chunk(k: Any, torch: Any) -> Triples:
    steps, d, n = 6, 32, 16
    x, dt = torch.randn(1, steps, d), torch.randn(1, steps, d)
    a, b, c = -torch.rand(d, n), torch.randn(1, steps, n), torch.randn(1, steps, n)
    y = torch.zeros(1, steps, d)
    k.ssm_chunk[(1, 2)](x, dt, a, b, c, y, steps, d, N=n, BD=16)
    h, rows = torch.zeros(d, n), []
    for t in range(steps):
        dd = torch.nn.functional.softplus(dt[0, t])
        h = torch.exp(dd[:, None] * a) * h + (dd * x[0, t])[:, None] * b[0, t][None]
        rows.append((h * c[0, t]).sum(1))
    return [("y", y, torch.stack(rows)[None])]


@case("f64")
def f64(k: Any, torch: Any) -> Triples:
    x = torch.rand(200, dtype=torch.float64)
    y = torch.zeros_like(x)
    k.f64k[(1,)](x, y, 200, B=256)
    return [("y", y, torch.exp(x) * torch.sqrt(x) / (x + 1) + x.sum())]


@case("i64")
def i64(k: Any, torch: Any) -> Triples:
    x = torch.randint(-(2**40), 2**40, (300,))
    y = torch.zeros_like(x)
    k.i64k[(2,)](x, y, 300, 1234567, B=256)
    want = torch.div(x * x, 1234567, rounding_mode="trunc") + torch.fmod(x, 1234567) + (x >> 3)
    return [("y", y, want)]


def wrong(torch: Any, triples: Triples) -> Iterator[str]:
    """What differs, in words. Tolerances follow the output's type: sums are taken in any order."""
    for name, got, want in triples:
        if not got.dtype.is_floating_point:
            bad = int((got != want.to(got.dtype)).sum())
            if bad:
                yield f"{name}: {bad} of {got.numel()} differ"
            continue
        tolerance = {torch.float64: 1e-12, torch.float32: 2e-4}.get(got.dtype, 1e-2)
        if got.dtype is torch.float32 and name in ("c", "o"):
            tolerance = 2e-3
        if name == "c_short" or name.startswith("bf16"):
            tolerance = 2e-2
        a, b = got.double(), want.double()
        excess = (a - b).abs() - tolerance * (b.abs() + 1)
        excess = torch.where(torch.isnan(excess), torch.inf, excess)
        bad = int((excess > 0).sum())
        if bad:
            at = int(excess.argmax())
            one, other = float(a.flatten()[at]), float(b.flatten()[at])
            yield f"{name}: {bad} of {got.numel()} differ, [{at}] {one:.6g} for {other:.6g}"
