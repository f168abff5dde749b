"""Assembly with instructions in another order."""

from wavecast.isa import parse
from wavecast.lab.schedule.layout import Layout


def test_files_of_source_lines_come_first() -> None:
    """A location may move before the place where the compiler named its file."""
    text = "\n".join(
        [
            ".type k,@function",
            "k:",
            '\t.file\t1 "a.py"',
            "\t.loc\t1 1 0",
            "\tv_mov_b32_e32 v0, 0",
            '\t.file\t2 "b.py"',
            "\t.loc\t2 7 0",
            "\tv_mov_b32_e32 v1, 1",
            "\ts_endpgm",
        ]
    )
    program = parse(text, "gfx942").functions["k"]
    layout = Layout.of(program).with_block(0, [1, 0, 2])
    lines = layout.text(text).split("\n")
    assert lines.index('\t.file\t2 "b.py"') < lines.index("\t.loc\t2 7 0")
    assert lines.index("\tv_mov_b32_e32 v1, 1") < lines.index("\tv_mov_b32_e32 v0, 0")
    assert layout.text(text).count(".file") == 2
