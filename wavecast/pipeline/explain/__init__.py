"""From sources to explained launches."""
