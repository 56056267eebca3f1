"""Merging of several journals: from several machines, or your own with the published one.

Each journal keeps its order, in which later records are newer. Records of different journals are ordered by version of
the engine, then by their time stamps.

A run with the same results in several journals is kept once. If results of the same code differ, all its records are
kept, and reports flag it: the newest counts if they agree (`journal.agree`), otherwise none does until a user prefers
one. Newer code wins over older code, and a success over a failure.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from llpbench.core import PACKAGE
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import at_home
from llpbench.core.record import Record, TuningRecord
from llpbench.results.journal import FILE, Contents, Journal, age, newer, read, settle, shards, to_lines
from llpbench.results.lines import decode
from llpbench.results.published import EXCERPT, write_published

PUBLISHED = "published"
SHIPPED = {PUBLISHED: ".", **{name: name for name in ("core", "few-bags", "natural", "rare", "multiclass")}}
"""Folders of results that ship with the package, by name: the main leaderboards, and those of other data and bags."""


def journal_files(name: str) -> list[Path]:
    """Return the files of a journal, given as its file, its folder, or a name in `SHIPPED`.

    A folder of shards (`results/published.py`) has several. Raises `LLPBenchError` if there is none.
    """
    if name in SHIPPED:
        return [shipped(name)]
    path = at_home(name)
    candidates = [*shards(path), path / FILE] if path.is_dir() else [path]
    files = [file for file in candidates if file.is_file()]
    if not files:
        here = sorted(file.parent.name for file in Path().glob(f"*/{FILE}"))
        known = f" Folders with a journal here: {', '.join(here)}." if here else ""
        raise LLPBenchError(
            f"there is no journal {str(candidates[-1])!r}. Give the --out folder of a run, a {FILE} file, or one of: "
            f"{', '.join(SHIPPED)}.{known}"
        )
    return files


def shipped(name: str = PUBLISHED) -> Path:
    """Return the file of shipped results: inside an installed package, or beside it in a checkout."""
    for folder in (PACKAGE, PACKAGE.parent):
        if (path := folder / "leaderboards" / SHIPPED[name] / EXCERPT).is_file():
            return path
    raise LLPBenchError("this installation has no published results. Reinstall llpbench.")


def shipped_cells(name: str) -> Iterator[dict[str, Any]]:
    """Yield a shipped run of each cell, unchecked and without evaluations: five times as fast as `read`."""
    lines = lzma.decompress(shipped(name).read_bytes()).splitlines()
    cells = {cell: line for line in lines if (cell := line.partition(b'"run":"')[2].partition(b"-")[0])}
    yield from map(decode, cells.values())


Preference = Literal["newest", "first"]
"""Preferred result of a run with different ones."""


def merge(journals: Iterable[Path], prefer: Preference | None = None) -> Contents:
    """Read and merge journals in any order (`journal.settle`). Of different results keep only the preferred one.

    Raises `LLPBenchError` as `journal.read` does.
    """
    return join(map(read, journals), prefer)


def join(journals: Iterable[Contents], prefer: Preference | None = None) -> Contents:
    """Merge journals that have been read, as `merge` does."""
    runs: dict[str, list[Record]] = {}
    tunings: dict[str, TuningRecord] = {}
    warnings: list[str] = []
    for contents in journals:
        warnings += contents.warnings
        tunings = join_tunings(tunings, contents.tunings)
        for run, records in contents.runs.items():
            known = runs.setdefault(run, [])
            known += [record for record in records if record not in known]
    settled = {run: settle(sorted(records, key=age)) for run, records in runs.items()}
    if prefer is not None:
        settled = {run: [records[0] if prefer == "first" else records[-1]] for run, records in settled.items()}
    return Contents(settled, tunings, tuple(warnings))


def join_tunings(*journals: Mapping[str, TuningRecord]) -> dict[str, TuningRecord]:
    """Return the searches of several journals, by id, each selected by `journal.newer`."""
    joined: dict[str, TuningRecord] = {}
    for tunings in journals:
        for name, tuning in tunings.items():
            joined[name] = newer(*sorted((joined[name], tuning), key=age)) if name in joined else tuning
    return joined


def merge_into(folder: Path, journals: Sequence[Path], prefer: Preference | None = None) -> Contents:
    """Merge journals into that of `folder`, written completely and sorted by the specification of its runs.

    An existing journal is replaced only if it is among those merged; it is locked meanwhile. A folder with shards gets
    shards and their excerpt. Raises `LLPBenchError` otherwise, and if it cannot be written.
    """
    parts, path = shards(folder), folder / FILE
    for file in (*parts, path):
        if file.exists() and not any(file.samefile(journal) for journal in journals):
            raise LLPBenchError(
                f"there is a journal in {str(folder)!r} already. Name it among those to merge, or choose another --out."
            )
    merged = _sorted(merge(journals, prefer))  # an unreadable journal must leave nothing behind
    if parts:
        try:
            write_published(folder, merged)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise LLPBenchError(
                f"the journal in {str(folder)!r} cannot be written: {error.strerror or error}. Choose another --out."
            ) from error
        return merged
    with Journal(folder) as journal:
        merged = _sorted(merge(journals, prefer))
        journal.replace(to_lines(merged))
    return merged


def _sorted(contents: Contents) -> Contents:
    """Return the contents sorted by the specifications of runs and by the ids of searches."""
    runs = sorted(contents.runs.items(), key=lambda item: _place(item[1][-1]))
    return replace(contents, runs=dict(runs), tunings=dict(sorted(contents.tunings.items())))


def _place(record: Record) -> tuple[str, ...]:
    spec = record["spec"]
    parts = (spec["dataset"], spec["bagging"], f"{spec['bag_size']:06d}", spec["method"], str(spec["encoder"]))
    return (*parts, spec["pretraining"], record["cell"], f"{record['seed']:06d}")
