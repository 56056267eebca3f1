"""Shared by all tests: helpers importable by name, one torch thread."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ("bench",)
