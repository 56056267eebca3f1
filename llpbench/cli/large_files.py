"""`--out-of-core`: `llpbench fit` and `predict` with files larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.output import echo
from llpbench.core.text import plural
from llpbench.training.memory import keep_freed

if TYPE_CHECKING:
    from pandas import DataFrame, Index

    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.tables.csv_dialect import FileFormat
    from llpbench.tables.row_files import RowBatches

LARGE = 2_000_000_000
"""Size of values in bytes above which rows are read in batches by default."""

out_of_core_option: Callable[[Any], Any] = click.option(
    "--out-of-core/--in-memory",
    default=None,
    help="Read ROWS in batches, without holding all rows in memory. [default: for more than 2 GB]",
)

most_rows_option: Callable[[Any], Any] = click.option(
    "--most-rows",
    type=click.IntRange(min=2),
    default=10_000_000,
    show_default=True,
    metavar="N",
    help="With --out-of-core: largest number of rows in memory. If there are more, whole bags are drawn at random.",
)


def is_large(requested: bool | None, rows: Path, able: bool) -> bool:
    """Return whether rows are read in batches: as `requested`, or above `LARGE` if the method is `able` to."""
    from llpbench.tables.row_files import unpacked_bytes

    if requested is not None or not able:
        return bool(requested)
    size = unpacked_bytes(rows)
    if size > LARGE:
        say(f"{rows} has about {size / 1e9:.0f} GB of values: read in batches (--in-memory reads all at once)")
    return size > LARGE


def batches_to_fit(
    rows: Path, types: Mapping[str, str], keys: Sequence[str], form: FileFormat, requested: bool | None, *, able: bool
) -> RowBatches | None:
    """Return the rows as batches, or None if they are to be read at once: as `requested`, or if they are large.

    `able`: whether the other options allow batches.
    """
    from llpbench.tables.row_files import RowBatches

    return RowBatches(rows, types, keys=keys, form=form) if is_large(requested, rows, able) else None


def sampled_bags(
    batches: RowBatches, keys: list[str], table: dict[str, Any], most_rows: int, *, seed: int, drop_unmatched: bool
) -> tuple[DataFrame, dict[str, Any]]:
    """Return the rows of all bags or of a sample of them, and the `table` of bags without those that were not drawn."""
    from llpbench.owndata.bag_sample import draw_bags
    from llpbench.owndata.progress import StageLine
    from llpbench.tables.texts import bag_index

    def bags_of(values: Any) -> Index:
        return bag_index(values.index.to_frame(index=False).iloc[:, : len(keys)])

    known = bags_of(table.get("counts", table.get("proportions")))
    with StageLine() as line:
        found = draw_bags(batches, keys, known, most_rows, seed=seed, drop_unmatched=drop_unmatched, show=line.show)
    if found.message:
        say(found.message)
    return found.rows, {name: values[~bags_of(values).isin(found.left_out)] for name, values in table.items()}


def as_in_fit(model: LLPClassifier, keys: list[str], wanted: list[str], form: FileFormat) -> dict[str, Any]:
    """Return arguments of `read_rows`, so that rows are read as in `fit`."""
    types = dict.fromkeys(model.text_features_, "text") | dict.fromkeys(model.numeric_features_, "number")
    form = replace(form, missing=(*form.missing, *model.reading_.get("missing", ())))
    kept_keys = model.reading_.get("keys", [])
    return {
        "types": {name: kind for name, kind in types.items() if name not in kept_keys},
        "keys": keys,
        # columns of bag labels are read as unchanged text
        "features": [name for name in wanted if name not in kept_keys],
        "form": form,
        "decimals": model.reading_.get("decimals", {}),
    }


def predict_in_batches(
    model: LLPClassifier,
    batches: RowBatches,
    keys: list[str],
    counts: dict[str, Any],
    out: Path,
    *,
    whole_bags: bool,
) -> int:
    """Predict rows of bags named by the columns `keys`; `counts` are of whole bags that were not in `fit`."""
    from llpbench.owndata.large_predictions import predict_large
    from llpbench.owndata.large_whole_bags import predict_whole_bags, read_whole_bags
    from llpbench.owndata.progress import StageLine

    keep_freed()  # each batch needs the memory of the one before
    with StageLine() as line:
        if whole_bags:
            whole = read_whole_bags(model, batches, keys=keys, counts=counts, show=line.show)
            number = predict_whole_bags(model, whole, out)
        else:
            number = predict_large(model, batches, out, keys=keys, show=line.show)
    echo(f"{plural(number, 'prediction')} in {out}")
    return 0


def estimate_in_batches(
    model: LLPClassifier, batches: RowBatches, keys: list[str], counts: dict[str, Any], out: Path, by: list[str]
) -> tuple[DataFrame, int, str]:
    """Write estimates of groups. Return those of all bags, the number of lines, and the numbers of groups and bags."""
    from llpbench.owndata.large_whole_bags import estimate_large, read_whole_bags
    from llpbench.owndata.progress import StageLine

    with StageLine() as line:
        whole = read_whole_bags(model, batches, keys=keys, by=by, counts=counts, show=line.show)
        overall, lines = estimate_large(model, whole, out)
    return overall, lines, f"{plural(len(whole.groups), 'group')} in {plural(len(whole.labels.names), 'bag')}"


def say(text: str) -> None:
    """Print a fact about the fit."""
    echo(f"llpbench: {text}", err=True)
