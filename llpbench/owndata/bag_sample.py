"""Rows of whole bags from files larger than memory: all rows, or those of bags drawn at random if they are too many.

Whole bags are drawn, not rows: the counts of a bag say little about a sample of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.owndata.bag_codes import BagCodes, rows_by_label
from llpbench.owndata.progress import RowsDone
from llpbench.tables.row_files import RowBatches


class BagSample(NamedTuple):
    """Rows of some bags."""

    rows: pd.DataFrame
    left_out: set[Hashable]
    """bags with counts whose rows were not read"""
    message: str
    """what was drawn; "" if all rows were read"""


def draw_bags(
    batches: RowBatches,
    keys: Sequence[str],
    counted: Collection[Hashable],
    most_rows: int,
    *,
    seed: int,
    drop_unmatched: bool = False,
    show: Callable[[str], None] = lambda _: None,
) -> BagSample:
    """Read all rows, or the rows of random whole bags if there are more than `most_rows`.

    `keys` are the columns that name the bag of a row, `counted` the bags with counts. `drop_unmatched`: skip the rows
    of all other bags. Raises `LLPBenchError` if some rows must be left out that have no bag with counts, and if the
    limit has no room for two bags.
    """
    codes, sizes, known = BagCodes(keys), Counter[Hashable](), {*counted}
    done = RowsDone(show, "bags", batches.total)
    for batch in batches:
        with batch.blamed():
            sizes.update(rows_by_label(*codes(batch)))
        done.add(len(batch.frame))
    if not sizes:
        raise DataError(f"file {str(batches.path)!r} has no rows.")
    sizes = +sizes  # without labels of no row
    total, unknown = sizes.total(), {label: rows for label, rows in sizes.items() if label not in known}
    drawn: set[Hashable] = {*sizes, None}
    if drop_unmatched and total > most_rows:
        sizes.subtract(unknown)
        sizes = +sizes
        drawn = {*sizes}
    if sampled := sizes.total() > most_rows:
        if unknown and not drop_unmatched:
            rows, some = sum(unknown.values()), next(iter(unknown))
            raise LLPBenchError(
                f"{rows:,} of {plural(total, 'row')} {verb(rows)} no bag with counts"
                f"{'' if some is None else f', such as rows of bag {some!r}'}. Add these bags. To drop such rows, use "
                "unmatched='drop'."
            )
        drawn = _drawn(sizes, most_rows, seed)
    frames, done = [], RowsDone(show, "rows of bags", batches.total)
    for batch in batches:
        places, labels = codes(batch)
        inside = np.array([label in drawn for label in labels], dtype=bool)[places]
        frames.append(batch.frame[inside])
        done.add(len(batch.frame))
    found = pd.concat(frames, ignore_index=True)
    found.attrs["decimals"] = dict(batches.decimals)
    if not sampled:
        return BagSample(found, set(), "")
    message = f"fitted to {len(found):,} of {plural(total, 'row')}, in {len(drawn):,} of {len(sizes):,} bags, at random"
    return BagSample(found, {*sizes} - drawn, message)


def _drawn(sizes: Counter[Hashable], most_rows: int, seed: int) -> set[Hashable]:
    """Return bags in random order, as many as fit."""
    names = sorted(sizes)  # type: ignore[type-var]
    order = generator(seed, "sample of bags").permutation(len(names))
    rows = np.array([sizes[name] for name in names])[order]
    fitting = int(np.searchsorted(np.cumsum(rows), most_rows, side="right"))
    if fitting < 2:
        raise LLPBenchError(
            f"at least 2 bags must fit into {most_rows:,} rows, but bags have up to {rows.max():,}. Use a larger "
            "--most-rows, or a sample of the rows of each bag and --sampled."
        )
    return {names[place] for place in order[:fitting]}
