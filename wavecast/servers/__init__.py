"""Servers for other programs: tools of coding agents (MCP), diagnostics of editors (LSP).

Each request runs a verb of the command line in another process, so a script that crashes or
never ends does not end the server, and nothing it prints reaches the protocol.
"""
