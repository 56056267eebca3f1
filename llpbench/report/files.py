"""The published files: written as a whole or not at all, so that a reader never meets half a leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import forget_stale, replace_file
from llpbench.core.record import Record
from llpbench.core.studies import STUDIES
from llpbench.report import text as words
from llpbench.report.boards import Leaderboards
from llpbench.report.latex import to_latex
from llpbench.report.machines import table_csv, table_json, to_csv
from llpbench.report.markdown import page_markdown
from llpbench.report.pages import Page, pages, study_page
from llpbench.report.table import Table
from llpbench.report.tabulate import tabulate
from llpbench.report.views import OVERALL, SHORT

if TYPE_CHECKING:
    from llpbench.report.html import PagePlot

INDEX = "index.html"
TABLES = "tables"
MOST_PLOTTED = 1_300_000
"""characters of SVG on the page, which is to stay small enough to be passed on"""


@dataclass(frozen=True)
class Report:
    """Everything that is made of a journal, but for its files."""

    leaderboards: Leaderboards
    pages: tuple[Page, ...]
    warnings: tuple[str, ...] = ()
    """what a reader must know of the journal itself"""

    @property
    def tables(self) -> list[Table]:
        """Every table of its pages."""
        return [table for page in self.pages for table in page.tables]


def make_report(
    records: Sequence[Record],
    *,
    warnings: Sequence[str] = (),
    common: bool = False,
    stale: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Everything that `records` have to say.

    It depends on the records alone, not on their order (but for two records of one run: the last one counts). With
    `common`, boards show only the runs that all their rows have completed. `stale`: the runs of other code than
    today's, and why that is known.
    """
    reasons = Counter(stale.values())
    warnings = [*warnings, *(f"{words.counted(runs, 'run')} stale: {why}" for why, runs in reasons.items())]
    leaderboards = tabulate(records, common=common)
    latest = list({record["run"]: record for record in records}.values())
    made = (*pages(leaderboards), study_page(STUDIES.values(), latest))
    if warnings:
        mind = {"Mind": " ".join(map(words.sentence, words.some_of(warnings)))}
        made = tuple(replace(page, explained={**page.explained, **mind}) for page in made)
    return Report(leaderboards, made, tuple(warnings))


def write_report(report: Report, out: Path, *, plots: Path | None = None) -> None:
    """Write the pages, every table (`tables/`: CSV, JSON, LaTeX), `leaderboards.csv` and `index.html` into `out`.

    With `plots`, draw the plots into that folder, and show them on the page. Raises `LLPBenchError` if something cannot
    be written.
    """
    from llpbench.report.html import PagePlot, PageTable, to_html

    drawn: list[PagePlot] = []
    warnings = list(report.warnings)
    if plots is not None:
        from llpbench.report.plots import draw_all

        every = [
            PagePlot(plot.name, plot.title, plot.caption, plot.svg.read_text(encoding="utf-8"))
            for plot in draw_all(report.leaderboards, plots)
        ]
        drawn = _that_fit(every)
        if len(drawn) < len(every):
            left = words.counted(len(every) - len(drawn), "plot")
            warnings.append(f"{left} of many datasets would make this page too large: see the folder of plots.")
    files = {f"{page.name}.md": page_markdown(page) for page in report.pages}
    files["leaderboards.csv"] = to_csv(report.leaderboards)
    for table in report.tables:
        files |= {
            f"{TABLES}/{table.name}.{ending}": convert(table)
            for ending, convert in (("csv", table_csv), ("json", table_json), ("tex", to_latex))
        }
    shown = [
        PageTable(
            table.name,
            table.title,
            table.caption,
            [heading.text for heading in table.headings],
            [["\n".join(field.lines) for field in row] for row in table.rows],
        )
        for page in report.pages
        for table in page.tables
        if page.name not in SHORT.values() or table.name.endswith(OVERALL)  # the page shows scores by itself
    ]
    files[INDEX] = to_html(report.leaderboards, plots=drawn, tables=shown, warnings=warnings)
    _write(files, out)


def _that_fit(plots: Sequence[PagePlot]) -> list[PagePlot]:
    """Those plots that the page has room for, in their order; the smallest first, which are those of all datasets."""
    room, kept = MOST_PLOTTED, set()
    for plot in sorted(plots, key=lambda plot: len(plot.svg)):
        room -= len(plot.svg)
        if room >= 0:
            kept.add(plot.name)
    return [plot for plot in plots if plot.name in kept]


def _write(files: Mapping[str, str], out: Path) -> None:
    try:
        (out / TABLES).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            replace_file(out / name, text)
        forget_stale(out / TABLES, [Path(name).name for name in files if name.startswith(f"{TABLES}/")])
    except OSError as error:
        raise LLPBenchError(
            f"leaderboards cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
