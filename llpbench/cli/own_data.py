"""`llpbench fit`, `predict` and `choose`: tables of one's own, of which no label is known."""

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
from llpbench.cli.options import AnyPath, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural

if TYPE_CHECKING:
    from llpbench.owndata.doubts import Doubts

_PATH = AnyPath(path_type=Path)


_FLAGS = {
    "sampled=True": "--sampled",
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
        metavar="NAMES",
        help="Columns of BAGS with the counts of the classes, which they name; one column: of the positive class.",
    ),
    click.option("--proportions", metavar="NAMES", help="The same with proportions."),
    click.option(
        "--class-column",
        metavar="NAME",
        help="BAGS has a line a bag and class: the column that says which class, beside one column of numbers.",
    ),
    click.option(
        "--suppressed", metavar="MARKS", help="What stands for suppressed numbers, beside empty cells: '*,<5'."
    ),
)
"""what says of a table of bags which columns hold what"""


def _bag_options(required: bool) -> Callable[[Any], Any]:
    """The columns that name a bag, and `_BAG_OPTIONS`, which the command gets as `columns`."""

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def called(
            counts: str | None,
            proportions: str | None,
            class_column: str | None,
            suppressed: str | None,
            **others: Any,
        ) -> Any:
            columns = {
                "counts": _names(counts),
                "proportions": _names(proportions),
                "class_column": class_column,
                "suppressed": _names(suppressed),
            }
            return command(columns=columns, **others)

        decorated: Any = called
        for option in reversed(_BAG_OPTIONS):
            decorated = option(decorated)
        return click.option(
            "--bag-column",
            required=required,
            metavar="NAME[+NAME]",
            help="The column, in both files, that says which bag a row is of; or several (natural keys).",
        )(decorated)

    return decorate


_LEARNING_OPTIONS = (
    click.argument("rows", type=_PATH),
    click.option("--bags", required=True, type=_PATH, metavar="FILE", help="A table with a row for each bag."),
    _bag_options(required=True),
    click.option("--seed", default=0, show_default=True, metavar="N", help="Of what is random."),
    click.option("--size-column", metavar="NAME", help="The column of BAGS with the number of rows of a whole bag."),
    click.option(
        "--classes", metavar="NAMES", help="The classes, in the order of columns; of one column the last counts."
    ),
    click.option(
        "--sampled", is_flag=True, help="ROWS are but some of each bag, whose counts or sizes are of them all."
    ),
    click.option("--noise", default=0.0, metavar="SCALE", help="Of what was added to each count, for privacy."),
    click.option(
        "--noise-kind",
        type=click.Choice(["gaussian", "laplace"]),
        default="gaussian",
        show_default=True,
        help="Whether SCALE is a standard deviation, or b of a Laplace distribution.",
    ),
    click.option("--leave-out", metavar="NAMES", help="Columns of ROWS that are no features; those of bags never are."),
    click.option("--types", multiple=True, metavar="NAME=TYPE", help="What a column of ROWS holds: text or number."),
    click.option(
        "--drop-unmatched",
        is_flag=True,
        help="Leave out rows without a known bag, bags without rows, and classes that --classes does not name.",
    ),
    click.option("--suppress-impossible", is_flag=True, help="Take counts that cannot be of their rows as suppressed."),
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
        bag_column: str,
        columns: dict[str, Any],
        size_column: str | None,
        classes: str | None,
        leave_out: str | None,
        types: tuple[str, ...],
        drop_unmatched: bool,
        suppress_impossible: bool,
        plugin: tuple[str, ...],
        sampled: bool,
        noise: float,
        noise_kind: str,
        **others: Any,
    ) -> Any:
        from llpbench.owndata.bag_files import BagFile
        from llpbench.owndata.row_files import bag_keys, column_of, read_rows

        load_plugins(plugin)
        names = _names(bag_column, "+")
        if not names:
            raise LLPBenchError(f"--bag-column {bag_column!r} names no column. Say which tells the bag of a row.")
        frame = read_rows(rows, _pairs(types, "--types"), names)
        for name in _names(leave_out):
            column_of(frame, name, rows)
        given = {
            "X": frame.drop(columns=[*names, *_names(leave_out)], errors="ignore"),
            "bags": bag_keys(frame, names, rows),
            **BagFile(bags, names, **columns, size_column=size_column).read(),
            "classes": _names(classes) or None,
            "sampled": sampled,
            "noise": noise,
            "noise_kind": noise_kind,
            "unmatched": "drop" if drop_unmatched else "raise",
            "impossible": "suppress" if suppress_impossible else "raise",
        }
        with _told_in_flags():
            return command(rows=rows, given=given, **others)

    decorated: Any = called
    for option in reversed(_LEARNING_OPTIONS):
        decorated = option(decorated)
    return decorated


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """What fits and predictions warn of as a line, but for doubts, which are told when a fit is done."""
    from llpbench.owndata.classifier import UnknownBags
    from llpbench.owndata.columns import LikelyIdentifier, UnknownCategories
    from llpbench.owndata.doubts import DoubtfulFit
    from llpbench.owndata.sizes import LargeFit

    lines = (LargeFit, LikelyIdentifier, UnknownBags, UnknownCategories)
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


@click.command()
@_learning
@click.option("--out", required=True, type=_PATH, metavar="DIR", help="Where the model is written.")
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="One that learns from bags.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A hyperparameter; may be repeated.")
@click.option("--encoder", default="mlp", show_default=True, metavar="NAME", help="Of a network.")
@click.option(
    "--pretraining", default="none", show_default=True, metavar="NAME", help="What a network's encoder learns first."
)
@click.option("--ensemble", default=1, show_default=True, type=click.IntRange(min=1), metavar="N", help="Members.")
def fit(
    rows: Path,
    given: dict[str, Any],
    out: Path,
    method: str,
    settings: tuple[str, ...],
    encoder: str,
    pretraining: str,
    ensemble: int,
    seed: int,
) -> int:
    """Learn from ROWS (.csv or .parquet) in bags of which counts or proportions are known, and no label."""
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.storing import demand_free

    del rows
    model = LLPClassifier(
        method,
        params=_pairs(settings, "--set") or None,
        encoder=encoder,
        pretraining=pretraining,
        ensemble=ensemble,
        random_state=seed,
    )
    demand_free(out)  # before minutes of fitting
    clock = time.perf_counter()
    with _warnings_as_lines():
        model.fit(**given)
    seconds = time.perf_counter() - clock
    model.save(out)
    _warn_of(model.doubts_)
    left = model.left_out_
    if left["rows"] or left["bags"]:
        echo(f"left out: {plural(left['rows'], 'row')} without a known bag, {plural(left['bags'], 'bag')} without rows")
    if left["suppressed"]:
        echo(f"suppressed: {plural(left['suppressed'], 'bag')} of which the table tells no counts")
    if left["impossible"]:
        echo(f"suppressed: {plural(left['impossible'], 'bag')} whose counts cannot be those of their rows")
    echo(
        f"{plural(int(model.bag_sizes_.sum()), 'row')} in {plural(len(model.bags_), 'bag')}, "
        f"{plural(model.n_features_in_, 'feature')}, classes {', '.join(map(str, model.classes_))}: "
        f"fitted in {seconds:.1f} s, saved in {out}"
    )
    return 0


@click.command()
@_learning
@click.option("--methods", metavar="NAMES", help="Those to compare, such as auto,bag-gp,dllp.  [default: six]")
@click.option("--folds", default=5, show_default=True, metavar="N", help="Parts that bags are dealt into.")
@click.option("--repeats", default=2, show_default=True, metavar="N", help="How often they are dealt anew.")
@click.option("--out", default="choice", show_default=True, type=_PATH, metavar="DIR", help="Where the page goes.")
def choose(
    rows: Path, given: dict[str, Any], methods: str | None, folds: int, repeats: int, seed: int, out: Path
) -> int:
    """Compare methods on ROWS (.csv or .parquet) in bags, of which whole ones are held out, and advise one.

    Needs no label. Writes a page (index.html), the board and what was found of each bag (CSV), and the plots.
    """
    from rich.console import Console

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


@click.command()
@click.argument("model", type=_PATH)
@click.argument("rows", type=_PATH)
@_bag_options(required=False)
@click.option("--bags", type=_PATH, metavar="FILE", help="With --whole-bags: a table of other bags than those of fit.")
@click.option(
    "--whole-bags",
    is_flag=True,
    help="ROWS are whole bags of known counts: probabilities add up to these, and as many rows get each class.",
)
@click.option("--out", required=True, type=_PATH, metavar="FILE", help="Where predictions go: .csv or .parquet.")
@plugin_option
def predict(
    model: Path,
    rows: Path,
    bag_column: str | None,
    columns: dict[str, Any],
    bags: Path | None,
    whole_bags: bool,
    out: Path,
    plugin: tuple[str, ...],
) -> int:
    """Predict ROWS (.csv or .parquet) by a MODEL that llpbench fit has saved.

    With --bag-column, what is known of a row's bag counts, too. The file has the columns of ROWS that are no features
    (of a .csv as they stand there), `prediction`, and the probability of each class. In a .csv, texts that a
    spreadsheet would take for a formula begin with an apostrophe.
    """
    import pandas as pd

    from llpbench.owndata.bag_files import BagFile
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.row_files import bag_keys, bags_as_texts, column_of, demand_room, read_rows, write_rows

    load_plugins(plugin)
    demand_room(out)  # before anything is predicted
    if out.exists() and any(each.exists() and out.samefile(each) for each in (rows, bags) if each is not None):
        raise LLPBenchError(
            f"--out {str(out)!r} is one of the files that are read, and would lose its columns. Choose another --out."
        )
    names = _names(bag_column, "+")
    if bag_column is not None and not names:
        raise LLPBenchError(f"--bag-column {bag_column!r} names no column. Say which tells the bag of a row.")
    if whole_bags and not names:
        raise LLPBenchError("--whole-bags needs --bag-column, which says of which bag a row is.")
    if bags is None and any(columns.values()):
        raise LLPBenchError(
            "--counts, --proportions, --class-column and --suppressed are of a table: give --bags, too."
        )
    if bags is not None and not whole_bags:
        raise LLPBenchError("--bags are those of --whole-bags: for new rows of bags of fit, --bag-column is enough.")
    loaded = LLPClassifier.load(model)
    if not hasattr(loaded, "feature_names_in_"):
        raise LLPBenchError(f"the model in {str(model)!r} was fitted to an array, whose columns have no names.")
    wanted = [str(name) for name in loaded.feature_names_in_]
    frame = read_rows(rows, dict.fromkeys(loaded.text_features_, "text"), names, wanted)
    if not len(frame):
        raise LLPBenchError(f"file {str(rows)!r} has no rows.")
    features = pd.DataFrame({name: column_of(frame, name, rows) for name in wanted})
    kept = frame.drop(columns=wanted)
    added = ["prediction", *(f"probability_{label}" for label in loaded.classes_)]
    if taken := [name for name in added if name in kept.columns]:
        raise LLPBenchError(
            f"file {str(rows)!r} has a column {taken[0]!r} already, which predictions would replace. Rename it."
        )
    keys = bag_keys(frame, names, rows) if names else None
    if keys is not None and bags is None:  # a model fitted in Python may call bags by numbers; files call them by texts
        loaded.bags_ = bags_as_texts(loaded.bags_, names)
    if whole_bags:
        known = {} if bags is None else BagFile(bags, names, **columns).read()
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


def _names(text: str | None, between: str = ",") -> list[str]:
    return [part.strip() for part in (text or "").split(between) if part.strip()]


def _pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise LLPBenchError(f"{flag} takes NAME=VALUE, however: {text!r}")
        if flag == "--types" and value.strip() not in ("text", "number"):
            raise LLPBenchError(f"{flag} {text}: a column holds text or number.")
        pairs[name.strip()] = value.strip()
    return pairs
