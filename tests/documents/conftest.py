"""Files that commands of pages name are no tests of this project."""

collect_ignore = ["inputs"]
