"""Everything that is to be done with a GPU that is at hand for minutes: `python -m benchmarks.gpu` (docs/gpu.md)."""
