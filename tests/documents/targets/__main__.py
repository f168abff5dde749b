"""Write the table of docs/targets.md: `python -m tests.documents.targets`."""

from tests.documents.targets.table import PAGE, page, works

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), works), encoding="utf-8")
