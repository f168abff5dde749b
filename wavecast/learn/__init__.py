"""A course: chapters with a slow kernel, a task, goals that are checked, and a solution.

`chapters/NN-name` has `chapter.toml`, `text.md`, `start` and `solution` (the file that a learner
edits) and `check.py` (what calls it). `chapter` reads them, `goals` checks them, `notebook` writes
them for Jupyter.
"""
