"""Shared by all tests: helpers importable by name, and one thread: toy tensors gain nothing from more."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # others are processes that import torch
sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ("bench", "districts", "downloads")
