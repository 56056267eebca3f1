"""What every method must hold to, checked on toy data in seconds: `llpbench check`, and this repository's tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import torch

from llpbench.conformance.checks import CHECKS, Check, Result, Verdict
from llpbench.conformance.subject import Subject
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS, load_plugin

__all__ = ["CHECKS", "Check", "Subject", "Verdict", "find", "run_checks", "summary"]


def find(target: str) -> list[str]:
    """Methods by name or pattern, or those of a Python file. Raises if there are none."""
    if not target.endswith(".py"):
        return METHODS.select(target)
    found = _registered_by(target)
    if not found:
        load_plugin(target)
        found = _registered_by(target)
    if not found:
        raise LLPBenchError(f"{target!r} registers no method. Decorate a class with @register_method(...).")
    return found


def run_checks(name: str) -> Iterator[Verdict]:
    """The verdict of every check on a method, one after the other, on one thread."""
    subject, before = Subject(METHODS.entry(name)), torch.get_num_threads()
    torch.set_num_threads(1)  # toy tensors gain nothing from more
    try:
        for check in CHECKS:
            yield check(subject)
    finally:
        torch.set_num_threads(before)


def summary(name: str, verdicts: Iterable[Verdict]) -> str:
    """One line: how many checks passed, which failed."""
    by_result: dict[Result, list[str]] = {result: [] for result in get_args(Result)}
    for verdict in verdicts:
        by_result[verdict.result].append(verdict.check.name)
    passed, failed, without = by_result.values()
    text = f"{name}: {len(passed)} checks passed"
    text += f", {len(without)} without meaning for it" if without else ""
    return text + (f", {len(failed)} failed: {', '.join(failed)}" if failed else "")


def _registered_by(file: str) -> list[str]:
    path = Path(file).resolve()
    modules = {entry.name: importlib.util.find_spec(entry.module) for entry in METHODS.entries()}
    return [name for name, found in modules.items() if found and found.origin and Path(found.origin).resolve() == path]
