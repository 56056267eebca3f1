"""Published results: the journal in one shard per dataset, and an excerpt of its runs that ships with the package.

`leaderboards/journal/DATASET.jsonl.xz` holds the lines of a dataset's runs and searches, as in a journal. New results
of a dataset rewrite only its shard. `leaderboards/published.jsonl.xz` is made from the shards. `compare`, `plan` and
`load_results("published")` read it. Its lines lack what `OMITTED` names.
"""

from __future__ import annotations

import lzma
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.record import Record
from llpbench.results.journal import SHARD_SUFFIX, SHARDS, Contents, to_lines
from llpbench.results.lines import to_line

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
EXCERPT = f"published{SHARD_SUFFIX}"
"""Name of the excerpt beside the folder of shards."""

OMITTED = (
    "learning curves, diagnostics, reliability bins, proportion histograms and criteria without a board; "
    "the shards in leaderboards/journal/ of the repository have them"
)
"""Description for readers of what the excerpt leaves out."""


def write_published(folder: Path, contents: Contents) -> None:
    """Write the shards of these records, and the excerpt of those that count. Unchanged files are not rewritten.

    Raises `OSError`.
    """
    lines: dict[str, list[bytes]] = defaultdict(list)
    for records in contents.runs.values():
        lines[records[-1]["spec"]["dataset"]] += map(to_line, records)
    for tuning in contents.tunings.values():
        lines[tuning["spec"]["cell"]["dataset"]].append(to_line(tuning))
    for name in lines:
        if not _FILE_NAME.fullmatch(name):
            raise LLPBenchError(f"a published dataset must have a name such as bank_marketing, got {name!r}.")
    (folder / SHARDS).mkdir(parents=True, exist_ok=True)
    for dataset, content in lines.items():
        _write(folder / SHARDS / f"{dataset}{SHARD_SUFFIX}", b"".join(content))
    excerpts = {run: [_excerpt(record)] for run, record in contents.counting.items()}
    _write(folder / EXCERPT, to_lines(Contents(excerpts, contents.tunings)))


def _write(path: Path, content: bytes) -> None:
    if not path.exists() or lzma.decompress(path.read_bytes()) != content:
        replace_file(path, lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def _excerpt(record: Record) -> Record:
    results = {
        name: {"epoch": result["epoch"], "validation": result["validation"], "diagnostics": {}, "test": result["test"]}
        for name, result in record["results"].items()
        if name in BOARD_CRITERIA
    }
    excerpt: Any = {**record, "results": _rounded(results), "curves": {}, "times": _rounded(record["times"])}
    excerpt["bags"] = record["bags"] and {**record["bags"], "histograms": []}
    excerpt.pop("earlier_curves", None)
    shortened: Record = excerpt
    return shortened


def _rounded(value: Any) -> Any:
    """Return a value with seven significant digits in each number."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return float(f"{value:.7g}") if isinstance(value, float) else value
