"""Files of a report. Each is written completely or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import WRITTEN, forget_stale, replace_file
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import hint, plural
from llpbench.report.advice import ADVICE
from llpbench.report.assembling import TITLE, Report, make_report
from llpbench.report.board_tables import names_of, overall_table
from llpbench.report.boards import HEADLINE
from llpbench.report.digest import README, STANDINGS, markdown_files
from llpbench.report.exports import long_form, pairs, robustness_rows, rows_csv, standings_rows, to_latex
from llpbench.report.plots.plot import Plot
from llpbench.report.robustness_ranking import ANCHOR
from llpbench.results.frame import NO_STALE_RUNS
from llpbench.results.journal import FILE, SHARDS, shards

INDEX = "index.html"

CSV, JSON, LATEX, PNG = "csv", "json", "tex", "png"
FORMATS = (CSV, JSON, LATEX, PNG)
"""Formats that are written on request."""

_METHOD = re.compile(r"[a-z0-9-]{1,60}")
"""Possible names of methods in this repository."""


def select_formats(names: str) -> list[str]:
    """Return the formats in a comma-separated list. Raises `LLPBenchError` for unknown ones."""
    chosen = [name for part in names.split(",") if (name := part.strip())]
    for name in chosen:
        if name not in FORMATS:
            raise LLPBenchError(f"unknown format {name!r}. {hint(name, FORMATS)}Available: {', '.join(FORMATS)}.")
    return chosen


def publish(
    records: Sequence[Record],
    tunings: Sequence[TuningRecord],
    out: Path,
    *,
    warnings: Sequence[str] = (),
    stale: Mapping[str, str] = NO_STALE_RUNS,
    plots: Path | None = None,
    formats: Sequence[str] = (),
    metric: str = HEADLINE,
    title: str = TITLE,
) -> Published:
    """Make the report of some records and write it. Arguments: as for `make_report` and `write_report`."""
    report = make_report(records, warnings=warnings, stale=stale, tunings=tunings, metric=metric, title=title)
    return Published(report, out, plots, write_report(report, out, plots=plots, formats=formats))


@dataclass(frozen=True)
class Published:
    """A report in its folder."""

    report: Report
    out: Path
    plots: Path | None
    """Folder of the figures; None without figures."""
    figures: Sequence[Plot]

    @property
    def places(self) -> list[str]:
        """Lines that name the main files: page, ranking by robustness, figures."""
        lines = [f"page: {self.out / INDEX}"]
        if self.report.robustness and not _is_foreign(self.out / README):
            lines.append(f"robustness ranking: {self.out / README}#{ANCHOR}")
        if self.plots is not None and self.figures:
            lines.append(f"plots: {self.plots} ({plural(len(self.figures), 'figure')})")
        return lines


def write_report(report: Report, out: Path, *, plots: Path | None = None, formats: Sequence[str] = ()) -> list[Plot]:
    """Write the page, the Markdown files and the standings as CSV into `out`, and the figures into `plots`.

    Format `csv` adds all scores (`leaderboards.csv`), all pairs of entries (`comparisons.csv`) and the robustness
    rankings (`robustness.csv`). `json` and `tex` add the boards as JSON and LaTeX (`boards.json`, `boards.tex`). `png`
    adds the figures as PNG. Files of an earlier report that this one does not write are deleted. A README.md that no
    report wrote is kept. Returns the figures. Raises `LLPBenchError` if a file cannot be written.
    """
    from llpbench.report.html import to_html

    drawn: list[Plot] = []
    if plots is not None:
        from llpbench.report.plots import draw_gallery

        drawn = draw_gallery(report.leaderboards, plots, png=PNG in formats)
    beside = _other_reports(report, out)
    advised = {
        title: folder for title, folder in beside.items() if (out / folder).resolve().joinpath(f"{ADVICE}.md").is_file()
    }
    figures = {plot.name: _relative(plots / f"{plot.name}.svg", out) for plot in drawn if plots is not None}
    files = markdown_files(report, beside, advised, figures)
    if _is_foreign(out / README):
        del files[README]
    files[STANDINGS] = rows_csv(standings_rows(report.leaderboards))
    if CSV in formats:
        files["leaderboards.csv"] = rows_csv(long_form(report.leaderboards))
        files["comparisons.csv"] = rows_csv(pairs(report.leaderboards))
        files["robustness.csv"] = rows_csv(robustness_rows(report.leaderboards))
    if JSON in formats:
        files["boards.json"] = json.dumps([*standings_rows(report.leaderboards)], indent=1, ensure_ascii=False) + "\n"
    if LATEX in formats:
        boards = report.leaderboards.main_boards()
        names = names_of(boards)
        files["boards.tex"] = "\n".join(to_latex(overall_table(*pair)) for pair in zip(boards, names, strict=True))
    files[INDEX] = to_html(report, plots=drawn, links=_links(report, out), beside=beside)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            replace_file(out / name, text)
        forget_stale(out, files)
    except OSError as error:
        raise LLPBenchError(
            f"leaderboards cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
    return drawn


def _relative(path: Path, folder: Path) -> str:
    """Return the link from a file in a folder to another file."""
    return quote(Path(os.path.relpath(path, folder)).as_posix())


def _is_foreign(readme: Path) -> bool:
    """Return whether a README.md exists that no report wrote."""
    return readme.exists() and README not in _written(readme.parent)


def _written(folder: Path) -> list[str]:
    """Return the files that a report has written into a folder."""
    memory = folder / WRITTEN
    return memory.read_text(encoding="utf-8").splitlines() if memory.is_file() else []


def _other_reports(report: Report, out: Path) -> dict[str, str]:
    """Return folders of reports above and below this one, by title."""
    reports = {}
    for folder in (out.parent, *sorted(path for path in out.glob("*") if path.is_dir())):
        readme = folder / README
        if INDEX in _written(folder) and readme.is_file():
            title = readme.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            reports[title] = ".." if folder == out.parent else folder.name
    return {title: folder for title, folder in reports.items() if title != report.title}


def _links(report: Report, out: Path) -> dict[str, str]:
    """Return files that the page links to: `standings`, `journal`, and the code of methods as `method NAME`."""
    names = sorted({method for board in report.leaderboards.boards for method in board.entries["method"]})
    code = {f"method {name}": f"../methods/{name.replace('-', '_')}.py" for name in names if _METHOD.fullmatch(name)}
    journal = FILE if (out / FILE).is_file() else SHARDS if shards(out) else ""
    links = {"standings": STANDINGS, **({"journal": journal} if journal else {})}
    return links | {name: path for name, path in code.items() if (out / path).is_file()}
