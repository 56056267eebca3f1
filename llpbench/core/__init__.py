"""The contracts of the benchmark: bags, methods, models, the registry, cells, records and criteria."""

from pathlib import Path

__version__ = "0.1.0"

PACKAGE = Path(__file__).resolve().parents[1]
"""Folder of this package."""
