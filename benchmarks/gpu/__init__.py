"""Checks, measures and runs for a GPU that is available for minutes: `python -m benchmarks.gpu` (docs/machines.md)."""
