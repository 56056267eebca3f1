"""`llpbench fit`, `predict` and `choose`: your own tables, without labels."""

from __future__ import annotations

import contextlib
import functools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli import FAILED
from llpbench.cli.helping import OWN_DATA
from llpbench.cli.large_files import (
    as_in_fit,
    batches_to_fit,
    fit_any,
    is_large,
    out_of_core_option,
    predict_in_batches,
)
from llpbench.cli.options import AnyPath, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.cli.reading_options import Formats, OwnDataCommand, format_options, read_pairs, reading
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.owndata.marks import csv_parts

if TYPE_CHECKING:
    from llpbench.owndata.doubts import Doubts

_PATH = AnyPath(path_type=Path)


_FLAGS = {
    "sampled=True": "--sampled",
    "as_shares=True": "--as-shares",
    "shares as proportions=": "shares by --proportions",
    "noise=": "--noise",
    "impossible='suppress'": "--suppress-impossible",
    "unmatched='drop'": "--drop-unmatched",
    "sizes=": "--size-column",
    "counts= or proportions= of all bags": "--bags, a table of them all",
    "counts= of these": "--bags, a table of these",
    "there is predict_proba(X, bags)": "leave --whole-bags out",
}
"""what messages of `LLPClassifier` tell to give, by what it is called on the command line"""


@contextlib.contextmanager
def _told_in_flags() -> Iterator[None]:
    try:
        yield
    except LLPBenchError as error:
        told = str(error)
        for argument, flag in _FLAGS.items():
            told = told.replace(argument, flag)
        raise type(error)(told) from error


_BAG_OPTIONS = (
    click.option(
        "--counts",
        multiple=True,
        metavar="NAMES",
        help="Columns of BAGS with the counts of each class, or of the positive class.",
    ),
    click.option(
        "--proportions", multiple=True, metavar="NAMES", help="Columns of BAGS with proportions instead of counts."
    ),
    click.option(
        "--class-column",
        metavar="NAME",
        help="Column of BAGS with the class (one line a bag and class).",
    ),
    click.option(
        "--suppressed",
        multiple=True,
        metavar="MARKS",
        help="Marks of suppressed numbers in BAGS: '*,<5'.",
    ),
)
"""what says of a table of bags which columns hold what"""


def _bag_options(required: bool) -> Callable[[Any], Any]:
    """The columns that name a bag, and `_BAG_OPTIONS`, which the command gets as `columns`."""

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def called(
            counts: tuple[str, ...],
            proportions: tuple[str, ...],
            class_column: str | None,
            suppressed: tuple[str, ...],
            **others: Any,
        ) -> Any:
            columns = {
                "counts": counts,
                "proportions": proportions,
                "class_column": class_column,
                "suppressed": [mark for text in suppressed for mark in csv_parts(text)],
            }
            return command(columns=columns, **others)

        decorated: Any = called
        for option in reversed(_BAG_OPTIONS):
            decorated = option(decorated)
        return click.option(
            "--bag-column",
            required=required,
            multiple=True,
            metavar="NAME[+NAME]",
            help="Columns of both files that name the bag.",
        )(decorated)

    return decorate


_LEARNING_OPTIONS = (
    click.argument("rows", type=_PATH),
    click.option("--bags", required=True, type=_PATH, metavar="FILE", help="Table with a row for each bag."),
    _bag_options(required=True),
    click.option("--seed", default=0, show_default=True, metavar="N", help="Random seed."),
    click.option("--size-column", metavar="NAME", help="Column of BAGS with the rows of a whole bag."),
    click.option(
        "--classes",
        multiple=True,
        metavar="NAMES",
        help="Names of the classes, in the order of columns.",
    ),
    click.option("--sampled", is_flag=True, help="ROWS are a sample of each bag."),
    click.option(
        "--as-shares",
        is_flag=True,
        help="Counts are of other people than ROWS or in other units: use shares.",
    ),
    click.option(
        "--repeat-column",
        metavar="NAME",
        help="Column of ROWS: how many people a row stands for.",
    ),
    click.option(
        "--noise", default=0.0, metavar="SCALE", help="Scale of the privacy noise added to each count. [default: 0]"
    ),
    click.option(
        "--noise-kind",
        type=click.Choice(["gaussian", "laplace"]),
        default="gaussian",
        show_default=True,
        help="Distribution of that noise.",
    ),
    click.option(
        "--leave-out",
        multiple=True,
        metavar="NAMES",
        help="Columns of ROWS that are not features.",
    ),
    click.option(
        "--keep-key",
        is_flag=True,
        help="Use the columns that name bags as features, too.",
    ),
    click.option(
        "--types", multiple=True, metavar="NAME=TYPE", help="Type of a column of ROWS: income=number, zip=text."
    ),
    click.option(
        "--drop-unmatched",
        is_flag=True,
        help="Drop rows without a bag, bags without rows and other classes.",
    ),
    click.option("--suppress-impossible", is_flag=True, help="Treat inconsistent counts as missing."),
    format_options,
    plugin_option,
)
"""of what learns from rows in bags"""


def _learning(command: Any) -> Any:
    """`_LEARNING_OPTIONS`; the command gets the name of the file of `rows`, the `seed`, and `given`: what
    `LLPClassifier.fit` takes."""

    @functools.wraps(command)
    def called(
        rows: Path,
        bags: Path,
        bag_column: tuple[str, ...],
        columns: dict[str, Any],
        formats: Formats,
        size_column: str | None,
        classes: tuple[str, ...],
        leave_out: tuple[str, ...],
        keep_key: bool,
        types: tuple[str, ...],
        drop_unmatched: bool,
        suppress_impossible: bool,
        plugin: tuple[str, ...],
        sampled: bool,
        as_shares: bool,
        repeat_column: str | None,
        noise: float,
        noise_kind: str,
        **others: Any,
    ) -> Any:
        from llpbench.owndata.bag_files import BagFile
        from llpbench.owndata.column_names import split_names
        from llpbench.owndata.large_fit import LargeRows
        from llpbench.owndata.row_files import bag_keys, column_of, read_rows, repeated

        load_plugins(plugin)
        if rows == bags == Path("-"):
            raise LLPBenchError("ROWS and --bags must not both be standard input, got - twice.")
        kinds, keys = read_pairs(types, "--types"), _possible_names(bag_column, "+")
        with _warnings_as_lines(), reading("rows"):
            large = batches_to_fit(rows, kinds, keys, formats.rows, repeat_column, others)
            frame = read_rows(rows, kinds, keys, form=formats.rows) if large is None else large.head()
        decimals = frame.attrs["decimals"]
        known = list(frame.columns)
        names = _key_names(bag_column, known)
        out = [str(column_of(frame, name, rows).name) for name in split_names(leave_out, known)]
        for name in (str(column_of(frame, name, rows).name) for name, kind in kinds.items() if kind == "text"):
            frame[name] = frame[name].astype("category")  # somebody has said what it is
        if repeat_column is not None:
            if large is not None:
                raise LLPBenchError(
                    "--repeat-column cannot be combined with --out-of-core. Repeat the rows in the file."
                )
            frame = repeated(frame, repeat_column, rows)
        with _warnings_as_lines(), reading("bags"):
            table = BagFile(bags, names, **columns, size_column=size_column, form=formats.bags).read()
        bag_of_row = bag_keys(frame, names, rows)
        key_columns = [str(column_of(frame, name, rows).name) for name in names]
        if keep_key:
            frame[key_columns] = bag_of_row[names].to_numpy(dtype=object)
        given = {
            "X": frame.drop(columns=out if keep_key else [*key_columns, *out], errors="ignore"),
            "bags": bag_of_row,
            **table,
            "classes": _class_names(classes, table) or None,
            "sampled": sampled,
            "as_shares": as_shares,
            "noise": noise,
            "noise_kind": noise_kind,
            "unmatched": "drop" if drop_unmatched else "raise",
            "impossible": "suppress" if suppress_impossible else "raise",
            "keep_key": keep_key,
        }
        if large is not None:
            given["X"] = LargeRows(large, key_columns, out, keep_key)
        read = {
            "missing": list(formats.rows.missing),
            "decimals": decimals,
            "keys": [name for name in key_columns if keep_key and name not in out],
        }
        with _told_in_flags():
            return command(rows=rows, given=given, read=read, **others)

    decorated: Any = called
    for option in reversed(_LEARNING_OPTIONS):
        decorated = option(decorated)
    return decorated


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """What fits and predictions warn of as a line, but for doubts, which are told when a fit is done."""
    from llpbench.owndata.classifier import UnknownBags
    from llpbench.owndata.columns import LikelyIdentifier, UnknownCategories
    from llpbench.owndata.doubts import CollapsedNetwork, DoubtfulFit
    from llpbench.owndata.extremes import ExtremeValues
    from llpbench.owndata.number_text import NumbersAsText
    from llpbench.owndata.rare import FewPositives
    from llpbench.owndata.row_files import FileNote
    from llpbench.owndata.sizes import LargeFit

    lines = (
        LargeFit,
        LikelyIdentifier,
        UnknownBags,
        UnknownCategories,
        NumbersAsText,
        FileNote,
        CollapsedNetwork,
        ExtremeValues,
        FewPositives,
    )
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **others: Any) -> None:
            if issubclass(category, lines):
                echo(f"llpbench: warning: {message}", err=True)
            else:
                usual(message, category, *where, **others)

        warnings.simplefilter("ignore", DoubtfulFit)
        for told in lines:
            warnings.simplefilter("always", told)
        warnings.showwarning = show
        yield


def _warn_of(doubts: Doubts | None) -> None:
    if doubts is not None and doubts.warning:
        echo(f"llpbench: warning: {doubts.warning}", err=True)


@click.command(
    cls=OwnDataCommand,
    groups=OWN_DATA,
    examples=(
        "llpbench fit people.csv --bags votes.csv --bag-column district --counts yes,no --out model",
        "llpbench fit people.csv --bags rates.csv --bag-column district --proportions late --out model",
    ),
)
@_learning
@click.option("--out", required=True, type=_PATH, metavar="DIR", help="Folder of the model.")
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="Method that learns from bags.")
@out_of_core_option
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a hyperparameter; may be repeated.")
@click.option("--encoder", default="mlp", show_default=True, metavar="NAME", help="Encoder of a network.")
@click.option(
    "--numbers",
    metavar="NAME",
    help="Scaling of numbers: z, scores (normal scores) or robust.",
)
@click.option(
    "--pretraining", default="none", show_default=True, metavar="NAME", help="Pretraining of a network's encoder."
)
@click.option(
    "--ensemble",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Models that are averaged.",
)
def fit(
    rows: Path,
    given: dict[str, Any],
    read: dict[str, Any],
    out: Path,
    method: str,
    settings: tuple[str, ...],
    encoder: str,
    numbers: str | None,
    pretraining: str,
    ensemble: int,
    seed: int,
) -> int:
    """Learn from rows in bags with known counts.

    No labels are needed. ROWS is a .csv, .tsv, .xlsx or .parquet file (also compressed), a folder, a quoted
    pattern, or - for standard input.
    """
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.storing import demand_free

    del rows
    model = LLPClassifier(
        method,
        params=read_pairs(settings, "--set") or None,
        encoder=encoder,
        numbers=numbers,
        pretraining=pretraining,
        ensemble=ensemble,
        random_state=seed,
    )
    demand_free(out)  # before minutes of fitting
    clock = time.perf_counter()
    with _warnings_as_lines():
        model = fit_any(model, given)
    seconds = time.perf_counter() - clock
    model.reading_ = read
    model.save(out)
    _warn_of(model.doubts_)
    left = model.left_out_
    if left["rows"] or left["bags"]:
        echo(f"left out: {plural(left['rows'], 'row')} without a known bag, {plural(left['bags'], 'bag')} without rows")
    if left["suppressed"]:
        echo(f"suppressed: {plural(left['suppressed'], 'bag')} without counts in the table")
    if left["impossible"]:
        echo(f"suppressed: {plural(left['impossible'], 'bag')} whose counts cannot be those of their rows")
    echo(
        f"{plural(int(model.bag_sizes_.sum()), 'row')} in {plural(len(model.bags_), 'bag')}, "
        f"{plural(model.n_features_in_, 'feature')}, classes {', '.join(map(str, model.classes_))}: "
        f"fitted in {seconds:.1f} s, saved in {out}"
    )
    return 0


@click.command(
    cls=OwnDataCommand,
    groups=OWN_DATA,
    examples=(
        "llpbench choose people.csv --bags votes.csv --bag-column district --counts yes,no",
        "llpbench choose people.csv --bags votes.csv --bag-column district --counts yes,no --methods auto,dllp",
    ),
)
@_learning
@click.option("--methods", metavar="NAMES", help="Methods to compare: auto,bag-gp,dllp. [default: six]")
@click.option("--folds", default=5, show_default=True, metavar="N", help="Parts that bags are split into.")
@click.option("--repeats", default=2, show_default=True, metavar="N", help="Random splits into parts.")
@click.option("--out", default="choice", show_default=True, type=_PATH, metavar="DIR", help="Folder of the page.")
def choose(
    rows: Path,
    given: dict[str, Any],
    read: dict[str, Any],
    methods: str | None,
    folds: int,
    repeats: int,
    seed: int,
    out: Path,
) -> int:
    """Compare methods on your own bags and recommend one.

    Bags are held out in turn; no labels are needed. ROWS are files as in llpbench fit. Writes a page, tables (CSV)
    and plots.
    """
    from rich.console import Console

    del read
    from llpbench.cli.choice_files import board_table, demand_own, write_choice
    from llpbench.core.files import obstacle
    from llpbench.owndata import choosing
    from llpbench.report import render_tables

    if out.exists() and not out.is_dir():
        raise LLPBenchError(f"{str(out)!r} is a file. Choose another --out.")
    if told := obstacle(out):  # before minutes of fitting
        raise LLPBenchError(f"{str(out)!r} cannot be written: {told}. Choose another --out.")
    demand_own(out)
    with _warnings_as_lines():
        compared = _names(methods) or choosing.COMPARED
        found = choosing.choose(**given, methods=compared, folds=folds, repeats=repeats, random_state=seed)
    render_tables([board_table(found)], Console())
    echo(found.advice)
    _warn_of(None if found.union is None else found.union.doubts_)
    echo(f"page: {write_choice(found, rows.name, out)}", err=True)
    return FAILED if found.board["failure"].any() else 0


@click.command(
    cls=OwnDataCommand,
    groups=OWN_DATA,
    examples=(
        "llpbench predict model new.csv --out predictions.csv",
        "llpbench predict model people.csv --bag-column district --whole-bags --out predictions.csv",
    ),
)
@click.argument("model", type=_PATH)
@click.argument("rows", type=_PATH)
@_bag_options(required=False)
@click.option("--bags", type=_PATH, metavar="FILE", help="With --whole-bags: table of bags that fit has not seen.")
@click.option(
    "--whole-bags",
    is_flag=True,
    help="ROWS are whole bags; predictions add up to their counts.",
)
@click.option(
    "--repeat-column",
    metavar="NAME",
    help="Column of ROWS: how many people a row stands for.",
)
@click.option("--out", required=True, type=_PATH, metavar="FILE", help="File of the predictions: .csv or .parquet.")
@out_of_core_option
@format_options
@plugin_option
def predict(
    model: Path,
    rows: Path,
    bag_column: tuple[str, ...],
    columns: dict[str, Any],
    formats: Formats,
    bags: Path | None,
    whole_bags: bool,
    repeat_column: str | None,
    out: Path,
    out_of_core: bool | None,
    plugin: tuple[str, ...],
) -> int:
    """Predict rows with a model of llpbench fit.

    With --bag-column, predictions also use the counts of the row's bag. The file has the columns of ROWS that are not
    features, `prediction`, and the probability of each class. In a .csv, text that a spreadsheet would read as a
    formula begins with an apostrophe.
    """
    import pandas as pd

    from llpbench.owndata.bag_files import BagFile
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.row_files import (
        bag_keys,
        bags_as_texts,
        column_of,
        demand_room,
        read_rows,
        repeated,
        write_rows,
    )
    from llpbench.owndata.table_sources import is_among

    load_plugins(plugin)
    demand_room(out)  # before anything is predicted
    if any(is_among(out, each) for each in (rows, bags) if each is not None):
        raise LLPBenchError(f"--out {str(out)!r} is one of the input files. Choose another --out.")
    if whole_bags and not bag_column:
        raise LLPBenchError("--whole-bags needs --bag-column, the column with the bag of each row.")
    if repeat_column is not None and not whole_bags:
        raise LLPBenchError("--repeat-column needs --whole-bags: all people of a row are predicted alike.")
    if bags is None and any(columns.values()):
        raise LLPBenchError("--counts, --proportions, --class-column and --suppressed need --bags. Add it.")
    if bags is not None and not whole_bags:
        raise LLPBenchError("--bags needs --whole-bags. For new rows of the bags of fit, give --bag-column alone.")
    loaded = LLPClassifier.load(model)
    if not hasattr(loaded, "feature_names_in_"):
        raise LLPBenchError(
            f"the model in {str(model)!r} was fitted to an array without column names. Fit it to a frame."
        )
    wanted = [str(name) for name in loaded.feature_names_in_]
    given = as_in_fit(loaded, _possible_names(bag_column, "+"), wanted, formats.rows)

    def key_names(known: list[str]) -> list[str]:
        return _key_names(bag_column, known) if bag_column else []

    if is_large(out_of_core, rows, not whole_bags):
        with _warnings_as_lines(), reading("rows"):
            return predict_in_batches(loaded, rows, given, key_names, out, whole_bags)
    with _warnings_as_lines(), reading("rows"):
        frame = read_rows(rows, **given)
    names = key_names(list(frame.columns))
    if repeat_column is not None:
        frame = repeated(frame, repeat_column, rows)
    if not len(frame):
        raise LLPBenchError(f"file {str(rows)!r} has no rows.")
    kept_keys = loaded.reading_.get("keys", [])
    features = pd.DataFrame(
        {
            name: bag_keys(frame, [name], rows)[name] if name in kept_keys else column_of(frame, name, rows)
            for name in wanted
        }
    )
    kept = frame.drop(columns=[str(column_of(frame, name, rows).name) for name in wanted])
    added = ["prediction", *(f"probability_{label}" for label in loaded.classes_)]
    if taken := [name for name in added if name in kept.columns]:
        raise LLPBenchError(
            f"file {str(rows)!r} already has a column {taken[0]!r}, which predictions would replace. Rename it."
        )
    keys = bag_keys(frame, names, rows) if names else None
    if keys is not None and bags is None:  # a model fitted in Python may call bags by numbers; files call them by texts
        loaded.bags_ = bags_as_texts(loaded.bags_, names)
    if whole_bags:
        with _warnings_as_lines(), reading("bags"):
            known = {} if bags is None else BagFile(bags, names, **columns, form=formats.bags).read()
        with _told_in_flags():
            proba, labels = loaded.disaggregate_and_assign(features, keys, **known)
    else:
        with _warnings_as_lines():
            proba = loaded.predict_proba(features, keys)
        labels = loaded.classes_[proba.argmax(axis=1)]
    found = kept.assign(**dict(zip(added, [labels, *proba.T], strict=True)))
    write_rows(found, out)
    echo(f"{plural(len(found), 'prediction')} in {out}")
    return 0


def _names(text: str | None) -> list[str]:
    return csv_parts(text or "")


def _possible_names(given: Iterable[str], between: str) -> list[str]:
    """Every name that an option could hold: each text, and each run of its parts."""
    found = []
    for text in given:
        parts = text.split(between)
        runs = [between.join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)]
        found += [*runs, *csv_parts(text, between)]
    return found


def _key_names(given: tuple[str, ...], known: list[str]) -> list[str]:
    from llpbench.owndata.column_names import split_names

    names = split_names(given, known, "+")
    if not names:
        raise LLPBenchError(
            f"--bag-column {''.join(given)!r} must name a column. Give the one with the bag of each row."
        )
    return names


def _class_names(given: tuple[str, ...], table: dict[str, Any]) -> list[str]:
    """The classes that --classes names; where it is repeated, each text is one."""
    from llpbench.owndata.column_names import split_names

    values: Any = table.get("counts", table.get("proportions"))
    known = [str(name) for name in (values.index.unique(-1) if values.ndim == 1 else values.columns)]
    if len(known) > 1:
        return split_names(given, known)
    return [text.strip() for text in given] if len(given) > 1 else [name for text in given for name in csv_parts(text)]
