"""Add runs to a published journal: one shard per dataset, and the excerpt that ships with the package.

Only shards with new runs are rewritten. `python -m benchmarks.publish` then writes boards, pages and plots.

python -m benchmarks.shards leaderboards/core mine again
"""

from __future__ import annotations

import json
import lzma
import re
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.record import Record
from llpbench.results.journal import SHARD_SUFFIX, SHARDS, Contents, Preference, shards
from llpbench.results.lines import to_line
from llpbench.results.merging import EXCERPT, journal_files, merge_into

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def write(folder: Path, contents: Contents) -> None:
    """Write the shards of these records, and the excerpt of those that count. Unchanged files are not rewritten."""
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
    _write(folder / EXCERPT, Contents(excerpts, contents.tunings).lines)


def _write(path: Path, content: bytes) -> None:
    if not path.exists() or _values(lzma.decompress(path.read_bytes())) != _values(content):
        replace_file(path, lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def _values(content: bytes) -> list[Any]:
    """Return the values of lines: versions of pydantic write the same number in different forms."""
    return [json.loads(line) for line in content.splitlines()]


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


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("journals", nargs=-1, required=True)
@click.option("--prefer", type=click.Choice(["newest", "first"]), help="as of llpbench merge")
def main(folder: Path, journals: tuple[str, ...], prefer: Preference | None) -> None:
    """Merge journals with that of a folder."""
    if not (published := shards(folder)):
        raise click.ClickException(
            f"{str(folder)!r} has no published journal. Give a folder such as leaderboards/core."
        )
    try:
        with TemporaryDirectory() as merged:
            files = [*published, *(path for name in journals for path in journal_files(name))]
            contents = merge_into(Path(merged), files, prefer)
        write(folder, contents)
    except LLPBenchError as error:
        raise click.ClickException(str(error)) from error
    print(*contents.warnings, *contents.disputes, f"{len(contents.runs):,} runs: {folder}", sep="\n")


if __name__ == "__main__":
    main()
