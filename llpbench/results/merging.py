"""Merging of several journals: from several machines, or your own with the published one.

Each journal keeps its order, in which later records are newer. Records of different journals are ordered only by their
time stamps (`in_order`).

A run with the same results in several journals is kept once. If results of the same code differ, all its records are
kept, and reports flag it: the newest counts if they agree (`journal.agree`), otherwise none does until a user prefers
one. Newer code wins over older code, and a success over a failure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import at_home
from llpbench.core.record import Record, TuningRecord
from llpbench.core.version import PACKAGE
from llpbench.results.journal import (
    FILE,
    TOLERANCE,
    Contents,
    Journal,
    age,
    agree,
    newer,
    read,
    settle,
    shards,
    to_line,
    widest,
)
from llpbench.results.published import TABLE, read_table, write_published

PUBLISHED = "published"
_OTHERS = ("core", "few-bags", "natural", "rare", "multiclass")
SHIPPED = {PUBLISHED: TABLE} | {name: f"{name}/{TABLE}" for name in _OTHERS}
"""Tables of results that ship with the package, by name: the main leaderboards, and those of other data and bags."""


@dataclass(frozen=True)
class Merged:
    """Several merged journals."""

    kept: dict[str, list[Record]]
    """records kept for each run, the newest last, by run id"""
    warnings: tuple[str, ...]
    """one line for each line of a journal that was left out"""
    tunings: dict[str, TuningRecord] = field(default_factory=dict)
    """newest record of each tuning, by id"""

    @property
    def records(self) -> dict[str, Record]:
        """The record of each run that counts; none for runs whose results disagree."""
        return {run: records[-1] for run, records in self.kept.items() if agree(records)}

    @property
    def disputed(self) -> list[str]:
        """One line for each run with different results."""
        return disputes(records for _, records in sorted(self.kept.items()) if len(records) > 1)


def journal_files(name: str) -> list[Path]:
    """Return the files of a journal, given as its file, its folder, or a name in `SHIPPED`.

    A folder of shards (`results/published.py`) has several. Raises `LLPBenchError` if there is none.
    """
    if name in SHIPPED:
        return [shipped(name)]
    path = at_home(name)
    found = [*shards(path), path / FILE] if path.is_dir() else [path]
    files = [file for file in found if file.is_file()]
    if not files:
        raise LLPBenchError(
            f"there is no journal {str(found[-1])!r}. Give the --out folder of a run, a {FILE} file, or one of: "
            f"{', '.join(SHIPPED)}."
        )
    return files


def shipped(name: str) -> Path:
    """Return the table of shipped results: inside an installed package, or beside it in a checkout."""
    for folder in (PACKAGE, PACKAGE.parent):
        if (path := folder / "leaderboards" / SHIPPED[name]).is_file():
            return path
    raise LLPBenchError("this installation has no published results. Reinstall llpbench.")


def read_shipped(name: str = PUBLISHED, *, fields: Collection[str] | None = None) -> Contents:
    """Return shipped results by name as `published.read_table` does. Raises `LLPBenchError`."""
    return read_table(shipped(name), fields=fields)


Preference = Literal["newest", "first"]
"""preferred result of a run with different ones, by their order (`in_order`)"""


def merge(journals: Iterable[Path], prefer: Preference | None = None) -> Merged:
    """Read and merge journals in any order (`journal.settle`); of different results keep only the preferred one.

    Raises `LLPBenchError` as `journal.read` does.
    """
    return join(map(_read, journals), prefer)


def _read(path: Path) -> Contents:
    return read_table(path) if path.suffix == ".parquet" else read(path)


def join(journals: Iterable[Contents], prefer: Preference | None = None) -> Merged:
    """Merge journals that have been read, as `merge` does."""
    found: dict[str, list[Sequence[Record]]] = {}
    tunings: dict[str, TuningRecord] = {}
    warnings: list[str] = []
    for contents in journals:
        warnings += contents.warnings
        tunings = join_tunings(tunings, contents.tunings)
        for run, last in contents.records.items():
            found.setdefault(run, []).append(contents.disputed.get(run, (last,)))
    kept = {run: settle(in_order(journals)) for run, journals in found.items()}
    if prefer is not None:
        kept = {run: [records[0] if prefer == "first" else records[-1]] for run, records in kept.items()}
    return Merged(kept, tuple(warnings), tunings)


def in_order(journals: Sequence[Sequence[Record]]) -> list[Record]:
    """Return the records of a run from several journals in order, the newest last, without duplicates.

    A record comes after those that precede it in any journal. If no journal decides, `numerics` do, then the time when
    records were finished, then the order of the journals. So a wrong clock cannot reorder a journal, but
    between runs of two machines the one whose clock is ahead counts as later. Records that a journal has superseded
    (`journal.settle`) are unknown here, so merging in several steps gives the same as at once only if clocks are right.
    """
    ordered: list[Record] = []
    waiting = [[*records] for records in journals]
    while waiting := [records for records in waiting if records]:
        first = [records[0] for records in waiting]
        free = [record for record in first if not any(record in records[1:] for records in waiting)]
        oldest = min(free or first, key=age)
        ordered.append(oldest)
        waiting = [[record for record in records if record != oldest] for records in waiting]
    return ordered


def join_tunings(*journals: Mapping[str, TuningRecord]) -> dict[str, TuningRecord]:
    """Return the searches of several journals, by id, each selected by `journal.newer`."""
    found: dict[str, TuningRecord] = {}
    for tunings in journals:
        for name, tuning in tunings.items():
            found[name] = newer(*sorted((found[name], tuning), key=age)) if name in found else tuning
    return found


def merge_into(folder: Path, journals: Sequence[Path], prefer: Preference | None = None) -> Merged:
    """Merge journals into that of `folder`, written completely and sorted by the specification of its runs.

    An existing journal is replaced only if it is among those merged; it is locked meanwhile. A folder with shards gets
    shards and the published table. Raises `LLPBenchError` otherwise, and if it cannot be written.
    """
    parts = shards(folder)
    path = folder / FILE
    for file in (*parts, path):
        if file.exists() and not any(file.samefile(journal) for journal in journals):
            raise LLPBenchError(
                f"there is a journal in {str(folder)!r} already. Name it among those to merge, or choose another --out."
            )
    merge(journals)  # an unreadable journal must leave nothing behind
    if parts:
        return _merge_into_shards(folder, journals, prefer)
    with Journal(folder) as journal:
        merged = merge(journals, prefer)
        records = sorted(chain.from_iterable(merged.kept.values()), key=_place)
        tunings = [merged.tunings[name] for name in sorted(merged.tunings)]
        journal.replace(b"".join([*map(to_line, records), *map(to_line, tunings)]))
    return merged


def _merge_into_shards(folder: Path, journals: Sequence[Path], prefer: Preference | None) -> Merged:
    """Merge journals into the shards of a published folder, together with a journal beside them."""
    merged = merge(journals, prefer)
    records = sorted(chain.from_iterable(merged.kept.values()), key=_place)
    try:
        write_published(folder, records, [merged.tunings[name] for name in sorted(merged.tunings)])
        (folder / FILE).unlink(missing_ok=True)
    except OSError as error:
        raise LLPBenchError(
            f"the journal in {str(folder)!r} cannot be written: {error.strerror or error}. Choose another --out."
        ) from error
    return merged


def _place(record: Record) -> tuple[str, ...]:
    """Return the sort key of a record, by its specification. Records of one run keep their order."""
    spec = record["spec"]
    parts = (spec["dataset"], spec["bagging"], f"{spec['bag_size']:06d}", spec["method"], str(spec["encoder"]))
    return (*parts, spec["pretraining"], record["cell"], f"{record['seed']:06d}")


def disputes(runs: Iterable[Sequence[Record]]) -> list[str]:
    """Return one line for each run, given as all its records, the newest last."""
    return [_dispute(records) for records in runs]


def _dispute(records: Sequence[Record]) -> str:
    spec, seed, apart = records[-1]["spec"], records[-1]["seed"], widest(records)
    shown = ", ".join("none" if value is None else f"{100 * value:.4f}" for value in apart.values)
    how = f"more than {100 * TOLERANCE:g} points apart" if math.isfinite(apart.points) else "a score and none"
    prefer = "until one is preferred: llpbench merge JOURNAL --out FOLDER --prefer newest (or first)"
    return (
        f"{spec['method']} on {spec['dataset']} {spec['bag_size']}, seed {seed}: {len(records)} different results, "
        f"test {apart.metric.upper()} {shown}; "
        f"{'the last one counts' if agree(records) else f'{how}, so none counts {prefer}'}"
    )
