"""One `Report` shown four ways: terminal text, JSON, HTML, SARIF.

Nothing here computes a figure of a kernel. `summary` picks and words what all views share, `units`
formats numbers, `source` finds the text of source lines, `listing` lays out assembly; each view is
a module of its own.
"""
