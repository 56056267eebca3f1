"""What is written and printed: Markdown, CSV, JSON and the terminal's tables."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from report_factory import failed, record, runs
from rich.console import Console

from llpbench.errors import LLPBenchError
from llpbench.record import Record
from llpbench.report import Leaderboards, render, write_leaderboards
from llpbench.report.markdown import escape, to_markdown
from llpbench.report.tabulate import tabulate

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


def test_a_whole_markdown_table(records: list[Record]) -> None:
    page = to_markdown(tabulate(records), "fine")
    assert page.startswith("# Leaderboards: fine-grained validation\n")
    _, board = page.split("## Fine-grained, ordered bags, selected by AUC of validation rows\n")
    expected = """
at most 300 epochs, patience 20, 2 bags a step · encoder mlp · 2 seeds

| rank | method | encoder | adult 64 | adult 256 |
| --- | --- | --- | ---: | ---: |
| ceiling | supervised | mlp | 91.00 ± 1.41 (2) | – |
| 1 | dllp | mlp | **86.00 ± 1.41 (2)** | **81.00 ± 1.41 (2)** |
| – | ridge |  | 70.00 ± – (1)<br>1/2 failed | –<br>1/2 failed<br>1/2 missing |
| floor | bag-soft-label | mlp | 60.00 ± – (1)<br>1/2 undefined | – |

**Failed or undefined**

- ridge on adult 64, seed 1: singular matrix
- ridge on adult 256, seed 0: loss became NaN in epoch 4
- bag-soft-label (mlp) on adult 64, seed 1: the run succeeded, but its AUC is undefined
"""
    assert board == expected


def test_a_page_explains_how_its_numbers_came_about(records: list[Record]) -> None:
    leaderboards = tabulate(records)
    for regime in ("fine", "coarse"):
        page = to_markdown(leaderboards, regime)  # type: ignore[arg-type]
        for statement in (
            "Test labels are never used to choose anything",
            "mean ± standard deviation over seeds",
            "Ceilings train on the label of every single training row",
            "11 runs, of which 2 failed",
            "torch 2.13.0",
            "EPYC (cpu)",
        ):
            assert statement in page, statement


def test_the_coarse_page_shows_both_criteria(records: list[Record]) -> None:
    page = to_markdown(tabulate(records), "coarse")
    assert page.count("\n| rank |") == 2
    assert "selected by mPIoU of validation bags" in page
    assert "selected by L1 distance of validation bags" in page


def test_a_cell_where_every_seed_failed_says_so() -> None:
    page = to_markdown(tabulate([failed(seed=0), failed(seed=1), *runs("ridge", 0.7, 0.8)]), "fine")
    assert "| – | dllp | mlp | failed |" in page


def test_names_cannot_break_a_table() -> None:
    plain, page = (
        to_markdown(tabulate([*runs(name, 0.1, 0.2), failed(name, reason=name, seed=2)]), "fine")
        for name in ("name", HOSTILE)
    )
    assert "<script" not in page
    assert "\x1b" not in page
    assert page.count("\n") == plain.count("\n")
    tables = [
        [line.replace(r"\|", "").count("|") for line in p.split("\n") if line.startswith("|")] for p in (page, plain)
    ]
    assert tables[0] == tables[1]


def test_escape_shows_names_as_they_are() -> None:
    assert escape("a|b<i>&*x*") == r"a\|b&lt;i&gt;&amp;\*x\*"
    assert escape("bank_marketing _x_") == r"bank_marketing \_x\_"


def test_csv_has_a_row_for_each_score_and_metric(records: list[Record], tmp_path: Path) -> None:
    write_leaderboards(records, tmp_path)
    rows = list(csv.DictReader((tmp_path / "leaderboards.csv").open(encoding="utf-8")))
    assert len(rows) == 3 * 4 * 2 * 3  # boards, rows, columns, metrics
    auc = {
        (row["method"], row["bag_size"]): row for row in rows if row["criterion"] == "auc" and row["metric"] == "auc"
    }
    dllp = auc["dllp", "256"]
    cell = dllp.pop("cell")
    assert len(cell) == 16
    assert dllp == {
        "regime": "fine",
        "criterion": "auc",
        "bagging": "ordered",
        "epochs": "300",
        "patience": "20",
        "bags_per_step": "2",
        "rank": "1",
        "role": "",
        "method": "dllp",
        "kind": "neural",
        "encoder": "mlp",
        "pretraining": "none",
        "configuration": "",
        "dataset": "adult",
        "bag_size": "256",
        "metric": "auc",
        "unit": "percent",
        "mean": "81.0",
        "std": "1.414214",
        "n": "2",
        "n_expected": "2",
        "failed": "0",
        "missing": "0",
        "undefined": "0",
        "best_epoch_median": "19.0",
        "seconds_median": "4.0",
    }
    ridge = auc["ridge", "256"]
    assert [ridge[key] for key in ("mean", "std", "n", "n_expected", "failed")] == ["", "", "0", "2", "1"]
    ceiling = auc["supervised", "256"]
    assert (ceiling["failed"], ceiling["missing"], ceiling["cell"]) == ("0", "2", "")
    l1 = [row for row in rows if row["metric"] == "l1" and row["method"] == "dllp"]
    assert {(row["unit"], row["mean"]) for row in l1} == {("", "0.25")}


def test_json_holds_the_same_rows_and_the_notes(records: list[Record], tmp_path: Path) -> None:
    leaderboards = write_leaderboards(records, tmp_path)
    text = (tmp_path / "leaderboards.json").read_text(encoding="utf-8")
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    rows = list(csv.DictReader((tmp_path / "leaderboards.csv").open(encoding="utf-8")))
    assert data["schema"] == 1
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in data["rows"]] == [
        {key: row[key] for key in found} for row, found in zip(rows, data["rows"], strict=True)
    ]
    assert [board["criterion"] for board in data["boards"]] == ["auc", "mpiou", "l1"]
    assert tuple(data["boards"][0]["failures"]) == leaderboards.boards[0].failures
    assert data["provenance"]["runs"] == len(records)


def test_the_terminal_shows_everything_within_80_columns(records: list[Record]) -> None:
    text = printed(tabulate([*records, *(record(bag_size=size) for size in (512, 1024, 2048))]))
    lines = text.split("\n")
    assert max(map(len, lines)) <= 80
    assert text.count("86.00 ± 1.41 (2)") == 3  # one for each board
    for expected in (
        "2048",
        "1/2 failed",
        "1/2 undefined",
        "Failed: ridge on adult 64, seed 1: singular matrix",
        "floor",
    ):
        assert expected in text
    assert text.count("\nmethod") > 3  # five columns do not fit side by side


def test_a_wide_terminal_needs_one_table_a_board(records: list[Record]) -> None:
    assert printed(tabulate(records), width=200).count("\nmethod") == 3


def test_the_terminal_shows_names_as_they_are() -> None:
    text = printed(tabulate([record("[bold]x[/bold]", 0.8), record("y\x1b[31m", 0.7)]))
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text


def test_an_ascii_terminal_is_spoken_to_in_ascii(records: list[Record]) -> None:
    assert "86.00 +- 1.41 (2)" in printed(tabulate(records), encoding="ascii")


def test_many_failures_do_not_flood_the_terminal() -> None:
    text = printed(tabulate([failed(dataset=f"d{i}") for i in range(50)]))
    assert text.count("Failed:") == 21
    assert "Failed: 30 more" in text


def test_an_empty_journal_says_what_to_do(tmp_path: Path) -> None:
    leaderboards = write_leaderboards([], tmp_path)
    assert "llpbench run" in printed(leaderboards)
    assert "llpbench run" in (tmp_path / "coarse.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "leaderboards.json").read_text(encoding="utf-8"))["rows"] == []


class TestFiles:
    def test_they_replace_older_ones_and_leave_nothing_else(self, records: list[Record], tmp_path: Path) -> None:
        write_leaderboards(records[:2], tmp_path / "new")
        write_leaderboards(records, tmp_path / "new")
        assert sorted(file.name for file in (tmp_path / "new").iterdir()) == [
            "coarse.md",
            "fine.md",
            "leaderboards.csv",
            "leaderboards.json",
        ]
        assert "ridge" in (tmp_path / "new" / "fine.md").read_text(encoding="utf-8")

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("mine")
        with pytest.raises(LLPBenchError, match=r"cannot be written into '.*taken': .*Choose another --out") as caught:
            write_leaderboards([], tmp_path / "taken")
        assert "\n" not in str(caught.value)

    def test_a_full_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_leaderboards(runs("old", 0.8), tmp_path)
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(LLPBenchError, match="No space left on device"):
            write_leaderboards(runs("new", 0.9), tmp_path)
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_ten_thousand_records_in_well_under_five_seconds(tmp_path: Path) -> None:
    records = [
        record(f"method-{method}", 0.5 + seed / 100, seed=seed, dataset=dataset, bag_size=size)
        for method in range(40)
        for dataset in ("a", "b", "c", "d", "e")
        for size in (64, 128, 256, 512, 1024)
        for seed in range(10)
    ]
    assert len(records) == 10_000
    start = time.process_time()
    leaderboards = write_leaderboards(records, tmp_path)
    assert time.process_time() - start < 5.0
    assert len(leaderboards.boards[0].rows) == 40


def test_reports_import_no_heavy_library() -> None:
    heavy = ["torch", "ray", "sklearn", "pandas", "scipy", "numpy", "matplotlib"]
    code = f"import sys, llpbench.report; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
