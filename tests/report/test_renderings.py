"""Files and terminal: Markdown, CSV, and tables that fit the screen."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from factory import failed, fine_alone, record, runs
from rich.console import Console

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report import Leaderboards, digest, make_report, render, render_tables, write_report
from llpbench.report.boards import Summary
from llpbench.report.digest import markdown_files, to_markdown
from llpbench.report.exports import to_latex
from llpbench.report.finding import finding
from llpbench.report.report_table import Heading, ReportTable, number, score, text
from llpbench.report.tabulate import tabulate
from llpbench.report.terminal import shortened
from llpbench.report.wording import score_lines


def write_leaderboards(records: list[Record], out: Path, formats: Sequence[str] = ()) -> Leaderboards:
    report = make_report(records)
    write_report(report, out, formats=formats)
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


def printed(leaderboards: Leaderboards, width: int = 80, encoding: str = "utf-8", every: bool = False) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    render(leaderboards, Console(file=file, width=width), every=every)
    file.seek(0)
    return file.read()


def test_readme_has_the_first_rows_of_the_main_boards_and_links_what_there_is(records: list[Record]) -> None:
    more = [record(f"m{n}", 0.5 + n / 100, bag_size=size) for n in range(12) for size in (64, 256)]
    files = markdown_files(make_report([*records, *more]))
    overview = files["README.md"]
    few = markdown_files(make_report(records))["README.md"].split("\n## ")[1]
    # ridge, the other of two, has not attempted 256 with seed 1: dllp has (86 + 80) / 2, and shares seed 0 alone
    assert "| 1 | dllp (mlp) | 83.00 ± – (1) | – | – | 3.00 |\n" in few
    assert "- ridge on adult 64, seed 1: singular matrix" in few
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", overview)) == files.keys() - {"README.md"}
    fine, coarse = overview.split("\n## ")[1:]
    ranks = re.findall(r"^\| (\S+) \|", fine, re.MULTILINE)
    assert ranks == ["rank", "---:", *map(str, range(1, 9)), "ceiling"]
    assert "Coarse" in coarse
    for fact in ("35 runs (2 failed)", "torch 2.13.0", "EPYC (cpu)"):
        assert fact in coarse, "what it was made with stands last"


def test_long_tables_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "MOST_LINES", 4)
    tables = [record(f"m{n}", 0.5, dataset=f"d{n}", bagging=f"kmeans:clusters={n}") for n in range(7)]
    tables += [record("other", 0.6, dataset=f"d{n}", bagging=f"kmeans:clusters={n}") for n in range(7)]
    which = markdown_files(make_report(fine_alone(tables)))["which-method.md"]
    assert len(re.findall(r"^\| kmeans", which, re.MULTILINE)) == 4
    assert "3 rows" in which


def test_names_cannot_break_a_table() -> None:
    made = []
    for method in ("name", HOSTILE):
        records = [*runs(method, 0.8, 0.9), *runs("b", 0.6, 0.7), failed(method, reason=method, seed=2)]
        made.append(markdown_files(make_report(fine_alone(records))))
    for name in ("README.md", "which-method.md"):
        plain, hostile = (files[name] for files in made)
        assert not [part for part in ("<script", "\x1b") if part in hostile]
        columns = [[line.replace(r"\|", "").count("|") for line in page.split("\n")] for page in (hostile, plain)]
        assert columns[0] == columns[1]


def test_standings_and_pairs_are_files_for_machines(tmp_path: Path) -> None:
    found = [*runs("a", 0.8, 0.9), *runs("b", 0.6, 0.8)]
    found += [record(name, auc, dataset=dataset) for name, auc in (("a", 0.7), ("b", 0.6)) for dataset in ("x", "y")]
    write_leaderboards(found, tmp_path, ["csv", "json", "tex"])
    assert len(json.loads((tmp_path / "boards.json").read_text())) == 3 * 2
    assert (tmp_path / "boards.tex").read_text().count(r"\begin{table}") == 2
    rows = {(row["criterion"], row["method"]): row for row in csv.DictReader((tmp_path / "boards.csv").open())}
    assert len(rows) == 3 * 2
    first = rows["auc", "a"]
    assert [first[name] for name in ("rank", "mean", "n", "wins", "coverage_done")] == ["1", "75.0", "1", "100.0", "4"]
    (pair,) = [row for row in csv.DictReader((tmp_path / "comparisons.csv").open()) if row["criterion"] == "auc"]
    assert [pair[name] for name in ("method", "other", "difference")] == ["a", "b (mlp)", "11.666667"]
    assert float(pair["low"]) < 11.7 < float(pair["high"])
    assert 0 < float(pair["p_t_holm"]) < 1
    write_leaderboards(runs("=cmd|x", 0.8, 0.9), tmp_path, ["csv"])
    assert {line["method"] for line in csv.DictReader((tmp_path / "leaderboards.csv").open())} == {"'=cmd|x"}


def test_a_table_in_markdown_and_latex() -> None:
    rows = ((text("a_b"), score(Summary(81.0, None, 1), "1/2 failed", strong=True)), (text("c"), number(None)))
    headings = (Heading("method", numeric=False), Heading("adult 64"))
    table = ReportTable("example", "An example_", "50 % & more.", headings, rows, {"Note": ("a line",)})
    latex = to_latex(table)
    assert r"\caption{\textbf{An example\_}. 50 \% \& more.}" in latex
    assert r"a\_b & 81.00 $\pm$ -- (1) 1/2 failed \\" in latex
    assert to_markdown(table).endswith(
        """
| method | adult 64 |
| --- | ---: |
| a_b | **81.00 ± – (1)**<br>1/2 failed |
| c | – |

**Note**

- a line"""
    )


def test_tables_in_a_terminal_are_split_and_keep_their_first_columns() -> None:
    file = io.StringIO()
    wide = ReportTable(
        "wide",
        "Wide",
        "",
        (Heading("method", numeric=False), *(Heading(f"column {n}") for n in range(12))),
        ((text("[bold]x"), *(number(float(n), 2) for n in range(12))),),
    )
    render_tables([wide], Console(file=file, width=60))
    lines = file.getvalue().split("\n")
    assert max(map(len, lines)) <= 60
    assert sum("[bold]x" in line for line in lines) > 1
    assert all(f"column {n}" in file.getvalue() and f"{n}.00" in file.getvalue() for n in range(12))


def test_csv_has_a_row_for_each_score_and_metric(records: list[Record], tmp_path: Path) -> None:
    write_leaderboards(records, tmp_path, ["csv"])
    rows = list(csv.DictReader((tmp_path / "leaderboards.csv").open(encoding="utf-8")))
    assert len(rows) == 3 * 4 * 2 * 3  # boards, rows, columns, metrics
    auc = {
        (row["method"], row["bag_size"]): row for row in rows if row["criterion"] == "auc" and row["metric"] == "auc"
    }
    dllp = auc["dllp", "256"]
    cell = dllp.pop("cell")
    assert len(cell) == 16
    expected = (
        "regime=fine criterion=auc bagging=ordered epochs=300 patience=20 bags_per_step=2 rank=1 role= method=dllp "
        "kind=neural encoder=mlp pretraining=none configuration= dataset=adult bag_size=256 by= least_rows=256 "
        "median_rows=256.0 most_rows=256 metric=auc unit=percent mean=81.0 std=1.414214 n=2 n_expected=2 failed=0 "
        "missing=0 stale=0 undefined=0 best_epoch_median=19.0 seconds_median=4.0"
    )
    assert dllp == dict(part.split("=") for part in expected.split(" "))
    ridge = auc["ridge", "256"]
    assert [ridge[key] for key in ("mean", "std", "n", "n_expected", "failed")] == ["", "", "0", "2", "1"]
    ceiling = auc["supervised", "256"]
    assert (ceiling["failed"], ceiling["missing"], ceiling["cell"]) == ("0", "2", "")
    l1 = [row for row in rows if row["metric"] == "l1" and row["method"] == "dllp"]
    assert {(row["unit"], row["mean"]) for row in l1} == {("", "0.25")}


def test_the_terminal_shows_everything_within_80_columns_if_asked_for(records: list[Record]) -> None:
    text = printed(tabulate([*records, *(record(bag_size=size) for size in (512, 1024, 2048))]), every=True)
    lines = text.split("\n")
    assert max(map(len, lines)) <= 80
    assert text.count("86.00 ± 1.41 (2)") == 3  # one for each board
    failure = "Failed: ridge on adult 64, seed 1: singular matrix"
    assert all(expected in text for expected in ("2048", "1/2 failed", "1/2 undefined", failure, "floor"))
    assert text.count("\nmethod") > 3  # five columns do not fit side by side


def test_a_terminal_shows_finding_standings_scores_and_warnings(
    records: list[Record],
) -> None:
    boards = tabulate(records)
    text, first = printed(boards, width=200), finding(boards.boards[0], tested=False)
    assert all(part in first for part in ("ordered", "1 dataset", "dllp (mlp)", "83.0"))
    parts = ("Fine-grained", first, "\nmethod", "adult", "at most", "Failed: ridge")
    places = [text.find(part) for part in parts]
    assert places == sorted(places)
    assert text.count("\nmethod") == 2, "standing and scores of the first board"
    assert "Coarse" not in text, "the order is the same there"


@pytest.mark.parametrize("width", [80, 120])
def test_one_board_fits_a_screen_and_names_stay_on_one_line(width: int) -> None:
    names = [f"a-method-with-a-long-name-{n:02}" for n in range(60)]
    some = [
        run
        for size in (64, 256)
        for n, name in enumerate(names)
        for run in runs(name, 0.9 - n / 200, 0.91 - n / 200, bag_size=size)
    ]
    some += [run for size in (64, 256) for run in runs("bag-soft-label", 0.6, 0.61, bag_size=size, role="floor")]
    some += [failed(name, seed=7, reason=f"reason {n} " * 9) for n, name in enumerate(names)]
    text = printed(tabulate(fine_alone(some)), width=width)
    assert text.count("\n") <= 38
    assert max(map(len, text.split("\n"))) <= width
    for name in names[:5]:
        assert re.search(rf"\d {name} \(mlp\) +\d\d\.\d\d ", text), name
    assert "bag-soft-label (mlp), floor" in text
    assert re.search(r"\d+ more methods: --all-boards", text)


def test_ranks_by_another_criterion_are_shown_only_where_they_differ() -> None:
    """In one line; whole boards only if asked for."""

    def by(criterion: str, auc: float) -> dict[str, float | None]:
        return {**record()["results"][criterion]["test"], "auc": auc}

    other: list[Record] = []
    for name, coarse in (("a", 0.6), ("b", 0.7)):
        for run in runs(name, 0.9 if name == "a" else 0.8, 0.91 if name == "a" else 0.81):
            results = {**run["results"]}
            for criterion in ("mpiou", "l1"):
                results[criterion] = {**results[criterion], "test": by(criterion, coarse)}
            other.append(cast(Record, {**run, "results": results}))
    text = printed(tabulate(other), width=200)
    assert "With epochs selected by mPIoU of validation bags, ranks change: a (mlp) 1 → 2, b (mlp) 2 → 1." in text
    same = printed(tabulate([*runs("a", 0.9, 0.91), *runs("b", 0.8, 0.81)]), width=200)
    assert "ranks change" not in same


@pytest.mark.parametrize(("datasets", "seeds", "shown"), [(5, 3, False), (6, 2, False), (6, 3, True)])
def test_letters_need_six_datasets_and_three_seeds(datasets: int, seeds: int, shown: bool) -> None:
    some = [
        record(name, auc + n / 100 + seed / 1000, dataset=f"d{n}", seed=seed)
        for name, auc in (("a", 0.8), ("b", 0.6))
        for n in range(datasets)
        for seed in range(seeds)
    ]
    text = printed(tabulate(fine_alone(some)), width=120)
    assert (" tie " in text) == shown
    assert ("Letters:" in text) == shown
    assert ("Too few" in text) != shown


def test_too_few_validation_bags_are_named_as_the_reason_why_nothing_is_ranked() -> None:
    few = {**record()["bags"], "validation": 4}
    fine, coarse = (tabulate([record(bags=few)]).of(regime)[0] for regime in ("fine", "coarse"))
    assert "dllp" in finding(fine)
    assert "5 validation bags, got 4" in finding(coarse)


def test_names_are_shown_as_they_are_and_an_ascii_terminal_is_spoken_to_in_ascii(records: list[Record]) -> None:
    long = "a-method-" + "with-a-name-" * 9
    made = [*runs("[bold]x[/bold]", 0.8, 0.8), *runs("y\x1b[31m", 0.7, 0.7), *runs(long, 0.8, 0.81)]
    text = printed(tabulate(fine_alone(made)), width=120)
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text
    assert re.search(r"1 a-method-with-a-name-\S*\.\. +80\.50 ± 0\.71 \(2\) +1–", text), "a long name costs no number"
    assert "86.00 +- 1.41 (2)" in printed(tabulate(fine_alone(records)), encoding="ascii")


def test_many_failures_do_not_flood_the_terminal() -> None:
    boards = tabulate([failed(dataset=f"d{i}") for i in range(50)])
    assert printed(boards).count("Failed:") < printed(boards, every=True).count("Failed:") == 21
    assert "Failed: 30 more" in printed(boards, every=True)


class TestFiles:
    def test_they_replace_older_ones_and_leave_nothing_else(self, records: list[Record], tmp_path: Path) -> None:
        names = {".written", "README.md", "boards.csv", "index.html"}
        for formats, more in ((["csv"], {"leaderboards.csv", "comparisons.csv", "robustness.csv"}), ([], set())):
            write_leaderboards(fine_alone(records), tmp_path, formats)
            assert {file.name for file in tmp_path.iterdir()} == names | more
        assert "ridge" in (tmp_path / "boards.csv").read_text(encoding="utf-8")

    def test_somebody_s_own_readme_is_left_alone(self, records: list[Record], tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("mine")
        for _ in range(2):
            write_leaderboards(fine_alone(records), tmp_path)
            assert (tmp_path / "README.md").read_text() == "mine"
        (tmp_path / "README.md").unlink()
        for _ in range(2):
            write_leaderboards(fine_alone(records), tmp_path)
            assert "dllp" in (tmp_path / "README.md").read_text(encoding="utf-8")

    def test_an_empty_journal_says_what_to_do(self, tmp_path: Path) -> None:
        assert "llpbench run" in printed(write_leaderboards([], tmp_path))
        assert "llpbench run" in (tmp_path / "README.md").read_text(encoding="utf-8")

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("mine")
        with pytest.raises(LLPBenchError, match=r"cannot be written into '.*taken': .*Choose another --out") as caught:
            write_leaderboards([], tmp_path / "taken")
        assert "\n" not in str(caught.value)

    def test_a_full_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_leaderboards(fine_alone(runs("old", 0.8)), tmp_path)
        before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(LLPBenchError, match="No space left on device"):
            write_leaderboards(fine_alone(runs("new", 0.9)), tmp_path)
        assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == before


def test_a_whole_report_needs_no_engine_and_no_plugin(tmp_path: Path) -> None:
    """So a board can be made where the plugin of a run is not installed, nor torch."""
    code = """
import sys
from pathlib import Path

class Refusing:
    def find_spec(self, name, path=None, target=None):
        absent = ("torch", "ray", "llpbench.core.registry", "llpbench.data", "llpbench.methods", "llpbench.datasets")
        if name in absent:
            raise ImportError(name)

sys.meta_path.insert(0, Refusing())
from factory import runs
from llpbench.report import make_report, write_report
report = make_report([*runs("a-plugin", 0.8, 0.9, dataset="its-data"), *runs("b", 0.7, 0.8, dataset="its-data")])
write_report(report, Path(sys.argv[1]), plots=Path(sys.argv[1]) / "plots", formats=["csv"])
"""
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=here, check=True)
    assert "its-data" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert list((tmp_path / "plots").glob("*.svg"))


def test_unequal_bags_are_shown_by_their_real_sizes_and_explained(tmp_path: Path) -> None:
    uneven = {"number": 30, "sizes": [1, 9, 11660], "validation": 12, "test": 9}
    lacking = {"number": 30, "sizes": [64, 64, 64], "validation": 4, "test": 4}
    records = [*runs("a", 0.8, 0.9, bag_size=0, bags=uneven), *runs("a", 0.7, 0.8, dataset="credit", bags=lacking)]
    write_leaderboards(records, tmp_path, ["csv"])
    shown = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<small>1–9–11,660</small>" in shown
    assert "Unequal bags: 1–9–11,660" in shown
    assert "†: fewer than 5 validation bags" in shown
    text = printed(tabulate(records))
    assert "1–9–11,660" in text
    rows = csv.DictReader((tmp_path / "leaderboards.csv").open(encoding="utf-8"))
    assert {(row["bag_size"], row["least_rows"], row["median_rows"], row["most_rows"]) for row in rows} == {
        ("", "1", "9.0", "11660"),
        ("64", "64", "64.0", "64"),
    }


def test_auc_of_more_than_two_classes_is_explained() -> None:
    facts = {"code": "DI", "licence": "MIT", "rows": 53_940, "numeric": 7, "categorical": 2, "classes": 5}
    five = [record("a", auc, seed=seed, dataset="diamonds") for seed, auc in enumerate((0.8, 0.9))]
    for each in five:
        each["dataset"] = facts
    explained = "More than two classes: diamonds 5"
    assert explained in " ".join(printed(tabulate(fine_alone(five))).split())
    assert "More than two classes" not in printed(tabulate(fine_alone(runs("a", 0.7, 0.8))))


def test_runs_of_other_code_are_marked_wherever_they_count(tmp_path: Path) -> None:
    records = [*runs("a", 0.8, 0.9), *runs("b", 0.6, 0.7)]
    report = make_report(records, stale={records[0]["run"]: "a.py has changed"})
    write_report(report, tmp_path, formats=["csv"])
    note = "a (mlp) on adult 64 (1 run): a.py has changed"
    assert f"**Made by other code**\n\n- {note}\n" in (tmp_path / "README.md").read_text(encoding="utf-8")
    shown = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<small>1/2 stale</small>" in shown
    assert f"<li>{note}</li>" in shown
    text = printed(report.leaderboards)
    assert "1/2 stale" in text
    assert f"Made by other code: {note}" in text
    rows = list(csv.DictReader((tmp_path / "leaderboards.csv").open(encoding="utf-8")))
    assert {(row["method"], row["stale"]) for row in rows} == {("a", "1"), ("b", "0")}
    broken = failed("a")
    board = tabulate([broken, record("b")], stale={broken["run"]: "old"}).boards[0]
    assert score_lines(board, [*board.entries["method"]].index("a"), 0) == ["failed", "stale"]


def test_a_run_that_failed_before_it_trained_leaves_a_report_of_the_others(tmp_path: Path) -> None:
    """Its record names no hardware."""
    early = failed("llp-vat", "no such column", hardware={}, bags={}, data={}, times={}, members=0)
    write_report(make_report([*runs("dllp", 0.8, 0.9), early]), tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "no such column" in page
    assert "none (failed before)" in page
    assert "80.00 ± – (1)" in page


def test_reports_in_nested_folders_link_to_each_other(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    for folder, title in ((tmp_path, "All"), (tmp_path / "few", "A <few>"), (tmp_path, "All")):
        write_report(make_report(fine_alone(runs("a", 0.8, 0.9)), title=title), folder)
    above, below = ((folder / "README.md").read_text(encoding="utf-8") for folder in (tmp_path, tmp_path / "few"))
    assert above.startswith("# All\n")
    assert r"](few/README.md)" in above
    assert "- [All](../README.md)" in below
    assert '<a href="few/index.html">' in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "](plots/" not in above


def test_pages_of_recommended_methods_name_their_datasets_and_link_to_those_of_other_reports(tmp_path: Path) -> None:
    two = [*runs("a", 0.8, 0.9), *runs("b", 0.6, 0.7), *runs("a", 0.8, dataset="x"), *runs("b", 0.6, dataset="x")]
    for folder, records in (("", two), ("few", two[:4]), ("single", two[:2]), ("", two)):
        write_report(make_report(records, title=folder or "All"), tmp_path / folder)
    above, below = ((tmp_path / folder / "which-method.md").read_text(encoding="utf-8") for folder in ("", "few"))
    links = [re.findall(r"\]\((\S+)\)", page) for page in (above, below)]
    assert links == [["few/which-method.md"], ["../which-method.md"]], "a single method has no such page"
    assert ("adult, x" in above, "adult, x" in below, "1 dataset: adult" in below) == (True, False, True)


def test_shortened_labels_never_read_the_same() -> None:
    labels = [
        "tabllp-bdc (mlp, self+bag, view=a)",
        "tabllp-bdc (mlp, self+bag, view=b)",
        "dllp (mlp, self+bag, view=a)",
    ]
    cut = shortened([*labels, "short"], [24, 24, 24, 24])
    assert cut == ["tabllp-bdc..bag, view=a)", "tabllp-bdc..bag, view=b)", "dllp (mlp, self+bag, v..", "short"]
