"""`llpbench list`: names with their facts and a sentence on each, as lines that fit the terminal.

It loads neither rich nor the modules of entries, so it answers at once.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from llpbench.core.registry import FAMILIES, METHODS, Entry, Registry
from llpbench.core.text import plural

if TYPE_CHECKING:
    from llpbench.core.studies import Study
    from llpbench.data.suites import SuiteEntry

_INDENT = 4


class Item(NamedTuple):
    """A name of the list."""

    name: str
    facts: Sequence[str]
    """shown beside the name; empty ones are skipped"""
    sentences: Sequence[str]
    """shown below the name, each from a new line on; empty ones are skipped"""


def listed(items: Sequence[Item]) -> Iterator[str]:
    """Yield the lines of a list, as wide as the terminal (80 in files and pipes), broken between words."""
    width = shutil.get_terminal_size().columns
    names = 2 + max((len(item.name) for item in items), default=0)
    for item in items:
        yield from _wrapped(item.name.ljust(names) + " · ".join(filter(None, item.facts)), width, names)
        for sentence in filter(None, item.sentences):
            yield from _wrapped(" " * _INDENT + sentence, width, _INDENT)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False, tabsize=1
    )


def method_lines() -> Iterator[str]:
    """Yield the lines of all methods by family, default ones first."""
    entries = sorted(METHODS.entries(), key=lambda entry: (FAMILIES.index(entry.family), entry.facts["extra"]))
    for family, members in groupby(entries, key=lambda entry: entry.family):
        yield f"family:{family}"
        yield from listed([*map(_method, members)])
        yield ""
    yield "--methods takes names, family:NAME, all, or default (not those marked extra)."


def _method(entry: Entry) -> Item:
    facts = (str(entry.facts["kind"]), "extra" if entry.facts["extra"] else "", str(entry.facts["reference"]))
    return Item(entry.name, facts, [entry.summary])


def entry_items(registry: Registry, unlisted: Sequence[str] = ()) -> list[Item]:
    """Return the entries of a registry, with `unlisted` names. Entries indexed from source are not imported."""
    of_entry = _dataset if registry.kind == "dataset" else _plain
    return [of_entry(entry) for entry in (*registry.entries(), *map(registry.entry, unlisted))]


def _plain(entry: Entry) -> Item:
    return Item(entry.name, [str(entry.facts.get("reference", ""))], [entry.summary])


def _dataset(entry: Entry) -> Item:
    from llpbench.data.facts import built_in_facts

    code, keys, licence, reference = (
        entry.facts.get(name, "") for name in ("code", "natural_keys", "licence", "reference")
    )
    table = entry.facts.get("facts") or built_in_facts().get(entry.name)
    size = plural(table.rows, "row") if table else ""
    bags = f"Natural bags: {', '.join(keys)}." if isinstance(keys, tuple) and keys else ""
    return Item(entry.name, [str(code), size, str(licence)], [entry.summary, bags, str(reference)])


def study_items(studies: Iterable[Study]) -> list[Item]:
    """Return studies with their questions."""
    return [Item(study.name, [study.title], [study.question]) for study in studies]


def suite_items(suites: Iterable[SuiteEntry]) -> list[Item]:
    """Return suites with the number of their datasets, and those missing on this machine."""
    return [
        Item(
            suite.name,
            [plural(len(suite.datasets), "dataset")],
            [suite.summary, f"Missing here: {', '.join(suite.missing)}." if suite.missing else ""],
        )
        for suite in suites
    ]


def hyperparameter_items(method: str) -> list[Item]:
    """Return a method's hyperparameters: default, search range, condition, meaning."""
    from llpbench.core.ranges import conditions, declarations, ranges

    declared = METHODS.get(method).Params
    searched, when = ranges(declared), conditions(declared)
    items = []
    for name, (value, meaning) in declarations(declared).items():
        condition = when.get(name)
        only = condition and f"only where {condition.name} = {' or '.join(map(str, condition.values))}"
        facts = (f"default {value}", f"searched {searched[name]}" if name in searched else "", only or "")
        items.append(Item(name, facts, [meaning]))
    return items
