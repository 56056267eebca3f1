"""Robustness ranking: ranks and means known by hand, and the entries that are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from factory import record, runs
from made import fine, make_report

from llpbench.core.record import Record
from llpbench.report.board_tables import ANCHOR
from llpbench.report.publishing import Published
from llpbench.report.report_table import ReportTable

RECORDS = [
    *runs("steady", 0.80, 0.81),
    *runs("steady", 0.70, 0.73, bag_size=256),
    *runs("steady", 0.60, 0.66, dataset="credit"),
    *runs("good", 0.90, 0.94),
    *runs("good", 0.80, 0.81, bag_size=256),
    *runs("good", 0.90, 0.98, dataset="credit"),
    *runs("bag-share", 0.5, 0.5, role="floor", encoder=None),
    *runs("bag-share", 0.5, 0.5, bag_size=256, role="floor", encoder=None),
    *runs("bag-share", 0.5, 0.5, dataset="credit", role="floor", encoder=None),
    *runs("supervised", 0.99, 0.99, role="ceiling"),
]


def ranking(records: list[Record]) -> ReportTable:
    return make_report(records).robustness[0]


def test_mean_ranks_average_tasks_then_datasets() -> None:
    board = fine(RECORDS)
    found = board.robustness()
    assert [*board.entries["method"][found.index]] == ["steady", "good"]
    # adult: steady has ranks 1 and 2, good 2 and 1; credit: 1 and 2
    assert found["mean_rank"].tolist() == [(1.5 + 1) / 2, (1.5 + 2) / 2]
    root = 2**0.5
    assert found["std"].tolist() == pytest.approx([((1 + 3) / 2 + 6) / 2 / root, ((4 + 1) / 2 + 8) / 2 / root])
    assert found["mean"].tolist() == pytest.approx([((80.5 + 71.5) / 2 + 63) / 2, ((92 + 80.5) / 2 + 94) / 2])
    assert found["tasks"].tolist() == [3, 3]


def test_equal_mean_ranks_share_a_rank() -> None:
    found = fine([*runs("a", 0.7, 0.8), *runs("b", 0.5, 0.6), *runs("c", 0.5, 0.7)]).robustness()
    assert found[["rank", "mean_rank"]].to_numpy().tolist() == [[1, 1.5], [1, 1.5], [3, 3]]


def test_constants_methods_trained_on_labels_and_incomplete_entries_have_no_rank() -> None:
    half = [record("half", 0.7), record("half", 0.7, seed=1), record("half", 0.7, bag_size=256)]
    learning_floor = [
        floor
        for facts in ({}, {"bag_size": 256}, {"dataset": "credit"})
        for floor in runs("bag-soft-label", 0.5, 0.5, role="floor", encoder="mlp", **facts)
    ]
    learning_floor[0] = record("bag-soft-label", 0.51, role="floor")
    table = ranking([*RECORDS, *half, *learning_floor])
    assert [row[1].lines[0] for row in table.rows] == ["bag-soft-label (mlp)", "steady (mlp)", "good (mlp)"]
    assert "constant predictions (bag-share)" in table.caption
    assert table.notes == {"Not ranked: without two seeds on every task": ("half (mlp)",)}


def test_entry_label_shows_pretraining() -> None:
    both = [*runs("tabllp-bdc", 0.8, 0.9), *runs("tabllp-bdc", 0.8, 0.84, pretraining="self+bag")]
    assert [row[1].lines[0] for row in ranking(both).rows] == ["tabllp-bdc (mlp, self+bag)", "tabllp-bdc (mlp)"]


def test_no_ranking_without_two_seeds() -> None:
    assert make_report([record("a", 0.8), record("b", 0.7)]).robustness == []


def test_readme_and_page_have_the_ranking_under_its_anchor(tmp_path: Path) -> None:
    Published.write(make_report(RECORDS), tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    section = readme.partition(f"\n## {ANCHOR.capitalize()}\n")[2]
    assert "| 1 | steady (mlp) | 1.25 | 2.83 | 69.50 |\n| 2 | good (mlp) | 1.75 |" in section
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert f'<a href="#{ANCHOR}">' in page
    assert "2.83" in page.partition(f'id="{ANCHOR}"')[2].partition("</section>")[0]
