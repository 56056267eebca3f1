"""Declarations of datasets (origin, size, licence), which are known before loading, and checks of data against them.

A dataset is a function under `@register_dataset(name, ...)`. It takes the frame from its source, or from a user's
parquet file, and returns features and target. It must return its own output unchanged. The decorator's keywords are the
fields of `DatasetSpec`. Only `target` is required, and also `source` unless the data are embedded or always in the data
directory.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.core.entries import Entry
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.registry import DATASETS
from llpbench.core.tables import Table
from llpbench.data.frames import read_parquet, table_from_bags, table_from_frame
from llpbench.data.sources import Generated, Parquet, Source

if TYPE_CHECKING:
    from pandas import DataFrame

LAST_COLUMN = "(the last column)"
"""target that is given by its position"""


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """The declaration of one dataset. Omitted counts are not checked."""

    name: str
    summary: str
    """first line of the function's docstring"""
    prepare: Callable[[DataFrame], DataFrame]
    """the registered function"""
    folder: Path
    """folder of the file that registers the dataset, where a relative `Parquet` path starts"""
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
    """abbreviation of the name; for datasets of the paper, its abbreviation"""
    positive: str | None = None
    """class with label 1, if there are two classes; default: the later one in string order"""
    rows: int | None = None
    numeric: int | None = None
    """number of numeric features"""
    categorical: int | None = None
    """number of categorical features"""
    columns: tuple[str, ...] = ()
    """names of the features in the dataset's order, which determines ordered bags; a file may have any order"""
    key_only: tuple[str, ...] = ()
    """columns that identify bags and are never features, such as a date"""
    balance: Mapping[str, int] = field(default_factory=dict)
    """number of rows of each class"""
    natural_keys: tuple[str, ...] = ()
    """columns for natural bags, in the syntax of `column:by=`: `date`, `carrier+dest`"""
    licence: str = "not stated"
    redistributable: bool = False
    """whether the package may ship the data"""
    reference: str = ""

    @property
    def classes(self) -> int | None:
        """Number of classes, if declared."""
        return len(self.balance) or None

    def table(self, raw: DataFrame, origin: str) -> Table:
        """Return the table of a raw frame, checked against the declaration. `origin` names the frame in errors."""
        return self.tabulate(self.frame(raw, origin), origin)

    def frame(self, raw: DataFrame, origin: str) -> DataFrame:
        """Return features and target of a raw frame, columns in dataset order."""
        try:
            frame = self.prepare(raw)
        except LLPBenchError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise DataError(f"dataset {self.name!r} cannot be made from {origin} ({reason}). {self._remedy}") from error
        if not hasattr(frame, "columns"):
            kind = type(frame).__name__
            raise DataError(
                f"the function of dataset {self.name!r} returned {kind}, not a data frame. Let it return one."
            )
        if not self.columns:
            return frame
        columns = [str(column) for column in frame.columns]
        wanted = (*self.columns, *self.key_only, *([self.target] if self.target else self.by))
        missing = [column for column in wanted if column not in columns]
        foreign = [column for column in columns if column not in wanted]
        if missing or foreign:
            parts = [f"no {', '.join(missing)}"] * bool(missing) + [f"also {', '.join(foreign)}"] * bool(foreign)
            self._refuse(origin, "columns", str(len(wanted)), f"{len(columns)} ({'; '.join(parts)})")
        return frame if tuple(columns) == wanted or len(set(columns)) < len(columns) else frame[list(wanted)]

    def tabulate(self, frame: DataFrame, origin: str) -> Table:
        """Return the table of a prepared frame, after checks of rows, features of each kind and rows of each class."""
        if self.bags is not None:
            table = table_from_bags(frame, self._bag_table(), name=self.name, by=self.by, noise=self.noise)
        else:
            target = str(frame.columns[-1]) if self.target == LAST_COLUMN and len(frame.columns) else self.target
            table = table_from_frame(
                frame, name=self.name, target=target, positive=self.positive, key_only=self.key_only
            )
        facts = (
            ("rows", self.rows, len(table)),
            ("numeric features", self.numeric, len(table.numeric_names)),
            ("categorical features", self.categorical, len(table.categorical_names)),
        )
        for fact, expected, found in facts:
            if expected is not None and expected != found:
                self._refuse(origin, fact, f"{expected:,}", f"{found:,}")
        if self.balance and table.labels is not None and dict(self.balance) != (balance := balance_of(table)):
            self._refuse(origin, "rows of each class", _counts(self.balance), _counts(balance))
        for key in self.natural_keys:
            absent = set(key.split("+")) - {*table.keys, *table.numeric_names, *table.categorical_names}
            if absent:
                raise DataError(
                    f"dataset {self.name!r} declares the natural key {key!r}, but has no column {min(absent)!r}. "
                    "Fix its declaration."
                )
        return table

    @property
    def remote(self) -> Source | None:
        """Source of the download; None for your files."""
        return None if isinstance(self.source, Parquet | Generated) else self.source

    def _bag_table(self) -> DataFrame:
        if isinstance(self.bags, Generated):
            return self.bags.make()
        assert self.bags is not None
        return read_parquet(self.bags.within(self.folder))

    @property
    def _remedy(self) -> str:
        return f"Point --data-dir or LLPBENCH_DATA to a folder with the right {file_name(self.name)}."

    def _refuse(self, origin: str, fact: str, expected: str, found: str) -> None:
        what = f"dataset {self.name!r} from {origin} has the wrong {fact}"
        raise DataError(f"{what}: expected {expected}, found {found}. {self._remedy}")


def file_name(name: str) -> str:
    """Return the file name of dataset `name` in the data directory and the cache, without colons."""
    return f"{name.replace(':', '-')}.parquet"


def dataset_spec(name: str) -> DatasetSpec:
    """Return the declaration of a dataset, given its name or code. Raises `LLPBenchError` if it is unknown or wrong."""
    return _spec(DATASETS.entry(name))


def dataset_specs() -> list[DatasetSpec]:
    """Return the declarations of all datasets, in the registry's order."""
    return [_spec(entry) for entry in DATASETS.entries()]


def _spec(entry: Entry) -> DatasetSpec:
    prepare = entry.load()
    given: dict[str, Any] = dict(entry.facts)
    undeclared = {"name", "summary", "prepare", "folder"}
    known = [item.name for item in fields(DatasetSpec) if item.name not in undeclared]
    for fact in given:
        if fact not in known:
            near = difflib.get_close_matches(fact, known, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Available: {', '.join(known)}."
            raise LLPBenchError(
                f"dataset {entry.name!r} ({entry.where}) declares the unknown argument {fact!r}. {hint}"
            )
    if not given.get("target") and not (given.get("bags") and given.get("by")):
        raise LLPBenchError(
            f"dataset {entry.name!r} ({entry.where}) does not declare its 'target'. Add it, or add 'bags' with "
            "known counts, and the columns 'by' that identify them."
        )
    if given.get("target") and given.get("bags"):
        raise LLPBenchError(
            f"dataset {entry.name!r} ({entry.where}) declares a 'target' and 'bags': leave out one of them."
        )
    if given.get("key_only") and given.get("bags"):
        raise LLPBenchError(
            f"dataset {entry.name!r} ({entry.where}) declares 'bags' and 'key_only'. Name its keys in 'by' alone."
        )
    return DatasetSpec(name=entry.name, summary=entry.summary, prepare=prepare, folder=_folder(prepare), **given)


def _folder(function: Callable[..., Any]) -> Path:
    """Return the folder of a function's file; for functions in a prompt or notebook, the working directory."""
    folder = Path(inspect.getsourcefile(function) or "<prompt>").resolve().parent
    return folder if folder.is_dir() else Path.cwd()


def balance_of(table: Table) -> dict[str, int]:
    """Return the number of rows of each class. Raises `LLPBenchError` if labels are unknown."""
    counts = np.bincount(table.row_labels, minlength=len(table.classes))
    return {name: int(count) for name, count in zip(table.classes, counts, strict=True)}


def _counts(balance: Mapping[str, int]) -> str:
    shown = [f"{name} {count:,}" for name, count in sorted(balance.items())]
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")
