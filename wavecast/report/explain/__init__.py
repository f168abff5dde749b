"""An `ExplainReport` as terminal text, JSON, HTML and SARIF."""
