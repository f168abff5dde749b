"""A chapter as a Jupyter notebook."""

from __future__ import annotations

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from wavecast.learn.chapter import Chapter


def dumps(chapter: Chapter) -> str:
    """The notebook of a chapter as JSON: text, the kernel to edit, and its checks."""
    kernel = chapter.start.read_text(encoding="utf-8")
    check = f"!wavecast learn check {chapter.number} {chapter.file}"
    cells = [
        new_markdown_cell(chapter.text),
        new_code_cell(f"%%writefile {chapter.file}\n{kernel}"),
        new_code_cell(check),
        new_markdown_cell(f"A solution: `wavecast learn solution {chapter.number}`"),
    ]
    for number, cell in enumerate(cells):  # the same file every time
        cell["id"] = f"cell-{number}"
    return nbformat.writes(new_notebook(cells=cells)) + "\n"
