"""`llpbench predict` and `estimate`: predictions of rows, and estimates of groups, with a fitted model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.bag_options import (
    bag_options,
    key_names,
    possible_names,
    told_in_flags,
    warnings_as_lines,
)
from llpbench.cli.explaining import check_plot, class_of
from llpbench.cli.helping import OWN_DATA
from llpbench.cli.large_files import (
    as_in_fit,
    estimate_in_batches,
    is_large,
    out_of_core_option,
    predict_in_batches,
)
from llpbench.cli.options import AnyPath, add_options, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.cli.reading_options import Formats, OwnDataCommand, format_options, read_pairs, reading
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.text import plural
from llpbench.tables.column_names import csv_parts

if TYPE_CHECKING:
    from pandas import DataFrame

    from llpbench.core.bags import FloatArray
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.tables.row_files import RowBatches

_PATH = AnyPath(path_type=Path)
_MOST_LINES = 12
"""Largest number of lines of a printed table of groups."""


@dataclass(frozen=True)
class _Given:
    """A model and the rows that it is applied to."""

    model: LLPClassifier
    frame: DataFrame
    """all columns of the file"""
    features: DataFrame
    others: DataFrame
    """columns of the file that are not features"""
    bags: DataFrame | None
    """[rows] label of each row's bag"""
    counts: dict[str, Any]
    """arguments of `LLPClassifier`: weights of rows, and counts or proportions of bags (default: those of `fit`)"""


def _applying(command: Any) -> Any:
    """Add options for input files. The command gets `read`, a function that reads the files."""

    @functools.wraps(command)
    def called(
        model: Path,
        rows: Path,
        bag_column: tuple[str, ...],
        columns: dict[str, Any],
        formats: Formats,
        bags: Path | None,
        weight_column: str | None,
        drop_unmatched: bool,
        out: Path,
        plugin: tuple[str, ...],
        **others: Any,
    ) -> Any:
        from llpbench.tables.writing import require_room

        load_plugins(plugin)
        require_room(out, (rows, bags))  # check before predictions are computed
        if bags is None and any(columns.values()):
            raise LLPBenchError("--counts, --proportions, --class-column and --suppressed need --bags. Add --bags.")

        read = functools.partial(_read, model, rows, bag_column, columns, formats, bags, weight_column)
        read = functools.partial(read, bags_optional=others.get("whole_bags") is False, drop_unmatched=drop_unmatched)
        given = ["--weight-column"] if weight_column is not None else []
        given += ["--drop-unmatched"] if drop_unmatched else []
        if "out_of_core" in others:
            others["in_batches"] = functools.partial(_in_batches, model, rows, bag_column, columns, formats, bags)
        return command(read=read, rows=rows, bags=bags, bag_column=bag_column, out=out, people=given, **others)

    return add_options(called, _APPLYING_OPTIONS)


_APPLYING_OPTIONS = (
    click.argument("model", type=_PATH),
    click.argument("rows", type=_PATH),
    bag_options(required=False),
    click.option(
        "--bags",
        type=_PATH,
        metavar="FILE",
        help="Table with counts of bags that were not in llpbench fit.",
    ),
    click.option("--weight-column", metavar="NAME", help="Column of ROWS with weights, as in llpbench fit."),
    click.option("--drop-unmatched", is_flag=True, help="Drop rows whose bag is missing or has no counts."),
    click.option("--out", required=True, type=_PATH, metavar="FILE", help="File of the result: .csv or .parquet."),
    format_options,
    plugin_option,
)


def _read(
    model: Path,
    rows: Path,
    bag_column: tuple[str, ...],
    columns: dict[str, Any],
    formats: Formats,
    bags: Path | None,
    weight_column: str | None,
    *,
    bags_optional: bool,
    drop_unmatched: bool,
) -> _Given:
    import pandas as pd

    from llpbench.owndata.bag_files import BagFile, require_common_bags
    from llpbench.owndata.weights import weights_of_column
    from llpbench.tables.column_names import column_of, has_column
    from llpbench.tables.row_files import read_rows
    from llpbench.tables.texts import bag_index, bag_keys, bags_as_texts

    loaded, wanted = _load(model)
    with warnings_as_lines(), reading("rows"):
        needed = [(name,) for name in wanted]
        frame = read_rows(
            rows, **as_in_fit(loaded, possible_names(bag_column, "+"), wanted, formats.rows), columns=needed
        )
    names = key_names(bag_column, list(frame.columns)) if bag_column else []
    if not len(frame):
        raise LLPBenchError(f"file {str(rows)!r} has no rows.")
    kept_keys = loaded.reading_.get("keys", [])
    role = ", which the model uses as a feature"
    features = pd.DataFrame(
        {
            name: bag_keys(frame, [name], rows)[name] if name in kept_keys else column_of(frame, name, rows, role)
            for name in wanted
        }
    )
    others = frame.drop(columns=[str(column_of(frame, name, rows).name) for name in wanted])
    try:
        keys = bag_keys(frame, names, rows) if names else None
    except DataError as error:
        if not bags_optional or all(has_column(frame, name) for name in names):
            raise
        raise DataError(f"{error} Omit --bag-column to predict from features only.") from error
    if keys is not None and bags is None:  # labels are texts in files, but may be numbers in a model
        loaded.bags_ = bags_as_texts(loaded.bags_, names)
    with warnings_as_lines(), reading("bags"):
        counts = {} if bags is None else BagFile(bags, names, **columns, form=formats.bags).read()
    if bags is not None and keys is not None:
        require_common_bags(keys, counts.get("counts", counts.get("proportions")), rows, bags)
    if weight_column is not None:
        counts["sample_weight"] = weights_of_column(frame, weight_column, rows)
    if drop_unmatched:
        if keys is None:
            raise LLPBenchError("--drop-unmatched needs the bag of each row. Add --bag-column.")
        table = counts.get("counts", counts.get("proportions"))
        known = pd.Index(loaded.bags_) if table is None else table.index
        there = bag_index(keys).isin(known)
        if not there.any():
            raise LLPBenchError(f"no row of {str(rows)!r} has a bag with counts. Use the names of bags of fit.")
        if not there.all():
            echo(f"dropped {int((~there).sum()):,} of {plural(len(there), 'row')} without a known bag", err=True)
            frame, features, others, keys = (each[there] for each in (frame, features, others, keys))
            if "sample_weight" in counts:
                counts["sample_weight"] = counts["sample_weight"][there]
    return _Given(loaded, frame, features, others, keys, counts)


def _load(folder: Path) -> tuple[LLPClassifier, list[str]]:
    """Return a saved model and the names of its features."""
    from llpbench.owndata.classifier import LLPClassifier

    loaded = LLPClassifier.load(folder)
    if not hasattr(loaded, "feature_names_in_"):
        raise LLPBenchError(
            f"the model in {str(folder)!r} was fitted to an array without column names. Fit it to a frame."
        )
    return loaded, [str(name) for name in loaded.feature_names_in_]


@contextmanager
def _in_batches(
    model: Path,
    rows: Path,
    bag_column: tuple[str, ...],
    columns: dict[str, Any],
    formats: Formats,
    bags: Path | None,
) -> Iterator[tuple[LLPClassifier, RowBatches, list[str], dict[str, Any]]]:
    """Yield a model, the rows in batches, the columns that name bags, and counts of bags if they were not in `fit`."""
    from llpbench.owndata.bag_files import BagFile
    from llpbench.tables.column_names import column_of
    from llpbench.tables.row_files import RowBatches
    from llpbench.tables.texts import bags_as_texts

    loaded, wanted = _load(model)
    with warnings_as_lines(), told_in_flags():
        with reading("rows"):
            batches = RowBatches(rows, **as_in_fit(loaded, possible_names(bag_column, "+"), wanted, formats.rows))
            head = batches.head()
        names = key_names(bag_column, list(head.columns)) if bag_column else []
        with reading("bags"):
            counts = {} if bags is None else BagFile(bags, names, **columns, form=formats.bags).read()
        if names and bags is None:  # labels are texts in files, but may be numbers in a model
            loaded.bags_ = bags_as_texts(loaded.bags_, names)
        for name in names:
            column_of(head, name, rows)
        with reading("rows"):
            yield loaded, batches, names, counts


@click.command(
    cls=OwnDataCommand,
    groups=OWN_DATA,
    examples=(
        "llpbench predict model new.csv --out predictions.csv",
        "llpbench predict model people.csv --bag-column district --whole-bags --out predictions.csv",
    ),
)
@_applying
@click.option(
    "--whole-bags", is_flag=True, help="ROWS contains whole bags; make predictions add up to the counts of bags."
)
@click.option("--interval", is_flag=True, help="Add a 95 % interval of each probability (bag-gp only).")
@out_of_core_option
def predict(
    read: Callable[[], _Given],
    in_batches: Callable[[], AbstractContextManager[Any]],
    rows: Path,
    bags: Path | None,
    bag_column: tuple[str, ...],
    people: list[str],
    out: Path,
    whole_bags: bool,
    interval: bool,
    out_of_core: bool | None,
) -> int:
    """Predict rows with a model of llpbench fit.

    With --bag-column, predictions also use the counts of the row's bag. The result has the columns of ROWS that are
    not features, the column `prediction`, and the probability of each class. --interval adds the ends of a 95 %
    interval of each probability, and the standard error of its logit. --weight-column adds the expected number of
    people of each class. In a .csv result, an apostrophe is put before texts that a spreadsheet would read as formulas.
    """
    from llpbench.tables.writing import write_rows

    if whole_bags and not bag_column:
        raise LLPBenchError("--whole-bags needs the bag of each row. Add --bag-column.")
    if people and not whole_bags:
        raise LLPBenchError(
            f"{people[0]} needs --whole-bags, because otherwise all people of a row get the same prediction. Add "
            f"--whole-bags, or leave {people[0]} out."
        )
    if bags is not None and not whole_bags:
        raise LLPBenchError(
            "--bags needs --whole-bags. Add --whole-bags. For new rows of bags that were in llpbench fit, use "
            "--bag-column without --bags."
        )
    if interval and bag_column:
        raise LLPBenchError("--interval needs predictions from features alone. Leave --bag-column out.")
    in_memory = [*people, *(["--interval"] if interval else [])]
    if is_large(out_of_core, rows, not in_memory):
        _require_none(in_memory)
        with in_batches() as (loaded, batches, keys, counts):
            return predict_in_batches(loaded, batches, keys, counts, out, whole_bags=whole_bags)
    given = read()
    model = given.model
    weights = given.counts.get("sample_weight")
    if weights is not None:
        with warnings_as_lines(), told_in_flags():
            proba = model.disaggregate(given.features, given.bags, **given.counts)
        labels = model.classes_[proba.argmax(axis=1)]
    elif whole_bags:
        with told_in_flags():
            proba, labels = model.disaggregate_and_assign(given.features, given.bags, **given.counts)
    else:
        with warnings_as_lines():
            proba = model.predict_proba(given.features, given.bags)
        labels = model.classes_[proba.argmax(axis=1)]
    added = {"prediction": labels, **_by_class("probability", model, proba)}
    if weights is not None:
        added |= _by_class("count", model, proba * weights[:, None])
    if interval:
        with told_in_flags():
            found = model.predict_interval(given.features)
        added |= _by_class("lower", model, found.lower) | _by_class("upper", model, found.upper)
        added |= _by_class("logit_error", model, found.standard_error)
    if taken := [name for name in added if name in given.others.columns]:
        raise LLPBenchError(
            f"file {str(rows)!r} already has a column {taken[0]!r}, which predictions would replace. Rename it."
        )
    write_rows(given.others.assign(**added), out, [name for name in added if name != "prediction"])
    echo(f"{plural(len(labels), 'prediction')} in {out}")
    return 0


def _require_none(flags: list[str]) -> None:
    """Raise `LLPBenchError` for options that need all rows in memory."""
    if flags:
        raise LLPBenchError(f"{flags[0]} needs all rows in memory, got --out-of-core. Leave one of them out.")


def _by_class(what: str, model: LLPClassifier, values: FloatArray) -> dict[str, FloatArray]:
    return {f"{what}_{label}": column for label, column in zip(model.classes_, values.T, strict=True)}


@click.command(
    cls=OwnDataCommand,
    groups=OWN_DATA,
    examples=(
        "llpbench estimate model people.csv --bag-column district --by sex,age-group --out groups.csv",
        "llpbench estimate model census.csv --bag-column precinct --weight-column people --by sex --out groups.csv",
    ),
)
@_applying
@click.option(
    "--by",
    required=True,
    multiple=True,
    metavar="NAMES",
    help="Columns of ROWS; each combination of their values is a group.",
)
@click.option(
    "--refits",
    default=20,
    show_default=True,
    metavar="N",
    help="Number of refits for intervals (not used by auto and bag-gp).",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Groups, bags and classes to print, such as sex=F,district=7. The file has all.",
)
@click.option("--plot", type=_PATH, metavar="FILE", help="Plot of the groups in all bags: .png, .svg or .pdf.")
@click.option("--class", "label", metavar="NAME", help="Class of the plot. [default: the last]")
@out_of_core_option
def estimate(
    read: Callable[[], _Given],
    in_batches: Callable[[], AbstractContextManager[Any]],
    rows: Path,
    bags: Path | None,
    bag_column: tuple[str, ...],
    people: list[str],
    out: Path,
    by: tuple[str, ...],
    refits: int,
    where: tuple[str, ...],
    plot: Path | None,
    label: str | None,
    out_of_core: bool | None,
) -> int:
    """Estimate counts and shares of groups, in all bags together and in each bag, with intervals.

    ROWS contains whole bags: the bags of llpbench fit, or the bags of --bags. The result first has a line for each
    group and class in all bags (the bag is "all"), then a line for each bag, group and class. `count` and `share` are
    estimates. Columns with _lower and _upper are the ends of 95 % intervals. The counts of bags allow no values
    outside _min and _max.
    """
    import pandas as pd

    from llpbench.owndata.group_estimates import ALL, NUMBERS
    from llpbench.owndata.logit_draws import process_of
    from llpbench.tables.column_names import column_of, split_names
    from llpbench.tables.writing import write_rows

    del bags
    if not bag_column:
        raise LLPBenchError("estimate needs the bag of each row. Add --bag-column.")
    if label is not None and plot is None:
        raise LLPBenchError(
            f"--class {label!r} needs --plot, because the file has all classes. Add --plot or leave --class out."
        )
    if plot is not None:
        check_plot(plot, "--plot")
    wanted = read_pairs([part for text in where for part in csv_parts(text)], "--where")
    shown = None
    in_memory = [*people, *(["--where"] if wanted else [])]
    if is_large(out_of_core, rows, not in_memory):
        _require_none(in_memory)
        with in_batches() as (model, batches, keys, counts):
            drawn, names = class_of(model, label), split_names(by, list(batches.head().columns))
            overall, lines, told = estimate_in_batches(model, batches, keys, counts, out, names)
    else:
        given = read()
        model = given.model
        drawn, names = class_of(model, label), split_names(by, list(given.frame.columns))
        groups = pd.DataFrame({name: column_of(given.frame, name, rows) for name in names})
        with warnings_as_lines(), told_in_flags():
            found = model.estimate(given.features, given.bags, groups, **given.counts, refits=refits)
        write_rows(found, out, NUMBERS)
        shown = _where(found, wanted, list(given.bags.columns)) if wanted and given.bags is not None else None
        assert given.bags is not None
        told = f"{plural(len(groups.drop_duplicates()), 'group')} in {plural(len(given.bags.drop_duplicates()), 'bag')}"
        overall, lines = found[(found[[*given.bags.columns]] == ALL).all(axis=1)], len(found)
    if plot is not None:
        _draw_groups(overall, names, drawn, plot)
    _show_groups(overall if shown is None else shown, names, "all bags" if shown is None else ", ".join(where))
    if (process := process_of(model._model.predictor)) is not None:
        unexplained = f"{100 * process.unexplained:.0f} % of the variance of bags"
        echo(f"{unexplained} is explained neither by features nor chance; its causes may bias groups")
    echo(f"{told}: {plural(lines, 'line')} in {out}" + (f"; plot: {plot}" if plot is not None else ""))
    return 0


def _where(found: DataFrame, wanted: dict[str, str], bags: list[str]) -> DataFrame:
    """Return the lines with values of columns, of all bags together unless `wanted` names a bag."""
    from llpbench.owndata.group_estimates import ALL, NUMBERS

    known = [name for name in found.columns if name not in NUMBERS]
    if not {*bags} & {*wanted}:
        found = found[(found[bags] == ALL).all(axis="columns")]
    for name, value in wanted.items():
        if name not in known:
            raise LLPBenchError(f"--where must name one of {', '.join(known)}, got {name!r}.")
        some = found[found[name].astype(str) == value]
        if not len(some):
            values = ", ".join(map(str, found[name].unique()[:5]))
            raise LLPBenchError(f"--where {name}={value}: no line has this value. Values are {values}.")
        found = some
    return found


def _show_groups(lines: DataFrame, names: list[str], which: str) -> None:
    """Print shares with their intervals, at most `_MOST_LINES`."""
    from rich.console import Console

    from llpbench.report import render_tables
    from llpbench.report.report_table import Heading, ReportTable, text

    rows = [
        tuple(
            text(str(field))
            for field in (
                *(row[name] for name in names),
                row["class"],
                f"{100 * row['share']:.1f}",
                f"[{100 * row['share_lower']:.1f}, {100 * row['share_upper']:.1f}]",
            )
        )
        for row in lines.head(_MOST_LINES).to_dict("records")
    ]
    headings = [Heading(name, numeric=False) for name in (*names, "class", "share", "interval")]
    more = len(lines) - len(rows)
    caption = "Percent, with 95 % intervals." + (f" {plural(more, 'more line')} in the file." if more else "")
    render_tables([ReportTable("groups", f"Groups in {which}", caption, tuple(headings), tuple(rows))], Console())


def _draw_groups(overall: DataFrame, names: list[str], label: Any, plot: Path) -> None:
    from llpbench.report.plots.group_shares import group_shares
    from llpbench.report.plots.saving import save_figure

    overall = overall[overall["class"] == label]
    share = overall["count"].sum() / overall["rows"].sum()
    title = f"Share of {label} by {', '.join(names)}, with 95 % intervals"
    save_figure(lambda: group_shares(overall, names, share, title), plot)
