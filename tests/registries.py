"""Every test finds the registries as they are built in and leaves them so.

A pytest plugin, named in `conftest.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from llpbench.core import registry
from llpbench.core.registry import REGISTRIES


@pytest.fixture(autouse=True)
def _registries_as_they_were() -> Iterator[None]:
    with as_they_were():
        yield


@contextmanager
def as_they_were() -> Iterator[None]:
    """Forget new entries and loaded plugins at the end, also for fixtures of a module."""
    # names() first, so that the built-in entries are there to be kept
    kept = {one.kind: {name: one.entry(name) for name in one.names()} for one in REGISTRIES.values()}
    plugins, modules = dict(registry._loaded_plugins), set(sys.modules)
    yield
    for one in REGISTRIES.values():
        one._entries = kept[one.kind]
    registry._loaded_plugins = plugins
    for name in set(sys.modules) - modules:
        if name.startswith("llpbench_plugin_"):
            del sys.modules[name]
