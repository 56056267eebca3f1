"""Files of a report. Each is written completely or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pandas import concat

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import forget_stale, generated, replace_file
from llpbench.core.text import frame_as_csv, plural
from llpbench.report.board_tables import ANCHOR, Report
from llpbench.report.boards import Leaderboards
from llpbench.report.digest import README, STANDINGS, readme
from llpbench.report.leaderboard import standings
from llpbench.report.overview import Standings, make_overview, read_lines, standings_of
from llpbench.results.journal import FILE, SHARDS, shards

if TYPE_CHECKING:
    from llpbench.report.plots.layout import Plot

_INDEX = "index.html"

_METHOD = re.compile(r"[a-z0-9-]{1,60}")
"""Possible names of methods in this repository."""


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
        if self.report.robustness and not _is_foreign(self.out / README):
            found.append(f"robustness ranking: {self.out / README}#{ANCHOR}")
        if self.plots is not None and self.figures:
            found.append(f"plots: {self.plots} ({plural(len(self.figures), 'figure')})")
        return found


def write_report(report: Report, out: Path, *, plots: Path | None = None) -> Published:
    """Write the page, the README and the standings as CSV into `out`, and the figures as SVG into `plots`.

    If there are reports in folders of `out`, the page begins with their boards (`overview.make_overview`). Files of an
    earlier report that this one does not write are deleted. A README.md that no report wrote is kept. Raises
    `LLPBenchError` if a file cannot be written.
    """
    from llpbench.report.html import to_html

    drawn: list[Plot] = []
    if plots is not None:
        from llpbench.report.plots.gallery import gallery
        from llpbench.report.plots.saving import save

        drawn = save(gallery(report.leaderboards), plots)
    beside = _other_reports(report, out)
    below = {folder: standings_of(read_lines(out / folder / STANDINGS)) for folder in beside.values() if folder != ".."}
    own = [Standings(standings(board)) for board in report.leaderboards.main_boards()]
    overview = make_overview(own, below)
    figures = {plot.name: _relative(plots / f"{plot.name}.svg", out) for plot in drawn if plots is not None}
    files = {STANDINGS: standings_csv(report.leaderboards)}
    if not _is_foreign(out / README):
        files[README] = readme(report, overview, beside, figures)
    first = [
        _plot_of(out / folder / "plots") for folder in (section.folder for section in overview.sections[:1]) if folder
    ]
    files[_INDEX] = to_html(
        report, overview, plots=[*filter(None, first), *drawn], links=_links(report, out), beside=beside
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            replace_file(out / name, text)
        forget_stale(out, files)
    except OSError as error:
        raise LLPBenchError(
            f"leaderboards cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
    return Published(report, out, plots, drawn)


def standings_csv(leaderboards: Leaderboards) -> str:
    """Return a line for each board and entry as CSV: every column of the leaderboard. Unknown values are empty."""
    boards = [standings(board).astype(object) for board in leaderboards.boards]  # whole numbers stay whole
    return frame_as_csv(concat(boards)) if boards else "\n"


def _plot_of(folder: Path) -> Plot | None:
    """Return the first figure of another report, its differences; None if there is none."""
    file = next(iter(sorted(folder.glob("differences-*ordered.svg"))), None)
    if file is None:
        return None
    from llpbench.report.plots.layout import Plot

    caption = "Core. Blue and filled: significant after Holm's correction."
    return Plot(file.stem, "Lead of the first method over the others", caption, file.read_text(encoding="utf-8"))


def _relative(path: Path, folder: Path) -> str:
    """Return the link from a file in a folder to another file."""
    return quote(Path(os.path.relpath(path, folder)).as_posix())


def _is_foreign(readme: Path) -> bool:
    """Return whether a README.md exists that no report wrote."""
    return readme.exists() and README not in generated(readme.parent)


def _other_reports(report: Report, out: Path) -> dict[str, str]:
    """Return folders of reports above and below this one, by title."""
    reports = {}
    for folder in (out.parent, *sorted(path for path in out.glob("*") if path.is_dir())):
        readme = folder / README
        if {_INDEX, STANDINGS} <= {*generated(folder)} and readme.is_file():
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
