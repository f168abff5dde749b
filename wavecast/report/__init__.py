"""An `ExplainReport` as terminal text, JSON, HTML and SARIF.

Reports show figures and compute none. `summary` selects and words what all views share, `units`
formats numbers, `source` finds the text of source lines, `listing` lays out assembly; each view has
its own module.
"""
