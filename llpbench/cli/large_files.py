"""`--out-of-core`: `llpbench fit` and `predict` with files larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.training.memory import keep_freed

if TYPE_CHECKING:
    from pandas import DataFrame

    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.tables.csv_dialect import FileFormat
    from llpbench.tables.row_files import RowBatches

LARGE = 2_000_000_000
"""Size of values in bytes above which rows are read in batches by default."""

out_of_core_option: Callable[[Any], Any] = click.option(
    "--out-of-core/--in-memory",
    default=None,
    help="Read ROWS in batches, without holding all rows in memory. "
    "[default: for more than 2 GB, if the method supports it]",
)

ray_address_option: Callable[[Any], Any] = click.option(
    "--ray-address",
    metavar="ADDRESS",
    help="With --out-of-core: Ray cluster that makes the passes over ROWS, auto or HOST:PORT.",
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
    rows: Path,
    types: Mapping[str, str],
    keys: Sequence[str],
    form: FileFormat,
    others: dict[str, Any],
    *,
    able: bool,
) -> RowBatches | None:
    """Return the rows as batches, or None if they are to be read at once.

    `others`: the remaining options of the command; `out_of_core` is removed from them. `able`: whether these options
    allow batches. Raises `LLPBenchError` for `ray_address` without batches.
    """
    from llpbench.owndata.fitting import is_network
    from llpbench.owndata.large_fit import require_streamable
    from llpbench.tables.row_files import RowBatches

    requested, method = others.pop("out_of_core", False), others.get("method", "auto")
    able = able and others.get("ensemble") == 1 and others.get("numbers") in (None, "z")
    if not is_large(requested, rows, able and (method == "auto" or not is_network(method))):
        if (address := others.get("ray_address")) is not None:
            raise LLPBenchError(f"--ray-address needs --out-of-core, got --ray-address {address}. Add --out-of-core.")
        return None
    require_streamable(others["method"])
    return RowBatches(rows, types, keys=keys, form=form)


def fit_any(model: LLPClassifier, given: dict[str, Any], ray_address: str | None) -> LLPClassifier:
    """Return a model fitted to the input of a command: rows in a frame, or in batches, which a Ray cluster may read."""
    from llpbench.owndata.large_fit import fit_large
    from llpbench.owndata.progress import StageLine
    from llpbench.owndata.row_passes import LargeRows

    if not isinstance(given["X"], LargeRows):
        with StageLine() as line:
            line.show(f"fitting {model.method} to {plural(len(given['X']), 'row')}")
            return model.fit(**given)
    in_memory = ("X", "bags", "keep_key", "sample_weight", "labels", "time")
    rest = {name: value for name, value in given.items() if name not in in_memory}
    with StageLine() as line:
        return fit_large(model, given["X"], **rest, ray_address=ray_address, say=say, show=line.show)


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
