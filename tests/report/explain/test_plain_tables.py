"""Tables in narrow terminals."""

from __future__ import annotations

import random

import pytest
from rich.padding import Padding

from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit.terminal import plain


@pytest.mark.parametrize("width", [60, 80, 120])
def test_heads_of_one_word_stay_whole_and_no_column_is_lost(width: int) -> None:
    table = plain_table(
        ("kernel", False), ("loop", False), ("instructions", True), ("new waits", True),
        ("orders", True),
    )  # fmt: skip
    table.add_row("matrix_product_kernel", "matrix_product.hip:10", "1,105", "1,408", "5,001")
    text = plain(lambda console: console.print(table), width=width)
    assert "instructions" in text
    assert "orders" in text
    assert all(value in text for value in ("1,105", "1,408", "5,001"))
    assert "matrix_product_kernel" in text
    assert "matrix_product.hip:10" in text


@pytest.mark.parametrize("seed", range(40))
def test_words_are_whole_and_lines_fit(seed: int) -> None:
    """Of any table at any width that its longest word fits."""
    chance = random.Random(seed)
    words = ["forward_kernel", "mi300x", "a", "(the program's code)", "no variant saves time"]
    columns = [(f"head{n}" * chance.randint(1, 2), bool(n and chance.randrange(4)))
               for n in range(chance.randint(1, 11))]  # fmt: skip
    table = plain_table(*columns)
    rows = [
        [f"{chance.randrange(10**6):,}" if right else chance.choice(words) for _, right in columns]
        for _ in range(chance.randint(1, 5))
    ]
    for row in rows:
        table.add_row(*row)
    for width in (40, 60, 80, 160):
        shown = plain(lambda console: console.print(Padding(table, (0, 0, 0, 2))), width=width)
        assert max(map(len, shown.splitlines())) <= width
        assert {word for row in rows for cell in row for word in cell.split()} <= {*shown.split()}


def test_texts_move_above_the_numbers_of_their_row() -> None:
    """Neighbours with the same text share its line; rows without numbers are the text alone."""
    table = plain_table(("kernel", False), ("time", True), ("reason", False))
    table.add_row("matrix_product", "1 µs", "")
    table.add_row("matrix_product", "2 µs", "")
    table.add_row("attention", "", "refused")
    text = plain(lambda console: console.print(table), width=20)
    assert text.splitlines() == [
        "time  reason",
        "─" * 13,
        "matrix_product",
        "1 µs",
        "2 µs",
        "attention",
        "      refused",
    ]


def test_columns_of_one_value_move_above_the_table() -> None:
    """The last ones first, as many as it takes; of a single row none."""
    table = plain_table(("kernel", False), ("time", True), ("spills", True), ("waits", True))
    table.add_row("attention", "1 µs", "0", "3")
    table.add_row("convolution", "2 µs", "0", "3")
    text = plain(lambda console: console.print(table), width=26)
    assert text.splitlines() == [
        "all rows: waits 3",
        "kernel       time  spills",
        "─" * 25,
        "attention    1 µs       0",
        "convolution  2 µs       0",
    ]
    text = plain(lambda console: console.print(table), width=40)
    assert "all rows" not in text
