"""Tables in narrow terminals."""

from __future__ import annotations

import pytest

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
