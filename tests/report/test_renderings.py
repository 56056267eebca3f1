"""Files, page and terminal: Markdown, CSV, tables that fit the screen, for strange journals too."""

from __future__ import annotations

import copy
import csv
import errno
import io
import os
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from factory import failed, fine_alone, make_cell_of, make_record, places, record, runs, searched
from made import make_report
from rich.console import Console

from benchmarks.publish import front
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report.board_tables import _score_lines
from llpbench.report.overview import Standings
from llpbench.report.publishing import Published
from llpbench.report.report_table import Field, Heading, ReportTable
from llpbench.report.tabulate import Leaderboards
from llpbench.report.terminal import render, render_tables
from llpbench.results.journal import FILE, Contents
from llpbench.results.lines import DamagedError, read_line, to_line


def write_leaderboards(records: list[Record], out: Path) -> Leaderboards:
    report = make_report(records)
    Published.write(report, out)
    return report.leaderboards


HOSTILE = "a|b<script>alert(1)</script>\n[x](y) \x1b[31m*_`"


@pytest.fixture
def records() -> list[Record]:
    return [
        *runs("supervised", 0.90, 0.92, role="ceiling"),
        *runs("dllp", 0.85, 0.87),
        *runs("dllp", 0.80, 0.82, bag_size=256),
        record("ridge", 0.70, encoder=None),
        failed("ridge", encoder=None, seed=1, reason="singular matrix"),
        failed("ridge", encoder=None, bag_size=256),
        *runs("bag-soft-label", 0.60, None, role="floor"),
    ]


def printed(leaderboards: Leaderboards, width: int = 80, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    render(leaderboards, Console(file=file, width=width))
    file.seek(0)
    return file.read()


def test_readme_has_first_rows_of_main_boards_and_links_all_files(records: list[Record], tmp_path: Path) -> None:
    more = [record(f"m{n}", 0.5 + n / 100, bag_size=size) for n in range(12) for size in (64, 256)]
    write_leaderboards([*records, *more], tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    boards = readme.split("\n## ")[1:]
    assert [board[:2] for board in boards] == ["Ho", "No", "Va", "Ru"]
    assert re.findall(r"^\| (\S+) \|", boards[1], re.MULTILINE)[2:10] == [*map(str, range(1, 9))]
    for fact in ("Runs: 35 (2 failed)", "torch 2.13.0", "EPYC (cpu)"):
        assert fact in boards[-1], "what it was made with stands last"
    write_leaderboards(records, tmp_path)
    few = (tmp_path / "README.md").read_text(encoding="utf-8")
    # ridge, the other of two, has not attempted 256 with seed 1: dllp has (86 + 80) / 2, and shares seed 0 alone
    assert "| 1 | dllp (mlp) | 83.00 ± – (1) |" in few
    assert "- ridge on adult 64, seed 1: singular matrix" in few


def test_names_cannot_break_tables(tmp_path: Path) -> None:
    for name, method in (("plain", "name"), ("hostile", HOSTILE)):
        records = [*runs(method, 0.8, 0.9), *runs("b", 0.6, 0.7), failed(method, reason=method, seed=2)]
        write_leaderboards(fine_alone(records), tmp_path / name)
    plain, hostile = ((tmp_path / folder / "README.md").read_text("utf-8") for folder in ("plain", "hostile"))
    assert not [part for part in ("<script", "\x1b") if part in hostile]
    columns = [[line.replace(r"\|", "").count("|") for line in page.split("\n")] for page in (hostile, plain)]
    assert columns[0] == columns[1]


def test_board_csv_is_machine_readable(tmp_path: Path) -> None:
    found = [*runs("a", 0.8, 0.9), *runs("b", 0.6, 0.8)]
    found += [record(name, auc, dataset=dataset) for name, auc in (("a", 0.7), ("b", 0.6)) for dataset in ("x", "y")]
    write_leaderboards(found, tmp_path)
    rows = {(row["criterion"], row["method"]): row for row in csv.DictReader((tmp_path / "boards.csv").open())}
    assert len(rows) == 3 * 2
    assert [rows["auc", "a"][name] for name in ("rank", "mean", "n", "coverage_done")] == ["1", "75.0", "1", "4"]
    assert float(rows["auc", "b"]["first_points"]) == pytest.approx(-35 / 3)
    write_leaderboards(runs("=cmd|x", 0.8, 0.9), tmp_path)
    assert {line["method"] for line in csv.DictReader((tmp_path / "boards.csv").open())} == {"'=cmd|x"}


def test_wide_terminal_tables_are_split() -> None:
    file = io.StringIO()
    columns = [(Heading("method", numeric=False), [Field.text("[bold]x")])]
    columns += [(Heading(f"column {n}"), [Field.number(float(n))]) for n in range(12)]
    render_tables([ReportTable("wide", "Wide", "", columns)], Console(file=file, width=60))
    lines = file.getvalue().split("\n")
    assert max(map(len, lines)) <= 60
    assert sum("[bold]x" in line for line in lines) > 1
    assert all(f"column {n}" in file.getvalue() and f"{n}.00" in file.getvalue() for n in range(12))


def test_terminal_shows_title_headline_board_and_failures(records: list[Record]) -> None:
    boards = Leaderboards.of(records)
    shown = printed(boards, width=200)
    parts = ("No labels", "dllp has the highest mean", "\nmethod", "at most", "Failed: ridge")
    places = [shown.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert shown.count("highest mean") == 1, "the board with validation labels has no headline"


@pytest.mark.parametrize("width", [80, 120])
def test_board_fits_a_screen(width: int) -> None:
    names = [f"a-method-with-a-long-name-{n:02}" for n in range(60)]
    some = []
    for size in (64, 256):
        for n, name in enumerate(names):
            some += runs(name, 0.9 - n / 200, 0.91 - n / 200, bag_size=size)
        some += runs("bag-soft-label", 0.6, 0.61, bag_size=size, role="floor")
    some += [failed(name, seed=7, reason=f"reason {n} " * 9) for n, name in enumerate(names)]
    text = printed(Leaderboards.of(fine_alone(some)), width=width)
    assert text.count("\n") <= 38
    assert max(map(len, text.split("\n"))) <= width
    for name in names[:5]:
        assert re.search(rf"\d {name} \(mlp\) +\d\d\.\d\d ", text), name
    assert "bag-soft-label (mlp), floor" in text
    assert re.search(r"\d+ more methods", text)


def test_ascii_terminal_gets_ascii(records: list[Record]) -> None:
    long = "a-method-" + "with-a-name-" * 9
    made = [*runs("[bold]x[/bold]", 0.8, 0.8), *runs("y\x1b[31m", 0.7, 0.7), *runs(long, 0.8, 0.81)]
    text = printed(Leaderboards.of(fine_alone(made)), width=120)
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text
    assert re.search(r"1 a-method-\S*\.\.\S* \(mlp\) +80\.50 ± 0\.71 \(2\) +1–", text), "a long name costs no number"
    assert "83.00 +- - (1)" in printed(Leaderboards.of(fine_alone(records)), encoding="ascii")


class TestFiles:
    def test_report_replaces_older_files(self, records: list[Record], tmp_path: Path) -> None:
        (tmp_path / ".written").write_text("which-method.md\n")
        (tmp_path / "which-method.md").write_text("of an earlier version")
        write_leaderboards(records, tmp_path)
        assert {file.name for file in tmp_path.iterdir()} == {".written", "README.md", "boards.csv", "index.html"}
        assert "ridge" in (tmp_path / "boards.csv").read_text(encoding="utf-8")

    def test_foreign_readme_is_kept(self, records: list[Record], tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("mine")
        write_leaderboards(fine_alone(records), tmp_path)
        assert (tmp_path / "README.md").read_text() == "mine"
        (tmp_path / "README.md").unlink()
        for _ in range(2):
            write_leaderboards(fine_alone(records), tmp_path)
            assert "dllp" in (tmp_path / "README.md").read_text(encoding="utf-8")

    def test_full_disk_keeps_old_report(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_leaderboards(fine_alone(runs("old", 0.8)), tmp_path)
        before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}

        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        monkeypatch.setattr(os, "replace", Mock(side_effect=full))
        with pytest.raises(LLPBenchError, match="No space left on device"):
            write_leaderboards(fine_alone(runs("new", 0.9)), tmp_path)
        assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == before


def test_stale_runs_are_marked_everywhere(tmp_path: Path) -> None:
    records = [*runs("a", 0.8, 0.9), *runs("b", 0.6, 0.7)]
    report = make_report(records, stale={records[0]["run"]: "a.py has changed"})
    Published.write(report, tmp_path)
    note = "a (mlp) on adult 64 (1 run): a.py has changed"
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"**Made by other code**\n\n- {note}\n" in readme
    assert "a (mlp) (1 of 2 runs stale)" in readme
    shown = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<small>1/2 stale</small>" in shown
    assert f"<li>{note}</li>" in shown
    text = printed(report.leaderboards)
    assert f"Made by other code: {note}" in text
    rows = list(csv.DictReader((tmp_path / "boards.csv").open(encoding="utf-8")))
    assert {(row["method"], row["coverage_stale"]) for row in rows} == {("a", "1"), ("b", "0")}
    broken = failed("a")
    board = Leaderboards.of([broken, record("b")], stale={broken["run"]: "old"}).boards[0]
    assert _score_lines(board.scores.loc[([*board.entries["method"]].index("a"), 0)]) == ["failed", "stale"]


def test_report_links_to_reports_beside_it(tmp_path: Path) -> None:
    report = make_report(fine_alone(runs("a", 0.8, 0.9)), title="All")
    Published.write(report, tmp_path, beside={"A <few>": "few", "Above": ".."})
    readme, page = ((tmp_path / name).read_text(encoding="utf-8") for name in ("README.md", "index.html"))
    assert readme.startswith("# All\n")
    assert "](few/README.md)" in readme
    assert "- [Above](../README.md)" in readme
    assert '<a href="few/index.html">A &lt;few&gt;</a>' in page


PLACES = [f"d{number}" for number in range(8)]


def on_eight_datasets(*methods: str, **facts: Any) -> list[Record]:
    """Methods on eight datasets with three seeds: each is four points behind the one before."""
    return [
        record(name, 0.9 - 0.04 * place - 0.002 * ((seed + number) % 3), dataset=dataset, seed=seed, **facts)
        for place, name in enumerate(methods)
        for number, dataset in enumerate(PLACES)
        for seed in range(3)
    ]


def rows(table: ReportTable) -> list[dict[str, str]]:
    headings = [heading.text for heading in table.headings]
    return [dict(zip(headings, (" ".join(field.lines) for field in row), strict=True)) for row in table.rows]


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


def test_front_page_starts_with_core_and_natural_bags(tmp_path: Path) -> None:
    keys = [{"bagging": f"column:by=key{split}", "bag_size": 0} for split in ("", ":split=bags")]
    suites: dict[str, list[dict[str, Any]]] = {"core": [{}, {"bagging": "random"}], "natural": keys}
    suites |= {"few-bags": [{"max_bags": 20}], "rare": [{}]}
    below = {}
    for folder, settings in suites.items():
        made = [run for facts in settings for run in on_eight_datasets(f"best-{folder}", "other", **facts)]
        below[folder] = [*map(Standings.of, make_report(made).leaderboards.boards)]
    paper = make_report(on_eight_datasets("ours", "other"))
    Published.write(paper, tmp_path, overview=front(paper, below), beside={each.capitalize(): each for each in suites})
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


HOSTILE_TEXT = "</script><b>[/red]\\$x_{\u202e&|`'\""
COLUMNS = "+".join(f"column {number} of a long questionnaire" for number in range(60))
START = make_cell_of("dllp", 64)
CHOSEN = replace(START, params={"weight": 0.5})
SEARCHES = [searched(START, "fine", {"auc": (CHOSEN, 0.8, 0.7)})]
SEARCHES += [searched(START, "coarse", {"l1": (START, 0.2, None), "mpiou": (CHOSEN, 0.8, 0.7)})]
GOOD = [
    *(record(method, 0.8 + 0.01 * seed, seed=seed) for method in ("dllp", "mine", "llp-vat") for seed in range(2)),
    *(record("supervised", 0.9, seed=seed, role="ceiling") for seed in range(2)),
    *(record("bag-soft-label", 0.7, seed=seed, role="floor", encoder=None) for seed in range(2)),
    *(make_record(CHOSEN, seed, method={**record()["method"], "changed": {"weight": 0.5}}) for seed in range(2)),
]


def test_long_bagging_names_are_cut_consistently(tmp_path: Path) -> None:
    baggings = [f"ordered:columns={COLUMNS}+{last}" for last in ("age", "sex")]
    assert min(len(bagging.encode()) for bagging in baggings) > 255
    first, second = (record("dllp", 0.8, bagging=bagging) for bagging in baggings)
    both = tmp_path / "both"
    Published.write(make_report([first, second]), both, plots=both / "plots")
    names = {file.name for file in both.rglob("*")}
    assert len({name for name in names if re.fullmatch(r".*-ordered-columns-column-0-of-.*\.svg", name)}) >= 1
    assert all(len(name) < 200 for name in names)


SURPRISES = [None, -1, 0, 1e6, 1e100, 2**53 - 1, "", HOSTILE_TEXT, [], {}, {"auc": 1}, ["x"], "none", "self", "direct"]


@pytest.mark.parametrize("seed", range(2))
def test_every_valid_record_can_be_shown(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    kept: list[dict[str, Any]] = []
    while len(kept) < 60:
        made: Any = copy.deepcopy(rng.choice([*GOOD, *SEARCHES]))
        for _ in range(rng.choice((1, 1, 3))):
            inner, key = rng.choice([*places({name: made[name] for name in rng.sample(sorted(made), 3)})])
            inner[key] = rng.choice(SURPRISES)
        made |= {"cell": f"{len(kept):016x}", "run": f"{len(kept):016x}-{made['seed']}"} if "run" in made else {}
        try:
            read_line(to_line(made))
        except (DamagedError, AttributeError, TypeError):  # the latter of a result that is no object
            continue
        kept.append(made)
    every: list[Any] = [*GOOD, *SEARCHES, *kept]
    (tmp_path / FILE).write_bytes(b"".join(map(to_line, every)))
    contents = Contents.read(tmp_path / FILE)
    assert contents.warnings == ()
    tunings = [*contents.tunings.values()]
    Published.write(make_report([*contents.records.values()], tunings=tunings), tmp_path)
    assert "llp-vat" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_integers_of_any_type_have_no_decimals() -> None:
    values: list[Any] = [np.int64(1200), 1200, 1200.0]
    assert [Field.number(value).lines for value in values] == [("1,200",), ("1,200",), ("1200.00",)]
