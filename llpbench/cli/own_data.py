"""`llpbench fit` and `choose`: your own tables, without labels."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli import FAILED
from llpbench.cli import reading_options as common
from llpbench.cli.options import AnyPath, add_options, load_plugins, plugin_option
from llpbench.cli.output import echo, print_table
from llpbench.cli.reading_options import column_option, file_option, names_option, number_option
from llpbench.core.errors import LLPBenchError, warn
from llpbench.core.text import plural
from llpbench.tables.column_names import column_of, csv_parts, matching_column, split_names

if TYPE_CHECKING:
    from pandas import DataFrame

    from llpbench.owndata.bag_data import BagData
    from llpbench.owndata.choosing import MethodChoice

_PATH = AnyPath(path_type=Path)
_flag = functools.partial(click.option, is_flag=True)
_LEARNING_OPTIONS = (
    click.argument("rows", type=_PATH),
    file_option("--bags", required=True, multiple=True, help="Table with a row for each bag; fit accepts several."),
    common.bag_options(required=True),
    number_option("--seed", default=0, help="Random seed."),
    column_option("--size-column", help="Column of BAGS with the number of rows of the whole bag."),
    names_option("--classes", help="Both classes, the counted one last; with several columns, the classes to use."),
    column_option("--rest-as", help="Add a class: the rows of a bag that no other class counts."),
    _flag("--sampled", help="ROWS is only a sample of the rows of each bag."),
    _flag("--as-shares", help="Use only the shares of counts, which describe other people or have other units."),
    column_option("--weight-column", help="Column of ROWS with the number of people that a row stands for."),
    click.option(
        "--noise", default=0.0, metavar="DEVIATION", help="Standard deviation of noise in counts (Laplace: 1.414 b)."
    ),
    names_option("--leave-out", help="Columns of ROWS that are not used as features."),
    _flag("--keep-key", help="Use the columns that name bags as features, too."),
    click.option("--types", multiple=True, metavar="NAME=TYPE", help="Type of a column of ROWS: number or text."),
    _flag("--drop-unmatched", help="Drop rows and bags without each other, and classes that --classes does not name."),
    _flag("--suppress-impossible", help="Treat counts that do not fit the rows of their bag as missing."),
    common.format_options,
    plugin_option,
)
"""Options of commands that fit methods to bags."""


def _learning(command: Any) -> Any:
    """Add `_LEARNING_OPTIONS`. The command gets `features`, `data`, how rows were `read`, and its own options."""

    @functools.wraps(command)
    def called(plugin: tuple[str, ...], **given: Any) -> Any:
        load_plugins(plugin)
        options = {name: given.pop(name) for name in [*given] if name in _READ}
        features, data, read = _read(seed=given["seed"], **options)
        return command(features=features, data=data, read=read, **given)

    return add_options(called, _LEARNING_OPTIONS)


def _read(
    *,
    rows: Path,
    bags: tuple[Path, ...],
    bag_column: tuple[str, ...],
    columns: dict[str, Any],
    formats: common.Formats,
    classes: tuple[str, ...],
    leave_out: tuple[str, ...],
    types: tuple[str, ...],
    drop_unmatched: bool,
    suppress_impossible: bool,
    weight_column: str | None,
    seed: int,
    out_of_core: bool | None = False,
    most_rows: int = 0,
    **facts: Any,
) -> tuple[DataFrame, BagData, dict[str, Any]]:
    """Return the features of rows, the data of bags (`facts`: options of `BagData.read`), and how rows were read."""
    import pandas as pd

    from llpbench.owndata.bag_data import BagData
    from llpbench.owndata.fitting import progress_display
    from llpbench.owndata.own_files import BagFile, draw_bags, one_per_bag
    from llpbench.tables.bag_keys import bag_index, bag_keys
    from llpbench.tables.row_files import RowBatches

    kinds, keep_key, one = common.read_pairs(types, "--types"), facts["keep_key"], len(bags) == 1
    with common.reading("rows"):
        large = common.is_large(out_of_core, rows, "" if one else "several --bags")
        wanted = [(part, text) for text in bag_column for part in common.possible_names([text])]
        batches = RowBatches(rows, kinds, keys=common.possible_names(bag_column), form=formats.rows, columns=wanted)
        frame = batches.rows_or_head(head=large)
    known = list(frame.columns)

    def named(names: Iterable[str]) -> list[str]:
        return [str(column_of(frame, name, rows).name) for name in names]

    if not one and len(bags) != len(bag_column):
        got = f"got {len(bags)} and {len(bag_column)}. Give each table of bags its own --bag-column."
        raise LLPBenchError(f"--bags and --bag-column must be given equally often, {got}")
    if not one and columns["size_column"] is not None:
        raise LLPBenchError(f"--size-column needs one table of bags, got {len(bags)}. Leave it out.")
    groupings = [common.key_names(texts, known) for texts in ([bag_column] if one else zip(bag_column, strict=True))]
    with common.reading("bags"):
        pairs = zip(bags, groupings, strict=True)
        tables = [BagFile(path, names, **columns, form=formats.bags).read(known) for path, (_, names) in pairs]
    out = named(split_names(leave_out, known)) + named([weight_column] if weight_column is not None else [])
    texts = named(name for name, kind in kinds.items() if kind == "text")
    if large:
        with common.reading("rows"), progress_display() as progress:
            frame, tables[0] = draw_bags(batches, groupings[0][0], tables[0], most_rows, seed, drop_unmatched, progress)
        if drawn := frame.attrs.get("drawn"):
            echo(f"llpbench: {drawn}", err=True)
    frame = frame.astype(dict.fromkeys(texts, "category"))  # the user has declared their type
    weights = None if weight_column is None else column_of(frame, weight_column, rows)
    keys = [bag_keys(frame, names, rows) for names, _ in groupings]
    names = [*dict.fromkeys(name for own, _ in groupings for name in own)]
    key_columns, table = named(names), tables[0]
    times = table.pop("time", None)
    if (time_column := columns.get("time_column")) is not None:
        if matching_column(time_column, known):
            column = column_of(frame, time_column, rows)
            out += [str(column.name)] if column.name not in key_columns else []
            times = one_per_bag(column, bag_index(keys[0]), rows) if times is None else times
        elif times is None:
            raise LLPBenchError(f"--time-column must be a column of {bags[0]} or {rows}, got {time_column!r}.")
    if keep_key:
        every = pd.concat(keys, axis=1)
        frame[key_columns] = every.loc[:, ~every.columns.duplicated()][names].to_numpy(dtype=object)
    features = frame.drop(columns=out if keep_key else [*key_columns, *out], errors="ignore")
    if not features.shape[1]:
        raise LLPBenchError("no feature is left in ROWS. Keep at least one column besides the bag.")
    if not one:
        table = {name: [each.get(name) for each in tables] for name in table if name != "sizes"}
    facts |= {"classes": _class_names(classes, tables[0]) or None, "sample_weight": weights}
    facts["unmatched"] = "drop" if drop_unmatched else "raise"
    facts["impossible"] = "suppress" if suppress_impossible else "raise"
    data = BagData.read(features, keys[0] if one else keys, **table, **facts)
    kept = [name for name in key_columns if keep_key and name not in out]
    read = {"missing": list(formats.rows.missing), "decimals": dict(batches.decimals), "keys": kept}
    return features, data, read if times is None else read | {"time": times}


_READ = {*inspect.signature(_read).parameters, "rest_as", "sampled", "as_shares", "noise", "keep_key"} - {"seed"}
"""Options that `_read` uses."""


@common.own_data_command(
    examples=(
        "llpbench fit people.csv --bags votes.csv --bag-column district --counts no,yes --out model",
        "llpbench fit people.csv --bags rates.csv --bag-column district --proportions late --out model",
    )
)
@_learning
@click.option("--out", required=True, type=_PATH, metavar="DIR", help="Folder of the model.")
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="Method that learns from bags.")
@common.out_of_core_option
@number_option(
    "--most-rows",
    type=click.IntRange(min=2),
    default=10_000_000,
    help="With --out-of-core: largest number of rows in memory. Of more rows, whole bags are drawn at random.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Hyperparameter of the method.")
@column_option("--encoder", default="mlp", help="Encoder of a network. [default: mlp]")
@column_option("--numbers", help="Scaling of numbers: z, scores (normal scores) or robust. [default: by method]")
@number_option("--ensemble", default=1, type=click.IntRange(min=1), help="Number of models that are averaged.")
def fit(
    features: DataFrame, data: BagData, read: Any, out: Path, method: str, settings: tuple[str, ...], **others: Any
) -> int:
    """Learn from rows in bags with known counts.

    No labels are needed. ROWS and BAGS are .csv, .tsv, .xlsx or .parquet files (also compressed). Each may also be
    a folder or a quoted pattern.
    """
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.fitting import AUTO, YARDSTICK, progress_display
    from llpbench.owndata.storing import require_free

    params = common.read_pairs((text.removeprefix(f"{method}.") for text in settings), "--set")
    model = LLPClassifier(method, params=params or None, random_state=others.pop("seed"), **others)
    require_free(out)  # before minutes of fitting
    clock = time.perf_counter()
    with progress_display() as progress:
        progress.add_task(f"fitting {method} to {plural(len(features), 'row')}", total=None)
        model.fit(features, data)
    seconds = time.perf_counter() - clock
    model.reading_ = read
    model.save(out)
    if method != YARDSTICK and model.features_help() is False:
        reason = "predictions of held-out bags are not significantly better than their mean share"
        echo(f"llpbench: these bags cannot show that features help: {reason}", err=True)
    left, several = model.left_out_, data.labels.copies > 1
    if left["rows"] or left["bags"]:
        known = "known bag" + " in one of the groupings" * several
        echo(f"dropped: {plural(left['rows'], 'row')} without a {known}, {plural(left['bags'], 'bag')} without rows")
    for kind, what in (("suppressed", "missing counts in BAGS"), ("impossible", "counts that do not fit their rows")):
        if left[kind]:
            echo(f"suppressed: {plural(left[kind], 'bag')} with {what}")
    labels = model.classes_.tolist()
    classes = [*map(repr if any(" " in str(label) for label in labels) else str, labels)]
    unused = left["suppressed"] + left["impossible"]
    weights, total = data.labels.weights, model.bag_sizes_.sum()
    people = plural(int(total) if weights is None and not several else len(features), "row")
    people += "" if weights is None else f" for {total:,.10g} people"
    echo(
        f"{f'auto ({AUTO})' if method == 'auto' else method}, {people} in {plural(len(model.bags_), 'bag')}"
        f"{f' ({unused:,} of them not used)' * bool(unused)}, {plural(model.n_features_in_, 'feature')}, classes "
        f"{', '.join(classes)}: fitted in {seconds:.1f} s, saved in {out}"
    )
    if model.distinct_rows_ is not None:
        echo(f"{plural(model.distinct_rows_, 'distinct row')}: rows with the same features are computed once")
    return 0


@common.own_data_command(
    examples=(
        "llpbench choose people.csv --bags votes.csv --bag-column district --counts no,yes",
        "llpbench choose people.csv --bags votes.csv --bag-column district --counts no,yes --methods auto,dllp",
    )
)
@_learning
@click.option(
    "--methods",
    metavar="NAMES",
    help="Methods to compare. [default: auto,bag-gp,count-gbdt,bag-mean-linear,bag-soft-label-gbdt,dllp]",
)
@column_option("--time-column", help="Time of a bag, in BAGS or ROWS. Later bags are predicted from earlier ones.")
@number_option("--folds", default=5, help="Number of parts that bags are split into.")
@number_option("--repeats", type=int, help="Number of random splits into parts. [default: 2; with --time-column 1]")
def choose(
    features: DataFrame, data: BagData, read: Any, methods: str | None, folds: int, repeats: int | None, seed: int
) -> int:
    """Compare methods on your own bags and recommend one.

    Bags are held out in turn; no labels are needed. ROWS and BAGS are files as in llpbench fit. Ctrl-C ends the
    comparison with the folds that are finished.
    """
    from llpbench.owndata import choosing

    given = {"methods": csv_parts(methods or "") or choosing.COMPARED, "random_state": seed, "time": read.get("time")}
    found = choosing.choose(features, data, folds=folds, repeats=repeats, **given)
    _show_board(found)
    echo(found.advice)
    if found.union is not None and (doubts := found.union.doubts_) is not None:
        warn("doubts", doubts.warning)
    return FAILED if found.board["failure"].any() else 0


def _show_board(found: MethodChoice) -> None:
    from llpbench.core.criteria import CRITERIA
    from llpbench.owndata.choosing import DECIDES
    from llpbench.owndata.fitting import YARDSTICK

    digits, rows, failures = {DECIDES: 4, "l1": 3, "mpiou": 3, "likelihood": 3}, [], ""
    for row in found.board.to_dict("records"):
        numbers = [f"{row[name]:.{places}f}" for name, places in {**digits, "seconds": 1}.items()]
        against = f"{row['gain']:+.4f} [{row['low']:.4f}, {row['high']:.4f}]"
        numbers.insert(1, "-" if row["method"] == found.reference else against)
        if row["failure"]:
            failures += f" {row['method']} failed: {row['failure']}"
            numbers = ["-", "failed", *["-"] * len(digits)]
        rows.append([row["method"], *numbers])
    folds = plural(len(found.folds) // found.folds["method"].nunique(), f"{'later ' * found.later}held-out fold")
    tells = "; ".join(f"{name}: {CRITERIA[name].title}" for name in digits)
    print_table(
        ["method", DECIDES, f"against {found.reference}", *[*digits][1:], "seconds"],
        rows,
        title="Methods on held-out bags",
        caption=f"Means over {folds} of bags ({tells}). Differences are of the "
        "first criterion; positive is better. Intervals have 95 % confidence for all methods together "
        f"({YARDSTICK}: alone) and are corrected for folds that share training bags (Nadeau & Bengio 2003).{failures}",
    )


def _class_names(given: tuple[str, ...], table: dict[str, Any]) -> list[str]:
    """Return the classes that --classes names. If it is repeated, each text is a class."""
    values: Any = table.get("counts", table.get("proportions"))
    known = [str(name) for name in (values.index.unique(-1) if values.ndim == 1 else values.columns)]
    if len(known) > 1:
        return split_names(given, known)
    return [text.strip() for text in given] if len(given) > 1 else [name for text in given for name in csv_parts(text)]
