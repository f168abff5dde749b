"""Matrix layouts against AMD's matrix calculator, every element of every published layout."""

from __future__ import annotations

import csv
import gzip
import itertools
from functools import cache
from pathlib import Path

import pytest

from wavecast.emulate.matrix import layouts
from wavecast.isa import table
from wavecast.isa.opcode import MatrixShape
from wavecast.isa.targets import TARGET_SETS, TARGETS

FACTS = Path(__file__).resolve().parents[3] / "shared" / "facts"
WIDTHS = {
    "f64": 64,
    "f32": 32,
    "i32": 32,
    "xf32": 32,
    "f16": 16,
    "bf16": 16,
    "fp8": 8,
    "bf8": 8,
    "i8": 8,
    "iu8": 8,
    "iu4": 4,
    "fp4": 4,
    "f8": 8,
    "f6": 6,
    "f4": 4,
}
GENERATIONS = {"cdna2": "gfx90a", "cdna3": "gfx942"}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FACTS.exists(), reason="no shared facts beside the checkout"),
]


@cache
def shapes(target: str) -> dict[str, MatrixShape]:
    return {
        row.mnemonics[target]: row.matrix
        for row in table.rows()
        if row.matrix is not None and target in row.mnemonics
    }


def placement(
    target: str, wave: int, shape: MatrixShape, matrix: str, variant: str
) -> layouts.Placement:
    """The layout a golden group is about; sparse A and K are indexed by group of four k."""
    name, _, value = variant.partition("=")
    a_type, b_type = value.split(",") if name == "fmt" else (shape.a_type, shape.b_type)
    if matrix == "D":
        width = WIDTHS[shape.cd_type]
        if width == 16 and target in TARGET_SETS["gfx11"]:
            found = layouts.result(target, wave, shape.m, shape.n, shape.blocks, 32)
            return layouts.Placement(32, found.row, block=found.block, first_bit=4 * int(value))
        return layouts.result(target, wave, shape.m, shape.n, shape.blocks, width)
    if matrix == "B":
        operand = layouts.OperandShape(
            shape.n, shape.k, shape.blocks, WIDTHS[b_type], sparse=shape.sparse
        )
        return layouts.source(target, wave, operand)
    operand = layouts.OperandShape(
        shape.m, shape.k, shape.blocks, WIDTHS[a_type], shape.sparse, shape.sparse
    )
    a = layouts.source(target, wave, operand)
    if matrix == "K":
        return layouts.index(a, int(value) if value else 0)
    return a


def test_every_published_element() -> None:
    numpy = pytest.importorskip("numpy")
    parquet = pytest.importorskip("pyarrow.parquet")
    golden = parquet.read_table(FACTS / "mfma_layouts.parquet")
    names = ("gfx", "mnemonic", "wave", "matrix", "variant")
    columns = {
        name: golden.column(name).to_numpy()
        for name in ("row", "col", "block", "vgpr", "bit_lo", "bit_hi", "lane", "wave")
    }
    codes = [columns["wave"]]
    for name in names:
        if name != "wave":
            codes.append(golden.column(name).combine_chunks().indices.to_numpy())
    differs = numpy.any([code[1:] != code[:-1] for code in codes], axis=0)
    changes = [0, *(numpy.flatnonzero(differs) + 1).tolist(), golden.num_rows]
    checked = 0
    for start, stop in itertools.pairwise(changes):
        target, mnemonic, wave, matrix, variant = (golden.column(n)[start].as_py() for n in names)
        if target not in TARGETS:
            continue
        shape = shapes(target)[mnemonic]
        part = {name: values[start:stop] for name, values in columns.items()}
        found = placement(target, wave, shape, matrix, variant)
        row, column = part["row"], part["col"]
        lane_offset = column if matrix == "D" else 0
        if matrix == "B":
            row, column = column, row
        if matrix == "D":
            column = 0
        width = found.width
        if shape.sparse and matrix == "A":
            column, width = column // 4 * 2, 2 * width
        elif matrix == "K":
            column = column // 4
        elif matrix == "D" and WIDTHS[shape.cd_type] == 16:
            width = 16
        register, bit, lane = found.position(row, column, part["block"])
        lane = lane + lane_offset
        golden_lane = part["lane"]
        if target in TARGET_SETS["gfx11"] and matrix in "AB":
            golden_lane = golden_lane % 16  # every group of 16 lanes holds the same
        where = f"{target} {mnemonic} wave{wave} {matrix} {variant}"
        assert (register == part["vgpr"]).all(), where
        assert (bit == part["bit_lo"]).all(), where
        assert (lane == golden_lane).all(), where
        if width != 6:  # elements of six bits may end in the next register
            assert (bit + width - 1 == part["bit_hi"]).all(), where
        checked += stop - start
    assert checked > 400_000


def test_every_published_modifier() -> None:
    blocks = {t: {m: s.blocks for m, s in shapes(t).items()} for t in GENERATIONS.values()}
    checked = 0
    with gzip.open(FACTS / "mfma_modifiers.csv.gz", "rt") as file:
        for record in csv.DictReader(file):
            target = GENERATIONS.get(record["isa"])
            if target is None:
                continue
            values = dict(item.split("=") for item in record["modifier"].split())
            asked, read = int(record["requested"]), int(record["read_from"])
            where = f"{target} {record['mnemonic']} {record['modifier']}"
            if record["unit"] == "block":
                count = blocks[target][record["mnemonic"]]
                chosen = layouts.broadcast_blocks(count, int(values["cbsz"]), int(values["abid"]))
                assert chosen[asked] == read, where
            else:
                groups = layouts.permuted_groups(int(values["blgp"]))
                assert groups[asked // 16] * 16 + asked % 16 == read, where
            checked += 1
    assert checked > 10_000
