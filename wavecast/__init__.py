"""Know how a GPU kernel will run before it runs."""

__version__ = "0.1.0"
