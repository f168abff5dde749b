"""Servers: tools of coding agents (MCP), diagnostics of editors (LSP), the workbench for a browser.

Each request is answered in another process, so a script that crashes or never ends does not end the
server, and nothing it prints reaches the protocol.
"""
