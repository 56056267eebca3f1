"""Suites: named lists of datasets. `--datasets` takes them as `suite:NAME`.

A suite is a function under `@register_suite(name)` that returns names of datasets. Its docstring describes them in one
line. The built-in suites are in `datasets/built_in_suites.py`. A plugin declares a suite in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import DATASETS, OPENML_SUITE, SUITE, SUITES
from llpbench.data.loading import locate, openml_suite
from llpbench.data.specs import dataset_spec


@dataclass(frozen=True)
class SuiteEntry:
    """One suite, as a line of a list."""

    name: str
    summary: str
    datasets: tuple[str, ...]
    missing: tuple[str, ...]
    """datasets that are not on this machine"""


def suite_datasets(name: str) -> tuple[str, ...]:
    """Return the names of the datasets of a suite, in its order.

    Raises `LLPBenchError` for an unknown suite (with the nearest names), an empty suite, and a suite with an unknown
    dataset.
    """
    entry = SUITES.entry(name)
    named = entry.load()()
    if isinstance(named, str) or not named:
        raise LLPBenchError(
            f"suite {entry.name!r} ({entry.where}) must return names of datasets, got {named!r}. Return a tuple."
        )
    try:
        return tuple(dict.fromkeys(DATASETS.entry(each).name for each in named))
    except LLPBenchError as error:
        raise LLPBenchError(f"suite {entry.name!r} ({entry.where}): {error}") from error


def select_datasets(pattern: str) -> list[str]:
    """Return the names in a pattern: `all`, a comma-separated list, globs, `suite:NAME` or `openml-suite:ID`."""
    return DATASETS.select(expanded(pattern))


def list_suites(data_dir: str | Path | None = None) -> list[SuiteEntry]:
    """Return every suite, with its missing datasets. Reads no data."""
    suites = []
    for entry in SUITES.entries():
        datasets = suite_datasets(entry.name)
        missing = tuple(name for name in datasets if locate(dataset_spec(name), data_dir) is None)
        suites.append(SuiteEntry(entry.name, entry.summary, datasets, missing))
    return suites


def expanded(pattern: str) -> Iterator[str]:
    """Return the parts of a comma-separated list, with suites replaced by their datasets."""
    for part in map(str.strip, pattern.split(",")):
        if part.startswith(SUITE):
            yield from suite_datasets(part.removeprefix(SUITE).strip())
        elif part.startswith(OPENML_SUITE):
            yield from openml_suite(part.removeprefix(OPENML_SUITE).strip())
        else:
            yield part
