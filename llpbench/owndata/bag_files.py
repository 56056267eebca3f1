"""Tables of bags in files: a line for each bag with a column for each class, or a line for each bag and class."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from llpbench.core.errors import DataError, LLPBenchError, warn
from llpbench.core.text import plural
from llpbench.data.bag_tables import near_names
from llpbench.owndata.count_ranges import MOST, Range
from llpbench.tables.bag_keys import bag_index, bag_keys
from llpbench.tables.column_names import column_of, csv_line, csv_parts, matching_column, place_of, plain, split_names
from llpbench.tables.csv_dialect import AS_IT_SHOWS, FileFormat
from llpbench.tables.number_text import MISSING, NumberText
from llpbench.tables.row_files import RowBatches
from llpbench.tables.texts import as_text

_MOST_MARKS = 5


@dataclass(frozen=True)
class BagFile:
    """A file of bags and the roles of its columns."""

    path: Path
    keys: Sequence[str]
    """columns that name a bag"""
    counts: Sequence[str]
    """columns with counts; each text names one or several (`split_names`)"""
    proportions: Sequence[str]
    """columns with proportions"""
    class_column: str | None = None
    """column with the class, in a table with a line for each bag and class"""
    size_column: str | None = None
    """column with the number of rows of the whole bag"""
    time_column: str | None = None
    """column with the time of the bag, unless it is in the file of rows"""
    suppressed: Sequence[str] = ()
    """marks of suppressed numbers, in addition to empty cells"""
    form: FileFormat = AS_IT_SHOWS
    """format of the file, as far as the user has set it"""

    def read(self, of_rows: Sequence[str] = ()) -> dict[str, Any]:
        """Return the table as arguments of `LLPClassifier.fit`. `of_rows` are the columns of the file of rows.

        Raises `LLPBenchError` unless there are either counts or proportions, and `DataError` for texts among numbers.
        """
        if bool(self.counts) == bool(self.proportions):
            raise LLPBenchError(
                "--counts and --proportions cannot be combined. Leave one of them out."
                if self.counts
                else "the counts of bags are missing. Name their columns with --counts or --proportions."
            )
        long = self.class_column is not None
        frame = RowBatches(self.path, features=(), form=self.form, columns=self._columns()).together()
        known = [*frame.columns]
        values = split_names(self.counts or self.proportions, known)
        if long and len(values) != 1:
            raise LLPBenchError(
                f"--class-column needs one column of counts, got {', '.join(values)}. If each class has a column, "
                "leave --class-column out."
            )
        if len(set(values)) < len(values):
            raise LLPBenchError(f"each class must have its own column, got {', '.join(values)}. Name each column once.")
        if not any(matching_column(name, known) for name in values) and {*values} <= {*of_rows}:
            raise LLPBenchError(
                f"file {str(self.path)!r} has no column of counts, but the file of rows has: {', '.join(values)}. Give "
                "the rows first, then --bags with their counts."
            )
        for name in (name for name in self.keys if name in of_rows and not matching_column(name, known)):
            column_of(frame, name, self.path, f". If it has another name there, use --bag-column {name}=NAME")
        names = [*self.keys, *([self.class_column] if self.class_column is not None else [])]
        keys = bag_keys(frame, names, self.path)
        bags = bag_index(keys[list(self.keys)])
        again = keys.duplicated() & keys.notna().all(axis="columns") if long else bags.duplicated()
        if again.any():
            row = int(again.argmax())
            others = [name for name in map(str, frame.columns) if name not in {*names, *values}]
            parts = [name for name in others if not keys.assign(other=frame[name].to_numpy()).duplicated().any()]
            part = min(parts, key=lambda name: frame[name].nunique(), default="")
            advice = "Remove one of the lines." + " If each line is for one class, use --class-column." * (not long)
            if part and part in of_rows:
                advice = f"Lines differ in {part!r}. Use --bag-column {shlex.quote('+'.join([*self.keys, part]))}."
            elif part:
                advice = f"Lines differ in {part!r}. Add up the lines of each bag, or add this column to ROWS."
            where, one = place_of(frame, row), "one line for each bag" + " and class" * long
            raise DataError(
                f"file {str(self.path)!r} must have {one}, got bag {bags[row]!r} again in {where}. {advice}"
            )
        table = self._numbers(frame, values, bags)
        classes = [plain(name) for name in values]
        table.columns = pd.Index(classes if len(set(classes)) == len(classes) else values)
        table.index = pd.MultiIndex.from_frame(keys) if len(names) > 1 else pd.Index(keys.iloc[:, 0])
        given = table.iloc[:, 0] if long else table
        found: dict[str, Any] = {"counts" if self.counts else "proportions": given}
        if self.size_column is not None:
            sizes = self._numbers(frame, [self.size_column], bags, whole=True)[self.size_column]
            found["sizes"] = one_per_bag(sizes, bags, self.path)
        if self.time_column is not None and matching_column(self.time_column, known):
            times = column_of(frame, self.time_column, self.path)
            found["time"] = one_per_bag(times, bags, self.path)
        return found

    def _columns(self) -> list[tuple[str, ...]]:
        """Return the columns of the file, each with its possible names: a text may name one column or several."""
        single = [*self.keys, *filter(None, (self.class_column, self.size_column))]
        several = [(part, text) for text in (*self.counts, *self.proportions) for part in csv_parts(text)]
        return [*((name,) for name in single), *several]

    def _numbers(
        self, frame: pd.DataFrame, names: Sequence[str], bags: pd.Index, *, whole: bool = False
    ) -> pd.DataFrame:
        """Return columns as numbers: NaN if empty or suppressed, percentages as shares. All have one decimal mark."""
        columns = {name: column_of(frame, name, self.path) for name in names}
        missing = {*self.suppressed, *MISSING}
        every = pd.concat([as_text(column) for column in columns.values()], ignore_index=True)
        decimal = self.form.decimal or NumberText.read(every, missing=missing, known_gaps=False).decimal
        found = {
            name: NumberText.read(column, decimal=decimal, missing=missing, known_gaps=False)
            for name, column in columns.items()
        }
        ranged = bool(self.counts) and not whole
        wrong = {
            name: each.broken[[not ranged or each.percent or Range.read(text) is None for text in each.broken]]
            for name, each in found.items()
        }
        marks = list(dict.fromkeys(mark for each in wrong.values() for mark in each))
        for name, each in found.items():
            if len(broken := wrong[name]):
                one, row = len(broken) == 1, int(broken.index[0])
                advice = f"Correct {'it' if one else 'them'}"
                if len(marks) <= _MOST_MARKS:
                    advice += f", or use --suppressed {shlex.quote(csv_line(marks))} if "
                    advice += "it marks a suppressed count" if one else "they mark suppressed counts"
                raise DataError(
                    f"file {str(self.path)!r}: column {name!r} must be numeric, got {broken.iloc[0]!r} for bag "
                    f"{bags[row]!r} in {place_of(frame, row)} ({plural(len(broken), 'such value')}). {advice}."
                )
            if each.percent and (whole or self.counts):
                example = "%" if each.example is None else each.example[0]
                raise DataError(
                    f"file {str(self.path)!r}: column {name!r} must contain counts, got {example!r}, a percentage. "
                    "Use --proportions for such columns."
                )
        if read := next((each.told(name) for name, each in found.items() if each.example is not None), None):
            warn("file", f"file {str(self.path)!r}: {read}.")
        numbers = pd.DataFrame({name: each.values / (100 if each.percent else 1) for name, each in found.items()})
        ranges = {name: each.broken.astype(object) for name, each in found.items() if len(each.broken)}
        for name, texts in ranges.items():
            numbers[name] = numbers[name].astype(object)
            numbers.loc[texts.index, name] = texts
        if ranges:
            number, (name, texts) = sum(map(len, ranges.values())), next(iter(ranges.items()))
            text = str(texts.iloc[0])
            low, high = Range.read(text) or (0, 0)
            warn(
                "file",
                f"file {str(self.path)!r}: {plural(number, 'count')} {'is a range' if number == 1 else 'are ranges'}, "
                f"such as {text!r} in column {name!r}, read as {low:g} {f'to {high:g}' if high < MOST else 'or more'}. "
                f"To ignore such counts: --suppressed {shlex.quote(csv_line([text]))}.",
            )
        return numbers


def one_per_bag(values: pd.Series, bags: pd.Index, path: Path) -> pd.Series:
    """Return the value of each bag from lines of a file with their `bags`; lines of no bag are left out.

    Raises `DataError` if a bag has several values.
    """
    flat = bags.to_flat_index()
    inside = flat.notna()
    lines = pd.DataFrame({"bag": flat, "value": values.to_numpy()})[inside].drop_duplicates()
    if (twice := lines["bag"].duplicated(keep=False)).any():
        bag = lines["bag"][twice].iloc[0]
        one, other = lines["value"][lines["bag"] == bag].tolist()[:2]
        raise DataError(
            f"a bag must have one {values.name}, got {one!r} and {other!r} for bag {bag!r} in file {str(path)!r}. "
            "Correct the file, use smaller bags, or name another column."
        )
    return pd.Series(values.to_numpy(), index=bags)[inside & ~flat.duplicated()]


def require_common_bags(keys: pd.DataFrame, table: pd.Series | pd.DataFrame, rows: Path, bags: Path) -> None:
    """Raise `DataError` if no bag of the rows is in a table of bags. `keys` are columns that name the bag of a row."""
    ours = keys.dropna().drop_duplicates()
    theirs = table.index.to_frame(index=False).iloc[:, : keys.shape[1]].dropna().drop_duplicates()
    if not (len(ours) and len(theirs)) or len(bag_index(ours).intersection(bag_index(theirs))):
        return
    near = near_names([*bag_index(ours)], [*bag_index(theirs)])
    advice = f"Use the same names in both files{f': {near}' * bool(near)}."
    some = [", ".join(map(repr, bag_index(each)[:3])) + ", ..." * (len(each) > 3) for each in (ours, theirs)]
    raise DataError(f"no bag of file {str(rows)!r} ({some[0]}) is in file {str(bags)!r} ({some[1]}). {advice}")
