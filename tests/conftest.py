"""Shared by all tests: helpers importable by name, and one thread: toy tensors gain nothing from more."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # others are processes that import torch
sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ("bench", "districts", "downloads")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests are the first, so that at the end no process waits for another."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
