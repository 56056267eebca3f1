"""Headline, first screen, and which method to take: all of it from lines of boards.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from factory import record, runs
from made import make_report

from llpbench.core.record import Record
from llpbench.report.overview import Standings
from llpbench.report.publishing import Published
from llpbench.report.report_table import ReportTable
from llpbench.report.tabulate import Leaderboards

PLACES = [f"d{number}" for number in range(8)]


def journal(*methods: str, **facts: Any) -> list[Record]:
    """Methods on eight datasets with three seeds: each is four points behind the one before."""
    return [
        record(name, 0.9 - 0.04 * place - 0.002 * ((seed + number) % 3), dataset=dataset, seed=seed, **facts)
        for place, name in enumerate(methods)
        for number, dataset in enumerate(PLACES)
        for seed in range(3)
    ]


def rows(table: ReportTable) -> list[dict[str, str]]:
    return [
        {heading.text: " ".join(field.lines) for heading, field in zip(table.headings, row, strict=True)}
        for row in table.rows
    ]


def test_entries_trained_on_labels_have_no_rank() -> None:
    made = [run for n in range(12) for run in runs(f"m{n:02}", 0.9 - n / 50, 0.9 - n / 50)]
    made += [*runs("supervised", 0.95, role="ceiling"), *runs("floor", 0.5, 0.5, role="floor")]
    table = rows(Standings.of(Leaderboards.of(made).main_boards()[0]).table())
    ranks = [row["rank"] for row in table]
    assert ranks == [*map(str, range(1, 9)), "", "13", "–"]
    assert "4" in table[8]["method"]


def test_board_with_validation_labels_has_their_worth() -> None:
    control = runs("validation-labels", *[0.95] * 3, role="control", encoder=None)
    boards = Leaderboards.of([*runs("a", 0.8, 0.8, 0.8), *control]).boards
    by_criterion = {board.criterion.name: Standings.of(board) for board in boards}
    assert "95.0" in by_criterion["auc"].worth_of_labels()
    assert "validation-labels" in {row["method"] for row in rows(by_criterion["auc"].table())}
    assert "validation-labels" not in {row["method"] for row in rows(by_criterion["mpiou"].table())}


def test_overview_round_trips(tmp_path: Path) -> None:
    report = make_report([*journal("a", "b"), *runs("=odd", None, dataset="d0")])
    Published.write(report, tmp_path)
    (first, *_), made = Standings.read(tmp_path / "boards.csv"), report.leaderboards.boards[0]
    assert first.verdict() == Standings.of(made).verdict() != ""
    assert [*first.lines["mean"]] == pytest.approx([*Standings.of(made).lines["mean"]], nan_ok=True)


def test_front_page_starts_with_core_and_natural_bags(tmp_path: Path) -> None:
    suites = {"core": ["ordered", "random"], "natural": ["natural", "natural:split=bags"]}
    suites |= {"few-bags": ["20 ordered"], "rare": ["ordered"]}
    for folder, baggings in suites.items():
        made = []
        for bagging in baggings:
            facts: dict[str, Any] = {"bagging": bagging, "max_bags": None}
            if bagging.startswith("20 "):
                facts = {"bagging": "ordered", "max_bags": 20}
            elif bagging.startswith("natural"):
                facts = {"bagging": f"column:by=key{bagging.removeprefix('natural')}", "bag_size": 0, "max_bags": None}
            facts = {name: value for name, value in facts.items() if value is not None}
            made += journal(f"best-{folder}", "other", **facts)
        Published.write(make_report(made, title=folder.capitalize()), tmp_path / folder)
    Published.write(make_report(journal("ours", "other")), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    first = page.partition('id="summary"')[2].partition("</section>")[0]
    places = [first.index(name) for name in ("best-core", "best-rare", "best-natural", "ours")]
    assert places[0] == min(places)
    assert first.index(">Natural</a>") < first.index("ours")
    assert "best-core" in page.partition("<h1")[2].partition("</h1>")[0]
    assert page.partition("<nav")[2].partition("</nav>")[0].count("index.html") == 0
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    takes = [line.split(" | ")[1] for line in readme.partition("| data |")[2].split("\n")[2:8]]
    core, natural, few, rare = ("best-core (mlp)", "best-natural (mlp)", "best-few-bags (mlp)", "best-rare (mlp)")
    assert takes == [core, core, natural, natural, few, rare]
