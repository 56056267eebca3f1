"""Published files equal those made from the published journal, within rounding, and are small enough to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import chdir
from functools import cache
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame, read_csv
from pandas.testing import assert_frame_equal
from repository import ROOT
from scipy import stats

from benchmarks.publish import SUITES, front, report
from llpbench.core.record import Record, TuningRecord
from llpbench.data.loading import suite_datasets
from llpbench.report.board_tables import Report
from llpbench.report.overview import Standings
from llpbench.report.publishing import _readme, _standings_csv
from llpbench.results.merging import journal_files, merge

PUBLISHED = ROOT / "leaderboards"
PLOTS = ROOT / "plots"

ROUNDING = 0.011
"""how far two numbers of two digits may be apart: libraries differ in the last bits"""

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class Published(NamedTuple):
    """The journal of a suite, and all that is made of it."""

    records: list[Record]
    tunings: list[TuningRecord]
    report: Report


@cache
def read_suite(name: str) -> Published:
    merged = merge(journal_files(str(PUBLISHED / name)))
    records, tunings = [*merged.counting.values()], [*merged.tunings.values()]
    if name == "core":  # its journal also has a few runs of larger datasets
        records = [record for record in records if record["spec"]["dataset"] in suite_datasets("core")]
    with chdir(ROOT):
        return Published(records, tunings, report(name))


@pytest.fixture(scope="module")
def published() -> Iterator[Published]:
    yield read_suite("")
    read_suite.cache_clear()


@pytest.mark.parametrize(
    ("suite", "name", "criterion", "bagging"),
    [
        ("", "fine-ordered", "auc", "ordered"),
        ("", "coarse-mpiou-ordered", "mpiou", "ordered"),
        ("", "coarse-l1-ordered", "l1", "ordered"),
        ("", "fine-random", "auc", "random"),
        ("core", "fine-ordered", "auc", "ordered"),
        ("core", "fine-random", "auc", "random"),
    ],
)
@pytest.mark.usefixtures("published")
def test_published_boards_match_independent_recomputation(suite: str, name: str, criterion: str, bagging: str) -> None:
    records, tunings, report = read_suite(suite)
    expected = recompute(records, tunings, criterion, bagging)
    (board,) = (board for board, its_name in report.leaderboards.names.items() if its_name == name)
    assert len(board.datasets) >= (17 if suite == "core" else 1)
    found = {}
    for entry in board.entries.itertuples():
        overall = Standings.of(board).lines[["mean", "std", "n"]].loc[entry.Index].fillna(0)
        if overall["n"] and not entry.is_tuned:
            ours = (*overall, entry.rank or 0)
            found[entry.method, entry.encoder or "", entry.pretraining, entry.configuration] = ours
    assert len(found) >= (13 if suite == "core" else 9)
    assert found.keys() <= set(expected.index)
    assert suite or found.keys() == set(expected.index)
    for label, values in found.items():
        theirs = expected.fillna(0).loc[label, ["mean", "std", "n", "rank"]]
        assert values == pytest.approx(tuple(theirs), abs=1e-6), label


@pytest.mark.parametrize("suite", ["", "core", "natural", "multiclass", "few-bags", "rare"])
@pytest.mark.usefixtures("published")
def test_published_csv_is_current(suite: str) -> None:
    made = _standings_csv(read_suite(suite).report.leaderboards)
    assert_frame_equal(read_csv(PUBLISHED / suite / "boards.csv"), read_csv(StringIO(made)), atol=1e-5)


def test_readme_paper_column_matches_records(published: Published) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expected = recompute(published.records, published.tunings, "mpiou", "ordered")
    best = expected["mean"].groupby(level=0).max()
    of_labels = recompute(published.records, published.tunings, "auc", "ordered")["mean"]
    best["validation-labels"] = of_labels["validation-labels"].max()  # on boards by labels only
    rows = re.findall(r"^\| ([\w-]+)[\w() ]* \| [\w, ]+ \|.*\| (\d+\.\d) \|$", readme, re.MULTILINE)
    assert len(rows) >= 4
    for method, mean in rows:
        assert float(mean) == pytest.approx(best[method], abs=0.0501), method


def test_published_markdown_is_current(published: Published) -> None:
    committed = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    figures = re.findall(r"^- \[(.+)\]\((.+\.svg)\)$", committed, re.MULTILINE)
    assert {(PUBLISHED / path).resolve() for _, path in figures} == {*PLOTS.resolve().glob("*.svg")}
    below = {suite: [*map(Standings.of, read_suite(suite).report.leaderboards.boards)] for suite in SUITES}
    beside = {title: suite for suite, title in SUITES.items()}
    made = _readme(published.report, front(published.report, below), beside, figures)
    assert _words(committed) == _words(made)
    assert _numbers(committed) == pytest.approx(_numbers(made), abs=ROUNDING)


def test_pages_quote_rows_of_the_board_of_core() -> None:
    board = (PUBLISHED / "core" / "README.md").read_text(encoding="utf-8").replace("\\", "")
    reading, python = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("reading.md", "python.md"))
    (row,) = re.findall(r"^(\| \d+ \| bag-mean-linear .*) \|$", reading, re.MULTILINE)
    assert row in board
    rows = re.findall(r"^\d +(\d) +([\w-]+) +([\d.]+) +[\d.]+ +(\d+) +(\d+)$", python, re.MULTILINE)
    assert len(rows) == 5
    for rank, method, mean, low, high in rows:
        line = next(line for line in board.splitlines() if line.startswith(f"| {rank} | {method} |"))
        assert f"| {float(mean):.2f} ±" in line
        assert f"| {low}–{high} |" in line


def test_published_files_are_small() -> None:
    assert [path.name for path in PUBLISHED.glob("*.md")] == ["README.md"]
    assert (PUBLISHED / "README.md").stat().st_size <= 30_000
    assert (PUBLISHED / "index.html").stat().st_size <= 2_000_000
    assert {path.suffix for path in PLOTS.glob("[!.]*")} == {".svg"}
    assert 5 < len(list(PLOTS.glob("*.svg"))) <= 10
    assert sum(path.stat().st_size for path in PLOTS.iterdir()) <= 1_000_000
    assert [path.name for path in PUBLISHED.glob("*.csv")] == ["boards.csv"]


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def _words(text: str) -> Sequence[str]:
    """All but its numbers, and but for signs, which a number that is nearly 0 may change."""
    return [re.sub(r"\s+|[+-]", " ", part).strip() for part in _NUMBER.split(text)]


ROW = ["method", "encoder", "pretraining", "configuration"]
COLUMN = ["dataset", "bag_size"]
SETTINGS = ("ensemble", "precision", "numbers")


def tidy(records: Sequence[Record], tunings: Sequence[TuningRecord], criterion: str, bagging: str) -> DataFrame:
    """Return one row per run of a bagging with all bags, without configurations that a search chose."""
    chosen = {best["cell"] for tuning in tunings for best in tuning["best"].values()}
    chosen |= {cell for tuning in tunings for cell in tuning.get("former", [])}
    found = []
    for record in records:
        spec, method = record["spec"], record["method"]
        if spec["bagging"] != bagging or "max_bags" in spec or (record["cell"] in chosen and method["changed"]):
            continue
        settings = {**method["changed"], **{name: spec[name] for name in SETTINGS if name in spec}}
        # labels choose the epochs of methods trained on labels, on every board
        result = record["results"].get("auc" if method["role"] == "ceiling" else criterion)
        auc = None if result is None else result["test"]["auc"]
        found.append(
            {
                **{name: spec[name] or "" for name in ("method", "encoder", "pretraining")},
                "configuration": ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(settings.items())),
                **{name: spec[name] for name in COLUMN},
                "protocol": json.dumps(spec["protocol"], sort_keys=True),
                "role": method["role"],
                "seed": record["seed"],
                "auc": np.nan if auc is None else 100 * auc,
            }
        )
    return DataFrame(found)


def recompute(records: Sequence[Record], tunings: Sequence[TuningRecord], criterion: str, bagging: str) -> DataFrame:
    """Without code of `llpbench.report`, return rank, mean, std and n of each row that has all runs that count.

    Uses the protocol with most runs. Runs count if more than half of the methods have attempted them.
    """
    runs = tidy(records, tunings, criterion, bagging)
    main = runs.loc[runs["protocol"] != "null", "protocol"].mode()[0]
    columns = runs.loc[runs["protocol"] == main, COLUMN].drop_duplicates()
    runs = runs[runs["protocol"].isin([main, "null"])].merge(columns)
    learners = runs[~runs["role"].isin(["ceiling", "control"])]
    votes = learners.groupby([*COLUMN, "seed"]).agg(methods=("method", "nunique"), known=("auc", "count"))
    counting = votes.index[(2 * votes["methods"] > learners["method"].nunique()) & (votes["known"] > 0)]
    wide = runs.pivot(index=[*COLUMN, "seed"], columns=ROW, values="auc").reindex(counting).dropna(axis="columns")
    means = wide.groupby(level=COLUMN).mean().groupby(level="dataset").mean()
    spread = wide.groupby(level=["dataset", "seed"]).mean().groupby(level="dataset").std()
    roles = runs.groupby(ROW)["role"].first().reindex(wide.columns)
    found = DataFrame({"mean": means.mean(), "std": np.sqrt((spread**2).sum()) / len(means)})
    found["n"] = min(seeds.index.unique("seed").size for _, seeds in wide.groupby(level="dataset"))
    found["rank"] = found["mean"][~roles.isin(["ceiling", "control"])].rank(ascending=False, method="min")
    return found


DATASETS = 20
"""two-class datasets that every method of the table has run on"""
PARTS = ("dataset", "bagging", "method")
DEVELOPMENT = ["adult", "bank_marketing", "flights_2013_sample"]
"""datasets on which the first method was developed; differences leave them out"""


@pytest.fixture(scope="module")
def scores() -> dict[str, pd.DataFrame]:
    """Mean test AUC × 100 over seeds without labels of rows: by bagging, a frame of datasets by methods.

    As on the boards, a method has the best of its settings.
    """
    rows = [
        (*(record["spec"].get(part, "z") for part in (*PARTS, "pretraining", "numbers")), _auc(record))
        for record in read_suite("core").records
        if record["status"] == "ok" and record["dataset"]["classes"] == 2 and record["spec"]["bag_size"] == 256
    ]
    frame = pd.DataFrame(rows, columns=[*PARTS, "pretraining", "numbers", "auc"])
    methods = [method for method, *_ in _table()]
    found = {}
    for bagging, part in frame.groupby("bagging"):
        entries = part.pivot_table(index="dataset", columns=["method", "pretraining", "numbers"], values="auc")
        entries = entries.dropna(axis="columns")
        assert len(entries) == DATASETS
        best = {method: entries[method].mean().idxmax() for method in methods}
        found[bagging] = pd.DataFrame({method: entries[method][setting] for method, setting in best.items()})
    return found


@pytest.mark.parametrize(("bagging", "column"), [("ordered", 0), ("random", 1)])
def test_readme_table_of_core_matches_journal(scores: dict[str, pd.DataFrame], bagging: str, column: int) -> None:
    of_all = scores[bagging]
    judged = of_all.drop(index=DEVELOPMENT)
    board = read_csv(PUBLISHED / "core" / "boards.csv").query(f"criterion == 'mpiou' and bagging == '{bagging}'")
    p = board.groupby("method")["first_p"].min()
    for method, *cells in _table():
        mean, *interval = map(float, re.findall(r"-?[\d.]+", cells[column]))
        assert mean == pytest.approx(of_all[method].mean(), abs=0.051)
        assert cells[column].endswith(r"\*") == (p.get(method, 1.0) < 0.05), method
        if interval:
            lead = judged[method] - judged.iloc[:, 0]
            expected = stats.t.interval(0.95, len(lead) - 1, lead.mean(), stats.sem(lead))
            assert interval == pytest.approx(expected, abs=0.051)


def _auc(record: Any) -> float:
    results = record["results"]
    return 100 * float(results.get("mpiou", results["auc"])["test"]["auc"])  # methods without epochs may lack mPIoU


def _table() -> list[tuple[str, str, str]]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    part = readme[readme.index("| method | uses | core, ordered") :]
    return re.findall(r"^\| ([\w-]+)[\w() ]* \| [\w, ]+ \| (\d[^|]+) \| (\d[^|]+) \|", part, re.MULTILINE)
