"""`llpbench predict`, `estimate` and `effects`: predictions of rows, groups and features by a fitted model."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli import reading_options as common
from llpbench.cli.options import AnyPath, Command, add_options, load_plugins, plugin_option
from llpbench.cli.output import echo, percent, print_table
from llpbench.cli.reading_options import column_option, file_option, names_option
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.text import plural
from llpbench.tables.column_names import column_of, csv_parts, split_names
from llpbench.training.memory import keep_freed

if TYPE_CHECKING:
    from pandas import DataFrame

    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.own_files import FileRows

_Names = tuple[str, ...]
_PATH = AnyPath(path_type=Path)
_MOST_LINES = 12
"""Largest number of lines of a printed table of groups."""


@dataclass(frozen=True)
class _Files:
    """What options say about the files."""

    model: Path
    rows: Path
    bag_column: _Names
    columns: dict[str, Any]
    formats: common.Formats
    bags: Path | None
    weight_column: str | None
    drop_unmatched: bool
    out_of_core: bool | None
    out: Path

    @contextmanager
    def read(self, *, bags_optional: bool = False) -> Iterator[tuple[FileRows, list[str]]]:
        """Yield the rows with their model, and the columns of rows. Errors get the names of flags."""
        from llpbench.owndata.classifier import LLPClassifier
        from llpbench.owndata.fitting import is_network
        from llpbench.owndata.own_files import BagFile, FileRows
        from llpbench.tables.bag_keys import bag_index, bag_keys, bags_as_texts
        from llpbench.tables.row_files import RowBatch, RowBatches

        model = LLPClassifier.load(self.model)
        if not hasattr(model, "feature_names_in_"):
            raise LLPBenchError(f"the model in {str(self.model)!r} was fitted to an array. Fit it to a frame.")
        network = f"a model of {model.method!r}" * is_network(model.method)
        large = common.is_large(self.out_of_core, self.rows, network or "--drop-unmatched" * self.drop_unmatched)
        columns, as_in_fit = model._model.columns, model.reading_
        kept_keys = as_in_fit.get("keys", [])  # columns of bag labels are read as unchanged text
        types = dict.fromkeys(columns.texts, "text") | dict.fromkeys(columns.numeric, "number")
        wanted, form = [str(name) for name in model.feature_names_in_], self.formats.rows
        with common.reading("rows"):
            batches = RowBatches(
                self.rows,
                {name: kind for name, kind in types.items() if name not in kept_keys},
                keys=common.possible_names(self.bag_column),
                features=[name for name in wanted if name not in kept_keys],
                form=replace(form, missing=(*form.missing, *as_in_fit.get("missing", ()))),
                decimals=as_in_fit.get("decimals", {}),
                columns=[(name,) for name in wanted],
            )
            frame = batches.rows_or_head(head=large)
        known = list(frame.columns)
        names, of_bags = common.key_names(self.bag_column, known) if self.bag_column else ([], [])
        for name in names:
            column_of(frame, name, self.rows, ". Omit --bag-column to predict from features only" * bags_optional)
        counts: dict[str, Any] = {}
        if self.bags is not None:
            with common.reading("bags"):
                counts = BagFile(self.bags, of_bags, **self.columns, form=self.formats.bags).read(known)
        elif names:  # labels are texts in files, but may be numbers in a model
            model.bags_ = bags_as_texts(model.bags_, names)
        table = counts.get("counts", counts.get("proportions"))
        if large:
            keep_freed()  # each batch needs the memory of the one before
        if self.drop_unmatched:
            bags = model.bags_ if table is None else bag_index(table.index.to_frame(index=False).iloc[:, : len(names)])
            there = bag_index(bag_keys(frame, names, self.rows)).isin(bags)
            if not there.any():
                raise DataError.of(self.rows, "has no row of a bag with counts. Use the names of bags of fit.")
            if number := int((~there).sum()):
                echo(f"dropped {number:,} of {plural(len(there), 'row')} without a known bag", err=True)
            frame = frame[there]
        every, total = (batches, batches.total) if large else ([RowBatch(frame, self.rows, 0, 0, True)], len(frame))
        with common.reading("rows") if large else nullcontext():
            yield FileRows(model, every, total, names, counts, self.weight_column), known


def _applying(command: Any) -> Any:
    """Add options for input files. The command gets them as `files`."""

    @functools.wraps(command)
    def called(plugin: tuple[str, ...], **given: Any) -> Any:
        from llpbench.tables.writing import require_room

        files = _Files(**{each.name: given.pop(each.name) for each in fields(_Files)})
        load_plugins(plugin)
        require_room(files.out, (files.rows, files.bags))  # check before predictions are computed
        if files.bags is None and any(files.columns.values()):
            raise LLPBenchError("--counts, --proportions, --class-column and --suppressed need --bags. Add --bags.")
        return command(files=files, **given)

    return add_options(called, _APPLYING_OPTIONS)


_APPLYING_OPTIONS = (
    click.argument("model", type=_PATH),
    click.argument("rows", type=_PATH),
    common.bag_options(required=False),
    file_option("--bags", help="For whole bags: counts of bags that were not in llpbench fit."),
    column_option("--weight-column", help="For whole bags: column of ROWS with weights, as in llpbench fit."),
    click.option("--drop-unmatched", is_flag=True, help="For whole bags: drop rows without a bag with counts."),
    file_option("--out", required=True, help="File of the result: .csv or .parquet."),
    common.out_of_core_option,
    common.format_options,
    plugin_option,
)


@common.own_data_command(
    examples=(
        "llpbench predict model new.csv --out predictions.csv",
        "llpbench predict model people.csv --bag-column district --whole-bags --out predictions.csv",
    )
)
@_applying
@click.option("--whole-bags", is_flag=True, help="Make predictions of whole bags add up to their counts.")
def predict(files: _Files, whole_bags: bool) -> int:
    """Predict rows with a model of llpbench fit.

    With --bag-column, predictions also use the counts of the row's bag. The result has the columns of ROWS that are
    not features, the column `prediction`, and the probability of each class. --weight-column adds the expected
    number of people of each class. In a .csv result, an apostrophe is put before texts that a spreadsheet would read as
    formulas.
    """
    from llpbench.owndata.fitting import progress_display

    given = {"--weight-column": files.weight_column, "--drop-unmatched": files.drop_unmatched, "--bags": files.bags}
    if whole_bags and not files.bag_column:
        raise LLPBenchError("--whole-bags needs the bag of each row. Add --bag-column.")
    if not whole_bags and (flag := next((flag for flag, value in given.items() if value), None)):
        raise LLPBenchError(f"{flag} needs --whole-bags. Add --whole-bags, or leave {flag} out.")
    with files.read(bags_optional=not whole_bags) as (rows, _), progress_display() as progress:
        number = rows.predict(files.out, whole_bags=whole_bags, progress=progress)
    echo(f"{plural(number, 'prediction')} in {files.out}")
    return 0


@common.own_data_command(
    examples=(
        "llpbench estimate model people.csv --bag-column district --by sex,age-group --out groups.csv",
        "llpbench estimate model census.csv --bag-column precinct --weight-column people --by sex --out groups.csv",
    )
)
@_applying
@names_option("--by", required=True, help="Columns of ROWS; each combination of their values is a group.")
@click.option("--where", multiple=True, metavar="NAME=VALUE", help="Lines to print, such as sex=F. The file has all.")
@click.option("--among", multiple=True, metavar="CLASSES", help="Give shares among these classes only. [default: all]")
@file_option("--plot", help="Plot of the groups in all bags: .png, .svg or .pdf.")
@column_option("--class", "label", help="Class of the plot. [default: the last]")
def estimate(files: _Files, by: _Names, where: _Names, among: _Names, plot: Path | None, label: str | None) -> int:
    """Estimate counts and shares of groups, with intervals.

    ROWS contains whole bags: the bags of llpbench fit, or the bags of --bags. The result first has a line for each
    group and class in all bags (the bag is "all"), then a line for each bag, group and class. `count` and `share` are
    estimates. Columns with _lower and _upper are the ends of 95 % intervals. The counts of bags allow no values
    outside _min and _max.
    """
    from llpbench.owndata.doubts import CONFOUNDED
    from llpbench.owndata.fitting import progress_display
    from llpbench.owndata.group_estimates import ALL, NUMBERS
    from llpbench.owndata.logit_draws import ProcessDraws
    from llpbench.report.plots.layout import require_plot, save_figure
    from llpbench.tables.writing import written

    if not files.bag_column:
        raise LLPBenchError("estimate needs the bag of each row. Add --bag-column.")
    if label is not None and plot is None:
        raise LLPBenchError("--class needs --plot, because the file has all classes. Add --plot or leave --class out.")
    if plot is not None:
        require_plot(plot, "--plot")
    wanted = common.read_pairs([part for text in where for part in csv_parts(text)], "--where")
    with files.read() as (rows, columns):
        model, keys = rows.model, list(rows.keys)
        some = [_class_of(model, name, "--among") for name in split_names(among, [*map(str, model.classes_)])]
        drawn = _class_of(model, label or (str(some[-1]) if some else None))
        names = [*dict.fromkeys(split_names(by, columns))]
        if some and drawn not in some:
            raise LLPBenchError(f"--class must be one of --among, got {label!r}.")
        with progress_display() as progress:
            found = rows.estimate(names, some or None, progress=progress)
    with written(files.out, NUMBERS) as write:
        write(found)
    overall = found[(found[keys] == ALL).all(axis="columns")]
    groups, bags = len(overall) // overall["class"].nunique(), len(found[keys].drop_duplicates()) - 1
    shown = _where(found if {*keys} & {*wanted} else overall, wanted)
    if plot is not None:
        from llpbench.report.plots.own_figures import group_shares

        lines = overall[overall["class"] == drawn]
        share, title = lines["count"].sum() / overall["count"].sum(), f"Share of {drawn} by {', '.join(names)}"
        save_figure(lambda: group_shares(lines, names, share, f"{title}, with 95 % intervals"), plot)
    _show_groups(shown, names, ", ".join(where) if wanted else "all bags")
    if (draws := ProcessDraws.of(model._model.predictor)) is not None:
        unexplained = f"{100 * draws.process.unexplained:.0f} % of the variance of bags"
        effect = "its causes may bias groups" if draws.process.unexplained > CONFOUNDED else "this is little"
        echo(f"{unexplained} is explained neither by features nor chance; {effect}")
    place = f"{plural(len(found), 'line')} in {files.out}" + (f"; plot: {plot}" if plot is not None else "")
    echo(f"{plural(groups, 'group')} in {plural(bags, 'bag')}: {place}")
    return 0


def _where(found: DataFrame, wanted: dict[str, str]) -> DataFrame:
    """Return the lines with values of columns."""
    from llpbench.owndata.group_estimates import NUMBERS

    known = [name for name in found.columns if name not in NUMBERS]
    for name, value in wanted.items():
        if name not in known:
            raise LLPBenchError(f"--where must name one of {', '.join(known)}, got {name!r}.")
        values = found[name].astype(str)
        if value not in {*values}:
            raise LLPBenchError(f"--where {name}={value} is in no line. Values are {', '.join(values.unique()[:5])}.")
        found = found[values == value]
    return found


def _show_groups(lines: DataFrame, names: list[str], which: str) -> None:
    shown, more = lines.head(_MOST_LINES), max(len(lines) - _MOST_LINES, 0)
    shares = map(percent, *(shown[name] for name in ("share", "share_lower", "share_upper")))
    keys = shown[[*names, "class"]].astype(object).fillna("(missing)").to_numpy()
    rows = [[*map(str, key), share] for key, share in zip(keys, shares, strict=True)]
    caption = "Percent, with 95 % intervals." + f" {plural(more, 'more line')} in the file." * (more > 0)
    print_table([*names, "class", "share"], rows, title=f"Groups in {which}", caption=caption)


@click.command(cls=Command, examples=("llpbench effects model", "llpbench effects model --class yes --out effects.svg"))
@click.argument("model", type=_PATH)
@column_option("--class", "label", help="Class whose effects are shown. [default: the last]")
@file_option("--out", default="effects.png", show_default=True, help="Plot: .png, .svg or .pdf.")
@plugin_option
def effects(model: Path, label: str | None, out: Path, plugin: tuple[str, ...]) -> int:
    """Show the strongest effects of features.

    MODEL is the folder that `llpbench fit` wrote. Effects come with their uncertainty.
    """
    load_plugins(plugin)
    from llpbench.report.plots.layout import require_plot, save_figure

    require_plot(out, "--out")
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.report.plots.own_figures import effect_panels

    fitted = LLPClassifier.load(model)
    name = _class_of(fitted, label)
    found = fitted.effects(name)
    save_figure(lambda: effect_panels(found, f"{model}: effects on {name}"), out)
    rows = []
    for effect in found.strongest(12):
        rows.append([effect.name, f"{effect.importance:.2f}", f"{effect.undetermined:.2f}"])
        for place in (int(effect.values.argmin()), int(effect.values.argmax())):
            rows[-1] += [f"{effect.values[place]:+.2f} ± {2 * effect.std[place]:.2f}", effect.bin_text(place)]
    print_table(["feature", "importance", "undetermined", "lowest", "", "highest", ""], rows)
    echo(f"{model}, {len(fitted.bags_):,} bags: effects on the {found[0].scale} of {name}; plot: {out}")
    return 0


def _class_of(model: LLPClassifier, label: str | None, flag: str = "--class") -> Any:
    names = {str(name): name for name in model.classes_.tolist()}
    if label is not None and label not in names:
        raise LLPBenchError(f"{flag} must be one of {', '.join(names)}, got {label!r}.")
    return [*names.values()][-1] if label is None else names[label]
