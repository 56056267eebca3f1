"""Files of a report. Each is written completely or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from pandas import concat

from llpbench.core.files import explained_failure, forget_stale, generated, replace_file
from llpbench.core.text import frame_as_csv, plural, some_of
from llpbench.report import wording as words
from llpbench.report.board_tables import ANCHOR, Report
from llpbench.report.boards import Board
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.overview import BRIEF, MOST_ROWS, Overview, Standings
from llpbench.report.report_table import Field, Plot, ReportTable
from llpbench.report.tabulate import Leaderboards
from llpbench.results.journal import FILE, SHARDS, shards

_README, _STANDINGS, _INDEX = "README.md", "boards.csv", "index.html"

_METHOD = re.compile(r"[a-z0-9-]{1,60}")
"""Possible names of methods in this repository."""

_MOST_NAMED = 8
"""Datasets of a board that are listed by name."""

_MOST_LINES = 40
"""Rows of a table."""

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_MARKDOWN = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""Characters that have a meaning in Markdown. An underscore inside a word has none."""


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
        found = [f"page: {self.out / _INDEX}"]
        if self.report.robustness and not _is_foreign(self.out / _README):
            found.append(f"robustness ranking: {self.out / _README}#{ANCHOR}")
        if self.plots is not None and self.figures:
            found.append(f"plots: {self.plots} ({plural(len(self.figures), 'figure')})")
        return found

    @classmethod
    def write(
        cls,
        report: Report,
        out: Path,
        *,
        plots: Path | None = None,
        overview: Overview | None = None,
        beside: Mapping[str, str] | None = None,
    ) -> Published:
        """Write the page, the README and the standings as CSV into `out`, and the figures as SVG into `plots`.

        `overview`: beginning of the page, by default the main boards of the report. `beside`: folders of other reports
        to link to, by title. Files of an earlier report that this one does not write are deleted. A README.md that no
        report wrote is kept. Raises `LLPBenchError` if a file cannot be written.
        """
        from llpbench.report.html import to_html

        drawn: list[Plot] = []
        if plots is not None:
            from llpbench.report.plots.figures import gallery
            from llpbench.report.plots.layout import save

            drawn = save(gallery(report.leaderboards), plots)
        overview, beside = overview or Overview.of(report.leaderboards.main_boards()), beside or {}
        folder = Path(os.path.relpath(plots or out, out))
        figures = [(plot.title, quote((folder / f"{plot.name}.svg").as_posix())) for plot in drawn]
        files = {_STANDINGS: _standings_csv(report.leaderboards)}
        if not _is_foreign(out / _README):
            files[_README] = _readme(report, overview, beside, figures)
        shown = [overview.figure, *drawn] if overview.figure else drawn
        files[_INDEX] = to_html(report, overview, plots=shown, links=_links(report, out), beside=beside)
        with explained_failure(f"leaderboards cannot be written into {str(out)!r}"):
            out.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                replace_file(out / name, text)
            forget_stale(out, files)
        return cls(report, out, plots, drawn)


def _standings_csv(leaderboards: Leaderboards) -> str:
    """Return a line for each board and entry as CSV: every column of the leaderboard. Unknown values are empty."""
    boards = [Standings.of(board).lines.astype(object) for board in leaderboards.boards]  # whole numbers stay whole
    return frame_as_csv(concat(boards)) if boards else "\n"


def _is_foreign(readme: Path) -> bool:
    """Return whether a README.md exists that no report wrote."""
    return readme.exists() and _README not in generated(readme.parent)


def _links(report: Report, out: Path) -> dict[str, str]:
    """Return files that the page links to: `standings`, `journal`, and the code of methods as `method NAME`."""
    names = sorted({method for board in report.leaderboards.boards for method in board.entries["method"]})
    code = {f"method {name}": f"../methods/{name.replace('-', '_')}.py" for name in names if _METHOD.fullmatch(name)}
    journal = FILE if (out / FILE).is_file() else SHARDS if shards(out) else ""
    return {"standings": _STANDINGS, "journal": journal} | {n: p for n, p in code.items() if (out / p).is_file()}


def _readme(report: Report, overview: Overview, beside: Mapping[str, str], figures: Sequence[tuple[str, str]]) -> str:
    """Return the README of a report. `beside`: folders of other reports by title. `figures`: titles and paths."""
    links = ["- [The page](index.html), to sort, filter and trace to runs"]
    links += [f"- [{_escape(title)}]({folder}/{_README})" for title, folder in beside.items()]
    links.append(f"- [All boards as CSV]({_STANDINGS})")
    parts = [f"# {_escape(report.title)}"]
    if report.warnings:
        parts.append("\n".join(f"- **{_escape(words.sentence(line))}**" for line in some_of(report.warnings)))
    parts.append("\n".join(links))
    if boards := report.leaderboards.main_boards():
        tables = overview.tables or [*map(_brief, boards)]
        headings = {heading.text for table in tables for heading in table.headings}
        explained = [COLUMNS[key] for key in BRIEF if COLUMNS[key].heading(boards[0].metric.title).text in headings]
        parts += [
            _to_markdown(overview.which) if overview.which else f"**{_escape(overview.headline)}**",
            f"## How to read a board\n\n{words.caption('what_is_shown', most=MOST_ROWS, standings=_STANDINGS)}",
            "\n".join(
                [_meaning(words.caption("epochs")), *(_meaning(each.explained(boards[0])) for each in explained)]
            ),
            *map(_to_markdown, tables),  # each with its protocol, even if all are the same
            *(_to_markdown(_ranking(table)) for table in report.robustness[:1]),
        ]
    else:
        parts += [*map(_to_markdown, report.unlabelled)] or [words.NO_RUNS]
    if figures:
        of_what = "The paper’s datasets; the boards above link to those of others.\n\n" if overview.which else ""
        parts.append(f"## Figures\n\n{of_what}" + "\n".join(f"- [{_escape(title)}]({path})" for title, path in figures))
    if report.leaderboards.origin:
        lines = "\n".join(f"- {name}: {_escape(text)}" for name, text in report.leaderboards.origin.items())
        parts.append(f"## Runs\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def _meaning(explained: str) -> str:
    """Return the explanation of a column (`Seconds: mean time ...`) as an item of a list."""
    name, _, meaning = explained.partition(": ")
    return f"- **{_escape(name)}**: {_escape(meaning)}"


def _brief(board: Board) -> ReportTable:
    """Return the first entries of a board, with a floor, the control and a ceiling."""
    lines = Standings.of(board)
    parts = (
        board.setting(),
        board.datasets_text(named=_MOST_NAMED),
        lines.verdict(),
        lines.worth_of_labels(),
        words.caption("starred") if len({name.endswith("(cuda)") for name in board.hardware}) > 1 else "",
    )
    caption = " ".join(words.sentence(part) for part in parts if part)
    kinds = (words.FAILED, words.WITHOUT_VALUE, words.STALE_NOTE)
    return replace(lines.table(), caption=caption, notes={kind: some_of(board.notes[kind], 3) for kind in kinds})


def _ranking(table: ReportTable) -> ReportTable:
    """Return the first rows of the robustness ranking under a heading to which other texts can link."""
    shown = [(heading, fields[:MOST_ROWS]) for heading, fields in table.columns]
    caption = f"{words.sentence(table.title)} {table.caption}"
    if len(table.rows) > MOST_ROWS:
        caption = f"{caption} Shown are the first {MOST_ROWS} of {len(table.rows)}."
    return replace(table, title=ANCHOR.capitalize(), caption=caption, columns=shown, notes={})


def _to_markdown(table: ReportTable) -> str:
    """Return a table as Markdown, with its title, caption and notes. Long tables are cut."""
    rows = [
        [_escape(heading.text) for heading in table.headings],
        ["---:" if heading.numeric else "---" for heading in table.headings],
        *([_markdown(field) for field in row] for row in table.rows[:_MOST_LINES]),
    ]
    parts = [f"## {_escape(table.title)}", _escape(table.caption)]
    parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if (hidden := len(table.rows) - _MOST_LINES) > 0:
        parts.append(f"{plural(hidden, 'row')} more are not shown.")
    for heading, texts in table.notes.items():
        parts.append(f"**{_escape(heading)}**\n\n" + "\n".join(f"- {_escape(line)}" for line in texts))
    return "\n\n".join(filter(None, parts))


def _escape(text: str) -> str:
    """Return a text on one line, without a meaning in Markdown or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", words.clean(text)).translate(_HTML)


def _markdown(field: Field) -> str:
    first, *others = map(_escape, field.lines)
    return "<br>".join([f"**{first}**" if field.strong and first else first, *others])
