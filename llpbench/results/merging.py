"""Merging of several journals: from several machines, or your own with the published one.

Each journal keeps its order. Records of different journals are ordered by their time stamps. `journal.settle` decides
which of them are kept, and `journal.agree` whether the last one counts, or none until a user prefers one.

Published results are the journal in one shard per dataset, and an excerpt of its runs that ships with the package.
`benchmarks/shards.py` writes both. `leaderboards/journal/DATASET.jsonl.xz` holds the lines of a dataset's runs and
searches, as in a journal. `compare`, `plan` and `load_results("published")` read `leaderboards/published.jsonl.xz`, the
excerpt. Its lines lack what `OMITTED` names.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llpbench.core import PACKAGE
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import at_home
from llpbench.core.record import Record
from llpbench.results.journal import FILE, SHARD_SUFFIX, Contents, Journal, Preference, shards
from llpbench.results.lines import decode

EXCERPT = f"published{SHARD_SUFFIX}"
"""Name of the excerpt beside the folder of shards."""

OMITTED = (
    "learning curves, diagnostics, reliability bins, proportion histograms and criteria without a board; "
    "the shards in leaderboards/journal/ of the repository have them"
)
"""Description for readers of what the excerpt leaves out."""

SHIPPED = {"published": ".", **{name: name for name in ("core", "few-bags", "natural", "rare", "multiclass")}}
"""Folders of results that ship with the package, by name: the main leaderboards, and those of other data and bags."""


def journal_files(name: str) -> list[Path]:
    """Return the files of a journal, given as its file, its folder, or a name in `SHIPPED`.

    A folder of shards has several. Raises `LLPBenchError` if there is none.
    """
    if name in SHIPPED:
        return [_shipped(name)]
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


def _shipped(name: str) -> Path:
    """Return the file of shipped results: inside an installed package, or beside it in a checkout."""
    for folder in (PACKAGE, PACKAGE.parent):
        if (path := folder / "leaderboards" / SHIPPED[name] / EXCERPT).is_file():
            return path
    raise LLPBenchError("this installation has no published results. Reinstall llpbench.")


def shipped_cells(name: str) -> Iterator[dict[str, Any]]:
    """Yield a shipped run of each cell, unchecked and without evaluations: five times as fast as reading."""
    lines = lzma.decompress(_shipped(name).read_bytes()).splitlines()
    cells = {cell: line for line in lines if (cell := line.partition(b'"run":"')[2].partition(b"-")[0])}
    yield from map(decode, cells.values())


def merge(journals: Iterable[Path], prefer: Preference | None = None) -> Contents:
    """Read and merge journals in any order (`journal.settle`). Of different results keep only the preferred one.

    Raises `LLPBenchError` as `Contents.read` does.
    """
    return Contents.joined(map(Contents.read, journals), prefer)


def merge_into(folder: Path, journals: Sequence[Path], prefer: Preference | None = None) -> Contents:
    """Merge journals into that of `folder`, written completely, sorted by specification (runs) and id (searches).

    An existing journal is replaced only if it is among those merged; it is locked meanwhile. Raises `LLPBenchError`
    otherwise, and if it cannot be written.
    """
    path = folder / FILE
    if path.exists() and not any(path.samefile(journal) for journal in journals):
        raise LLPBenchError(
            f"there is a journal in {str(folder)!r} already. Name it among those to merge, or choose another --out."
        )
    merge(journals, prefer)  # an unreadable journal must leave nothing behind
    with Journal(folder) as journal:
        merged = merge(journals, prefer)
        runs = sorted(merged.runs.items(), key=lambda item: _place(item[1][-1]))
        merged = replace(merged, runs=dict(runs), tunings=dict(sorted(merged.tunings.items())))
        journal.replace(merged.lines)
    return merged


def _place(record: Record) -> tuple[str, ...]:
    spec = record["spec"]
    parts = (spec["dataset"], spec["bagging"], f"{spec['bag_size']:06d}", spec["method"], str(spec["encoder"]))
    return (*parts, spec["pretraining"], record["cell"], f"{record['seed']:06d}")
