"""`llpbench fit` and `llpbench predict`: tables of one's own, of which no label is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.options import load_plugins, plugin_option
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural

if TYPE_CHECKING:
    from pandas import DataFrame

_PATH = click.Path(path_type=Path)


def _bag_options(required: bool) -> Callable[[Any], Any]:
    """What says of bags where they stand and what is known of them."""

    def decorate(command: Any) -> Any:
        column = click.option(
            "--bag-column",
            required=required,
            metavar="NAME[+NAME]",
            help="The column, in both files, that says which bag a row is of; or several (natural keys).",
        )
        counts = click.option(
            "--counts",
            metavar="NAMES",
            help="Columns of BAGS with the counts of the classes, which they name; one column: of the positive class.",
        )
        proportions = click.option("--proportions", metavar="NAMES", help="The same with proportions.")
        return column(counts(proportions(command)))

    return decorate


@click.command()
@click.argument("rows", type=_PATH)
@click.option("--bags", required=True, type=_PATH, metavar="FILE", help="A table with a row for each bag.")
@_bag_options(required=True)
@click.option("--out", required=True, type=_PATH, metavar="DIR", help="Where the model is written.")
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="One that learns from bags.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A hyperparameter; may be repeated.")
@click.option("--ensemble", default=1, show_default=True, type=click.IntRange(min=1), metavar="N", help="Members.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of what is random.")
@click.option("--noise", default=0.0, metavar="SD", help="Standard deviation of what was added to each count.")
@click.option("--leave-out", metavar="NAMES", help="Columns of ROWS that are no features; those of bags never are.")
@click.option("--types", multiple=True, metavar="NAME=TYPE", help="What a column of ROWS holds: text or number.")
@click.option("--drop-unmatched", is_flag=True, help="Leave out rows without a known bag, and bags without rows.")
@plugin_option
def fit(
    rows: Path,
    bags: Path,
    bag_column: str,
    counts: str | None,
    proportions: str | None,
    out: Path,
    method: str,
    settings: tuple[str, ...],
    ensemble: int,
    seed: int,
    noise: float,
    leave_out: str | None,
    types: tuple[str, ...],
    drop_unmatched: bool,
    plugin: tuple[str, ...],
) -> int:
    """Learn from ROWS (.csv or .parquet) in bags of which counts or proportions are known, and no label."""
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.row_files import bag_keys, column_of, read_rows

    load_plugins(plugin)
    names = _names(bag_column, "+")
    frame = read_rows(rows, _pairs(types, "--types"))
    for name in _names(leave_out):
        column_of(frame, name, rows)
    features = frame.drop(columns=[*names, *_names(leave_out)], errors="ignore")
    model = LLPClassifier(method, params=_pairs(settings, "--set") or None, ensemble=ensemble, random_state=seed)
    known = _known(bags, names, counts, proportions)
    clock = time.perf_counter()
    keys = bag_keys(frame, names, rows)
    model.fit(features, keys, **known, noise=noise, unmatched="drop" if drop_unmatched else "raise")
    seconds = time.perf_counter() - clock
    model.save(out)
    click.echo(
        f"{plural(int(model.bag_sizes_.sum()), 'row')} in {plural(len(model.bags_), 'bag')}, "
        f"{plural(features.shape[1], 'feature')}, classes {', '.join(map(str, model.classes_))}: "
        f"fitted in {seconds:.1f} s, saved in {out}"
    )
    return 0


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
    counts: str | None,
    proportions: str | None,
    bags: Path | None,
    whole_bags: bool,
    out: Path,
    plugin: tuple[str, ...],
) -> int:
    """Predict ROWS (.csv or .parquet) by a MODEL that llpbench fit has saved.

    With --bag-column, what is known of a row's bag counts, too. The file has the columns of ROWS that are no features,
    `prediction`, and the probability of each class.
    """
    import pandas as pd

    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.owndata.row_files import bag_keys, column_of, read_rows, write_rows

    load_plugins(plugin)
    names = _names(bag_column, "+")
    if whole_bags and not names:
        raise LLPBenchError("--whole-bags needs --bag-column, which says of which bag a row is.")
    if bags is not None and not whole_bags:
        raise LLPBenchError("--bags are those of --whole-bags: for new rows of bags of fit, --bag-column is enough.")
    loaded = LLPClassifier.load(model)
    frame = read_rows(rows)
    if not hasattr(loaded, "feature_names_in_"):
        raise LLPBenchError(f"the model in {str(model)!r} was fitted to an array, whose columns have no names.")
    wanted = [str(name) for name in loaded.feature_names_in_]
    features = pd.DataFrame({name: column_of(frame, name, rows) for name in wanted})
    keys = bag_keys(frame, names, rows) if names else None
    if whole_bags:
        known = {} if bags is None else _known(bags, names, counts, proportions)
        proba = loaded.disaggregate(features, keys, **known)
        labels = loaded.assign(features, keys, **known)
    else:
        proba = loaded.predict_proba(features, keys)
        labels = loaded.classes_[proba.argmax(axis=1)]
    found = frame.drop(columns=wanted).assign(prediction=labels)
    for place, label in enumerate(loaded.classes_):
        found[f"probability_{label}"] = proba[:, place]
    write_rows(found, out)
    click.echo(f"{plural(len(found), 'prediction')} in {out}")
    return 0


def _known(file: Path, names: list[str], counts: str | None, proportions: str | None) -> dict[str, DataFrame]:
    """The table of bags, as `LLPClassifier.fit` takes it."""
    import pandas as pd

    from llpbench.owndata.row_files import bag_keys, column_of, read_rows

    if (counts is None) == (proportions is None):
        raise LLPBenchError("give one of --counts and --proportions: the columns of the table of bags that hold them.")
    frame = read_rows(file, dict.fromkeys(names, "text"))
    columns = {name: column_of(frame, name, file) for name in _names(counts or proportions)}
    table = pd.DataFrame(columns)
    keys = bag_keys(frame, names, file)
    table.index = pd.Index(keys.iloc[:, 0]) if len(names) == 1 else pd.MultiIndex.from_frame(keys)
    return {"proportions" if counts is None else "counts": table}


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
