"""llpbench: the benchmark suite for learning from label proportions on tables."""

__version__ = "0.1.0"
