"""The published files: written as a whole or not at all, so that a reader never meets half a leaderboard."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from llpbench.errors import LLPBenchError
from llpbench.record import Record
from llpbench.report.longform import to_csv, to_json
from llpbench.report.markdown import to_markdown
from llpbench.report.tables import Leaderboards
from llpbench.report.tabulate import tabulate


def write_leaderboards(records: Sequence[Record], out: Path) -> Leaderboards:
    """Tabulate `records` and write `fine.md`, `coarse.md`, `leaderboards.csv` and `leaderboards.json` into `out`.

    The files depend on the records alone, not on their order (but for two records of one run: the last one counts).
    Raises `LLPBenchError` if `out` cannot be written.
    """
    leaderboards = tabulate(records)
    files = {
        "fine.md": to_markdown(leaderboards, "fine"),
        "coarse.md": to_markdown(leaderboards, "coarse"),
        "leaderboards.csv": to_csv(leaderboards),
        "leaderboards.json": to_json(leaderboards),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_atomically(out / name, text)
    except OSError as error:
        raise LLPBenchError(
            f"leaderboards cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
    return leaderboards


def write_atomically(path: Path, text: str) -> None:
    """Replace the file at `path`; on any failure the old one stays as it was. Raises `OSError`."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # mkstemp's own mode shuts other readers out
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
