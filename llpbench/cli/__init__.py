"""The command line of llpbench: it parses, calls and prints."""

FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""exit codes; 0 is all well"""
