"""`llpbench list`, `check` and `data`: names with their facts, checks of entries, and sources of datasets.

Lists load neither rich nor the modules of entries, so they answer at once.
"""

from __future__ import annotations

import ast
import inspect
import shutil
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from llpbench.cli import FAILED
from llpbench.cli.options import Command, CommandGroup, data_dir_option, load_plugins, plugin_option
from llpbench.cli.output import echo, print_table
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import DATASETS, FAMILIES, METHODS, REGISTRIES, SUITES, Entry
from llpbench.core.text import plural

if TYPE_CHECKING:
    from llpbench.conformance import Verdict

_LISTED = ("methods", "datasets", "suites", "baggings", "encoders", "studies", "params")
"""Kinds that `llpbench list` shows. The last one needs a method."""


@click.command("list", cls=Command, examples=("llpbench list methods", "llpbench list params dllp"))
@click.argument("what", type=click.Choice(_LISTED), required=False)
@click.argument("method", required=False)
@data_dir_option
@plugin_option
def _list(what: str | None, method: str | None, data_dir: str | None, plugin: tuple[str, ...]) -> int:
    """List methods, datasets, hyperparameters and more.

    Without an argument, show the number of each. `params METHOD` lists the hyperparameters of a method.
    """
    load_plugins(plugin)
    if (what == "params") != (method is not None):
        raise LLPBenchError("only list params takes the name of a method, such as llpbench list params dllp.")
    for line in _lines(what, method, data_dir):
        echo(line)
    return 0


def _lines(what: str | None, method: str | None, data_dir: str | None) -> Iterator[str]:
    """Yield the lines of a list. Entries indexed from source are not imported."""
    from llpbench.results.studies import STUDIES

    if not what:
        for each in _LISTED[:-1]:
            number = len(STUDIES if each == "studies" else REGISTRIES[each.removesuffix("s")].names())
            yield f"llpbench list {each:<16}{number:>3} {each}"
        yield "llpbench list params METHOD    hyperparameters of a method"
    elif what == "methods":
        yield from _method_lines()
    elif method is not None:
        items = _hyperparameters(method)
        yield from _listed(items) if items else [f"{method} has no hyperparameters."]
    elif what == "studies":
        yield from _listed([_Item(study.name, [study.title], [study.question]) for study in STUDIES.values()])
    elif what == "suites":
        from llpbench.data.loading import suite_datasets

        numbers = ((entry, len(suite_datasets(entry.name))) for entry in SUITES.entries())
        yield from _listed([_Item(entry.name, [plural(of, "dataset")], [entry.summary]) for entry, of in numbers])
    elif what == "datasets":
        from llpbench.data.loading import local_names

        yield from _listed([_dataset(name, data_dir) for name in (*DATASETS.names(), *local_names(data_dir))])
    else:
        yield from _listed([*map(_item, REGISTRIES[what.removesuffix("s")].entries())])


class _Item(NamedTuple):
    """A name of the list."""

    name: str
    facts: Sequence[str]  # shown beside the name; empty ones are skipped
    sentences: Sequence[str]  # shown below the name, each from a new line on; empty ones are skipped


def _listed(items: Sequence[_Item]) -> Iterator[str]:
    """Yield the lines of a list, as wide as the terminal (80 in files and pipes), broken between words."""
    width = shutil.get_terminal_size().columns
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False, tabsize=1)
    names, indent = 2 + max((len(item.name) for item in items), default=0), " " * 4
    for item in items:
        facts = " · ".join(filter(None, item.facts))
        yield from wrap(item.name.ljust(names) + facts, subsequent_indent=" " * names)
        for sentence in filter(None, item.sentences):
            yield from wrap(sentence, initial_indent=indent, subsequent_indent=indent)


def _method_lines() -> Iterator[str]:
    """Yield the lines of all methods by family, default ones first."""
    entries = sorted(METHODS.entries(), key=lambda entry: (FAMILIES.index(entry.family), entry.facts["extra"]))
    for family, members in groupby(entries, key=lambda entry: entry.family):
        yield f"family:{family}"
        yield from _listed([*map(_item, members)])
        yield ""
    yield "--methods takes names, family:NAME, all, or default (not those marked extra)."


def _item(entry: Entry) -> _Item:
    facts = (entry.facts.get("kind", ""), "extra" if entry.facts.get("extra") else "", entry.facts.get("reference", ""))
    return _Item(entry.name, [*map(str, facts)], [entry.summary])


def _dataset(name: str, data_dir: str | None) -> _Item:
    """Return a dataset with its facts, and whether this machine lacks it."""
    from llpbench.data.loading import locate
    from llpbench.data.specs import dataset_spec

    try:
        spec = dataset_spec(name)
    except LLPBenchError as error:  # a wrong declaration in a plugin
        return _Item(name, ["cannot be used"], [str(error)])
    absent = "" if locate(spec, data_dir) else "to download" if spec.remote else "missing here"
    size = plural(spec.facts.rows, "row") if spec.facts else ""
    bags = f"Natural bags: {', '.join(spec.natural_keys)}." if spec.natural_keys else ""
    return _Item(spec.name, [spec.code, size, spec.licence, absent], [spec.summary, bags, spec.reference])


def _hyperparameters(method: str) -> list[_Item]:
    """Return a method's hyperparameters: default, search range, condition, meaning."""
    from llpbench.core.ranges import conditions, ranges

    declared = METHODS.get(method).Params
    searched, when = ranges(declared), conditions(declared)
    items = []
    for name, (value, meaning) in _declarations(declared).items():
        condition = when.get(name)
        only = condition and f"only where {condition.name} = {' or '.join(map(str, condition.values))}"
        facts = (f"default {value}", f"searched {searched[name]}" if name in searched else "", only or "")
        items.append(_Item(name, facts, [meaning]))
    return items


def _declarations(params: type) -> dict[str, tuple[Any, str]]:
    """Return default and meaning (the text under the field) of every hyperparameter, in the order of declaration."""
    meanings: dict[str, str] = {}
    for cls in reversed(params.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
        for line, following in pairwise(body):
            told = following.value if isinstance(following, ast.Expr) else None
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                text = told.value if isinstance(told, ast.Constant) else ""
                meanings[line.target.id] = " ".join(str(text).split())
    return {field.name: (field.default, meanings.get(field.name, "")) for field in fields(params)}


@click.command("check", cls=Command, examples=("llpbench check my_method.py", "llpbench check dllp"))
@click.argument("what", metavar="NAME|FILE.py", type=click.Path())
@click.option("--dataset", metavar="NAME", help="Check baggings on this dataset.")
@plugin_option
def _check(what: str, dataset: str | None, plugin: tuple[str, ...]) -> int:
    """Check a method, encoder, bagging or dataset.

    The argument is a name or a file. Everything except datasets is checked on toy data, in seconds.
    """
    load_plugins(plugin)
    from llpbench.conformance import find, run_checks

    failed, entries = False, list(find(what))
    if dataset is not None and not any(entry.kind == "bagging" for entry in entries):
        raise LLPBenchError(f"--dataset needs a bagging to check, but {what!r} has none. Leave it out.")
    if dataset is not None:
        from llpbench.data.loading import load_table

        load_table(dataset, download=False)  # one message, not one in every check
    for entry in entries:
        verdicts = list(run_checks(entry, dataset))
        print_table(["check", "result", "detail"], _verdict_rows(verdicts))
        echo(_summary(entry.name, verdicts))
        failed |= any(verdict.result == "failed" for verdict in verdicts)
    return FAILED if failed else 0


def _verdict_rows(verdicts: Iterable[Verdict]) -> Iterator[Sequence[str]]:
    """Yield checks with their results. Checks with the same failure are one row."""
    rows: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in verdicts:
        alike = (verdict.result, verdict.check.name if verdict.result == "ok" else verdict.detail)
        rows.setdefault(alike, []).append(verdict)
    for first, *others in rows.values():
        more = f" (the same result in: {'; '.join(other.check.title for other in others)})" if others else ""
        yield f"{first.check.title}{more}", first.result, first.detail


def _summary(name: str, verdicts: Collection[Verdict]) -> str:
    number = Counter(verdict.result for verdict in verdicts)
    failed = [verdict.check.name for verdict in verdicts if verdict.result == "failed"]
    text = f"{name}: {plural(number['ok'], 'check')} passed"
    text += f", {number['does not apply']} not applicable" if number["does not apply"] else ""
    return text + (f", {len(failed)} failed: {', '.join(failed)}" if failed else "")


@click.group(
    "data", cls=CommandGroup, examples=("llpbench data fetch suite:core", "llpbench data fetch adult --data-dir tables")
)
def _data() -> None:
    """Download and check datasets."""


@_data.command("fetch", examples=("llpbench data fetch credit,electricity", "llpbench data fetch openml:31"))
@click.argument("datasets", default="all")
@data_dir_option
@plugin_option
def _data_fetch(datasets: str, data_dir: str | None, plugin: tuple[str, ...]) -> int:
    """Download missing DATASETS and check all local copies. [default: all that can be downloaded]

    Declare the printed sha256 to refuse changed copies.
    """
    from llpbench.data.loading import locate, provide, select_datasets
    from llpbench.data.specs import dataset_spec

    failed = 0
    load_plugins(plugin)
    names = select_datasets(datasets)
    specs = map(dataset_spec, names if datasets == "all" else ())
    if without := [spec.name for spec in specs if spec.source is None and locate(spec, data_dir) is None]:
        echo(f"cannot be downloaded, put NAME.parquet into --data-dir: {', '.join(without)}")
    for name in (name for name in names if name not in without):
        try:
            place = provide(spec := dataset_spec(name), data_dir)
            fingerprint = place.read(spec).fingerprint
            differs = spec.sha256 not in ("", fingerprint)
            found = "another table than declared" if differs else f'sha256="{fingerprint}"'
            echo(f"{name}: {place.kind}, {place.path}, {found}")
        except LLPBenchError as error:  # continue with other datasets if a source is down
            echo(f"llpbench: {error}", err=True)
            failed += 1
    return FAILED if failed else 0


LISTING = (_check, _data, _list)
"""commands of this file"""
