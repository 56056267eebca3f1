"""Checks of every method, encoder, bagging and dataset, done in seconds: for `llpbench check` and the tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llpbench.conformance.checks import CHECKS, Check, Verdict
from llpbench.conformance.other_kinds import OTHER_KINDS
from llpbench.conformance.subject import Subject
from llpbench.core.errors import LLPBenchError
from llpbench.core.global_state import restored
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS, Entry, load_plugin
from llpbench.core.text import hint
from llpbench.training.cell_runs import limit_threads

__all__ = ["CHECKS", "CHECKS_OF", "Check", "Subject", "Verdict", "find", "run_checks"]

_REGISTRIES = (METHODS, ENCODERS, BAGGINGS, DATASETS)

CHECKS_OF: Mapping[str, tuple[Callable[..., Any], tuple[Check, ...]]] = {"method": (Subject, CHECKS), **OTHER_KINDS}
"""for each kind: the class that wraps an entry for its checks, and the checks"""


def find(target: str) -> list[Entry]:
    """Return all entries called `target`, methods by pattern, or all that a Python file registers.

    Raises `LLPBenchError` if there are none.
    """
    if not target.endswith(".py"):
        named = [registry.entry(target) for registry in _REGISTRIES if target in registry.names()]
        if not named and target != "all" and not set(target) & set("*?[,:"):
            names = [name for registry in _REGISTRIES for name in registry.names()]
            told = f"{target!r} is not a file, method, dataset, bagging or encoder"
            raise LLPBenchError(f"{told}. {hint(target, names)}llpbench list shows all.")
        return named or [METHODS.entry(name) for name in METHODS.select(target)]
    found = _registered_by(target)
    if not found:
        load_plugin(target)
        found = _registered_by(target)
    if not found:
        raise LLPBenchError(
            f"{target!r} must register a method, encoder, bagging or dataset: only these have checks. Decorate a class "
            "or function with @register_method(...), register_encoder, register_bagging or register_dataset."
        )
    return found


def run_checks(entry: Entry, dataset: str | None = None) -> Iterator[Verdict]:
    """Yield the verdict of every check of an entry, one after the other, on one thread.

    `dataset`: source of rows for a bagging, instead of toys, if it needs columns that these lack.
    """
    subject_of, checks = CHECKS_OF[entry.kind]
    subject = subject_of(entry, dataset) if entry.kind == "bagging" else subject_of(entry)
    with limit_threads(1):  # toy tensors gain nothing from more
        for check in checks:
            with restored():  # no check may depend on another
                verdict = check(subject)
            yield verdict


def _registered_by(file: str) -> list[Entry]:
    path = Path(file).resolve()
    entries = [entry for registry in _REGISTRIES for entry in registry.entries()]
    modules = {entry.module: importlib.util.find_spec(entry.module) for entry in entries if not entry.local}
    origins = {name: Path(found.origin).resolve() for name, found in modules.items() if found and found.origin}
    return [entry for entry in entries if origins.get(entry.module) == path]
