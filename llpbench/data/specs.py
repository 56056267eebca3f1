"""Declarations of datasets: origin, licence, target, keys, and the SHA-256 of the table.

A dataset is a function under `@register_dataset(name, ...)`. It takes the frame from its source, or from a user's
parquet file, and returns features and target. It must return its own output unchanged. `add_dataset(name, about, ...)`
needs no function. The keywords are the fields of `DatasetSpec`. Only `target` is required, and also `source` unless the
data are embedded or always in the data directory.

`datasets/facts.json` has the facts of the built-in datasets, one dataset per line, so that lists and plans need not
read any table. `docs/generate.py` computes the file from the tables.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.registry import DATASETS
from llpbench.core.tables import Table
from llpbench.core.text import hint, one_line
from llpbench.data.frames import read_parquet, table_from_bags, table_from_frame
from llpbench.data.sources import Generated, Parquet, Source

if TYPE_CHECKING:
    from pandas import DataFrame

BUILT_IN = Path(str(files("llpbench.datasets")))
"""folder of the built-in datasets"""
FACTS = BUILT_IN / "facts.json"


@dataclass(frozen=True)
class Facts:
    """Facts about a table."""

    rows: int
    numeric: tuple[str, ...]
    """names of the numeric features"""
    categorical: tuple[str, ...]
    """names of the categorical features"""
    classes: Mapping[str, int] = field(default_factory=dict)
    """number of rows of each class; empty if the labels of rows are unknown"""

    @classmethod
    def of(cls, table: Table) -> Facts:
        classes: dict[str, int] = {}
        if table.labels is not None:
            counts = np.bincount(table.labels, minlength=len(table.classes)).tolist()
            classes = dict(sorted(zip(table.classes, counts, strict=True)))
        return cls(len(table), table.numeric_names, table.categorical_names, classes)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Facts:
        """Return the facts in a JSON object. Raises `KeyError`, `TypeError` or `ValueError` if it has another form."""
        numeric, categorical = (tuple(map(str, content[kind])) for kind in ("numeric", "categorical"))
        classes = {str(name): int(count) for name, count in dict(content["classes"]).items()}
        return cls(int(content["rows"]), numeric, categorical, classes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all features, the numeric ones first."""
        return (*self.numeric, *self.categorical)

    def json(self) -> str:
        return json.dumps(asdict(self))

    def differences(self, other: Facts) -> str:
        """Return what differs in another table, such as `rows 9 instead of 10`; "" if the facts are equal."""
        pairs = ((item.name, getattr(other, item.name), getattr(self, item.name)) for item in fields(self))
        return ", ".join(
            f"{name} {shorten(str(now), 200)} instead of {shorten(str(declared), 200)}"
            for name, now, declared in pairs
            if now != declared
        )


@cache
def built_in_facts() -> Mapping[str, Facts]:
    """Return the facts of the built-in datasets, by name."""
    return {name: Facts.read(content) for name, content in json.loads(FACTS.read_text(encoding="utf-8")).items()}


LAST_COLUMN = "(the last column)"
"""target that is given by its position"""
_FREE_LICENCES = ("Apache-2.0", "CC BY 4.0", "CC0", "MIT", "Open Government Licence v3.0", "public domain")


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """The declaration of one dataset."""

    name: str
    summary: str
    """first line of the function's docstring, or of `about`"""
    prepare: Callable[[DataFrame], DataFrame]
    """the registered function; identity for `add_dataset`"""
    folder: Path
    """folder of the file that registers the dataset, where a relative `Parquet` path starts"""
    facts: Facts | None = None
    """facts about the table that are known without reading it: of built-in datasets, and of downloads from OpenML"""
    target: str = ""
    """column with the labels; "" if labels are unknown and `bags` has the counts of bags"""
    source: Source | Parquet | Generated | None = None
    """source of the download, or your file; None: only in the data directory or the package"""
    bags: Parquet | Generated | None = None
    """table of bags if rows have no labels: columns `by`, and one column per class with counts (null if suppressed)"""
    by: tuple[str, ...] = ()
    """columns of rows and bags that identify the bag of a row; they are not features"""
    noise: float = 0.0
    """standard deviation of the noise added to each count"""
    code: str = ""
    """the paper's abbreviation of its datasets, which commands accept instead of the name"""
    positive: str | None = None
    """class with label 1, if there are two classes; default: the later one in string order"""
    sha256: str = ""
    """`Table.fingerprint` of the table; "" if it is not checked"""
    source_may_differ: bool = False
    """whether the source was not available to compute `sha256`, which is that of another copy

    Then a table with another SHA-256 is accepted if it has the same rows, features and classes.
    """
    key_only: tuple[str, ...] = ()
    """columns that identify bags and are never features, such as a date"""
    natural_keys: tuple[str, ...] = ()
    """columns for natural bags, in the syntax of `column:by=`: `date`, `carrier+dest`"""
    licence: str = "not stated"
    reference: str = ""

    def frame(self, raw: DataFrame, origin: str) -> DataFrame:
        """Return features and target of a raw frame. `origin` names it in errors.

        Columns are in the order of `facts`, if these are known. It determines ordered bags; a file may have another.
        """
        try:
            frame = self.prepare(raw)
        except LLPBenchError:
            raise
        except Exception as error:
            wrong = f"cannot be made from {origin} ({one_line(error)})"
            raise DataError(f"dataset {self.name!r} {wrong}. {self._remedy}") from error
        if not hasattr(frame, "columns"):
            what = f"{type(frame).__name__}, not a data frame"
            raise DataError(f"the function of dataset {self.name!r} returned {what}. Let it return one.")
        if self.facts is None or self.target == LAST_COLUMN:
            return frame
        order = [*self.facts.columns, *self.key_only, *([self.target] if self.target else self.by)]
        return frame[order] if sorted(map(str, frame.columns)) == sorted(order) else frame

    def tabulate(self, frame: DataFrame, origin: str) -> Table:
        """Return the table of a prepared frame, checked against the declaration."""
        if (source := self.bags) is not None:
            bags = source.make() if isinstance(source, Generated) else read_parquet(source.within(self.folder))
            table = table_from_bags(frame, bags, name=self.name, by=self.by, noise=self.noise)
        else:
            target = str(frame.columns[-1]) if self.target == LAST_COLUMN and len(frame.columns) else self.target
            table = table_from_frame(
                frame, name=self.name, target=target, positive=self.positive, key_only=self.key_only
            )
        for key in self.natural_keys:
            absent = set(key.split("+")) - {*table.keys, *table.numeric_names, *table.categorical_names}
            if absent:
                told = f"dataset {self.name!r} declares the natural key {key!r}, but has no column {min(absent)!r}"
                raise DataError(f"{told}. Fix its declaration.")
        if not self.sha256 or table.fingerprint != self.sha256:
            self._require_facts(table, origin)
        return table

    def _require_facts(self, table: Table, origin: str) -> None:
        """Raise `DataError` if a table with another `sha256` may not take the place of the declared one."""
        difference = "" if self.facts is None else self.facts.differences(Facts.of(table))
        if self.sha256 and not self.source_may_differ and not difference:
            values = "other values or another order of rows, " if self.facts else ""
            difference = f"{values}sha256 {table.fingerprint} instead of {self.sha256}"
        if difference:
            raise DataError(f"dataset {self.name!r} from {origin} is another table: {difference}. {self._remedy}")

    @property
    def redistributable(self) -> bool:
        """Whether the licence lets the package ship the data."""
        return self.licence in _FREE_LICENCES

    @property
    def remote(self) -> Source | None:
        """Source of the download; None for your files."""
        return None if isinstance(self.source, Parquet | Generated) else self.source

    @property
    def absence(self) -> str:
        """The message if the dataset cannot be found."""
        if isinstance(self.source, Parquet):
            path = self.source.within(self.folder)
            return f"dataset {self.name!r} has no file {str(path)!r}. Fix the path in its declaration."
        in_checkout = ", or to datasets/embedded of a checkout of llpbench" if self.redistributable else ""
        fetch = "Point"
        if self.source:
            fetch = f"Fetch it from {self.source.describe()} (llpbench data fetch {self.name}), or point"
        advice = f"{fetch} --data-dir or LLPBENCH_DATA to a folder with {file_name(self.name)}{in_checkout}."
        return f"dataset {self.name!r} is not on this machine. {advice}"

    @property
    def _remedy(self) -> str:
        return f"Point --data-dir or LLPBENCH_DATA to a folder with the right {file_name(self.name)}."


def file_name(name: str) -> str:
    """Return the file name of dataset `name` in the data directory and the cache, without colons."""
    return f"{name.replace(':', '-')}.parquet"


def dataset_spec(name: str) -> DatasetSpec:
    """Return the declaration of a dataset, given its name or code. Raises `LLPBenchError` if it is unknown or wrong."""
    entry = DATASETS.entry(name)
    prepare = entry.load()
    given: dict[str, Any] = {"facts": built_in_facts().get(entry.name), **entry.facts}
    if fault := next(_faults(given), ""):
        raise LLPBenchError(f"dataset {entry.name!r} ({entry.where}) {fault}")
    folder = Path(inspect.getsourcefile(prepare) or "<prompt>").resolve().parent
    folder = folder if folder.is_dir() else Path.cwd()  # of functions in a prompt or notebook
    return DatasetSpec(name=entry.name, summary=entry.summary, prepare=prepare, folder=folder, **given)


def _faults(given: dict[str, Any]) -> Iterator[str]:
    """Yield faults of the arguments of a declaration, to follow the name of the dataset."""
    known = [item.name for item in fields(DatasetSpec) if item.name not in ("name", "summary", "prepare", "folder")]
    for fact in given:
        if fact not in known:
            yield f"declares the unknown argument {fact!r}. {hint(fact, known)}Available: {', '.join(known)}."
    if not given.get("target") and not (given.get("bags") and given.get("by")):
        advice = "Add it, or add 'bags' with known counts, and the columns 'by' that identify them."
        yield f"does not declare its 'target'. {advice}"
    if given.get("target") and given.get("bags"):
        yield "declares a 'target' and 'bags': leave out one of them."
    if given.get("key_only") and given.get("bags"):
        yield "declares 'bags' and 'key_only'. Name its keys in 'by' alone."
