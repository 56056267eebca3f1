"""The published files: written as a whole or not at all, so that a reader never meets half a leaderboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import WRITTEN, forget_stale, replace_file
from llpbench.core.text import hint
from llpbench.report.assembling import Report
from llpbench.report.digest import README, STANDINGS, markdown_files
from llpbench.report.exports import long_form, pairs, rows_csv, standings_rows, table_csv, table_json
from llpbench.report.markup import to_latex
from llpbench.report.plots.plot import Plot
from llpbench.report.report_table import ReportTable
from llpbench.results.journal import FILE, SHARDS, shards

INDEX = "index.html"
LONG = {"leaderboards.csv": long_form, "comparisons.csv": pairs}
"""what `--formats csv` adds"""
TABLES = "tables"
TABLE_FORMATS: Mapping[str, Callable[[ReportTable], str]] = {"csv": table_csv, "json": table_json, "tex": to_latex}
"""what every table can be written as, by the ending of its file"""
PNG = "png"
FORMATS = (*TABLE_FORMATS, PNG)
"""what can be asked for beside Markdown, page, standings and SVG"""

_NAME = re.compile(r"[a-z0-9-]{1,60}")
"""what a method of this repository can be called"""


def select_formats(names: str) -> list[str]:
    """Return the formats in a comma list. Raises `LLPBenchError` for unknown ones."""
    chosen = [name for part in names.split(",") if (name := part.strip())]
    for name in chosen:
        if name not in FORMATS:
            raise LLPBenchError(f"unknown format {name!r}. {hint(name, FORMATS)}There are: {', '.join(FORMATS)}.")
    return chosen


def write_report(report: Report, out: Path, *, plots: Path | None = None, formats: Sequence[str] = ()) -> None:
    """Write the Markdown files, the standings as CSV and the page `index.html` into `out`.

    With `plots`, draw the figures into that folder, and show them on the page. `formats`: `png` draws them as PNG, too;
    `csv` writes all scores as `leaderboards.csv` and all pairs of rows as `comparisons.csv`; `csv`, `json` and `tex`
    write every table into `tables/`. What an earlier report wrote and this one does not is deleted; a README.md that no
    report wrote is left alone. Raises `LLPBenchError` if something cannot be written.
    """
    from llpbench.report.html import to_html

    drawn: list[Plot] = []
    if plots is not None:
        from llpbench.report.plots import draw_gallery

        drawn = draw_gallery(report.leaderboards, plots, png=PNG in formats)
    beside = _beside(report, out)
    files = markdown_files(report, beside)
    if _is_foreign(out / README):
        del files[README]
    files[STANDINGS] = rows_csv(standings_rows(report.leaderboards))
    files |= {name: rows_csv(rows(report.leaderboards)) for name, rows in LONG.items() if "csv" in formats}
    files[INDEX] = to_html(report, plots=drawn, links=_links(report, out), beside=beside)
    wanted = [name for name in formats if name in TABLE_FORMATS]
    made = report.tables() if wanted else ()
    tables = {f"{table.name}.{name}": TABLE_FORMATS[name](table) for table in made for name in wanted}
    try:
        _write(files, out)
        forget_stale(out, files)
        _write_tables(tables, out / TABLES)
    except OSError as error:
        raise LLPBenchError(
            f"leaderboards cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error


def _is_foreign(readme: Path) -> bool:
    """Whether somebody else has written it: an output folder can be anybody's own."""
    memory = readme.parent / WRITTEN
    return readme.exists() and not (memory.exists() and README in memory.read_text(encoding="utf-8").splitlines())


def _beside(report: Report, out: Path) -> dict[str, str]:
    """Other reports in the folder above and in folders of this one, by title: a reader of one finds them all."""
    found = {}
    for folder in (out.parent, *sorted(path for path in out.glob("*") if path.is_dir())):
        readme, memory = folder / README, folder / WRITTEN
        if memory.is_file() and INDEX in memory.read_text(encoding="utf-8").splitlines() and readme.is_file():
            title = readme.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            found[title] = ".." if folder == out.parent else folder.name
    return {title: folder for title, folder in found.items() if title != report.title}


def _links(report: Report, out: Path) -> dict[str, str]:
    """Files that the page can point to, by what they are: the journal, standings, code of methods as `method NAME`."""
    names = sorted({row.contender.method for board in report.leaderboards.boards for row in board.rows})
    code = {f"method {name}": f"../methods/{name.replace('-', '_')}.py" for name in names if _NAME.fullmatch(name)}
    journal = FILE if (out / FILE).is_file() else SHARDS if shards(out) else ""
    there = {name: path for name, path in code.items() if (out / path).is_file()}
    return {"standings": STANDINGS, **({"journal": journal} if journal else {}), **there}


def _write(files: Mapping[str, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        replace_file(folder / name, text)


def _write_tables(files: Mapping[str, str], folder: Path) -> None:
    """Write tables, and delete those of an earlier report that are no more, with the folder if nothing is left."""
    if files:
        _write(files, folder)
    if files or (folder / WRITTEN).exists():
        forget_stale(folder, files)
    if not files:
        (folder / WRITTEN).unlink(missing_ok=True)
        with suppress(OSError):  # there is none, or it holds somebody's own files
            folder.rmdir()
